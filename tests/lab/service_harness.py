# SPDX-License-Identifier: GPL-2.0-only
"""The installed service on a bcache and a dm-cache volume at once, in a guest with systemd."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.bench.faults import keep, load
from tests.bench.gap_drain import Pieces, fill_job
from tests.lab import fio, host
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import CHECKOUT
from tests.lab.session import Session
from tests.lab.wait import wait_until

UNIT = "ebbgated.service"
WEB = "ebbgate-web.service"
API = "http://127.0.0.1:8380/api/v1"
# systemd's own notice, the kill, and a restore under emulation.
GRACE_S = 15
WATCHDOG_S = 10
DIRTY = Pieces(kib=64, dirty_mib=48, range_mib=256)
OWNERS = {
    "/run/ebbgate": "750 root:ebbgate",
    "/run/ebbgate/control.sock": "660 root:ebbgate",
    "/run/ebbgate/ebbgated.lock": "600 root:ebbgate",
    "/var/lib/ebbgate": "2750 root:ebbgate",
    "/var/lib/ebbgate/history.db": "640 root:ebbgate",
    "/var/lib/ebbgate/journal.db": "600 root:ebbgate",
    "/var/lib/ebbgate/overrides.db": "600 root:ebbgate",
}
"""What the group may enter, ask and read, and what is root's alone."""
KERNELS_OWN = frozenset({"writeback_rate"})
"""The kernel itself moves it."""


@dataclass(frozen=True, slots=True)
class Both:
    """A volume of each kind, with dirty data, and with users who read without a pause."""

    session: Session
    bcache: BcacheStack
    dm: DmCacheStack
    enforced: set[str] = field(default_factory=set)
    """Volumes whose mode was chosen; every later daemon has to keep it."""
    users: ExitStack = field(default_factory=ExitStack)
    """Ends the load."""

    def load(self) -> None:
        """Make data dirty, and have users read without a pause."""
        for stack in (self.bcache, self.dm):
            fio.run(self.session, fill_job(stack.device, DIRTY), seed=1)
            options: dict[str, str | int] = {"offset": "1G", "size": "900M", "rate_iops": 40}
            users = load(self.session, stack.device, "randread", "4k", **options, runtime=3600)
            keep(users, self.users)

    def tuned(self) -> bool:
        """Whether ebbgate holds knobs of both kinds."""
        return self.bcache_tuned() and self.dm_tuned()

    def back(self) -> bool:
        """Whether every knob of both is as it was; the cheap looks come first."""
        return not (self.bcache_tuned() or self.dm_tuned() or self.changed())

    def changed(self) -> dict[str, tuple[str, str | None]]:
        """Every knob that is not as it was, the queues and LVM's settings included."""
        found = {**self.bcache.changed_knobs(), **self.dm.changed_knobs()}
        return {name: values for name, values in found.items() if name not in KERNELS_OWN}

    def wait_until_back(self, timeout_s: float) -> None:
        """Wait for that."""
        wait_until(self.back, timeout_s, "every knob of both volumes to be back")

    def bcache_tuned(self) -> bool:
        """Whether ebbgate holds a knob of the bcache volume."""
        return bool(set(self.bcache.changed_knobs()) - KERNELS_OWN)

    def dm_tuned(self) -> bool:
        """Whether it holds that of the dm-cache volume."""
        return str(self.dm.threshold) != self.dm.originals["migration_threshold"]


@contextmanager
def loaded_volumes(machine: Session) -> Iterator[Both]:
    """Make both volumes; leaving them compares every knob again."""
    with (
        DmCacheStack(machine, hdd="hdd1", ssd="ssd1") as dm,
        BcacheStack(machine) as bcache,
    ):
        bcache.expect_changed(*KERNELS_OWN)
        both = Both(machine, bcache, dm)
        with both.users:
            both.load()
            yield both


def install(machine: Session, *targets: str) -> None:
    """Install ebbgate in a guest with systemd, as `make install` and other targets do."""
    folder = f"{machine.share}/installed"
    host.run(["make", "-s", "install", *targets, f"DESTDIR={folder}"], cwd=CHECKOUT)
    # As one file: hundreds of small ones take the share a quarter of a minute.
    host.run(["tar", "-C", f"{folder}/usr/local", "-cf", f"{folder}.tar", "."])
    machine.check(f"tar -C /usr/local -xf {folder}.tar")
    # The user of the dashboard, its token, and the group's way into the daemon's files.
    machine.check(f"make -s -C {CHECKOUT} install-group", timeout_s=120)
    machine.check("systemctl daemon-reload")


def show(machine: Session, field: str, unit: str = UNIT) -> str:
    return machine.check(f"systemctl show --value -p {field} {unit}").strip()


def last_pause_s(machine: Session) -> float:
    """Return for how long the daemon did not run between its last stop and start."""
    end, begin = (int(show(machine, f"Active{way}TimestampMonotonic")) for way in ("Enter", "Exit"))
    return (end - begin) / 1e6


def start_tuning(both: Both) -> None:
    """The service runs and has changed knobs of both kinds."""
    both.session.check(f"systemctl start {UNIT}", timeout_s=120)
    for name in {both.bcache.volume, both.dm.lvm_name} - both.enforced:
        both.session.check(f"ebbgate --patience 40 enforce {name}", timeout_s=90)
        both.enforced.add(name)
    wait_until(both.tuned, 60, "knobs of both kinds to be tuned")


def hang(both: Both) -> None:
    """Stop the daemon's process: the watchdog ends it, all knobs come back, the next one tunes."""
    machine = both.session
    pid = show(machine, "MainPID")
    machine.check(f"kill -STOP {pid}")
    stopped_s = time.monotonic()
    limit_s = WATCHDOG_S + GRACE_S
    wait_until(lambda: show(machine, "Result") == "watchdog", limit_s, "the watchdog to bite")
    both.wait_until_back(limit_s)
    assert time.monotonic() - stopped_s < 3 * limit_s
    # And the next daemon goes on where this one hung: a person chose the mode.
    wait_until(lambda: show(machine, "MainPID") not in ("0", pid), 30, "a new daemon")
    wait_until(both.tuned, 60, "the new daemon to tune")


def answer(machine: Session, path: str, options: str = "") -> Any:
    """What the dashboard's server answers; None while it does not."""
    done = machine.run(f"curl -sS --max-time 60 {options} {API}/{path}", timeout_s=90)
    return json.loads(done.stdout) if done.rc == 0 else None
