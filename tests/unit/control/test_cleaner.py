# SPDX-License-Identifier: GPL-2.0-only
"""A cleaning replaces the table that is live when it begins, and no other one."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.actuators import ownership
from ebbgate.kernel.device_mapper import Target
from ebbgate.knobs.catalog import TABLE
from ebbgate.knobs.places import knob_path
from ebbgate.model.decision import JournalEntry
from ebbgate.units import NS_PER_S
from tests.builders import journal_entry
from tests.fake_dm import CACHE_TABLE, LENGTH_SECTORS
from tests.unit.control.test_volume_loop_dm import NAME, DmLoopHarness
from tests.volume_loop_fixture import DEADLINE_S

CLEANER_TABLE = "253:3 253:2 253:4 128 2 metadata2 writeback cleaner 0"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[DmLoopHarness]:
    made = DmLoopHarness(tmp_path)
    made.tick()
    yield made
    assert made.loop.worker.stop(DEADLINE_S)


def test_a_cleaning_keeps_what_lvm_has_changed_since_the_last_discovery(
    harness: DmLoopHarness,
) -> None:
    """In up to a minute LVM may extend the volume and change its mode."""
    extended = CACHE_TABLE.replace("writeback", "writethrough")
    harness.cache.length_sectors = 2 * LENGTH_SECTORS
    harness.dm.reload(NAME, (Target(0, 2 * LENGTH_SECTORS, "cache", extended),))
    harness.tick()
    harness.loop.clean(60 * NS_PER_S, "anna")
    harness.settle()
    assert harness.cache.table == "253:3 253:2 253:4 128 2 metadata2 writethrough cleaner 0"
    assert harness.cache.length_sectors == 2 * LENGTH_SECTORS
    harness.tick()
    harness.cache.dirty = 0
    harness.tick()
    assert harness.cache.table == extended
    assert harness.cache.length_sectors == 2 * LENGTH_SECTORS


def test_an_old_table_that_is_refused_is_tried_again_but_not_at_every_look(
    harness: DmLoopHarness,
) -> None:
    harness.loop.clean(60 * NS_PER_S, "anna")
    harness.settle()
    harness.tick()
    harness.cache.dirty = 0
    harness.dm.fails["reload"] = errno.EINVAL
    before = len(harness.kept.written)
    for _ in range(60):
        harness.tick()
    assert len(harness.kept.written) - before == 2, "in 15 s"
    assert harness.kept.document["now"] == (
        "Cleaning for anna is over (clean after 500 ms): the table from before is not back yet"
    )
    harness.dm.fails.clear()
    for _ in range(40):
        harness.tick()
    assert harness.cache.table == CACHE_TABLE


def test_a_table_that_changes_while_it_is_journalled_is_left_alone(
    harness: DmLoopHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, other = harness.kept.put, CACHE_TABLE.replace("writeback", "writethrough")

    def change(entry: JournalEntry) -> JournalEntry:
        if entry.knob == TABLE:
            harness.cache.table = other
        return put(entry)

    monkeypatch.setattr(harness.kept, "put", change)
    harness.loop.clean(60 * NS_PER_S, "anna")
    harness.settle()
    assert harness.cache.table == other
    assert TABLE not in harness.kept.open
    assert harness.kept.written[-1].error == "it was changed meanwhile"


@pytest.mark.parametrize(
    ("kind", "table", "why"),
    [
        ("linear", "253:4 0", "it no longer has the table of a cache"),
        ("cache", CLEANER_TABLE, "the cleaner policy is already loaded, but not by ebbgate"),
    ],
)
def test_no_cleaner_takes_the_place_of_another_table(
    harness: DmLoopHarness, kind: str, table: str, why: str
) -> None:
    """LVM splits the cache off, or cleans it, and nobody has looked since."""
    harness.cache.kind, harness.cache.table = kind, table
    harness.loop.clean(60 * NS_PER_S, "anna")
    harness.settle()
    assert (harness.cache.kind, harness.cache.table) == (kind, table)
    assert harness.kept.written[-1].error == why


def test_a_cleaner_that_a_killed_daemon_left_is_replaced_once_the_kernel_takes_the_old_table(
    harness: DmLoopHarness,
) -> None:
    old, new = (f"0 {LENGTH_SECTORS} cache {each}" for each in (CACHE_TABLE, CLEANER_TABLE))
    harness.cache.table = CLEANER_TABLE
    path = knob_path(harness.volume, TABLE)
    assert path is not None
    device = ownership.identify(harness.sysfs, path)
    harness.loop.writer.adopt(
        JournalEntry(NAME, TABLE, path, old, new, "this boot", 5, "clean", "asked for", *device),
        (new, new),
    )
    harness.dm.fails["reload"] = errno.EBUSY
    harness.loop.release("left by an earlier ebbgated")
    harness.settle()
    harness.tick()
    assert harness.cache.table == CLEANER_TABLE
    harness.dm.fails.clear()
    for _ in range(44):
        harness.tick()
    assert harness.cache.table == CACHE_TABLE
    assert TABLE not in harness.loop.writer.owned


def test_no_cleaner_is_loaded_before_the_older_table_is_back(harness: DmLoopHarness) -> None:
    older = f"0 {LENGTH_SECTORS} cache {CACHE_TABLE}"
    cleaner = f"0 {LENGTH_SECTORS} cache {CLEANER_TABLE}"
    entry = journal_entry(
        TABLE,
        volume=NAME,
        path=f"dm:{NAME}/table",
        original=older,
        last_written=cleaner,
        instance=5,
    )
    harness.loop.writer.adopt(entry, (cleaner, cleaner))
    harness.dm.fails["device"] = errno.EIO
    harness.loop.clean(60 * NS_PER_S, "anna")
    harness.settle()
    assert harness.cache.table == CACHE_TABLE
    assert "is not restored yet" in harness.kept.written[-1].error
