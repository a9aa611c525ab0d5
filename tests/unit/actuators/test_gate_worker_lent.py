# SPDX-License-Identifier: GPL-2.0-only
"""A gate closes while a job waits for the disk of the journal, and nothing else is set then."""

from __future__ import annotations

import errno
import time
from queue import Empty
from threading import Event

import pytest

from ebbgate.actuators.bcache_steps import write
from ebbgate.knobs.catalog import CONGESTED, CUTOFF, DELAY, PERCENT, RATE
from ebbgate.model.decision import Gate, GateKind, OutcomeKind
from ebbgate.units import MIB
from tests.gate_worker_fixture import CLOSED, DEADLINE_S, OPEN, REASON, GateHarness, ours, paced
from tests.waiting import until


def waiting_job(harness: GateHarness, *knobs: str) -> None:
    """Have a job of these knobs wait for the journal's disk, at the last of them."""
    harness.hang_in_journal(knobs[-1])
    steps = [write(knob, 1) for knob in knobs]
    harness.worker.submit("job", lambda writer: writer.apply(steps, REASON))
    assert harness.stuck.wait(DEADLINE_S)
    harness.sysfs.log.clear()


@pytest.mark.parametrize("gate", [CLOSED, Gate(GateKind.RESTING, 512)])
def test_a_close_does_not_wait_for_the_journal_of_a_job(harness: GateHarness, gate: Gate) -> None:
    ours(harness)
    waiting_job(harness, CUTOFF)
    harness.set_gate(gate, since_ns=17)
    assert harness.sysfs.log == [(RATE, "1")], "set before the call returns"
    name, _outcomes, since_ns = harness.report()
    assert (name, since_ns) == ("gate", 17)
    assert not harness.worker.idle, "the job is under way"
    harness.let_go.set()
    assert harness.report()[0] == "job"
    assert [knob for knob, _ in harness.sysfs.log] == [RATE, CUTOFF]
    until(lambda: harness.worker.idle)
    harness.set_gate(paced(2))
    assert harness.report()[0] == "gate"


def test_a_close_that_came_before_the_journal_does_not_wait_for_it(harness: GateHarness) -> None:
    ours(harness)
    written = Event()

    def close() -> None:
        harness.set_gate(CLOSED)
        assert harness.reports.empty(), "the job is writing"
        written.set()

    harness.sysfs.before[CONGESTED[0]] = close
    waiting_job(harness, *CONGESTED)
    assert written.is_set()
    assert harness.report()[0] == "gate"
    assert harness.worker.writer.owned[RATE].written == "1"
    harness.let_go.set()
    assert harness.report()[0] == "job"


@pytest.mark.parametrize("gate", [OPEN, paced(9), Gate(GateKind.HELD), Gate(GateKind.RELEASED)])
def test_only_a_close_is_set_while_a_job_waits(harness: GateHarness, gate: Gate) -> None:
    ours(harness)
    waiting_job(harness, CUTOFF)
    harness.set_gate(gate)
    assert harness.sysfs.log == []
    harness.let_go.set()
    assert [harness.report()[0] for _ in range(2)] == ["job", "gate"]


def test_a_close_replaces_a_gate_that_waits_for_a_job(harness: GateHarness) -> None:
    ours(harness)
    waiting_job(harness, CUTOFF)
    harness.set_gate(OPEN)
    harness.set_gate(CLOSED)
    assert harness.report()[0] == "gate"
    harness.let_go.set()
    assert harness.report()[0] == "job"
    until(lambda: harness.worker.idle)
    assert (PERCENT, "0") not in harness.sysfs.log
    with pytest.raises(Empty):
        harness.reports.get_nowait()


def test_a_close_of_knobs_that_are_not_owned_waits_for_the_job(harness: GateHarness) -> None:
    waiting_job(harness, CUTOFF)
    harness.set_gate(CLOSED)
    assert harness.sysfs.log == []
    harness.let_go.set()
    assert [harness.report()[0] for _ in range(2)] == ["job", "gate"]


def test_a_job_that_takes_a_knob_of_the_gate_is_not_overtaken(harness: GateHarness) -> None:
    """A person sets the knob, and gives it up again before its original is journalled."""
    ours(harness)
    writer = harness.worker.writer
    writer.pinned.add(DELAY)
    harness.worker.submit("free", lambda writer: writer.release((DELAY,), REASON))
    harness.report()
    waiting_job(harness, DELAY)
    writer.pinned.discard(DELAY)
    harness.set_gate(CLOSED)
    assert harness.sysfs.log == []
    harness.let_go.set()
    assert [harness.report()[0] for _ in range(2)] == ["job", "gate"]


def test_a_job_goes_on_after_a_close_that_is_under_way(harness: GateHarness) -> None:
    ours(harness)
    waiting_job(harness, CUTOFF)
    seen = []

    def closing() -> None:
        harness.let_go.set()
        time.sleep(0.1)
        seen.append(list(harness.sysfs.log))

    harness.sysfs.before[RATE] = closing
    harness.set_gate(CLOSED)
    assert [harness.report()[0] for _ in range(2)] == ["gate", "job"]
    assert seen == [[]], "the job wrote while the gate was closed"


def test_one_gate_at_a_time_is_set_while_a_job_waits(harness: GateHarness) -> None:
    ours(harness)
    waiting_job(harness, CUTOFF)

    def closing() -> None:
        del harness.sysfs.before[RATE]
        harness.set_gate(Gate(GateKind.RESTING, MIB))
        assert harness.sysfs.log == []

    harness.sysfs.before[RATE] = closing
    harness.set_gate(CLOSED)
    harness.let_go.set()
    assert [harness.report()[0] for _ in range(3)] == ["gate", "job", "gate"]
    until(lambda: harness.worker.idle)
    assert harness.worker.writer.owned[RATE].written == str(MIB // 512)


def test_a_job_whose_journal_fails_leaves_the_gate_usable(harness: GateHarness) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    ours(harness)
    harness.journal.before[CUTOFF] = full
    harness.worker.submit("job", lambda writer: writer.apply((write(CUTOFF, 1),), REASON))
    assert [each.kind for each in harness.report()[1]] == [OutcomeKind.REFUSED]
    until(lambda: harness.worker.idle)
    harness.set_gate(CLOSED)
    assert harness.sysfs.log[-1] == (RATE, "1")
