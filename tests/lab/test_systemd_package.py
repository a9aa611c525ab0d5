# SPDX-License-Identifier: GPL-2.0-only
"""The life of the Debian packages on Debian 12 and 13 under a real systemd, on a bcache and a
dm-cache volume on SATA disks that are tuned: 0.1.0 of `make install` replaced; killed, hung,
upgraded, downgraded, rebooted, stopped, removed, purged, installed anew and with its unit masked.

I/O: a guest with the system and the kernel of each release, with systemd as process 1; builds the
packages.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ebbgate import __version__
from tests.bench.faults import data_job
from tests.bench.gap_drain import fill_job
from tests.lab import fio, host
from tests.lab.conftest import without_lab
from tests.lab.debian_guest import debian_guest
from tests.lab.errors import NoLab
from tests.lab.guest import CHECKOUT, Guest
from tests.lab.kernel import DEFAULT_RELEASE
from tests.lab.service_harness import (
    API,
    DIRTY,
    GRACE_S,
    OWNERS,
    UNIT,
    WEB,
    Both,
    answer,
    hang,
    last_pause_s,
    loaded_volumes,
    show,
    start_tuning,
)
from tests.lab.session import Session
from tests.lab.wait import wait_until
from tests.package.debian_build import BUILT, build_in
from tests.package.versions import NEWER, Debs, install_0_1, newer_debs

CUTOFF = "1.0M"
"""A value of `sequential_cutoff` that a person sets."""
AGAIN_S = 90
"""A new daemon under emulation, until it has tuned both volumes."""
OPEN_GATES = ("open", "paced", "resting")
DATA_MIB = 4
DATA_SEED = 5
HISTORY = "/var/lib/ebbgate/history.db"
ACTIONS = "SELECT id, at_unix_ns, volume, knob, new FROM actions"
POLICY = "kept"
POLICY_TEXT = """\
version: 1
name: kept
match: {volume: %s}
limits: {destage_rate: {max: 64KiB/s}}
strategies: [idle_destage, stream_bypass]
"""
"""So slow that a gate stays open while packages are installed."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A guest of one release, and the packages that are built for it."""

    guest: Guest
    debs: Debs


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    """A Debian of its own, whose changes survive a reboot."""
    release: str = request.param
    try:
        debs = built_for(release, tmp_path)
        with debian_guest(release) as guest:
            yield Machine(guest, debs)
    except NoLab as reason:
        without_lab(reason)


@pytest.fixture
def both(machine: Machine) -> Iterator[Both]:
    """Leaving them compares every knob again."""
    with loaded_volumes(machine.guest) as made:
        yield made


def built_for(release: str, folder: Path) -> Debs:
    """Debian 12 is what `make deb` builds for."""
    host.run(["make", "--silent", "deb"], cwd=CHECKOUT, timeout_s=900)
    packages = list(BUILT.glob("*.deb"))
    if release != DEFAULT_RELEASE:
        packages = build_in(release, folder / "build")
    (daemon,) = (path for path in packages if path.name.startswith("ebbgate_"))
    (web,) = (path for path in packages if path.name.startswith("ebbgate-web_"))
    return daemon, web


def apt(machine: Session, *words: str | Path) -> str:
    """Run apt-get; nothing can be downloaded."""
    done = f"DEBIAN_FRONTEND=noninteractive apt-get -y {' '.join(map(str, words))} 2>&1"
    return machine.check(done, timeout_s=400)


def copied(machine: Session, debs: Debs) -> Iterator[Path]:
    """Put the packages where the guest sees them."""
    for deb in debs:
        yield Path(shutil.copy(deb, machine.share))


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


def recorded(machine: Session) -> set[tuple[Any, ...]]:
    """Return what the history has of knob writes; at least one."""
    return wait_until(lambda: set(machine.query(HISTORY, ACTIONS)), 60, "a knob write in it")


