# SPDX-License-Identifier: GPL-2.0-only
"""A knob's original is durable before the first write; what is written, and when."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ebbgate.actuators.bcache_steps import BASE, cutoff_steps, write
from ebbgate.actuators.knob_writer import Reason
from ebbgate.knobs.catalog import KNOBS
from ebbgate.knobs.knob import Knob
from ebbgate.model.decision import Gate, GateKind, JournalEntry, OutcomeKind
from ebbgate.model.volume import Kind
from ebbgate.units import KIB, MIB, NS_PER_MS
from tests.builders import volume
from tests.fake_sysfs import failing
from tests.knob_writer_fixture import CLOSED, PACED, REASON, WriterHarness, kinds


@pytest.fixture
def bench(tmp_path: Path) -> WriterHarness:
    return WriterHarness(tmp_path)


# ---- the journal --------------------------------------------------------------------------------
def test_the_original_is_in_the_journal_before_the_first_write(bench: WriterHarness) -> None:
    bench.writer.apply((write("writeback_percent", 40),), REASON)
    entry = bench.journal.kept["writeback_percent"]
    assert bench.journal.put_at["writeback_percent"] == "10"
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
        instance=bench.sysfs.inode_of("/sys/block/bcache0/bcache"),
    )
    assert bench.value("writeback_percent") == "40"


def test_nothing_is_written_without_a_journal(bench: WriterHarness) -> None:
    bench.journal.broken = True
    outcomes = bench.drive(PACED)
    assert set(kinds(outcomes)) == {OutcomeKind.REFUSED}
    assert "the journal is not writable" in outcomes[0].error
    assert bench.sysfs.log == []
    assert bench.writer.owned == {}


def test_an_original_is_journalled_once(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.journal.kept.clear()
    bench.drive(CLOSED)
    assert bench.journal.kept == {}


def test_a_size_is_journalled_in_the_kernels_unit(bench: WriterHarness) -> None:
    bench.writer.apply((write("sequential_cutoff", 256 * 1024),), REASON)
    assert bench.journal.kept["sequential_cutoff"].original == "4194304"
    bench.writer.release(["sequential_cutoff"], REASON)
    assert bench.value("sequential_cutoff") == "4194304"


def test_a_trigger_is_written_each_time_and_not_journalled(bench: WriterHarness) -> None:
    for _ in range(2):
        bench.now_ms += 1000
        outcomes = bench.writer.apply((write("trigger_gc", 1, always=True),), REASON)
        assert kinds(outcomes) == [OutcomeKind.CHANGED]
    assert bench.sysfs.log == [("trigger_gc", "1")] * 2
    assert (bench.journal.kept, bench.writer.owned) == ({}, {})


@pytest.mark.parametrize(
    "knob",
    [k for k in KNOBS if k.interval_ns and Kind.BCACHE in k.kinds],
    ids=lambda knob: knob.name,
)
def test_a_knob_is_not_written_again_within_its_interval(bench: WriterHarness, knob: Knob) -> None:
    interval_ms = knob.interval_ns // NS_PER_MS
    for now_ms, value, kind in (
        (1000, MIB, OutcomeKind.CHANGED),
        (1000 + interval_ms - 1, 2 * MIB, OutcomeKind.TOO_SOON),
        (1000 + interval_ms, 3 * MIB, OutcomeKind.CHANGED),
    ):
        bench.now_ms = now_ms
        assert kinds(bench.writer.apply((write(knob.name, value, always=True),), REASON)) == [kind]
    assert len(bench.sysfs.log) == 2


def test_a_restore_ignores_the_interval(bench: WriterHarness) -> None:
    bench.writer.apply((write("sequential_cutoff", MIB),), REASON)
    assert kinds(bench.writer.release(["sequential_cutoff"], REASON)) == [OutcomeKind.CHANGED]


# ---- reading back -------------------------------------------------------------------------------
def test_a_value_is_read_back_as_the_kernel_prints_it(bench: WriterHarness) -> None:
    (found,) = bench.writer.apply((write("sequential_cutoff", MIB),), REASON)
    assert (found.kind, found.read_back) == (OutcomeKind.CHANGED, str(MIB))


def test_a_value_that_the_kernel_changed_is_a_failure_and_not_manual(bench: WriterHarness) -> None:
    deaf(bench, "sequential_cutoff")
    (found,) = bench.writer.apply((write("sequential_cutoff", MIB),), REASON)
    assert (found.kind, found.read_back) == (OutcomeKind.FAILED, str(4 * MIB))
    assert found.error == "the kernel changed it to 4194304"
    assert bench.look() == []


def test_a_value_that_cannot_be_read_back_is_a_failure_and_not_manual(bench: WriterHarness) -> None:
    bench.writer.apply((write("sequential_cutoff", MIB),), REASON)

    bench.sysfs.after["sequential_cutoff"] = lambda: bench.sysfs.reading.update(
        sequential_cutoff=failing(errno.EIO)
    )
    bench.now_ms += 2000
    (found,) = bench.writer.apply((write("sequential_cutoff", 2 * MIB),), REASON)
    assert found.kind is OutcomeKind.FAILED
    assert "reading it back failed" in found.error
    bench.sysfs.reading.clear()
    assert bench.look() == []
    bench.sysfs.after.clear()
    bench.writer.release(["sequential_cutoff"], REASON)
    assert bench.value("sequential_cutoff") == "4194304"


def test_an_original_that_was_not_restored_stays_in_the_journal(bench: WriterHarness) -> None:
    bench.writer.apply((write("sequential_cutoff", MIB),), REASON)
    deaf(bench, "sequential_cutoff")
    assert kinds(bench.writer.release(["sequential_cutoff"], REASON)) == [OutcomeKind.FAILED]
    assert bench.journal.closed == []
    assert "sequential_cutoff" in bench.writer.owned


def deaf(bench: WriterHarness, knob: str) -> None:
    """Let the kernel accept writes of this knob and keep its own value."""
    kept = bench.value(knob)
    bench.sysfs.after[knob] = lambda: bench.someone_writes(knob, kept)


# ---- what is written ----------------------------------------------------------------------------
def test_the_base_knobs_are_written_before_the_gate(bench: WriterHarness) -> None:
    bench.drive(PACED)
    assert bench.sysfs.log == [
        *BASE.items(),
        ("writeback_rate", "16384"),
        ("writeback_percent", "40"),
    ]


def test_a_value_that_is_there_already_is_not_written(bench: WriterHarness) -> None:
    bench.drive(PACED)
    del bench.sysfs.log[:]
    bench.drive(CLOSED)
    assert bench.sysfs.log == [("writeback_rate", "1")]


def test_a_knob_that_the_kernel_changes_is_written_again(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_rate", "500.0k")
    bench.drive(PACED)
    assert bench.value("writeback_rate") == str(8 * MIB)


def test_a_failure_ends_the_steps_and_names_the_kernels_reason(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.sysfs.before["writeback_rate"] = failing(errno.EBUSY)
    outcomes = bench.drive(Gate(GateKind.PULSED, 16 * MIB, 1000))
    assert kinds(outcomes) == [OutcomeKind.FAILED]
    assert "busy" in outcomes[0].error
    assert bench.writer.owned["writeback_rate"].written == "16384"


def test_a_base_knob_that_the_kernel_lacks_is_reported_once(bench: WriterHarness) -> None:
    bench.fake.remove(bench.path("writeback_delay"))
    refused = [o for o in bench.drive(PACED) if o.kind is OutcomeKind.REFUSED]
    assert [(o.action.knob, o.error) for o in refused] == [
        ("writeback_delay", "this kernel has no such knob")
    ]
    assert bench.value("writeback_percent") == "40"
    assert bench.value("idle_max_writeback_rate") == "0"
    assert OutcomeKind.REFUSED not in kinds(bench.drive(CLOSED))


def test_knobs_of_the_cache_are_refused_without_a_cache(bench: WriterHarness) -> None:
    bench.writer.volume = volume(set_uuid="")
    (outcome,) = bench.writer.apply((write("trigger_gc", 1, always=True),), REASON)
    assert (outcome.kind, outcome.error) == (OutcomeKind.REFUSED, "no cache is attached")


def test_an_action_has_the_value_the_reason_and_the_old_value(bench: WriterHarness) -> None:
    bench.writer.apply((write("writeback_percent", 40),), REASON)
    (outcome,) = bench.writer.apply((write("writeback_percent", 0),), REASON)
    action = outcome.action
    assert (action.volume, action.knob) == ("bcache0", "writeback_percent")
    assert (action.old, action.new) == ("40", "0")
    assert (action.strategy, action.reason) == (REASON.strategy, REASON.text)


def test_a_clamped_value_is_named_in_the_outcome_and_the_journal(tmp_path: Path) -> None:
    bench = WriterHarness(tmp_path)
    (outcome,) = bench.writer.apply(cutoff_steps(0), Reason("stream_bypass", "a stream"))
    assert outcome.action.new == str(64 * KIB)
    assert outcome.action.reason.startswith("a stream (0 was requested, the limit is 65536: ")
    assert bench.journal.kept["sequential_cutoff"].why == outcome.action.reason


def test_an_equal_value_is_journalled_and_not_written(tmp_path: Path) -> None:
    bench = WriterHarness(tmp_path)
    bench.someone_writes("idle_max_writeback_rate", "0")
    step = write("idle_max_writeback_rate", BASE["idle_max_writeback_rate"])
    (outcome,) = bench.writer.apply((step,), Reason("idle_destage", "a gap"))
    assert outcome.kind is OutcomeKind.UNCHANGED
    assert bench.sysfs.log == []
    assert bench.journal.kept["idle_max_writeback_rate"].original == "0"
