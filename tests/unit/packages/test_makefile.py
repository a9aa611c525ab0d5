# SPDX-License-Identifier: GPL-2.0-only
"""What `make install` and `make uninstall` refuse, say, and do to services. I/O: make, bash."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.house_rules import REPO

PRINTS_ONLY = ("make", "--dry-run", "--no-print-directory", "--silent")


@pytest.mark.parametrize("target", ["install", "uninstall"])
@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("DESTDIR=/srv/my root", "has a space"),
        ("DESTDIR=build/root", "does not begin with /"),
        ("PREFIX=/opt/the programs", "has a space"),
        ("PREFIX=opt", "does not begin with /"),
        ("UNITDIR=/etc/my units", "has a space"),
        ("UNITDIR=units", "does not begin with /"),
        ("ZSH_COMPLETION=/opt/my zsh/_ebbgate", "has a space"),
    ],
)
def test_folders_that_rules_would_take_for_others_are_refused(
    target: str, folder: str, why: str
) -> None:
    argv = [*PRINTS_ONLY, target, folder]
    done = subprocess.run(argv, cwd=REPO, capture_output=True, text=True, check=False)
    name, _, value = folder.partition("=")
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"{name}='{value}' {why}" in done.stderr


def test_sources_in_a_folder_with_a_space_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "my sources"
    folder.mkdir()
    argv = [*PRINTS_ONLY, "-f", str(REPO / "Makefile"), "clean"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"CURDIR='{folder}' has a space: choose another folder" in done.stderr


def test_help_lists_each_target_with_a_text() -> None:
    argv = ["make", "--no-print-directory", "help"]
    text = subprocess.run(argv, cwd=REPO, capture_output=True, text=True, check=True).stdout
    assert {"install", "install-probe-bcc", "deb-arm64"} <= {
        line.split("  ")[1] for line in text.splitlines() if len(line.split("  ")) > 2
    }


def test_install_leaves_the_modes_of_shared_folders_alone(tmp_path: Path) -> None:
    """Debian may give /usr/local/bin to the group staff."""
    for name in ("bin", "sbin"):
        (tmp_path / "usr/local" / name).mkdir(parents=True)
        (tmp_path / "usr/local" / name).chmod(0o2775)
    made = [
        step
        for step in steps_of("install", f"DESTDIR={tmp_path}").splitlines()
        if "mkdir" in step or step.lstrip().startswith("install -d")
    ]
    assert all(any(f"/usr/local/{name}" in step for step in made) for name in ("bin", "sbin"))
    subprocess.run(["sh", "-euc", "\n".join(made)], check=True)
    modes = {
        name: (tmp_path / "usr/local" / name).stat().st_mode & 0o7777 for name in ("bin", "sbin")
    }
    assert modes == {"bin": 0o2775, "sbin": 0o2775}


def test_uninstall_keeps_the_services_until_the_knobs_are_back() -> None:
    """A restore that fails ends it: what is still installed must start again at the next boot."""
    argv = [*PRINTS_ONLY, "uninstall"]
    steps = subprocess.run(argv, cwd=REPO, capture_output=True, text=True, check=True).stdout
    places = [steps.index(step) for step in ("systemctl stop", "ebbgate restore", "disable")]
    assert places == sorted(places)
    assert "disable --now" not in steps


@pytest.mark.parametrize("running", ["ebbgated ebbgate-web", "ebbgated", ""])
def test_an_uninstall_that_fails_starts_what_ran_before(running: str, tmp_path: Path) -> None:
    """Only a daemon that runs goes on trying to restore a knob."""
    programs = {
        "bin/systemctl": f'echo "$*" >>{tmp_path}/calls\n'
        f'case "$1/ {running} " in is-active/*" $3 "*) ;; is-active/*) exit 3 ;; esac\n',
        "local/bin/ebbgate": "echo a knob was not restored >&2; exit 74\n",
        "local/lib/systemd/system/ebbgated.service": "",
        "run/x": "",
    }
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}")
        (tmp_path / name).chmod(0o755)
    steps = steps_of("uninstall", f"PREFIX={tmp_path}/local")
    steps = steps.replace("/run/systemd/system", f"{tmp_path}/run")
    argv = ["bash", "-euo", "pipefail", "-c", steps]
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert (tmp_path / "local/bin/ebbgate").exists()
    calls = (tmp_path / "calls").read_text().splitlines()
    started = [call.removeprefix("start ") for call in calls if call.startswith("start ")]
    assert started == ([running] if running else [])
    assert "nothing is removed: ebbgate restore has failed (see above)" in done.stderr


def steps_of(target: str, *words: str) -> str:
    """Return the commands of a target."""
    argv = [*PRINTS_ONLY, target, *words]
    return subprocess.run(argv, cwd=REPO, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("packaged", [True, False])
def test_uninstall_leaves_the_services_of_a_package_alone(
    own: bool, packaged: bool, tmp_path: Path
) -> None:
    for folder in ("bin", "run", "usr/lib/systemd/system", "local/lib/systemd/system"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("systemctl", "journalctl"):
        path = tmp_path / "bin" / name
        path.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\n')
        path.chmod(0o755)
    unit = "lib/systemd/system/ebbgated.service"
    if own:
        (tmp_path / "local" / unit).touch()
    if packaged:
        (tmp_path / "usr" / unit).touch()
    steps = steps_of("uninstall", f"PREFIX={tmp_path}/local")
    steps = steps.replace("/run/systemd/system", f"{tmp_path}/run")
    steps = steps.replace(f"/usr/{unit}", f"{tmp_path}/usr/{unit}")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", steps],
        env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    calls = (tmp_path / "calls").read_text()
    assert ("stop" in calls, "disable" in calls) == (own, own)
    assert ("systemctl enable --now ebbgated" in done.stdout) == (own and packaged)


def test_an_install_that_fails_leaves_the_modules_of_the_one_before(tmp_path: Path) -> None:
    """As on a full disk: the daemon that runs restores its knobs with these."""
    library = tmp_path / "usr/local/lib/ebbgate"
    (library / "ebbgate").mkdir(parents=True)
    (library / "ebbgate/__init__.py").write_text("before")
    (tmp_path / "install").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "install").chmod(0o755)
    steps = steps_of("install", f"DESTDIR={tmp_path}", "COMPILE=")
    modules, _, _ = steps[steps.index(f"rm -rf {library}/") :].partition("install -m 755")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", modules],
        cwd=REPO,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode != 0
    assert (library / "ebbgate/__init__.py").read_text() == "before"


def run_with_umask_077(steps: str, folder: Path) -> list[str]:
    """Run commands of a target; return what others cannot read of what they made in the folder."""
    for step in re.split(r"(?<!\\)\n", steps):
        argv = ["bash", "-euo", "pipefail", "-c", f"umask 077; {step}"]
        subprocess.run(argv, cwd=REPO, check=True, capture_output=True)
    made = [path for path in folder.rglob("*") if not path.is_symlink()]
    assert made
    return [str(path) for path in made if path.stat().st_mode & 0o044 != 0o044]


def test_everybody_may_read_what_root_installs_with_any_umask(tmp_path: Path) -> None:
    """The user of ebbgate-web would compile each module anew at each start."""
    target = tmp_path / "made"
    steps = steps_of("install", f"DESTDIR={target}")
    modules, _, rest = steps[steps.index(f"rm -rf {target}/") :].partition("install -m 755")
    units = rest[rest.index("for unit in") :].partition("install -D")[0]
    modules = modules.replace("-name '*.py'", "-name units.py")
    folders = f"umask 022; mkdir -p {target}/usr/local/lib/systemd/system"
    assert run_with_umask_077(f"{folders}\n{modules}\n{units}", target) == []
    assert list(target.rglob("*.pyc"))
    assert list(target.rglob("*.service"))


def test_the_source_tree_is_the_same_with_any_umask(tmp_path: Path) -> None:
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui/app.js").touch()
    made = tmp_path / "made"
    steps = steps_of("source-tree", f"PACKAGES={made}", f"UI={tmp_path}/ui")
    steps, _, _ = steps[steps.index(f"rm -rf {made}/") :].partition("tar --sort=name")
    assert run_with_umask_077(steps, made) == []


def test_uninstall_names_units_that_an_install_put_elsewhere(tmp_path: Path) -> None:
    """`make install UNITDIR=/etc/systemd/system`, then `make uninstall`."""
    for folder in ("bin", "run", "etc"):
        (tmp_path / folder).mkdir()
    for name in ("systemctl", "journalctl"):
        path = tmp_path / "bin" / name
        path.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\n')
        path.chmod(0o755)
    folders = f"UNIT_FOLDERS={tmp_path}/etc {tmp_path}/absent"
    steps = steps_of("uninstall", f"PREFIX={tmp_path}/local", folders)
    steps = steps.replace("/run/systemd/system", f"{tmp_path}/run")
    said = {}
    for sbin in ("local", "other"):
        unit = tmp_path / "etc/ebbgated.service"
        unit.write_text(f"[Service]\nExecStart={tmp_path}/{sbin}/sbin/ebbgated\n")
        (tmp_path / "calls").write_text("")
        argv = ["bash", "-euo", "pipefail", "-c", steps]
        env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
        said[sbin] = (unit.exists(), "stop" in (tmp_path / "calls").read_text(), done.stdout)
    next_step = f"next: make uninstall UNITDIR={unit.parent}\n"
    assert said["local"][:2] == (True, True)
    assert f"{unit} stays and starts what is gone now; {next_step}" in said["local"][2]
    assert said["other"][:2] == (True, False)
    assert "stays and starts" not in said["other"][2]


@pytest.mark.parametrize(
    "words", [(), ("PREFIX=/usr",), ("PREFIX=/opt/ebbgate", "UNITDIR=/etc/systemd/system")]
)
def test_packages_remove_the_files_of_usr_local_whatever_prefix_they_are_built_with(
    words: tuple[str, ...],
) -> None:
    (files,) = re.findall(r"@LOCAL_FILES@\|([^|]*)\|", steps_of("source-tree", *words))
    named = files.split()
    assert {name for name in named if not name.startswith("/usr/local/")} == set()
    for name in ("bin/ebbgate", "sbin/ebbgated", "lib/systemd/system/ebbgated.service"):
        assert f"/usr/local/{name}" in named


@pytest.mark.parametrize("is_there", [True, False])
def test_install_replaces_the_bcc_probe_where_it_is_installed(
    is_there: bool, tmp_path: Path
) -> None:
    """An older one and the new ebbgate-probe do not fit together."""
    if is_there:
        (tmp_path / "usr/local/sbin").mkdir(parents=True)
        (tmp_path / "usr/local/sbin/ebbgate-probe-bcc").touch()
    steps = steps_of("install", f"DESTDIR={tmp_path}")
    for name in ("sbin/ebbgate-probe-bcc", "lib/ebbgate/bcc"):
        made = [
            step for step in steps.splitlines() if step.endswith(f"{tmp_path}/usr/local/{name}")
        ]
        assert any("install -" in step and "-m" in step for step in made) == is_there


def test_install_says_to_restart_services_that_run() -> None:
    """`enable --now` leaves the old version running."""
    assert "systemctl restart ebbgated ebbgate-web" in steps_of("install")


@pytest.mark.parametrize(
    ("words", "is_found"),
    [
        ((), True),
        (("PREFIX=/usr",), True),
        (("PREFIX=/opt/ebbgate",), False),
        (("PREFIX=/opt/ebbgate", "UNITDIR=/etc/systemd/system"), True),
    ],
)
def test_install_says_where_systemd_does_not_find_the_units(
    words: tuple[str, ...], is_found: bool
) -> None:
    said = "systemd does not look for units in /opt/ebbgate/lib/systemd/system"
    assert (said not in steps_of("install", *words)) == is_found