def replace_0_1(machine: Session, both: Both, debs: Debs) -> None:
    """The packages take its place; modes and history stay."""
    actions = recorded(machine)
    text = apt(machine, "install", *copied(machine, debs))
    assert "removing the ebbgate of 'make install'" in text
    assert version(machine) == __version__
    assert show(machine, "FragmentPath").endswith(f"lib/systemd/system/{UNIT}")
    assert machine.run("ls /usr/local/lib/ebbgate").rc != 0
    wait_until(both.tuned, AGAIN_S, "the packaged daemon to tune both")
    assert actions <= recorded(machine)
    check_units(machine)
    owners = machine.check(["stat", "-c", "%n %a %U:%G", *OWNERS]).splitlines()
    assert dict(line.split(" ", 1) for line in owners) == OWNERS


def check_units(machine: Session) -> None:
    """Both services run, and will after a boot."""
    for unit in (UNIT, WEB):
        assert machine.check(f"systemctl is-enabled {unit}").strip() == "enabled"
        assert show(machine, "ActiveState", unit) == "active"


def choose_policy(machine: Session, both: Both) -> None:
    """The bcache volume gets a policy of its own."""
    machine.put_file(f"/etc/ebbgate/policies.d/{POLICY}.yaml", POLICY_TEXT % both.bcache.volume)
    wait_until(
        lambda: views(status(machine), both)[0].get("policy") == POLICY,
        AGAIN_S,
        "the policy in use",
    )


def status(machine: Session) -> Any:
    return json.loads(machine.check("ebbgate --json status", timeout_s=60))


def views(document: Any, both: Both) -> list[dict[str, Any]]:
    """Return the status of the bcache and of the dm-cache volume."""
    found = {view["title"]: view for view in document["volumes"]}
    return [found[title] for title in (both.bcache.volume, both.dm.lvm_name)]


def true_status(machine: Session, both: Both) -> Any:
    """Return the status as soon as it is recent and its dirty data are the kernel's, to a MiB."""

    def agreeing() -> Any:
        document = status(machine)
        # The recorder may be late while emulated processors have much to do.
        if [view["live"] for view in document["volumes"]] != [True, True]:
            return None
        pairs = zip(views(document, both), (both.bcache, both.dm), strict=True)
        off = (abs(view["dirty_bytes"] - stack.dirty_bytes()) for view, stack in pairs)
        return document if max(off) <= 1 << 20 else None

    return wait_until(agreeing, 60, "the status to have the kernel's dirty data")


def write_data(machine: Session, both: Both) -> None:
    """Write data that nobody changes again."""
    for stack in (both.bcache, both.dm):
        fio.run(machine, data(stack.device, verify_only=False), seed=DATA_SEED)


def data(device: str, *, verify_only: bool) -> fio.Job:
    """Return the job that writes or checks these data, between those of Both.load."""
    return data_job(device, verify_only=verify_only, offset_mib=512, mib=DATA_MIB)


def verify_data(machine: Session, both: Both) -> None:
    """These data are whole."""
    for stack in (both.bcache, both.dm):
        verified = fio.run(machine, data(stack.device, verify_only=True), seed=DATA_SEED)
        assert verified.only.read.bytes == DATA_MIB << 20


def check(machine: Session, both: Both) -> None:
    """Data are whole, users still read; status and dashboard agree with the kernel."""
    verify_data(machine, both)
    assert machine.check("cat /proc/[0-9]*/comm | grep -cx fio").strip() == "2"
    document = true_status(machine, both)
    daemon = document["daemon"]
    assert (daemon["version"], daemon["device_mapper"]) == (__version__, None)
    assert daemon["probe"]["state"] == "running"
    for view, policy in zip(views(document, both), (POLICY, "adaptive"), strict=True):
        assert (view["mode"], view["policy"]) == ("enforce", policy)
        assert (view["cache_mode"], view["backing_state"]) == ("writeback", "active")
    health = wait_until(lambda: answer(machine, "health"), 120, "ebbgate-web to answer")
    log = machine.check(f"journalctl -b -u {UNIT} -u {WEB} -n 60 --no-pager", timeout_s=60)
    assert (health["daemon"]["alive"], health["history"]["ok"]) == (True, True), log
    page = machine.check(f"curl -sSf --max-time 60 {API.removesuffix('api/v1')}", timeout_s=90)
    assert "app.js" in page


