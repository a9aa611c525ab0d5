# SPDX-License-Identifier: GPL-2.0-only
"""Values of an administrator stay, and all other knobs get their originals back."""

from __future__ import annotations

import errno
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbgate.actuators.bcache_steps import GATE_KNOBS, write
from ebbgate.model.decision import Gate, GateKind, JournalEntry, OutcomeKind
from ebbgate.probes.volume_state import read_knobs
from ebbgate.store.last_written import Values
from tests.builders import journal_entry, volume
from tests.fake_sysfs import failing
from tests.knob_writer_fixture import CLOSED, PACED, REASON, RELEASED, WriterHarness, kinds


@pytest.fixture
def bench(tmp_path: Path) -> WriterHarness:
    return WriterHarness(tmp_path)


# ---- the administrator wins ---------------------------------------------------------------------
def test_a_value_of_somebody_else_is_left_alone(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_percent", "20")
    assert bench.look() == ["writeback_percent"]
    assert bench.journal.closed == [("writeback_percent", "manual: found 20")]
    (outcome,) = bench.writer.apply((write("writeback_percent", 0),), REASON)
    assert outcome.kind is OutcomeKind.MANUAL
    assert bench.value("writeback_percent") == "20"


def test_a_gate_with_a_manual_knob_is_released_and_stays_released(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_percent", "20")
    bench.look()
    for gate in (CLOSED, PACED, RELEASED):
        bench.drive(gate)
        values = {knob: bench.value(knob) for knob in ORIGINALS if knob != "writeback_rate"}
        assert values == {
            "writeback_percent": "20",
            "writeback_delay": "30",
            "writeback_rate_update_seconds": "5",
            "idle_max_writeback_rate": "1",
        }


def test_a_manual_knob_is_reported_once(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_delay", "7")
    assert bench.look() == ["writeback_delay"]
    assert bench.look() == []


def test_a_released_manual_knob_has_the_persons_value_as_original(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_percent", "20")
    bench.look()
    bench.writer.clear_manual()
    bench.drive(PACED)
    assert bench.value("writeback_percent") == "40"
    assert bench.journal.kept["writeback_percent"].original == "20"
    bench.drive(RELEASED)
    assert bench.value("writeback_percent") == "20"


def test_a_value_of_the_kernel_itself_is_not_manual(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_rate", "500.0k")
    assert bench.look() == []


def test_an_unreadable_knob_is_not_manual(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.fake.remove(bench.path("writeback_delay"))
    assert bench.look() == []


def test_a_value_that_the_kernel_rounds_is_not_manual(bench: WriterHarness) -> None:
    bench.writer.apply((write("sequential_cutoff", 1_300_000),), REASON)
    bench.someone_writes("sequential_cutoff", "1.2M")
    assert bench.look() == []


def test_a_release_never_overwrites_a_value_written_since_the_last_check(
    bench: WriterHarness,
) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_percent", "20")
    outcomes = {outcome.action.knob: outcome for outcome in bench.drive(RELEASED)}
    kept = outcomes["writeback_percent"]
    assert (kept.kind, kept.read_back) == (OutcomeKind.MANUAL, "20")
    assert bench.value("writeback_percent") == "20"
    assert ("writeback_percent", "manual: found 20") in bench.journal.closed
    assert (bench.value("writeback_delay"), bench.writer.owned) == ("30", {})
    assert bench.writer.manual == {"writeback_percent"}


def test_a_knob_outside_the_gate_is_checked_before_each_write(bench: WriterHarness) -> None:
    bench.writer.apply((write("sequential_cutoff", 1 << 20),), REASON)
    bench.someone_writes("sequential_cutoff", "65536")
    bench.now_ms += 2000
    (outcome,) = bench.writer.apply((write("sequential_cutoff", 2 << 20),), REASON)
    assert (outcome.kind, outcome.read_back) == (OutcomeKind.MANUAL, "65536")
    assert bench.value("sequential_cutoff") == "65536"


def test_a_value_written_while_the_original_is_journalled_is_the_original(
    bench: WriterHarness,
) -> None:
    first = bench.journal.put

    def slow(entry: JournalEntry) -> JournalEntry:
        bench.journal.put = first  # type: ignore[method-assign]
        kept = first(entry)
        bench.someone_writes("writeback_percent", "25")
        return kept

    bench.journal.put = slow  # type: ignore[method-assign]
    (outcome,) = bench.writer.apply((write("writeback_percent", 40),), REASON)
    assert outcome.kind is OutcomeKind.CHANGED
    assert bench.journal.open["writeback_percent"].original == "25"
    bench.writer.release(["writeback_percent"], REASON)
    assert bench.value("writeback_percent") == "25"


def test_a_knob_that_somebody_keeps_writing_is_not_written(bench: WriterHarness) -> None:
    first, values = bench.journal.put, iter(range(100))

    def slow(entry: JournalEntry) -> JournalEntry:
        kept = first(entry)
        bench.someone_writes("writeback_delay", str(next(values)))
        return kept

    bench.journal.put = slow  # type: ignore[method-assign]
    (outcome,) = bench.writer.apply((write("writeback_delay", 50),), REASON)
    assert outcome.kind is OutcomeKind.TOO_SOON
    assert (bench.sysfs.log, bench.journal.open, bench.writer.owned) == ([], {}, {})


def test_an_original_of_an_earlier_daemon_is_restored(bench: WriterHarness) -> None:
    """It failed to restore 10, so the knob still has its value 40."""
    bench.someone_writes("writeback_percent", "40")
    left = journal_entry(original="10", last_written="40")
    bench.journal.put = lambda entry: left  # type: ignore[method-assign]
    bench.writer.apply((write("writeback_percent", 0),), REASON)
    bench.writer.release(["writeback_percent"], REASON)
    assert bench.value("writeback_percent") == "10"


def test_the_last_value_is_recorded_before_each_write(bench: WriterHarness) -> None:
    """Wherever the daemon is killed, the knob has one of the recorded values."""
    seen: list[tuple[Values, str]] = []

    def look() -> None:
        seen.append((bench.journal.last["writeback_percent"], bench.value("writeback_percent")))

    bench.sysfs.before["writeback_percent"] = bench.sysfs.after["writeback_percent"] = look
    for value in (40, 0, 40):
        bench.writer.apply((write("writeback_percent", value, always=True),), REASON)
    assert len(seen) == 6
    assert all(value in values for values, value in seen)


def test_nothing_is_written_when_the_last_value_cannot_be_recorded(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.journal.broken = True
    (outcome,) = bench.writer.apply((write("writeback_percent", 0),), REASON)
    assert (outcome.kind, bench.value("writeback_percent")) == (OutcomeKind.REFUSED, "40")


def test_both_values_are_ours_after_a_failed_write(bench: WriterHarness) -> None:
    bench.drive(PACED)

    def written_and_failed() -> None:
        bench.someone_writes("writeback_percent", "0")
        raise OSError(errno.EIO, "Input/output error")

    bench.sysfs.before["writeback_percent"] = written_and_failed
    bench.writer.apply((write("writeback_percent", 0),), REASON)
    assert bench.look() == [], "nobody else has written it"
    bench.sysfs.before.clear()
    bench.drive(RELEASED)
    assert bench.value("writeback_percent") == "10"


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOMEM, errno.EIO, errno.EINTR])
def test_an_unreadable_knob_is_not_released_and_stays_owned(
    bench: WriterHarness, number: int
) -> None:
    bench.drive(PACED)
    del bench.sysfs.log[:]

    bench.sysfs.reading["writeback_delay"] = failing(number)
    outcomes = {outcome.action.knob: outcome for outcome in bench.drive(RELEASED)}
    assert outcomes["writeback_delay"].kind is OutcomeKind.FAILED
    assert list(bench.writer.owned) == ["writeback_delay"]
    assert "writeback_delay" not in dict(bench.sysfs.log)
    bench.sysfs.reading.clear()
    bench.drive(RELEASED)
    assert bench.value("writeback_delay") == "30"


def test_a_knob_that_is_gone_is_closed_without_a_write(bench: WriterHarness) -> None:
    bench.drive(PACED)
    bench.fake.remove(bench.path("writeback_delay"))
    outcomes = bench.drive(RELEASED)
    assert OutcomeKind.FAILED not in kinds(outcomes)
    assert bench.writer.owned == {}


# ---- everything comes back ----------------------------------------------------------------------
ORIGINALS = {
    "writeback_percent": "10",
    "writeback_delay": "30",
    "writeback_rate_update_seconds": "5",
    "idle_max_writeback_rate": "1",
    "writeback_rate": "8",
}


def test_a_release_restores_every_original_and_closes_the_journal(bench: WriterHarness) -> None:
    bench.drive(PACED)
    outcomes = bench.drive(RELEASED)
    assert set(kinds(outcomes)) == {OutcomeKind.CHANGED}
    knobs = read_knobs(bench.sysfs, volume())
    assert {knob: knobs[knob] for knob in ORIGINALS} == ORIGINALS
    assert bench.writer.owned == {}
    assert sorted(bench.journal.closed) == sorted((knob, "restored") for knob in ORIGINALS)


def test_a_shared_knob_is_left_to_the_other_volume_that_owns_it(bench: WriterHarness) -> None:
    bench.drive(PACED)
    shared = "idle_max_writeback_rate"
    bench.journal.disclaim = lambda entry: entry.knob == shared  # type: ignore[method-assign]
    bench.drive(RELEASED)
    assert (bench.value(shared), bench.value("writeback_delay")) == ("0", "30")
    assert (bench.writer.owned, bench.journal.open) == ({}, {})


def test_a_release_restores_in_reverse_order(bench: WriterHarness) -> None:
    bench.drive(PACED)
    del bench.sysfs.log[:]
    bench.drive(RELEASED)
    assert [knob for knob, _ in bench.sysfs.log] == list(reversed(GATE_KNOBS))


def test_a_knob_that_could_not_be_restored_stays_owned_and_is_restored_later(
    bench: WriterHarness,
) -> None:
    bench.drive(PACED)
    bench.sysfs.before["writeback_delay"] = failing(errno.EBUSY)
    outcomes = bench.drive(RELEASED)
    assert kinds(outcomes).count(OutcomeKind.FAILED) == 1
    assert list(bench.writer.owned) == ["writeback_delay"]
    assert "writeback_delay" not in dict(bench.journal.closed)
    del bench.sysfs.before["writeback_delay"]
    bench.drive(RELEASED)
    assert bench.value("writeback_delay") == "30"
    assert bench.writer.owned == {}


def test_a_knob_that_is_not_owned_is_not_released(bench: WriterHarness) -> None:
    assert bench.drive(RELEASED) == []
    assert bench.sysfs.log == []


GATES = st.builds(
    Gate, st.sampled_from([*GateKind]), st.integers(min_value=0, max_value=1 << 40), st.just(1000)
)
STEPS = st.lists(
    st.one_of(
        GATES,
        st.integers(min_value=-5, max_value=1 << 40),
        st.sampled_from(["writeback_percent", "writeback_delay", "sequential_cutoff"]),
    ),
    max_size=10,
)


@settings(max_examples=20)
@given(STEPS, st.sampled_from([None, *GATE_KNOBS]))
def test_a_stop_restores_all_but_values_of_somebody_else(
    steps: list[Gate | int | str], refused: str | None
) -> None:
    """Gates, cutoffs and writes of somebody else in any order; `refused` fails once."""
    with TemporaryDirectory() as folder:
        bench = WriterHarness(Path(folder))
        before = dict(read_knobs(bench.sysfs, volume()))
        foreign: dict[str, str] = {}
        if refused is not None:
            bench.sysfs.before[refused] = lambda: fail_once(bench, refused)
        for step in steps:
            if isinstance(step, Gate):
                bench.drive(step)
            elif isinstance(step, int):
                bench.writer.apply((write("sequential_cutoff", step),), REASON)
            else:
                bench.someone_writes(step, "77")
                bench.look()
                foreign[step] = "77"
        for _ in range(2):
            bench.writer.release(list(bench.writer.owned)[::-1], REASON)
        after = dict(read_knobs(bench.sysfs, volume()))
        assert bench.writer.owned == {}
        assert after == {**before, **foreign}


def fail_once(bench: WriterHarness, knob: str) -> None:
    del bench.sysfs.before[knob]
    failing(errno.EIO)()
