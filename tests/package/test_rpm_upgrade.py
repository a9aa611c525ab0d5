# SPDX-License-Identifier: GPL-2.0-only
"""The rpm packages upgraded to a newer version, and erased: what stays, and what systemd is asked.

I/O: a bare system with rpm's database and the scripts of the packages; a stand-in for systemctl.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ebbgate import __version__
from tests.package.chroot import Chroot
from tests.package.debian_build import BUILT
from tests.package.systemctl import Systemctl
from tests.package.test_install import KEPT, keep_files, kept
from tests.package.test_rpm import rpm, rpms
from tests.package.versions import NEWER, newer_rpms

ALL = ("ebbgate-probe-bcc", "ebbgate-web", "ebbgate")


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = newer_rpms(rpms(), BUILT, tmp_path_factory.mktemp("newer"))
    assert len(made) == len(ALL)
    return made


@pytest.fixture
def systemctl(system: Chroot) -> Systemctl:
    return Systemctl(system)


def change(system: Chroot, action: str, packages: Sequence[str | Path]) -> None:
    """Install, upgrade or erase packages; every script of theirs succeeds."""
    done = rpm(system, action, *packages)
    assert done.rc == 0, done.text
    assert "scriptlet failed" not in done.text


def installed(system: Chroot) -> list[str]:
    """Return name and version of each package, from rpm's database."""
    query = "rpm --root $root --dbpath /var/lib/rpm --query --all"
    form = "'%{NAME} %{VERSION}\\n'"
    done = system.run("true", first=f"{query} --queryformat {form}")
    return sorted(done.text.splitlines())


def test_an_upgrade_keeps_all_and_restarts_each_service_once(
    system: Chroot, systemctl: Systemctl, newer: list[Path]
) -> None:
    change(system, "--install", rpms())
    keep_files(system)
    system.leave_a_knob()
    journal = system.path("/var/lib/ebbgate/journal.db").read_bytes()
    systemctl.taken()
    change(system, "--upgrade", newer)
    assert installed(system) == sorted(f"{name} {NEWER}" for name in ALL)
    assert system.check("ebbgate", "--version").strip().endswith(NEWER)
    assert kept(system) == KEPT
    # The original that a running daemon needs for its end; only a removal restores it.
    assert system.knob() == "40"
    assert system.path("/var/lib/ebbgate/journal.db").read_bytes() == journal
    calls = systemctl.taken()
    units = [call for call in calls if call != "daemon-reload"]
    assert units == [
        "try-restart ebbgate-web.service",
        "reset-failed ebbgated.service",
        "try-restart ebbgated.service",
    ]
    # Each starts from its new unit.
    assert all(calls[calls.index(each) - 1] == "daemon-reload" for each in units[:2])


def test_a_downgrade_restarts_once_and_says_what_to_do(
    system: Chroot, systemctl: Systemctl, newer: list[Path]
) -> None:
    change(system, "--install", newer)
    keep_files(system)
    systemctl.taken()
    done = rpm(system, "--upgrade", "--oldpackage", *rpms())
    assert done.rc == 0, done.text
    assert f"ebbgate: {__version__} is older than {NEWER}" in done.text
    assert f"then install {NEWER} again" in done.text
    assert kept(system) == KEPT
    assert systemctl.taken_for_daemon() == ["reset-failed", "try-restart"]


def test_an_installation_follows_the_presets_and_starts_nothing(
    system: Chroot, systemctl: Systemctl
) -> None:
    change(system, "--install", rpms())
    calls = [call.split() for call in systemctl.taken()]
    assert ["preset", "ebbgated.service"] in calls
    assert ["preset", "ebbgate-web.service"] in calls
    # Nothing runs yet, so this starts nothing.
    assert {words[0] for words in calls} <= {
        "daemon-reload",
        "preset",
        "reset-failed",
        "try-restart",
    }


def test_an_erasure_stops_first_restores_and_leaves_only_settings_and_data(
    system: Chroot, systemctl: Systemctl, newer: list[Path]
) -> None:
    before = system.files()
    change(system, "--install", rpms())
    change(system, "--upgrade", newer)
    keep_files(system)
    system.leave_a_knob()
    systemctl.taken()
    change(system, "--erase", ALL)
    assert installed(system) == []
    assert system.knob() == "10"
    units = [call for call in systemctl.taken() if call != "daemon-reload"]
    stopped = ["disable ebbgate-web.service", "stop ebbgated.service"]
    assert units == [*stopped, "disable ebbgated.service"]
    assert kept(system) == KEPT
    assert system.check("getent", "passwd", "ebbgate")
    new = system.files() - before
    # The tools for users keep the state before the last change; Python compiles its own modules.
    others = ("/var/lib/rpm", "/usr/lib/python3", "/sys")
    left = {path for path in new if not (path.endswith("-") or path.startswith(others))}
    # What runs keeps until the next boot, as after a removal of the Debian package.
    kept_by_us = ("/etc/ebbgate", "/var/lib/ebbgate", "/run/ebbgate")
    # Folders of a system with rpm, such as that of licences, which Debian has not.
    assert {
        path
        for path in left
        if not path.startswith(kept_by_us) and ("ebbgate" in path or not system.path(path).is_dir())
    } == set()
