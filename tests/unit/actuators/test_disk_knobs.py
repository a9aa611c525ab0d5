# SPDX-License-Identifier: GPL-2.0-only
"""Knobs of the disks below a volume: one for each disk, or none."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.actuators.bcache_steps import write
from ebbgate.actuators.restore import restore
from ebbgate.errors import UsageError
from ebbgate.knobs.catalog import QUEUE_DEPTH
from ebbgate.knobs.places import disk_knobs, is_path_of, knob_path
from ebbgate.knobs.settable import check_knob, check_name, checked_value, may_be_set
from ebbgate.model.decision import Gate, GateKind, OutcomeKind
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from tests.builders import device, dm_volume, journal_entry, volume
from tests.fake_sysfs import failing
from tests.knob_writer_fixture import REASON, RELEASED, WriterHarness, kinds

DEPTH = "queue_depth:vda"
STEP = write(DEPTH, 4)


@pytest.fixture
def harness(tmp_path: Path) -> WriterHarness:
    return WriterHarness(tmp_path)


def test_the_depth_of_a_disk_is_journalled_set_and_restored(harness: WriterHarness) -> None:
    assert kinds(harness.writer.apply((STEP,), REASON)) == [OutcomeKind.CHANGED]
    assert (harness.value(DEPTH), harness.journal.put_at) == ("4", {DEPTH: "32"})
    assert kinds(harness.writer.release((DEPTH,), REASON)) == [OutcomeKind.CHANGED]
    assert (harness.value(DEPTH), harness.writer.owned) == ("32", {})


def test_a_depth_that_somebody_else_wrote_is_manual(harness: WriterHarness) -> None:
    harness.writer.apply((STEP,), REASON)
    harness.someone_writes(DEPTH, "16")
    assert harness.look() == [DEPTH]
    assert harness.writer.manual == {DEPTH}
    assert harness.writer.gate_is_ours, "the gate works without the queue"


def test_a_reset_disk_is_not_a_manual_change(harness: WriterHarness) -> None:
    harness.writer.apply((STEP,), REASON)
    harness.someone_writes(DEPTH, "32")
    assert harness.look() == []
    assert (harness.writer.manual, harness.writer.owned) == (set(), {})
    harness.writer.apply((STEP,), REASON)
    assert harness.value(DEPTH) == "4"


def test_restore_without_a_daemon_writes_the_depth_back(harness: WriterHarness) -> None:
    harness.writer.apply((STEP,), REASON)
    assert kinds(restore(harness.journal, harness.sysfs, "this boot")) == [OutcomeKind.CHANGED]
    assert harness.value(DEPTH) == "32"


@pytest.mark.parametrize(
    ("knob", "path", "same"),
    [
        (DEPTH, "/sys/block/vda/device/queue_depth", True),
        (DEPTH, "/sys/block/vdb/device/queue_depth", False),
        ("queue_depth", "/sys/block/vda/device/queue_depth", False),
        ("queue_depth:../x", "/sys/block/vda/device/queue_depth", False),
        ("sequential_cutoff", "/sys/block/bcache0/bcache/sequential_cutoff", True),
        ("max_sectors_kb", "/sys/block/dm-0/queue/max_sectors_kb", True),
        ("max_sectors_kb:vda", "/sys/block/vda/queue/max_sectors_kb", True),
        ("max_sectors_kb:vda", "/sys/block/dm-0/queue/max_sectors_kb", False),
        ("cutoff", "/sys/block/bcache0/bcache/sequential_cutoff", False),
    ],
)
def test_a_journalled_path_must_be_that_of_its_knob(knob: str, path: str, same: bool) -> None:
    assert is_path_of(knob, path) is same


def test_an_array_has_a_depth_for_each_disk_or_none() -> None:
    disks = (device("sda"), device("sdb"))
    array = replace(volume(), disks=disks)
    assert disk_knobs(array, QUEUE_DEPTH) == ("queue_depth:sda", "queue_depth:sdb")
    hidden = replace(disks[1], queue_depth=None)
    assert disk_knobs(replace(array, disks=(disks[0], hidden)), QUEUE_DEPTH) == ()


def test_the_depth_is_set_by_the_name_of_a_disk() -> None:
    assert checked_value(volume(), DEPTH, "4") == "4"
    with pytest.raises(UsageError, match="out of bounds") as caught:
        checked_value(volume(), DEPTH, "1")
    assert "NCQ" in str(caught.value.hint)
    with pytest.raises(UsageError) as caught:
        check_knob(volume(), "queue_depth")
    assert DEPTH in str(caught.value.hint)
    with pytest.raises(UsageError, match="queue_depth:vdx"):
        check_knob(volume(), "queue_depth:vdx")
    with pytest.raises(UsageError):
        check_name("queue_depth")
    assert not may_be_set("sequential_cutoff:vda")
    with pytest.raises(UsageError):
        check_knob(dm_volume(), DEPTH)


def test_two_volumes_on_one_disk_restore_its_first_depth(tmp_path: Path) -> None:
    path = knob_path(volume(), DEPTH)
    assert path is not None
    first = journal_entry(volume="bcache0", knob=DEPTH, path=path, original="32", last_written="4")
    second = replace(first, volume="bcache1", original="4")
    journal = JournalWriter(tmp_path / "journal.db", LastWritten(tmp_path / "last-written"))
    try:
        kept = journal.put(first)
        other = journal.put(second)
        assert other.original == "32"
        assert journal.claims.disclaim(kept)
        journal.close("bcache0", DEPTH, "restored")
        assert not journal.claims.disclaim(other), "a closed entry is no claim any more"
    finally:
        journal.stop()


# ---- the gate and the queues -----------------------------------------------------------------
OPEN = Gate(GateKind.OPEN, queue_depth=8)
SHUT = Gate(GateKind.CLOSED, 512)
SHUT_SHALLOW = replace(SHUT, queue_depth=8)


def knob_order(harness: WriterHarness) -> list[str]:
    return [knob for knob, _ in harness.sysfs.log]


def test_a_queue_is_shallow_before_the_gate_opens_and_deep_after_it_has_closed(
    harness: WriterHarness,
) -> None:
    harness.drive(SHUT)
    del harness.sysfs.log[:]
    harness.drive(OPEN)
    order = knob_order(harness)
    assert order.index("queue_depth") < order.index("writeback_percent")
    assert (harness.value(DEPTH), harness.value("writeback_percent")) == ("8", "0")
    harness.drive(SHUT_SHALLOW)
    assert (harness.value(DEPTH), harness.value("writeback_percent")) == ("8", "40")
    del harness.sysfs.log[:]
    harness.drive(SHUT)
    assert (harness.value(DEPTH), knob_order(harness)[-1]) == ("32", "queue_depth")
    harness.drive(RELEASED)
    assert (harness.value(DEPTH), harness.writer.owned) == ("32", {})


def test_a_close_begins_no_shallow_queue(harness: WriterHarness) -> None:
    harness.drive(SHUT_SHALLOW)
    assert (harness.value(DEPTH), DEPTH in harness.writer.owned) == ("32", False)


@pytest.mark.parametrize("depth", ["1", "4"])
def test_a_queue_is_never_made_deeper(harness: WriterHarness, depth: str) -> None:
    # After the volume was found.
    harness.someone_writes(DEPTH, depth)
    harness.drive(OPEN)
    assert harness.value(DEPTH) == depth
    harness.drive(SHUT)
    harness.drive(RELEASED)
    assert harness.value(DEPTH) == depth


def test_a_queue_that_cannot_be_read_is_left_alone_and_the_gate_opens(
    harness: WriterHarness,
) -> None:
    harness.sysfs.reading["queue_depth"] = failing(errno.EIO)
    harness.drive(OPEN)
    assert (harness.value(DEPTH), harness.value("writeback_percent")) == ("32", "0")


def test_a_queue_is_never_too_short_for_ncq(harness: WriterHarness) -> None:
    harness.drive(replace(OPEN, queue_depth=1))
    assert harness.value(DEPTH) == "2"


def test_a_queue_that_a_person_set_stays_and_the_gate_works(harness: WriterHarness) -> None:
    harness.writer.pinned.add(DEPTH)
    harness.drive(OPEN)
    assert (harness.value(DEPTH), harness.value("writeback_percent")) == ("32", "0")
    harness.drive(RELEASED)
    assert harness.writer.owned == {}


def test_where_one_queue_is_manual_the_others_go_back(tmp_path: Path) -> None:
    harness = WriterHarness(tmp_path, disks=("vda", "vdb"))
    harness.drive(OPEN)
    assert harness.value("queue_depth:vdb") == "8"
    harness.someone_writes(DEPTH, "16")
    assert harness.look() == [DEPTH]
    harness.drive(OPEN)
    assert (harness.value(DEPTH), harness.value("queue_depth:vdb")) == ("16", "32")


def test_a_queue_that_refuses_its_depth_is_not_tried_again_and_the_gate_opens(
    harness: WriterHarness,
) -> None:
    harness.drive(SHUT)
    harness.sysfs.before["queue_depth"] = failing(errno.EACCES)
    assert OutcomeKind.FAILED in kinds(harness.drive(OPEN))
    assert harness.value("writeback_percent") == "0"
    assert harness.writer.lacking == {DEPTH}
    del harness.sysfs.log[:]
    harness.drive(OPEN)
    assert harness.value("writeback_percent") == "0"
    assert "queue_depth" not in knob_order(harness)
    harness.drive(Gate(GateKind.PACED, 1 << 20, queue_depth=8))
    assert harness.value("writeback_rate") == str(1 << 20)
    harness.drive(RELEASED)
    del harness.sysfs.before["queue_depth"]
    harness.drive(OPEN)
    assert (harness.value(DEPTH), harness.value("writeback_percent")) == ("8", "0")


LONGEST = "max_sectors_kb:vda"


def test_the_longest_request_stays_short_until_the_knobs_are_released(
    harness: WriterHarness,
) -> None:
    harness.drive(OPEN)
    assert harness.value(LONGEST) == "512"
    harness.drive(SHUT)
    assert (harness.value(DEPTH), harness.value(LONGEST)) == ("32", "512")
    del harness.sysfs.log[:]
    harness.drive(OPEN)
    assert "max_sectors_kb" not in knob_order(harness)
    harness.drive(RELEASED)
    assert harness.value(LONGEST) == "1280"


def test_the_depth_does_not_depend_on_the_longest_request(harness: WriterHarness) -> None:
    """As disk_queue.holds_back has it."""
    harness.writer.pinned.add(LONGEST)
    harness.drive(OPEN)
    assert (harness.value(DEPTH), harness.value(LONGEST)) == ("8", "1280")
    harness.drive(RELEASED)
    assert harness.value(DEPTH) == "32"
