# SPDX-License-Identifier: GPL-2.0-only
"""The scripts of both kinds of packages, alone: what they do and say where something is in the way.

I/O: sh, which finds no programs but these stand-ins and a few harmless tools.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.house_rules import REPO

DEBIAN = REPO / "packaging" / "debian"
SPEC = (REPO / "packaging" / "rpm" / "ebbgate.spec").read_text()
TOOLS = ("cat", "dpkg", "readlink", "sort", "tail")
DAEMON_FILE = "/usr/lib/ebbgate/ebbgate/daemon/loop.py"
VERSION = "0.2.0"
NEWER = "0.10.0"


def deb(name: str) -> str:
    """Return a script of the Debian packages."""
    return (DEBIAN / name).read_text()


def rpm(moment: str) -> str:
    """Return a script of the rpm packages, with its macros expanded."""
    body = SPEC.split(f"\n%{moment}\n", 1)[1].split("\n%", 1)[0]
    return body.replace("#LOCAL-INSTALL#", "is_local_install() { false; }").replace("%%", "%")


def rpm_trigger(files: str) -> str:
    """Return the script that runs after a transaction, with the names of files on its input."""
    (moment,) = re.findall(r"^%(transfiletriggerin .*)$", SPEC, re.M)
    return f"(\n{rpm(moment)}\n) <<END\n{files}END\n"


@dataclass(frozen=True, slots=True)
class Host:
    """A folder in place of the machine. Stand-ins write their names and arguments to `calls`."""

    folder: Path

    def stand_in(self, name: str, body: str = "exit 0") -> None:
        path = self.folder / "bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.folder}/calls\n{body}\n')
        path.chmod(0o755)

    def mask(self, unit: str, folder: str) -> None:
        (self.folder / folder / unit).symlink_to("/dev/null")

    def run(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a script; its standard error is part of `stdout`."""
        text = script.replace("@VERSION@", VERSION)
        text = text.replace("/run/systemd/system", f"{self.folder}/run")
        text = text.replace("/etc/systemd/system", f"{self.folder}/etc")
        text = text.replace("/usr/local", f"{self.folder}/local")
        return subprocess.run(
            ["/bin/sh", "-s", "--", *words],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": str(self.folder / "bin")},
            cwd=self.folder,
            check=False,
        )

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with systemd, on which all programs work."""
    for name in ("bin", "run", "etc"):
        (tmp_path / name).mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, f"this test needs {tool}"
        (tmp_path / "bin" / tool).symlink_to(found)
    host = Host(tmp_path)
    for name in ("ebbgate", "systemctl", "deb-systemd-invoke", "journalctl", "python3"):
        host.stand_in(name)
    for name in ("systemd-sysusers", "find"):
        host.stand_in(name)
    return host


# ---- removal and purge ---------------------------------------------------------------------------
def purge(host: Host, package: str) -> list[str]:
    """Return what a purge changes."""
    for name in ("rm", "getent", "userdel", "groupdel"):
        host.stand_in(name)
    assert host.run(deb(f"{package}.postrm"), "purge").returncode == 0
    calls = host.calls() if (host.folder / "calls").exists() else []
    return [call for call in calls if not call.startswith("getent")]


def test_a_purge_removes_files_user_and_group(host: Host) -> None:
    assert purge(host, "ebbgate") == [
        "rm -rf /etc/ebbgate /var/lib/ebbgate /run/ebbgate /run/ebbgate-warm.sock",
        "userdel ebbgate",
        "groupdel ebbgate",
    ]
    (host.folder / "calls").unlink()
    assert purge(host, "ebbgate-web") == ["rm -f /etc/ebbgate/web-token"]


@pytest.mark.parametrize("package", ["ebbgate", "ebbgate-web"])
def test_a_purge_keeps_what_the_ebbgate_of_make_install_uses(host: Host, package: str) -> None:
    """The package was removed, and ebbgate installed from its sources, before the purge."""
    here = host.folder / "local/lib/ebbgate/ebbgate/__init__.py"
    here.parent.mkdir(parents=True)
    here.touch()
    assert purge(host, package) == []


# ---- an ebbgate of make install ------------------------------------------------------------------
def replace_local_install(host: Host, code: int) -> subprocess.CompletedProcess[str]:
    """Install the package over an ebbgate of `make install` whose restore ends with this code."""
    for name in ("rm", "rmdir"):
        host.stand_in(name)
    host.stand_in("systemctl", '[ "$1" != is-active ]')
    (host.folder / "local/bin").mkdir(parents=True)
    for name in ("bin/ebbgate", "lib/ebbgate/ebbgate/__init__.py"):
        path = host.folder / "local" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\nexit {code}\n")
        path.chmod(0o755)
    script = deb("ebbgate.preinst").replace(
        "#LOCAL-INSTALL#", (DEBIAN.parent / "local-install.sh").read_text()
    )
    return host.run(script, "install")


@pytest.mark.parametrize("code", [0, 74])
def test_units_in_etc_that_start_what_is_gone_are_set_aside(host: Host, code: int) -> None:
    """Of `make install UNITDIR=/etc/systemd/system`; systemd prefers them to the package's."""
    (host.folder / "bin/mv").symlink_to("/bin/mv")
    local = host.folder / "local"
    texts = {
        "ebbgated.service": f"ExecStart={local}/sbin/ebbgated\n",
        "ebbgate-warm@.service": f'ExecStart=python3 "{local}/lib/ebbgate"\n',
        "ebbgate-web.service": "ExecStart=/usr/sbin/ebbgate-web --verbose\n",
        "ebbgate-report.service": f"ExecStart={local}/bin/ebbgate report\n",
    }
    for name, text in texts.items():
        (host.folder / "etc" / name).write_text(text)
    done = replace_local_install(host, code)
    aside = {"ebbgated.service", "ebbgate-warm@.service"} if code == 0 else set()
    found = {path.name: path.read_text() for path in (host.folder / "etc").iterdir()}
    assert found == {
        name + (".local" if name in aside else ""): text for name, text in texts.items()
    }
    for name in aside:
        assert f"etc/{name} started the ebbgate of {local}; it is" in done.stdout


