# SPDX-License-Identifier: GPL-2.0-only
"""Values of an administrator stay, and all other knobs get their originals back."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbgate.actuators.bcache_steps import GATE_KNOBS, write
from ebbgate.actuators.ownership import ALREADY_ORIGINAL
from ebbgate.model.decision import Gate, GateKind, JournalEntry, OutcomeKind
from ebbgate.probes.volume_state import read_knobs
from ebbgate.store.last_written import Values
from tests.builders import journal_entry, volume
from tests.fake_sysfs import failing
from tests.knob_writer_fixture import (
    CLOSED,
    HELD,
    PACED,
    REASON,
    RELEASED,
    WriterHarness,
    kinds,
)


@pytest.fixture
def harness(tmp_path: Path) -> WriterHarness:
    return WriterHarness(tmp_path)


# ---- the administrator wins ---------------------------------------------------------------------
def test_a_value_of_somebody_else_is_left_alone(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.someone_writes("writeback_percent", "20")
    assert harness.look() == ["writeback_percent"]
    assert harness.journal.closed == [("writeback_percent", "manual: found 20")]
    (outcome,) = harness.writer.apply((write("writeback_percent", 0),), REASON)
    assert outcome.kind is OutcomeKind.MANUAL
    assert harness.value("writeback_percent") == "20"


def test_a_gate_with_a_manual_knob_is_released_and_stays_released(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.someone_writes("writeback_percent", "20")
    harness.look()
    for gate in (CLOSED, PACED, RELEASED):
        harness.drive(gate)
        values = {knob: harness.value(knob) for knob in ORIGINALS if knob != "writeback_rate"}
        assert values == {
            "writeback_percent": "20",
            "writeback_delay": "30",
            "writeback_rate_update_seconds": "5",
            "idle_max_writeback_rate": "1",
        }


def test_a_manual_knob_is_reported_once(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.someone_writes("writeback_delay", "7")
    assert harness.look() == ["writeback_delay"]
    assert harness.look() == []


def test_a_released_manual_knob_has_the_persons_value_as_original(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.someone_writes("writeback_percent", "20")
    harness.look()
    harness.writer.clear_manual()
    harness.drive(PACED)
    assert harness.value("writeback_percent") == "40"
    assert harness.journal.kept["writeback_percent"].original == "20"
    harness.drive(RELEASED)
    assert harness.value("writeback_percent") == "20"


def test_a_value_of_the_kernel_itself_is_not_manual(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.someone_writes("writeback_rate", "500.0k")
    assert harness.look() == []


def test_an_unreadable_knob_is_not_manual(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.fake.remove(harness.path("writeback_delay"))
    assert harness.look() == []


def test_a_value_that_the_kernel_rounds_is_not_manual(harness: WriterHarness) -> None:
    harness.writer.apply((write("sequential_cutoff", 1_300_000),), REASON)
    harness.someone_writes("sequential_cutoff", "1.2M")
    assert harness.look() == []


def test_a_release_never_overwrites_a_value_written_since_the_last_check(
    harness: WriterHarness,
) -> None:
    harness.drive(PACED)
    harness.someone_writes("writeback_percent", "20")
    outcomes = {outcome.action.knob: outcome for outcome in harness.drive(RELEASED)}
    kept = outcomes["writeback_percent"]
    assert (kept.kind, kept.read_back) == (OutcomeKind.MANUAL, "20")
    assert harness.value("writeback_percent") == "20"
    assert ("writeback_percent", "manual: found 20") in harness.journal.closed
    assert (harness.value("writeback_delay"), harness.writer.owned) == ("30", {})
    assert harness.writer.manual == {"writeback_percent"}


def test_a_knob_outside_the_gate_is_checked_before_each_write(harness: WriterHarness) -> None:
    harness.writer.apply((write("sequential_cutoff", 1 << 20),), REASON)
    harness.someone_writes("sequential_cutoff", "65536")
    harness.now_ms += 2000
    (outcome,) = harness.writer.apply((write("sequential_cutoff", 2 << 20),), REASON)
    assert (outcome.kind, outcome.read_back) == (OutcomeKind.MANUAL, "65536")
    assert harness.value("sequential_cutoff") == "65536"


def test_a_value_written_while_the_original_is_journalled_is_the_original(
    harness: WriterHarness,
) -> None:
    first = harness.journal.put

    def slow(entry: JournalEntry) -> JournalEntry:
        harness.journal.put = first  # type: ignore[method-assign]
        kept = first(entry)
        harness.someone_writes("writeback_percent", "25")
        return kept

    harness.journal.put = slow  # type: ignore[method-assign]
    (outcome,) = harness.writer.apply((write("writeback_percent", 40),), REASON)
    assert outcome.kind is OutcomeKind.CHANGED
    assert harness.journal.open["writeback_percent"].original == "25"
    harness.writer.release(["writeback_percent"], REASON)
    assert harness.value("writeback_percent") == "25"


def test_a_knob_that_somebody_keeps_writing_is_not_written(harness: WriterHarness) -> None:
    first, values = harness.journal.put, iter(range(100))

    def slow(entry: JournalEntry) -> JournalEntry:
        kept = first(entry)
        harness.someone_writes("writeback_delay", str(next(values)))
        return kept

    harness.journal.put = slow  # type: ignore[method-assign]
    (outcome,) = harness.writer.apply((write("writeback_delay", 50),), REASON)
    assert outcome.kind is OutcomeKind.TOO_SOON
    assert (harness.sysfs.log, harness.journal.open, harness.writer.owned) == ([], {}, {})


def test_an_original_of_an_earlier_daemon_is_restored(harness: WriterHarness) -> None:
    """It failed to restore 10, so the knob still has its value 40."""
    harness.someone_writes("writeback_percent", "40")
    left = journal_entry(original="10", last_written="40")
    harness.journal.put = lambda entry: left  # type: ignore[method-assign]
    harness.writer.apply((write("writeback_percent", 0),), REASON)
    harness.writer.release(["writeback_percent"], REASON)
    assert harness.value("writeback_percent") == "10"


def test_the_last_value_is_recorded_before_each_write(harness: WriterHarness) -> None:
    """Wherever the daemon is killed, the knob has one of the recorded values."""
    seen: list[tuple[Values, str]] = []

    def look() -> None:
        seen.append((harness.journal.last["writeback_percent"], harness.value("writeback_percent")))

    harness.sysfs.before["writeback_percent"] = harness.sysfs.after["writeback_percent"] = look
    for value in (40, 0, 40):
        harness.writer.apply((write("writeback_percent", value, always=True),), REASON)
    assert len(seen) == 6
    assert all(value in values for values, value in seen)


def test_nothing_is_written_when_the_last_value_cannot_be_recorded(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.journal.broken = True
    (outcome,) = harness.writer.apply((write("writeback_percent", 0),), REASON)
    assert (outcome.kind, harness.value("writeback_percent")) == (OutcomeKind.REFUSED, "40")


def test_after_a_failed_write_both_values_are_ebbgates(harness: WriterHarness) -> None:
    harness.drive(PACED)

    def written_and_failed() -> None:
        harness.someone_writes("writeback_percent", "0")
        raise OSError(errno.EIO, "Input/output error")

    harness.sysfs.before["writeback_percent"] = written_and_failed
    harness.writer.apply((write("writeback_percent", 0),), REASON)
    assert harness.look() == [], "no other program has written it"
    harness.sysfs.before.clear()
    harness.drive(RELEASED)
    assert harness.value("writeback_percent") == "10"


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOMEM, errno.EIO, errno.EINTR])
def test_an_unreadable_knob_is_not_released_and_stays_owned(
    harness: WriterHarness, number: int
) -> None:
    harness.drive(PACED)
    del harness.sysfs.log[:]

    harness.sysfs.reading["writeback_delay"] = failing(number)
    outcomes = {outcome.action.knob: outcome for outcome in harness.drive(RELEASED)}
    assert outcomes["writeback_delay"].kind is OutcomeKind.FAILED
    assert list(harness.writer.owned) == ["writeback_delay"]
    assert "writeback_delay" not in dict(harness.sysfs.log)
    harness.sysfs.reading.clear()
    harness.drive(RELEASED)
    assert harness.value("writeback_delay") == "30"


def test_a_knob_that_is_gone_is_closed_without_a_write(harness: WriterHarness) -> None:
    harness.drive(PACED)
    harness.fake.remove(harness.path("writeback_delay"))
    outcomes = harness.drive(RELEASED)
    assert OutcomeKind.FAILED not in kinds(outcomes)
    assert harness.writer.owned == {}


# ---- everything comes back ----------------------------------------------------------------------
ORIGINALS = {
    "writeback_percent": "10",
    "writeback_delay": "30",
    "writeback_rate_update_seconds": "5",
    "idle_max_writeback_rate": "1",
    "writeback_rate": "8",
}


def test_a_release_restores_every_original_and_closes_the_journal(harness: WriterHarness) -> None:
    harness.drive(PACED)
    outcomes = harness.drive(RELEASED)
    assert set(kinds(outcomes)) == {OutcomeKind.CHANGED}
    knobs = read_knobs(harness.sysfs, volume())
    assert {knob: knobs[knob] for knob in ORIGINALS} == ORIGINALS
    assert harness.writer.owned == {}
    kept = ("writeback_running", ALREADY_ORIGINAL)
    expected = sorted([kept, *((knob, "restored") for knob in ORIGINALS)])
    assert sorted(harness.journal.closed) == expected


def test_a_shared_knob_is_left_to_the_other_volume_that_owns_it(harness: WriterHarness) -> None:
    harness.drive(replace(PACED, queue_depth=8))
    shared = "queue_depth:vda"
    harness.journal.claims.disclaim = lambda entry: entry.knob == shared  # type: ignore[method-assign]
    harness.drive(RELEASED)
    assert (harness.value(shared), harness.value("writeback_delay")) == ("8", "30")
    assert (harness.writer.owned, harness.journal.open) == ({}, {})


def test_a_release_restores_in_reverse_order(harness: WriterHarness) -> None:
    harness.drive(HELD)
    del harness.sysfs.log[:]
    harness.drive(RELEASED)
    found = [knob for knob, _ in harness.sysfs.log]
    assert found == [knob for knob in reversed(GATE_KNOBS) if knob in found]
    assert found[-1] == "writeback_running"


def test_a_knob_that_could_not_be_restored_stays_owned_and_is_restored_later(
    harness: WriterHarness,
) -> None:
    harness.drive(PACED)
    harness.sysfs.before["writeback_delay"] = failing(errno.EBUSY)
    outcomes = harness.drive(RELEASED)
    assert kinds(outcomes).count(OutcomeKind.FAILED) == 1
    assert list(harness.writer.owned) == ["writeback_delay"]
    assert "writeback_delay" not in dict(harness.journal.closed)
    del harness.sysfs.before["writeback_delay"]
    harness.drive(RELEASED)
    assert harness.value("writeback_delay") == "30"
    assert harness.writer.owned == {}


def test_a_knob_that_is_not_owned_is_not_released(harness: WriterHarness) -> None:
    assert harness.drive(RELEASED) == []
    assert harness.sysfs.log == []


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
        harness = WriterHarness(Path(folder))
        before = dict(read_knobs(harness.sysfs, volume()))
        foreign: dict[str, str] = {}
        if refused is not None:
            harness.sysfs.before[refused] = lambda: fail_once(harness, refused)
        for step in steps:
            if isinstance(step, Gate):
                harness.drive(step)
            elif isinstance(step, int):
                harness.writer.apply((write("sequential_cutoff", step),), REASON)
            else:
                harness.someone_writes(step, "77")
                harness.look()
                foreign[step] = "77"
        for _ in range(2):
            harness.writer.release(list(harness.writer.owned)[::-1], REASON)
        after = dict(read_knobs(harness.sysfs, volume()))
        assert harness.writer.owned == {}
        assert after == {**before, **foreign}


def fail_once(harness: WriterHarness, knob: str) -> None:
    del harness.sysfs.before[knob]
    failing(errno.EIO)()
