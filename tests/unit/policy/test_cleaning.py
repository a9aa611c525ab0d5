# SPDX-License-Identifier: GPL-2.0-only
"""The cleaning of a dm-cache volume: when it may begin, when it is over, and that all is undone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.actuators.gate_plan import cleaner_step
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.reason import Reason
from ebbgate.actuators.restore import restore
from ebbgate.knobs.catalog import TABLE
from ebbgate.model.decision import JournalEntry, OutcomeKind
from ebbgate.model.dm import CacheStatus, DmHealth, WritecacheStatus
from ebbgate.model.volume import Kind, Volume, VolumeState
from ebbgate.policy.cleaning import Cleaning, ending, eta_s, why_not_clean
from ebbgate.probes.topology import find
from ebbgate.probes.volume_state import read_state
from ebbgate.units import MIB, NS_PER_S
from tests.builders import dm_volume
from tests.builders import volume as bcache
from tests.fake_dm import CACHE_TABLE, LENGTH_SECTORS, lvm_disks, lvm_machine
from tests.fake_journal import FakeJournal

ASKED = Cleaning(since_ns=100 * NS_PER_S, until_ns=160 * NS_PER_S, who="anna", dirty_bytes=80 * MIB)
SEEN = replace(ASKED, seen=True)
REASON = Reason("clean", "anna asked")
OLD = f"0 {LENGTH_SECTORS} cache {CACHE_TABLE}"


def state(dirty_mib: int | None = 40, policy: str = "cleaner", **more: object) -> VolumeState:
    status = CacheStatus(DmHealth.OK, policy=policy)
    dirty_bytes = None if dirty_mib is None else dirty_mib * MIB
    found = VolumeState(0, "dirty", "writeback", dirty_bytes, 900 * MIB, 0.5, {}, status)
    return replace(found, **more)  # type: ignore[arg-type]


class Machine:
    """LVM's vg/data on a fake machine, and a journal."""

    def __init__(self, root: Path) -> None:
        self.sysfs, self.dm = lvm_machine(lvm_disks(root))
        self.volume: Volume = find(self.sysfs, "vg/data")
        self.journal = FakeJournal()
        self.writer = KnobWriter(self.sysfs, self.volume, self.journal, "this boot")

    @property
    def table(self) -> str:
        return self.dm.devices[0].table


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (state(policy="smq"), ""),
        (state(policy="cleaner"), "the cleaner policy is already loaded, but not by ebbgate"),
        (state(0, policy="smq"), "it is clean"),
        (state(policy="smq", state="needs_check"), "it is needs_check"),
        (state(policy="smq", state="suspended"), "it is suspended"),
        (
            state(policy="smq", cache_mode="passthrough"),
            "the cache is in passthrough mode, so nothing is dirty",
        ),
        (state(None, policy="smq"), "its state is unknown"),
        (None, "its state is unknown"),
    ],
)
def test_it_begins_only_where_there_is_something_to_clean(
    machine: Machine, seen: VolumeState | None, why: str
) -> None:
    assert why_not_clean(machine.volume, seen) == why


def test_bcache_has_no_cleaner() -> None:
    assert why_not_clean(bcache(), None) == "bcache writes back by itself, also under load"


WRITECACHE = WritecacheStatus(0, 1000, 400, 0, 4096)


@pytest.mark.parametrize(
    ("cleaning", "dirty_mib", "now_s", "why"),
    [
        (ASKED, 40, 120, ""),
        (ASKED, 0, 120, "flushed after 20 s"),
        (SEEN, 40, 120, "flushed after 20 s"),
        (ASKED, 40, 160, "its time is over; the kernel keeps flushing, which cannot be stopped"),
    ],
)
def test_a_flush_is_over_when_its_message_returns(
    cleaning: Cleaning, dirty_mib: int, now_s: int, why: str
) -> None:
    seen = state(dirty_mib, dm=WRITECACHE)
    assert why_not_clean(dm_volume(Kind.DM_WRITECACHE), seen) == (
        "" if dirty_mib else "it is clean"
    )
    assert ending(cleaning, seen, now_s * NS_PER_S) == why


@pytest.mark.parametrize(
    ("cleaning", "seen", "now_s", "why"),
    [
        (ASKED, state(policy="smq"), 105, ""),
        (ASKED, state(0, policy="smq"), 105, ""),
        (ASKED, state(policy="smq"), 111, "the cleaner was not loaded"),
        (SEEN, state(), 120, ""),
        (SEEN, state(None), 120, ""),
        (SEEN, state(0), 120, "clean after 20 s"),
        (SEEN, state(policy="smq"), 120, "another table was loaded meanwhile"),
        (SEEN, state(), 160, "its time is over with 40 MiB dirty"),
        (SEEN, state(None, dm=None), 160, "its time is over with an unknown amount dirty"),
    ],
)
def test_it_ends_when_clean_or_late_or_replaced(
    cleaning: Cleaning, seen: VolumeState, now_s: int, why: str
) -> None:
    assert ending(cleaning, seen, now_s * NS_PER_S) == why


@pytest.mark.parametrize(
    ("dirty_mib", "now_s", "eta"), [(40, 120, 20.0), (80, 120, None), (None, 120, None)]
)
def test_the_rest_takes_as_long_as_what_is_done(
    dirty_mib: int | None, now_s: int, eta: float | None
) -> None:
    dirty_bytes = None if dirty_mib is None else dirty_mib * MIB
    assert eta_s(SEEN, dirty_bytes, now_s * NS_PER_S) == eta


def test_the_cleaner_is_loaded_and_the_old_table_comes_back(machine: Machine) -> None:
    (outcome,) = machine.writer.apply((cleaner_step(OLD),), REASON)
    assert outcome.kind is OutcomeKind.CHANGED
    assert machine.table == "253:3 253:2 253:4 128 2 metadata2 writeback cleaner 0"
    assert machine.journal.open[TABLE].original == OLD
    seen = read_state(machine.sysfs, machine.volume, 0)
    assert isinstance(seen.dm, CacheStatus)
    (outcome,) = machine.writer.release((TABLE,), REASON)
    assert outcome.kind is OutcomeKind.CHANGED
    assert machine.table == CACHE_TABLE
    assert machine.journal.open == {}


def test_a_killed_daemon_leaves_the_old_table_to_restore(machine: Machine) -> None:
    machine.writer.apply((cleaner_step(OLD),), REASON)
    (outcome,) = restore(machine.journal, machine.sysfs, "this boot")
    assert (outcome.kind, machine.table) == (OutcomeKind.CHANGED, CACHE_TABLE)


def test_a_volume_that_was_extended_meanwhile_keeps_its_table(machine: Machine) -> None:
    machine.writer.apply((cleaner_step(OLD),), REASON)
    machine.dm.devices[0].table = theirs = CACHE_TABLE.replace("128", "256")
    (outcome,) = restore(machine.journal, machine.sysfs, "this boot")
    assert (outcome.kind, outcome.error) == (
        OutcomeKind.UNCHANGED,
        "another table was loaded since",
    )
    assert machine.table == theirs
    machine.journal.put(JournalEntry("vg-data", TABLE, "", OLD, "", "this boot", 1, "clean"))
    assert machine.writer.release((TABLE,), REASON) == []
    assert machine.table == theirs
    assert TABLE not in machine.writer.owned