@pytest.mark.parametrize(("code", "changes"), [(0, ["stop", "disable"]), (74, ["stop"])])
def test_an_installation_that_fails_leaves_the_services_of_make_install_enabled(
    host: Host, code: int, changes: list[str]
) -> None:
    """What is not replaced must start again at the next boot."""
    done = replace_local_install(host, code)
    assert done.returncode == (1 if code else 0), done.stdout
    calls = [call.split()[1] for call in host.calls() if call.startswith("systemctl")]
    assert [call for call in calls if call in ("stop", "disable")] == changes
    assert ("rm" in {call.split()[0] for call in host.calls()}) == (code == 0)
    assert ("starts again at the next boot" in done.stdout) == (code != 0)


Remove = Callable[[Host], subprocess.CompletedProcess[str]]
REMOVALS = [
    pytest.param(lambda host: host.run(deb("ebbgate.prerm"), "remove"), id="deb"),
    pytest.param(lambda host: host.run(rpm("preun"), "0"), id="rpm"),
]


@pytest.mark.parametrize("remove", REMOVALS)
def test_a_removal_recommends_a_reboot_only_where_it_helps(host: Host, remove: Remove) -> None:
    assert remove(host).returncode == 0
    said = {}
    for code in (74, 69):
        host.stand_in("ebbgate", f"exit {code}")
        done = remove(host)
        assert (done.returncode, "so nothing is removed" in done.stdout) == (1, True)
        said[code] = done.stdout
    assert "reboot" in said[74]
    assert "reboot" not in said[69]
    assert "do what its message says" in said[69]


@pytest.mark.parametrize(
    ("code", "ran", "calls"),
    [
        (0, True, ["is-active", "stop", "disable"]),
        (74, True, ["is-active", "stop", "start"]),
        (74, False, ["is-active", "stop"]),
    ],
)
def test_an_erasure_of_rpm_that_fails_leaves_the_service_as_it_was(
    host: Host, code: int, *, ran: bool, calls: list[str]
) -> None:
    host.stand_in("ebbgate", f"exit {code}")
    host.stand_in("systemctl", f"case $1 in is-active) exit {0 if ran else 3} ;; esac")
    assert host.run(rpm("preun"), "0").returncode == (1 if code else 0)
    found = [call.split()[1] for call in host.calls() if call.startswith("systemctl")]
    assert found == calls


@pytest.mark.parametrize(
    ("script", "word"),
    [(deb("ebbgate-web.postinst"), "configure"), (rpm("post web"), "1")],
    ids=["deb", "rpm"],
)
def test_settings_with_an_error_leave_the_dashboard_installed(
    host: Host, script: str, word: str
) -> None:
    done = host.run(script, word)
    assert (done.returncode, done.stdout) == (0, "")
    host.stand_in("ebbgate", "echo ebbgate.toml:3: unknown key >&2\nexit 78")
    done = host.run(script, word)
    assert done.returncode == 0
    assert "ebbgate.toml:3: unknown key\nebbgate-web: the token" in done.stdout
    assert "then run: ebbgate web-token" in done.stdout


# ---- a daemon that systemd would not start any more ----------------------------------------------
def of_systemd(host: Host) -> list[str]:
    """Return what systemd was told about the daemon."""
    words = ("reset-failed", "start", "restart", "try-restart")
    return [call.split(maxsplit=1)[1] for call in host.calls() if call.split()[1] in words]


