# SPDX-License-Identifier: GPL-2.0-only
"""A knob's original is durable before the first write; what is written, and when."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from ebbgate.actuators.bcache_steps import BASE, cutoff_steps, write
from ebbgate.actuators.ownership import RECREATED
from ebbgate.actuators.reason import Reason
from ebbgate.knobs.catalog import KNOBS
from ebbgate.knobs.knob import Knob
from ebbgate.model.decision import Gate, GateKind, JournalEntry, OutcomeKind
from ebbgate.model.volume import Kind
from ebbgate.units import KIB, MIB, NS_PER_MS
from tests.builders import volume
from tests.fake_sysfs import failing
from tests.knob_writer_fixture import CLOSED, HELD, PACED, REASON, RELEASED, WriterHarness, kinds


@pytest.fixture
def harness(tmp_path: Path) -> WriterHarness:
    return WriterHarness(tmp_path)


# ---- the journal --------------------------------------------------------------------------------
def test_the_original_is_in_the_journal_before_the_first_write(harness: WriterHarness) -> None:
    harness.writer.apply((write("writeback_percent", 40),), REASON)
    entry = harness.journal.kept["writeback_percent"]
    assert harness.journal.put_at["writeback_percent"] == "10"
    assert entry == JournalEntry(
        volume="bcache0",
        knob="writeback_percent",
        path="/sys/block/bcache0/bcache/writeback_percent",
        original="10",
        last_written="40",
        boot_id="this boot",
        at_unix_ns=5,
        by="idle_destage",
        why="idle for 410 ms (needs 300)",
        device_uuid="0b1e5000-0000-4000-8000-000000000001",
        instance=harness.sysfs.inode_of("/sys/block/bcache0/bcache"),
    )
    assert harness.value("writeback_percent") == "40"


def test_nothing_is_written_without_a_journal(harness: WriterHarness) -> None:
    harness.journal.broken = True
    outcomes = harness.drive(PACED)
    assert set(kinds(outcomes)) == {OutcomeKind.REFUSED}
    assert "the journal is not writable" in outcomes[0].error
    assert harness.sysfs.log == []
    assert harness.writer.owned == {}


def register_again(harness: WriterHarness) -> None:
    """Replace the folder of bcache's knobs; the new one has the same values."""
    real = harness.sysfs.real("/sys/block/bcache0/bcache")
    assert real is not None
    folder = harness.sysfs.locate(real)
    shutil.copytree(folder.rename(folder.with_name("old")), folder, symlinks=True)


@pytest.mark.parametrize("knob", ["writeback_percent", "sequential_cutoff"])
def test_nothing_is_written_to_a_device_that_came_while_the_original_was_journalled(
    harness: WriterHarness, monkeypatch: pytest.MonkeyPatch, knob: str
) -> None:
    put = harness.journal.put

    def register(entry: JournalEntry) -> JournalEntry:
        register_again(harness)
        return put(entry)

    monkeypatch.setattr(harness.journal, "put", register)
    (outcome,) = harness.writer.apply((write(knob, 30 * MIB),), REASON)
    assert (outcome.kind, outcome.error) == (OutcomeKind.FAILED, RECREATED.why)
    assert harness.sysfs.log == []


def test_an_urgent_write_to_another_instance_takes_no_lock_and_fails(
    harness: WriterHarness,
) -> None:
    harness.drive(PACED)
    register_again(harness)
    harness.sysfs.log.clear()
    harness.sysfs.reading["backing_dev_uuid"] = failing(errno.EIO)
    (outcome,) = harness.drive(CLOSED)
    assert (outcome.kind, outcome.error) == (OutcomeKind.FAILED, RECREATED.why)
    assert harness.sysfs.log == []


