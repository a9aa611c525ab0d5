# SPDX-License-Identifier: GPL-2.0-only
"""How often systemd is asked to start ebbgated while the Debian packages come, change and go.

I/O: a bare system with the real dpkg and apt; a stand-in for systemctl. `tests/lab` has systemd.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import host
from tests.package.chroot import Chroot
from tests.package.systemctl import Systemctl
from tests.package.versions import NEWER, newer_deb

DAEMON, WEB, BCC = range(3)
"""Places in `all_debs`."""
ONE_RESTART = ["reset-failed", "restart"]


@dataclass(frozen=True, slots=True)
class Machine:
    """A system with all three packages; what systemctl was asked meanwhile is taken."""

    system: Chroot
    systemctl: Systemctl
    first: list[str]
    """What it was asked while they were installed."""

    def dpkg(self, debs: Sequence[Path]) -> None:
        """Unpack packages in this order, then configure them."""
        for deb in debs:
            host.run(["install", "-D", "-m", "644", deb, self.system.path(f"/tmp/{deb.name}")])
        self.system.check("dpkg", "-i", *(f"/tmp/{deb.name}" for deb in debs))

    def check(self, version: str) -> None:
        """Every package is there in a version, and nothing of it is left to be done."""
        form = "${Package} ${Version} ${Status}\\n"
        names = ("ebbgate", "ebbgate-probe-bcc", "ebbgate-web")
        lines = self.system.check("dpkg-query", "-W", "-f", form, *names).splitlines()
        assert lines == [f"{name} {version} install ok installed" for name in names]


@pytest.fixture
def machine(system_with_bcc: Chroot, all_debs: tuple[Path, ...]) -> Machine:
    systemctl = Systemctl(system_with_bcc)
    done = system_with_bcc.install(*all_debs)
    assert done.rc == 0, done.text
    return Machine(system_with_bcc, systemctl, systemctl.taken_for_daemon())


@pytest.fixture
def newer(all_debs: tuple[Path, ...], tmp_path: Path) -> list[Path]:
    return [newer_deb(deb, tmp_path) for deb in all_debs]


def test_an_installation_with_the_bcc_probe_starts_the_daemon_once(machine: Machine) -> None:
    assert machine.first == ["reset-failed", "preset", "start"]


@pytest.mark.parametrize(
    "order", [(DAEMON, WEB, BCC), (BCC, WEB, DAEMON)], ids=["daemon-first", "probe-first"]
)
def test_an_upgrade_of_all_restarts_the_daemon_once(
    machine: Machine, newer: list[Path], order: tuple[int, ...]
) -> None:
    machine.dpkg([newer[place] for place in order])
    machine.check(NEWER)
    assert machine.systemctl.taken_for_daemon() == ONE_RESTART


def test_an_upgrade_of_all_by_apt_restarts_the_daemon_once(
    machine: Machine, newer: list[Path]
) -> None:
    done = machine.system.install(*newer)
    assert done.rc == 0, done.text
    machine.check(NEWER)
    assert machine.systemctl.taken_for_daemon() == ONE_RESTART


def test_a_bcc_probe_that_comes_alone_is_taken_by_one_restart(
    machine: Machine, all_debs: tuple[Path, ...]
) -> None:
    machine.dpkg([all_debs[BCC]])
    assert machine.systemctl.taken_for_daemon() == ONE_RESTART


def test_a_daemon_that_failed_for_want_of_the_bcc_probe_is_started_once(
    machine: Machine, all_debs: tuple[Path, ...]
) -> None:
    machine.systemctl.fail_the_daemon()
    machine.dpkg([all_debs[BCC]])
    assert machine.systemctl.taken_for_daemon() == ONE_RESTART
    # As if it had been there before all that it depends on.
    machine.system.check("dpkg-reconfigure", "ebbgate-probe-bcc")
    assert machine.systemctl.taken_for_daemon() == ONE_RESTART


def test_a_daemon_that_runs_stays_when_the_bcc_probe_goes(machine: Machine) -> None:
    machine.system.check("apt-get", "-y", "remove", "ebbgate-probe-bcc")
    assert machine.systemctl.taken_for_daemon() == []


def test_all_can_go_at_once(machine: Machine) -> None:
    machine.system.check("apt-get", "-y", "purge", "ebbgate", "ebbgate-web", "ebbgate-probe-bcc")
    assert set(machine.systemctl.taken_for_daemon()) == {"stop"}
