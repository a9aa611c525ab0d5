# SPDX-License-Identifier: GPL-2.0-only
"""The kernel takes another value than the one that was written: it is ebbgate's, and nobody's."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.actuators.bcache_steps import write
from ebbgate.model.decision import OutcomeKind
from ebbgate.store.last_written import Values
from ebbgate.units import MIB
from tests.knob_writer_fixture import REASON, WriterHarness, kinds

KNOB = "sequential_cutoff"
ORIGINAL, THIRD = "4194304", str(3 * MIB)


@pytest.fixture
def harness(tmp_path: Path) -> WriterHarness:
    """A cutoff of 1 MiB is in force; of 2 MiB the kernel made 3."""
    made = WriterHarness(tmp_path)
    made.writer.apply((write(KNOB, MIB),), REASON)
    made.now_ms += 2000
    made.sysfs.after[KNOB] = lambda: made.someone_writes(KNOB, THIRD)
    (outcome,) = made.writer.apply((write(KNOB, 2 * MIB),), REASON)
    made.sysfs.after.clear()
    assert (outcome.kind, outcome.read_back) == (OutcomeKind.FAILED, THIRD)
    return made


def test_it_is_no_persons_value(harness: WriterHarness) -> None:
    assert harness.look() == []
    harness.now_ms += 2000
    assert kinds(harness.writer.apply((write(KNOB, MIB),), REASON)) == [OutcomeKind.CHANGED]


def test_its_original_comes_back(harness: WriterHarness) -> None:
    assert kinds(harness.writer.release([KNOB], REASON)) == [OutcomeKind.CHANGED]
    assert harness.value(KNOB) == ORIGINAL


def test_a_restore_without_a_daemon_knows_it(harness: WriterHarness) -> None:
    assert harness.journal.last[KNOB] == Values(THIRD, str(2 * MIB))


def test_what_the_kernel_had_before_is_a_persons_value_then(harness: WriterHarness) -> None:
    harness.someone_writes(KNOB, str(MIB))
    assert harness.look() == [KNOB]


def test_a_journal_that_refuses_the_value_is_no_error_of_the_write(tmp_path: Path) -> None:
    made = WriterHarness(tmp_path)
    made.writer.apply((write(KNOB, MIB),), REASON)
    made.now_ms += 2000

    def third() -> None:
        made.someone_writes(KNOB, THIRD)
        made.journal.broken = True

    made.sysfs.after[KNOB] = third
    (outcome,) = made.writer.apply((write(KNOB, 2 * MIB),), REASON)
    made.sysfs.after.clear()
    assert (outcome.kind, outcome.error) == (
        OutcomeKind.FAILED,
        f"the kernel changed it to {THIRD}",
    )
    assert made.look() == []