def fail_the_daemon(host: Host, failed: bool = True) -> None:
    host.stand_in("systemctl", f'[ "$1" != is-failed ] || exit {0 if failed else 1}')


def test_the_bcc_probe_starts_a_daemon_that_had_failed_too_often(host: Host) -> None:
    host.stand_in("ebbgate-probe-bcc")
    script = deb("ebbgate.postinst")
    assert host.run(script, "triggered", "/usr/lib/ebbgate/bcc").returncode == 0
    assert host.calls()[0] == "systemctl daemon-reload"
    assert of_systemd(host) == ["reset-failed ebbgated.service", "restart ebbgated.service"]


def test_a_bcc_probe_that_has_gone_restarts_nothing(host: Host) -> None:
    script = deb("ebbgate.postinst")
    assert host.run(script, "triggered", "/usr/lib/ebbgate/bcc").returncode == 0
    assert host.calls() == ["systemctl daemon-reload"]


@pytest.mark.parametrize("failed", [True, False])
def test_the_bcc_probe_asks_for_a_start_once_all_that_it_needs_is_there(
    host: Host, failed: bool
) -> None:
    host.stand_in("dpkg-trigger")
    fail_the_daemon(host, failed)
    assert host.run(deb("ebbgate-probe-bcc.postinst"), "configure").returncode == 0
    asked = "dpkg-trigger --no-await /usr/lib/ebbgate/bcc" in host.calls()
    assert asked == failed
    assert of_systemd(host) == []


@pytest.mark.parametrize(
    ("failed", "calls"),
    [(True, ["reset-failed", "start"]), (False, ["reset-failed", "try-restart"])],
)
def test_the_bcc_probe_of_rpm_starts_only_a_daemon_that_had_failed(
    host: Host, failed: bool, calls: list[str]
) -> None:
    fail_the_daemon(host, failed)
    files = f"{DAEMON_FILE}\n/usr/lib/ebbgate/bcc/programs.bcc\n"
    assert host.run(rpm_trigger(files)).returncode == 0
    assert of_systemd(host) == [f"{call} ebbgated.service" for call in calls]


def test_an_rpm_without_the_bcc_probe_starts_no_daemon_that_had_failed(host: Host) -> None:
    fail_the_daemon(host)
    assert host.run(rpm_trigger(f"{DAEMON_FILE}\n")).returncode == 0
    assert of_systemd(host) == ["try-restart ebbgated.service"]


@pytest.mark.parametrize(
    ("package", "unit"),
    [("ebbgate", "ebbgated.service"), ("ebbgate-web", "ebbgate-web.service")],
)
def test_a_new_version_starts_a_service_that_had_failed_too_often(
    host: Host, package: str, unit: str
) -> None:
    script = deb(f"{package}.postinst").replace("#DEBHELPER#", f"systemctl restart {unit}")
    assert host.run(script, "configure", VERSION).returncode == 0
    assert of_systemd(host) == [f"reset-failed {unit}", f"restart {unit}"]


# ---- messages of both kinds ----------------------------------------------------------------------
@pytest.mark.parametrize(("old", "is_older"), [(NEWER, True), (VERSION, False), ("0.1.0", False)])
def test_a_downgrade_says_what_newer_databases_mean(host: Host, old: str, is_older: bool) -> None:
    host.stand_in("ebbgate", f"echo ebbgate, version {old}")
    for script, words in ((deb("ebbgate.preinst"), ("upgrade", old)), (rpm("pre"), ("2",))):
        done = host.run(script, *words)
        assert done.returncode == 0, done.stdout
        said = f"ebbgate: {VERSION} is older than {old}; ebbgated names each database"
        assert (said in done.stdout) == is_older
        assert (f"journal.db: then install {old} again" in done.stdout) == is_older


def test_a_first_installation_is_no_downgrade(host: Host) -> None:
    assert host.run(rpm("pre"), "1").stdout == ""


@pytest.mark.parametrize(
    ("script", "unit", "word"),
    [
        (deb("ebbgate.postinst"), "ebbgated", "configure"),
        (deb("ebbgate-web.postinst"), "ebbgate-web", "configure"),
        (rpm("post"), "ebbgated", "1"),
        (rpm("post web"), "ebbgate-web", "1"),
    ],
    ids=["deb", "deb-web", "rpm", "rpm-web"],
)
@pytest.mark.parametrize(("folder", "name"), [("etc", "{}"), ("run", "--runtime {}")])
def test_a_masked_unit_is_named(
    host: Host, script: str, unit: str, word: str, folder: str, name: str
) -> None:
    assert "masked" not in host.run(script, word).stdout
    host.mask(f"{unit}.service", folder)
    done = host.run(script, word)
    assert done.returncode == 0
    assert f"{unit}.service is masked, so it " in done.stdout
    name = name.format(unit)
    assert f"try: systemctl unmask {name}, then systemctl enable --now {unit}" in done.stdout
