# SPDX-License-Identifier: GPL-2.0-only
"""Install, upgrade, downgrade, remove and purge of the Debian packages in a bare system.

No systemd runs there, so this is about files, users, knobs and messages; `tests/lab` has the rest.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ebbgate import __version__
from ebbgate.log_messages.history import HISTORY_FAILED
from tests.lab import host
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.package.chroot import FULL_VAR, PERCENT, Chroot, base
from tests.package.versions import NEWER, Debs, install_0_1, newer_debs, repacked

KEPT = {
    "/etc/ebbgate/ebbgate.toml": '[volume.bcache0]\nmode = "enforce"\n',
    "/etc/ebbgate/policies.d/mine.yaml": "version: 1\nname: mine\n",
    "/etc/ebbgate/web-token": "a-token-of-at-least-twenty-letters\n",
    "/var/lib/ebbgate/overrides.db": "as it was",
    "/var/lib/ebbgate/history.db": "as it was",
}
"""What a person or the daemon wrote."""
WARM_SOCKET = "/run/ebbgate-warm.sock"
"""systemd makes it, and leaves it when the unit stops."""


def keep_files(system: Chroot) -> None:
    for path, text in KEPT.items():
        system.put(path, text)


def kept(system: Chroot) -> dict[str, str]:
    return {path: system.check("cat", path) for path in KEPT}


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_both_packages_install_without_network(release: str, debs: Debs, tmp_path: Path) -> None:
    try:
        system = Chroot(base(release), tmp_path / "system")
    except NoLab as reason:
        without_lab(reason)
    done = system.install(*debs)
    assert done.rc == 0, done.text
    assert system.check("ebbgate", "--version").strip().endswith(__version__)
    assert system.check("ebbgated", "--version").strip().endswith(__version__)
    assert system.check("ebbgate-web", "--version").strip().endswith(__version__)
    assert system.check("ebbgate-probe", "--version").strip().endswith(__version__)
    assert "adaptive" in system.check(
        "ebbgate", "check-policy", "/usr/lib/ebbgate/policies/adaptive.yaml"
    )
    assert '"openapi"' in system.check("ebbgate-web", "--openapi", "--as-root")
    assert re.match(
        r"ebbgate:x:\d+:\d+:.*:/usr/sbin/nologin", system.check("getent", "passwd", "ebbgate")
    )
    assert system.check("stat", "-c", "%a %U:%G", "/etc/ebbgate/web-token").split() == [
        "640",
        "root:ebbgate",
    ]
    assert HISTORY_FAILED.title in system.check("journalctl", "--dump-catalog", HISTORY_FAILED.id)
    wanted = system.check("ls", "/etc/systemd/system/multi-user.target.wants").split()
    assert {"ebbgated.service", "ebbgate-web.service"} <= set(wanted)


def test_an_installation_has_no_settings_so_each_volume_is_in_advise(installed: Chroot) -> None:
    assert installed.check("find", "/etc/ebbgate", "-type", "f").split() == [
        "/etc/ebbgate/web-token"
    ]
    assert installed.check("dpkg-query", "-W", "-f", "${Conffiles}", "ebbgate", "ebbgate-web") == ""
    code = (
        "from ebbgate.config.settings import load_config; print(load_config().mode_of('bcache0'))"
    )
    assert (
        installed.check("env", "PYTHONPATH=/usr/lib/ebbgate", "python3", "-c", code) == "advise\n"
    )


def test_an_upgrade_keeps_settings_policies_token_and_data(
    installed: Chroot, debs: Debs, tmp_path: Path
) -> None:
    keep_files(installed)
    done = installed.install(*newer_debs(debs, tmp_path))
    assert done.rc == 0, done.text
    assert f"ebbgate ({NEWER})" in done.text
    assert kept(installed) == KEPT


def test_an_upgrade_keeps_the_original_of_a_knob_that_is_changed(
    installed: Chroot, debs: Debs, tmp_path: Path
) -> None:
    installed.leave_a_knob()
    assert installed.install(*newer_debs(debs, tmp_path)).rc == 0
    assert installed.knob() == "40"
    assert "restored" in installed.check("ebbgate", "restore", "--keep-overrides")
    assert installed.knob() == "10"


def test_a_downgrade_keeps_them_and_says_what_to_do(
    installed: Chroot, debs: Debs, tmp_path: Path
) -> None:
    keep_files(installed)
    installed.install(*newer_debs(debs, tmp_path))
    done = installed.install(*debs)
    assert done.rc == 0, done.text
    assert f"ebbgate: {__version__} is older than {NEWER}" in done.text
    assert f"then install {NEWER} again" in done.text
    assert kept(installed) == KEPT


def test_a_removal_restores_every_knob_and_keeps_settings_and_data(installed: Chroot) -> None:
    keep_files(installed)
    installed.leave_a_knob()
    text = installed.check("apt-get", "-y", "remove", "ebbgate")
    assert "writeback_percent  10        restored" in text
    assert installed.knob() == "10"
    assert kept(installed).keys() == KEPT.keys()
    left = [path for path in installed.files() if path.startswith("/usr/lib/ebbgate")]
    assert left == []
    assert HISTORY_FAILED.id not in installed.check("journalctl", "--list-catalog")


def test_a_removal_stops_if_a_knob_cannot_be_restored(installed: Chroot) -> None:
    installed.leave_a_knob()
    where = installed.path(PERCENT)
    where.unlink()
    where.mkdir()
    done = installed.run("apt-get", "-y", "remove", "ebbgate")
    assert done.rc != 0
    assert "1 of 1 knobs could not be restored" in done.text
    assert "so nothing is removed; try again, or reboot first" in done.text
    assert installed.check("ebbgate", "--version").strip().endswith(__version__)
    where.rmdir()
    installed.sysfs.write(PERCENT, "40")
    installed.check("apt-get", "-y", "remove", "ebbgate")
    assert installed.knob() == "10"


def test_an_error_in_the_settings_stops_no_installation_and_no_removal(
    system: Chroot, debs: Debs
) -> None:
    system.put("/etc/ebbgate/ebbgate.toml", "newer_key = 1\n")
    done = system.install(*debs)
    assert done.rc == 0, done.text
    assert "ebbgate.toml:1: newer_key: unknown key" in done.text
    assert "ebbgate-web: the token for changes in the browser could not be read" in done.text
    system.leave_a_knob()
    system.check("apt-get", "-y", "remove", "ebbgate")
    assert system.knob() == "10"


def test_a_purge_leaves_nothing(system: Chroot, debs: Debs) -> None:
    before = system.files()
    users = system.check("getent", "passwd") + system.check("getent", "group")
    assert system.install(*debs).rc == 0
    keep_files(system)
    system.put(WARM_SOCKET, "")
    system.check("apt-get", "-y", "purge", "ebbgate", "ebbgate-web")
    new = system.files() - before
    # The tools for users keep the state before the last change; Python its own modules, compiled.
    python = ("/usr/lib/python3", "/usr/share/python3")
    assert [path for path in new if not (path.endswith("-") or path.startswith(python))] == []
    assert system.check("getent", "passwd") + system.check("getent", "group") == users
    listed = system.check("dpkg-query", "-W", "-f", "${Package} ${Status}\\n").splitlines()
    assert [line for line in listed if "ebbgate" in line] == []


@pytest.mark.parametrize(
    ("package", "folder", "option"),
    [("ebbgate", "/etc", ""), ("ebbgate", "/run", "--runtime "), ("ebbgate-web", "/etc", "")],
)
def test_a_masked_unit_stays_masked_and_the_installation_says_so(
    package: str, folder: str, option: str, system: Chroot, debs: Debs
) -> None:
    unit = {"ebbgate": "ebbgated"}.get(package, package)
    path = f"{folder}/systemd/system/{unit}.service"
    mask = system.path(path)
    mask.parent.mkdir(parents=True)
    mask.symlink_to("/dev/null")
    done = system.install(*debs)
    assert done.rc == 0, done.text
    assert f"{package}: {unit}.service is masked, so it was not started" in done.text
    assert f"systemctl unmask {option}{unit}" in done.text
    assert system.check("readlink", path) == "/dev/null\n"


@pytest.mark.parametrize(("unit", "most"), [("ebbgated", 30), ("ebbgate-web", 15)])
def test_the_exposure_of_the_services_stays_low(unit: str, most: int, installed: Chroot) -> None:
    assert_exposure(installed, unit, most)


def test_the_exposure_stays_low_with_the_probe_that_compiles(
    system_with_bcc: Chroot, all_debs: tuple[Path, ...]
) -> None:
    done = system_with_bcc.install(*all_debs)
    assert done.rc == 0, done.text
    assert_exposure(system_with_bcc, "ebbgated", 30)


def assert_exposure(system: Chroot, unit: str, most: int) -> None:
    """Check what systemd says of a service, in tenths."""
    argv = ["systemd-analyze", "security", "--offline=yes", f"--threshold={most}", "--no-pager"]
    system.check(*argv, f"{unit}.service")


def test_a_package_of_another_architecture_is_refused(
    system: Chroot, debs: Debs, tmp_path: Path
) -> None:
    before = system.files()
    other = repacked(debs[0], tmp_path, ("Architecture: amd64", "Architecture: arm64"))
    host.run(["install", "-D", other, system.path("/tmp/other.deb")])
    done = system.run("dpkg", "-i", "/tmp/other.deb")
    assert done.rc != 0
    assert "package architecture (arm64) does not match system (amd64)" in done.text
    assert system.files() == before


def test_a_full_var_stops_an_upgrade_and_loses_nothing(
    installed: Chroot, debs: Debs, tmp_path: Path
) -> None:
    keep_files(installed)
    newer = newer_debs(debs, tmp_path)
    for deb in newer:
        host.run(["install", "-D", deb, installed.path(f"/tmp/{deb.name}")])
    names = [f"/tmp/{deb.name}" for deb in newer]
    done = installed.run("dpkg", "-i", *names, first=FULL_VAR)
    assert done.rc != 0
    assert "No space left on device" in done.text
    assert kept(installed) == KEPT
    assert installed.check("ebbgate", "--version").strip().endswith(__version__)
    assert installed.install(*newer).rc == 0
    assert kept(installed) == KEPT


def test_a_kernel_without_type_information_is_reported(installed: Chroot) -> None:
    # What is below /sys is only this file.
    installed.sysfs.write("/sys/devices/system/cpu/possible", "0")
    done = installed.run("ebbgate-probe", "--check")
    assert done.rc == 69, done.text
    assert "missing: the kernel has no BTF (/sys/kernel/btf/vmlinux)" in done.text
    assert "no BTF type information" in installed.run("ebbgate", "doctor").text


def test_without_type_information_the_bcc_probe_is_taken_once_installed(
    system_with_bcc: Chroot, all_debs: tuple[Path, ...]
) -> None:
    system = system_with_bcc
    system.sysfs.write("/sys/devices/system/cpu/possible", "0")
    done = system.install(*all_debs)
    assert done.rc == 0, done.text
    done = system.run("ebbgate-probe", "--check")
    assert done.rc == 69, done.text
    assert "ebbgate-probe-bcc: bcc needs the headers of this kernel" in done.text
    assert f"install linux-headers-{os.uname().release}" in done.text
    assert system.run("dpkg", "--purge", "ebbgate-probe-bcc").rc == 0
    assert "install ebbgate-probe-bcc" in system.run("ebbgate-probe", "--check").text
    assert [path for path in system.files() if re.search("(probe-|ebbgate/)bcc", path)] == []


def test_0_1_of_make_install_is_replaced_and_its_data_kept(
    system: Chroot, debs: Debs, tmp_path: Path
) -> None:
    before = system.files()
    install_0_1(system.path("/"), tmp_path)
    assert system.check("sh", "-c", "command -v ebbgate").strip() == "/usr/local/bin/ebbgate"
    assert system.check("ebbgate", "--version").strip().endswith("0.1.0")
    keep_files(system)
    system.leave_a_knob()
    done = system.install(*debs)
    assert done.rc == 0, done.text
    assert "ebbgate: removing the ebbgate of 'make install' from /usr/local" in done.text
    assert system.knob() == "10"
    assert kept(system) == KEPT
    assert system.check("ebbgate", "--version").strip().endswith(__version__)
    files = {path for path in system.files() - before if path.startswith("/usr/local")}
    assert [path for path in files if system.path(path).is_file()] == []


def test_0_1_stays_if_a_knob_cannot_be_restored(system: Chroot, debs: Debs, tmp_path: Path) -> None:
    install_0_1(system.path("/"), tmp_path)
    system.leave_a_knob()
    system.path(PERCENT).unlink()
    system.path(PERCENT).mkdir()
    done = system.install(*debs)
    assert done.rc != 0
    assert "so nothing is installed; try: ebbgate restore, or reboot" in done.text
    assert system.check("ebbgate", "--version").strip().endswith("0.1.0")