def test_an_original_is_journalled_once(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.journal.kept.clear()
    harness.drive(CLOSED)
    assert harness.journal.kept == {}


def test_a_size_is_journalled_in_the_kernels_unit(harness: WriterHarness) -> None:
    harness.writer.apply((write("sequential_cutoff", 256 * 1024),), REASON)
    assert harness.journal.kept["sequential_cutoff"].original == "4194304"
    harness.writer.release(["sequential_cutoff"], REASON)
    assert harness.value("sequential_cutoff") == "4194304"


def test_a_trigger_is_written_each_time_and_not_journalled(harness: WriterHarness) -> None:
    for _ in range(2):
        harness.now_ms += 1000
        outcomes = harness.writer.apply((write("trigger_gc", 1, always=True),), REASON)
        assert kinds(outcomes) == [OutcomeKind.CHANGED]
    assert harness.sysfs.log == [("trigger_gc", "1")] * 2
    assert (harness.journal.kept, harness.writer.owned) == ({}, {})


@pytest.mark.parametrize(
    "knob",
    [k for k in KNOBS if k.interval_ns and k.settable and Kind.BCACHE in k.kinds],
    ids=lambda knob: knob.name,
)
def test_a_knob_is_not_written_again_within_its_interval(
    harness: WriterHarness, knob: Knob
) -> None:
    interval_ms = knob.interval_ns // NS_PER_MS
    name = f"{knob.name}:vda" if knob.per_disk else knob.name
    for now_ms, value, kind in (
        (1000, MIB, OutcomeKind.CHANGED),
        (1000 + interval_ms - 1, 2 * MIB, OutcomeKind.TOO_SOON),
        (1000 + interval_ms, 3 * MIB, OutcomeKind.CHANGED),
    ):
        harness.now_ms = now_ms
        assert kinds(harness.writer.apply((write(name, value, always=True),), REASON)) == [kind]
    assert len(harness.sysfs.log) == 2


def test_a_restore_ignores_the_interval(harness: WriterHarness) -> None:
    harness.writer.apply((write("sequential_cutoff", MIB),), REASON)
    assert kinds(harness.writer.release(["sequential_cutoff"], REASON)) == [OutcomeKind.CHANGED]


# ---- reading back -------------------------------------------------------------------------------
def test_a_value_is_read_back_as_the_kernel_prints_it(harness: WriterHarness) -> None:
    (found,) = harness.writer.apply((write("sequential_cutoff", MIB),), REASON)
    assert (found.kind, found.read_back) == (OutcomeKind.CHANGED, str(MIB))


def test_a_value_that_the_kernel_changed_is_a_failure_and_not_manual(
    harness: WriterHarness,
) -> None:
    deaf(harness, "sequential_cutoff")
    (found,) = harness.writer.apply((write("sequential_cutoff", MIB),), REASON)
    assert (found.kind, found.read_back) == (OutcomeKind.FAILED, str(4 * MIB))
    assert found.error == "the kernel changed it to 4194304"
    assert harness.look() == []


def test_a_value_that_cannot_be_read_back_is_a_failure_and_not_manual(
    harness: WriterHarness,
) -> None:
    harness.writer.apply((write("sequential_cutoff", MIB),), REASON)

    harness.sysfs.after["sequential_cutoff"] = lambda: harness.sysfs.reading.update(
        sequential_cutoff=failing(errno.EIO)
    )
    harness.now_ms += 2000
    (found,) = harness.writer.apply((write("sequential_cutoff", 2 * MIB),), REASON)
    assert found.kind is OutcomeKind.FAILED
    assert "reading it back failed" in found.error
    harness.sysfs.reading.clear()
    assert harness.look() == []
    harness.sysfs.after.clear()
    harness.writer.release(["sequential_cutoff"], REASON)
    assert harness.value("sequential_cutoff") == "4194304"


def test_an_original_that_was_not_restored_stays_in_the_journal(harness: WriterHarness) -> None:
    harness.writer.apply((write("sequential_cutoff", MIB),), REASON)
    deaf(harness, "sequential_cutoff")
    assert kinds(harness.writer.release(["sequential_cutoff"], REASON)) == [OutcomeKind.FAILED]
    assert harness.journal.closed == []
    assert "sequential_cutoff" in harness.writer.owned


def deaf(harness: WriterHarness, knob: str) -> None:
    """Let the kernel accept writes of this knob and keep its own value."""
    kept = harness.value(knob)
    harness.sysfs.after[knob] = lambda: harness.someone_writes(knob, kept)


# ---- what is written ----------------------------------------------------------------------------
def test_the_base_knobs_are_written_before_the_gate(harness: WriterHarness) -> None:
    harness.drive(PACED)
    assert harness.sysfs.log == [
        *((knob, value) for knob, value in BASE.items() if knob != "writeback_running"),
        ("writeback_rate", "16384"),
        ("writeback_percent", "40"),
    ]


def test_a_hold_stops_the_kernels_thread_and_its_end_starts_it_before_the_gate(
    harness: WriterHarness,
) -> None:
    harness.drive(PACED)
    del harness.sysfs.log[:]
    harness.drive(HELD)
    assert harness.sysfs.log == [("writeback_percent", "0"), ("writeback_running", "0")]
    del harness.sysfs.log[:]
    harness.drive(CLOSED)
    assert harness.sysfs.log == [
        ("writeback_rate", "1"),
        ("writeback_percent", "40"),
        ("writeback_running", "1"),
    ]


def test_a_hold_is_restored_like_every_knob(harness: WriterHarness) -> None:
    harness.drive(HELD)
    assert harness.value("writeback_running") == "0"
    assert harness.journal.kept["writeback_running"].original == "1"
    harness.drive(RELEASED)
    assert (harness.value("writeback_running"), harness.value("writeback_percent")) == ("1", "10")
    assert harness.sysfs.log[-1] == ("writeback_running", "1")


def test_a_person_who_starts_the_kernels_thread_during_a_hold_ends_it(
    harness: WriterHarness,
) -> None:
    harness.drive(HELD)
    harness.someone_writes("writeback_running", "1")
    assert harness.look() == ["writeback_running"]
    assert not harness.writer.gate_is_ours


def test_a_value_that_is_there_already_is_not_written(harness: WriterHarness) -> None:
    harness.drive(PACED)
    del harness.sysfs.log[:]
    harness.drive(CLOSED)
    assert harness.sysfs.log == [("writeback_rate", "1")]


def test_a_knob_that_the_kernel_changes_is_written_again(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.someone_writes("writeback_rate", "500.0k")
    harness.drive(PACED)
    assert harness.value("writeback_rate") == str(8 * MIB)


def test_a_failure_ends_the_steps_and_names_the_kernels_reason(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.sysfs.before["writeback_rate"] = failing(errno.EBUSY)
    outcomes = harness.drive(Gate(GateKind.PACED, 16 * MIB))
    assert kinds(outcomes) == [OutcomeKind.FAILED]
    assert "busy" in outcomes[0].error
    assert harness.writer.owned["writeback_rate"].written == "16384"


def test_a_base_knob_that_the_kernel_lacks_is_reported_once(harness: WriterHarness) -> None:
    harness.fake.remove(harness.path("writeback_delay"))
    refused = [o for o in harness.drive(PACED) if o.kind is OutcomeKind.REFUSED]
    assert [(o.action.knob, o.error) for o in refused] == [
        ("writeback_delay", "this kernel has no such knob")
    ]
    assert harness.value("writeback_percent") == "40"
    assert harness.value("idle_max_writeback_rate") == "0"
    assert OutcomeKind.REFUSED not in kinds(harness.drive(CLOSED))


def test_knobs_of_the_cache_are_refused_without_a_cache(harness: WriterHarness) -> None:
    harness.writer.volume = volume(set_uuid="")
    (outcome,) = harness.writer.apply((write("trigger_gc", 1, always=True),), REASON)
    assert (outcome.kind, outcome.error) == (OutcomeKind.REFUSED, "no cache is attached")


def test_an_action_has_the_value_the_reason_and_the_old_value(harness: WriterHarness) -> None:
    harness.writer.apply((write("writeback_percent", 40),), REASON)
    (outcome,) = harness.writer.apply((write("writeback_percent", 0),), REASON)
    action = outcome.action
    assert (action.volume, action.knob) == ("bcache0", "writeback_percent")
    assert (action.old, action.new) == ("40", "0")
    assert (action.strategy, action.reason) == (REASON.strategy, REASON.text)


def test_a_clamped_value_is_named_in_the_outcome_and_the_journal(tmp_path: Path) -> None:
    harness = WriterHarness(tmp_path)
    (outcome,) = harness.writer.apply(cutoff_steps(0), Reason("stream_bypass", "a stream"))
    assert outcome.action.new == str(64 * KIB)
    assert outcome.action.reason.startswith("a stream (0 was requested, the limit is 65536: ")
    assert harness.journal.kept["sequential_cutoff"].why == outcome.action.reason


def test_an_equal_value_is_journalled_and_not_written(tmp_path: Path) -> None:
    harness = WriterHarness(tmp_path)
    harness.someone_writes("idle_max_writeback_rate", "0")
    step = write("idle_max_writeback_rate", BASE["idle_max_writeback_rate"])
    (outcome,) = harness.writer.apply((step,), Reason("idle_destage", "a gap"))
    assert outcome.kind is OutcomeKind.UNCHANGED
    assert harness.sysfs.log == []
    assert harness.journal.kept["idle_max_writeback_rate"].original == "0"
