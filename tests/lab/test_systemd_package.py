# SPDX-License-Identifier: GPL-2.0-only
"""The life of the Debian packages under a real systemd, on a bcache and a dm-cache volume that are
tuned: 0.1.0 of `make install` replaced, killed, upgraded, removed, purged.

I/O: a guest of its own, with systemd as process 1; builds the packages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate import __version__
from tests.lab import host
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.lab.guest import CHECKOUT, Guest
from tests.lab.service_harness import (
    GRACE_S,
    OWNERS,
    UNIT,
    WEB,
    Both,
    answer,
    loaded_volumes,
    show,
    start_tuning,
)
from tests.lab.session import Session
from tests.lab.wait import wait_until
from tests.package.versions import NEWER, Debs, install_0_1, newer_debs

CUTOFF = "1.0M"
"""A value of `sequential_cutoff` that a person sets."""
AGAIN_S = 90
"""A new daemon under emulation, until it has tuned both volumes."""


@pytest.fixture
def machine() -> Iterator[Session]:
    """A guest with systemd, in which services may be started by packages."""
    try:
        with Guest(systemd=True) as session:
            # Images of containers forbid it.
            session.check("rm -f /usr/sbin/policy-rc.d")
            yield session
    except NoLab as reason:
        without_lab(reason)


@pytest.fixture
def both(machine: Session) -> Iterator[Both]:
    """Leaving them compares every knob again."""
    with loaded_volumes(machine) as made:
        yield made


def built() -> Debs:
    host.run(["make", "--silent", "deb"], cwd=CHECKOUT, timeout_s=900)
    folder = CHECKOUT / "build" / "packages"
    (daemon,) = folder.glob("ebbgate_*_amd64.deb")
    (web,) = folder.glob("ebbgate-web_*_all.deb")
    return daemon, web


def dpkg(machine: Session, *words: str | Path) -> str:
    """Run dpkg; the index of manual pages would take minutes here."""
    options = "--no-triggers --force-unsafe-io"
    return machine.check(f"dpkg {options} {' '.join(map(str, words))} 2>&1", timeout_s=400)


def version(machine: Session) -> str:
    return machine.check("ebbgate --version", timeout_s=60).split()[-1]


def start_0_1(machine: Session, both: Both) -> None:
    """0.1.0 tunes both volumes."""
    share = machine.share
    tree = install_0_1(share / "installed", share)
    host.run(["tar", "-C", share / "installed/usr/local", "-cf", share / "installed.tar", "."])
    machine.check(f"tar -C /usr/local -xf {share}/installed.tar")
    machine.check(f"make -s -C {tree} install-group && systemctl daemon-reload", timeout_s=120)
    start_tuning(both)
    assert version(machine) == "0.1.0"


def replace_0_1(machine: Session, both: Both, debs: Debs) -> None:
    """The packages take its place; the modes stay."""
    text = dpkg(machine, "-i", *debs)
    assert "removing the ebbgate of 'make install'" in text
    assert version(machine) == __version__
    assert show(machine, "FragmentPath").endswith(f"lib/systemd/system/{UNIT}")
    assert machine.run("ls /usr/local/lib/ebbgate").rc != 0
    wait_until(both.tuned, AGAIN_S, "the packaged daemon to tune both")
    for unit in (UNIT, WEB):
        assert machine.check(f"systemctl is-enabled {unit}").strip() == "enabled"
        assert show(machine, "ActiveState", unit) == "active"
    health = wait_until(lambda: answer(machine, "health"), 120, "ebbgate-web to answer")
    assert (health["daemon"]["alive"], health["history"]["ok"]) == (True, True)
    owners = machine.check(["stat", "-c", "%n %a %U:%G", *OWNERS]).splitlines()
    assert dict(line.split(" ", 1) for line in owners) == OWNERS


def kill(machine: Session, both: Both) -> None:
    """A killed daemon leaves no knob, and the next one goes on."""
    machine.check(f"kill -KILL {show(machine, 'MainPID')}")
    both.wait_until_back(GRACE_S)
    wait_until(both.tuned, AGAIN_S, "the next daemon to tune both")


def upgrade(machine: Session, both: Both, debs: Debs) -> None:
    """While gates are open, in one restart; what a person set stays."""
    name = both.bcache.volume
    machine.check(f"ebbgate --patience 40 set {name} sequential_cutoff 1MiB", timeout_s=90)
    pid = show(machine, "MainPID")
    dpkg(machine, "-i", *newer_debs(debs, machine.share))
    assert machine.check("dpkg-query -W -f '${Version}' ebbgate") == NEWER
    assert show(machine, "MainPID") not in ("0", pid)
    assert show(machine, "NRestarts") == "0"
    wait_until(both.tuned, AGAIN_S, "the upgraded daemon to tune both")
    cutoff = wait_until(
        lambda: both.bcache.knob("sequential_cutoff") == CUTOFF, AGAIN_S, "the value that was set"
    )
    assert cutoff
    machine.check(f"ebbgate --patience 40 release {name} sequential_cutoff", timeout_s=90)
    wait_until(both.tuned, AGAIN_S, "it to go on")


def remove(machine: Session, both: Both) -> None:
    """All knobs come back first; settings and history stay."""
    dpkg(machine, "-r", "ebbgate-web", "ebbgate")
    assert both.changed() == {}
    assert machine.run(f"systemctl is-active {UNIT} {WEB}").rc != 0
    assert machine.run("ls /usr/lib/ebbgate").rc != 0
    machine.check("ls /var/lib/ebbgate/history.db /etc/ebbgate/web-token")


def purge(machine: Session) -> None:
    """Nothing is left."""
    # The guest has a file system of its own there.
    machine.check("umount /var/lib/ebbgate")
    dpkg(machine, "-P", "ebbgate-web", "ebbgate")
    assert machine.run("getent passwd ebbgate || getent group ebbgate").rc != 0
    left = machine.run("ls -d /etc/ebbgate /var/lib/ebbgate /run/ebbgate 2> /dev/null").stdout
    assert left == ""
    assert machine.run(f"systemctl cat {UNIT}").rc != 0


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_packages_live_and_leave_without_a_trace(machine: Session, both: Both) -> None:
    debs = built()
    start_0_1(machine, both)
    replace_0_1(machine, both, debs)
    kill(machine, both)
    upgrade(machine, both, debs)
    remove(machine, both)
    purge(machine)