def kill(machine: Session, both: Both) -> None:
    """A killed daemon leaves no knob, and the next one goes on."""
    machine.check(f"kill -KILL {show(machine, 'MainPID')}")
    both.wait_until_back(GRACE_S)
    wait_until(both.tuned, AGAIN_S, "the next daemon to tune both")


def gate_is_open(machine: Session, both: Both) -> bool:
    """Whether dirty data of the bcache volume is written back, since no user is there."""
    view = views(status(machine), both)[0]
    gate = view.get("gate") or {}
    return view["dirty_bytes"] > 0 and gate.get("kind") in OPEN_GATES


def open_gate(machine: Session, both: Both) -> None:
    """End the users while there is much dirty data."""
    both.users.close()
    fio.run(machine, fill_job(both.bcache.device, DIRTY), seed=2)
    wait_until(lambda: gate_is_open(machine, both), AGAIN_S, "an open gate")


def priorities(machine: Session) -> dict[bool, set[tuple[int, int]]]:
    """Return the scheduling class and priority of the daemon's threads; True: of its event loop."""
    pid = show(machine, "MainPID")
    found: dict[bool, set[tuple[int, int]]] = {True: set(), False: set()}
    for line in machine.check(f"cat /proc/{pid}/task/*/stat").splitlines():
        # proc_pid_stat(5): 40 and 41 are the priority and the class; 3 follows the name.
        fields = line.rpartition(")")[2].split()
        found[line.split()[0] == pid].add((int(fields[38]), int(fields[37])))
    return found


def upgrade(machine: Session, both: Both, debs: Debs) -> None:
    """While a gate is open, which it is again after a pause as of a restart; what a person set
    stays.
    """
    name = both.bcache.volume
    machine.check(f"ebbgate --patience 40 set {name} sequential_cutoff 1MiB", timeout_s=90)
    open_gate(machine, both)
    realtime = {True: {(os.SCHED_RR, 2)}, False: {(os.SCHED_RR, 1)}}
    wait_until(lambda: priorities(machine) == realtime, AGAIN_S, "the threads to be urgent")
    pid, actions = show(machine, "MainPID"), recorded(machine)
    apt(machine, "install", *newer_debs(debs, machine.share))
    # Nobody closed it meanwhile but the restart.
    assert both.bcache.dirty_bytes() > 0
    assert machine.check("dpkg-query -W -f '${Version}' ebbgate") == NEWER
    assert show(machine, "MainPID") not in ("0", pid)
    assert show(machine, "NRestarts") == "0"
    pause_s = last_pause_s(machine)
    wait_until(lambda: gate_is_open(machine, both), AGAIN_S, "the gate to be open again")
    machine.check(f"systemctl restart {UNIT}", timeout_s=120)
    # Of the upgrade and of a plain restart: emulated processors are no clocks.
    assert 0 < pause_s <= 2 * last_pause_s(machine) + 5
    both.load()
    wait_until(both.tuned, AGAIN_S, "the upgraded daemon to tune both")
    assert actions <= recorded(machine)
    cutoff = wait_until(
        lambda: both.bcache.knob("sequential_cutoff") == CUTOFF, AGAIN_S, "the value that was set"
    )
    assert cutoff
    machine.check(f"ebbgate --patience 40 release {name} sequential_cutoff", timeout_s=90)
    wait_until(both.tuned, AGAIN_S, "it to go on")


def downgrade(machine: Session, both: Both, debs: Debs) -> None:
    """Back to the older packages; the daemon goes on."""
    text = apt(machine, "install", "--allow-downgrades", *copied(machine, debs))
    assert f"ebbgate: {__version__} is older than {NEWER}" in text
    assert machine.check("dpkg-query -W -f '${Version}' ebbgate") == __version__
    wait_until(both.tuned, AGAIN_S, "the older daemon to tune both")


def reboot(guest: Guest, both: Both) -> None:
    """Under load and with dirty data; udev brings both volumes up, and ebbgate goes on."""
    actions = recorded(guest)
    write_data(guest, both)
    # They end with the system.
    both.users.pop_all()
    # What LVM needs as long as there is no udev.
    guest.check("rm /etc/lvm/lvmlocal.conf")
    guest.reboot()
    guest.check("systemctl start multi-user.target", timeout_s=300)
    for stack in (both.bcache, both.dm):
        guest.wait_for_path(stack.device, AGAIN_S)
        stack.reassemble()
    check_units(guest)
    both.load()
    wait_until(both.tuned, AGAIN_S, "the daemon to tune both after the reboot")
    assert actions <= recorded(guest)


def stop(machine: Session, both: Both) -> None:
    """A stop leaves no knob; the next start goes on."""
    machine.check(f"systemctl stop {UNIT}", timeout_s=60)
    assert both.changed() == {}
    assert show(machine, "Result") == "success"
    verify_data(machine, both)
    start_tuning(both)


def remove(machine: Session, both: Both) -> None:
    """All knobs come back first; settings and history stay."""
    apt(machine, "remove", "ebbgate-web", "ebbgate")
    assert both.changed() == {}
    assert machine.run(f"systemctl is-active {UNIT} {WEB}").rc != 0
    assert machine.run("ls /usr/lib/ebbgate").rc != 0
    machine.check("ls /var/lib/ebbgate/history.db /etc/ebbgate/web-token")
    verify_data(machine, both)


def purge(machine: Session) -> None:
    """Nothing is left."""
    apt(machine, "purge", "ebbgate-web", "ebbgate")
    assert machine.run("getent passwd ebbgate || getent group ebbgate").rc != 0
    left = machine.run("ls -d /etc/ebbgate /var/lib/ebbgate /run/ebbgate 2> /dev/null").stdout
    assert left == ""
    assert machine.run(f"systemctl cat {UNIT}").rc != 0


def install_anew(machine: Session, both: Both, debs: Debs) -> None:
    """Without settings and history, volumes are only advised on; a purge at once removes all."""
    apt(machine, "install", *copied(machine, debs))
    check_units(machine)
    modes = [view["mode"] for view in views(true_status(machine, both), both)]
    assert modes == ["advise", "advise"]
    assert both.changed() == {}
    purge(machine)
    assert both.changed() == {}
    verify_data(machine, both)


def install_masked(machine: Session, both: Both, debs: Debs) -> None:
    """A unit that the administrator has masked does not run, and the installation says so."""
    machine.check(f"systemctl mask {UNIT}", timeout_s=60)
    text = apt(machine, "install", *copied(machine, debs))
    assert f"{UNIT} is masked, so it was not started" in text
    assert (show(machine, "LoadState"), show(machine, "ActiveState")) == ("masked", "inactive")
    assert both.changed() == {}
    machine.check(f"systemctl unmask {UNIT}", timeout_s=60)
    purge(machine)


@pytest.mark.full
@pytest.mark.timeout(2700)
@pytest.mark.parametrize("machine", ["bookworm", "trixie"], indirect=True)
def test_the_packages_live_and_leave_without_a_trace(machine: Machine, both: Both) -> None:
    guest, debs = machine.guest, machine.debs
    write_data(guest, both)
    start_0_1(guest, both)
    replace_0_1(guest, both, debs)
    choose_policy(guest, both)
    check(guest, both)
    kill(guest, both)
    hang(both)
    check(guest, both)
    upgrade(guest, both, debs)
    check(guest, both)
    downgrade(guest, both, debs)
    reboot(guest, both)
    check(guest, both)
    stop(guest, both)
    remove(guest, both)
    purge(guest)
    install_anew(guest, both, debs)
    install_masked(guest, both, debs)
