# SPDX-License-Identifier: GPL-2.0-only
"""A gate closes while a write of a job waits for a disk in the kernel; nothing else is set then."""

from __future__ import annotations

import errno
import threading
import time
from queue import Empty

import pytest

from ebbgate.actuators.bcache_steps import Step, write
from ebbgate.actuators.gate_worker import GateWorker
from ebbgate.background import BackgroundWorker
from ebbgate.errors import Unavailable
from ebbgate.knobs.catalog import CUTOFF, PERCENT, RATE
from ebbgate.model.decision import Gate, GateKind, OutcomeKind
from ebbgate.units import NS_PER_S
from tests.fake_sysfs import failing
from tests.gate_worker_fixture import CLOSED, DEADLINE_S, OPEN, REASON, GateHarness, ours, paced
from tests.waiting import until

SCHEDULER, LENGTH = "scheduler:vda", "nr_requests:vda"
SLOW = (Step(SCHEDULER, "bfq"), Step(LENGTH, "512"))


def slow_write(harness: GateHarness, *steps: Step) -> None:
    """Have the last write of a job hang in the kernel."""
    harness.hang_at(steps[-1].knob.partition(":")[0])
    harness.worker.submit("job", lambda writer: writer.apply(steps, REASON))
    assert harness.stuck.wait(DEADLINE_S)
    harness.sysfs.log.clear()


def kernel_hangs(harness: GateHarness) -> None:
    """A read of the volume waits in the kernel, as one of a disk whose scheduler is switched."""
    writer = harness.worker.writer
    writer.reading_since_ns = writer.now_ns() - NS_PER_S


@pytest.mark.parametrize("step", SLOW)
@pytest.mark.parametrize("gate", [CLOSED, Gate(GateKind.RESTING, 512)])
def test_a_close_does_not_wait_for_a_slow_write(
    harness: GateHarness, gate: Gate, step: Step
) -> None:
    ours(harness)
    slow_write(harness, step)
    harness.set_gate(gate, since_ns=17)
    assert harness.sysfs.log == [(RATE, "1")], "set before the call returns"
    name, _outcomes, since_ns = harness.report()
    assert (name, since_ns) == ("gate", 17)
    assert not harness.worker.idle, "the job is under way"
    harness.let_go.set()
    name, outcomes, _since_ns = harness.report()
    assert (name, [each.kind for each in outcomes]) == ("job", [OutcomeKind.CHANGED])
    until(lambda: harness.worker.idle)
    harness.set_gate(paced(2))
    assert harness.report()[0] == "gate"


def test_where_the_caller_might_hang_the_thread_closes_the_gate(harness: GateHarness) -> None:
    ours(harness)
    slow_write(harness, SLOW[0])
    kernel_hangs(harness)
    for _ in range(2):
        harness.set_gate(CLOSED)
        assert harness.report()[0] == "gate"
    assert harness.sysfs.log == [(RATE, "1")] * 2
    harness.let_go.set()
    assert harness.report()[0] == "job"


def test_a_close_that_came_just_before_a_slow_write_does_not_wait_for_it(
    harness: GateHarness,
) -> None:
    ours(harness)
    # Else the gate could be closed while the second one is journalled.
    harness.worker.submit("claim", lambda writer: writer.claim(SLOW, REASON))
    harness.report()
    harness.sysfs.before["nr_requests"] = lambda: harness.set_gate(CLOSED)
    slow_write(harness, SLOW[1], SLOW[0])
    assert harness.report()[0] == "gate"
    assert harness.worker.writer.owned[RATE].written == "1"
    harness.let_go.set()
    assert harness.report()[0] == "job"


@pytest.mark.parametrize("gate", [OPEN, paced(9), Gate(GateKind.HELD), Gate(GateKind.RELEASED)])
def test_only_a_close_is_set_during_a_slow_write(harness: GateHarness, gate: Gate) -> None:
    ours(harness)
    slow_write(harness, SLOW[0])
    harness.set_gate(gate)
    with pytest.raises(Empty):
        harness.reports.get(timeout=0.1)
    assert harness.sysfs.log == []
    harness.let_go.set()
    assert [harness.report()[0] for _ in range(2)] == ["job", "gate"]


def test_a_write_that_may_wait_for_the_lock_of_bcache_is_not_overtaken(
    harness: GateHarness,
) -> None:
    ours(harness)
    slow_write(harness, write(CUTOFF, 1))
    harness.set_gate(CLOSED)
    assert harness.sysfs.log == []
    harness.let_go.set()
    assert [harness.report()[0] for _ in range(2)] == ["job", "gate"]


def test_a_job_goes_on_after_a_close_that_is_under_way(harness: GateHarness) -> None:
    ours(harness)
    harness.hang_at("scheduler")
    steps = (SLOW[0], write(CUTOFF, 1))
    harness.worker.submit("job", lambda writer: writer.apply(steps, REASON))
    assert harness.stuck.wait(DEADLINE_S)
    harness.sysfs.log.clear()
    seen = []

    def closing() -> None:
        harness.let_go.set()
        until(lambda: ("scheduler", "bfq") in harness.sysfs.log)
        time.sleep(0.1)
        seen.extend(harness.sysfs.log)

    harness.sysfs.before[RATE] = closing
    harness.set_gate(CLOSED)
    assert [harness.report()[0] for _ in range(2)] == ["gate", "job"]
    assert seen == [("scheduler", "bfq")], "the job's next write came while the gate was closed"
    assert harness.sysfs.log[-1][0] == CUTOFF


def test_the_slow_write_is_still_the_one_that_hangs_after_a_close(harness: GateHarness) -> None:
    ours(harness)
    slow_write(harness, SLOW[0])
    before = harness.worker.writer.current_write
    assert before is not None
    assert before[0] == SCHEDULER
    harness.set_gate(CLOSED)
    harness.report()
    assert harness.worker.writer.current_write == before
    harness.let_go.set()
    harness.report()
    until(lambda: harness.worker.idle)
    assert harness.worker.writer.current_write is None


def test_a_slow_write_that_the_kernel_refuses_is_a_failure(harness: GateHarness) -> None:
    harness.sysfs.before["scheduler"] = failing(errno.EINVAL)
    harness.worker.submit("job", lambda writer: writer.apply(SLOW[:1], REASON))
    assert [each.kind for each in harness.report()[1]] == [OutcomeKind.FAILED]


def test_a_restore_releases_the_gate_before_a_slow_write(harness: GateHarness) -> None:
    """What closes the gate then is newer than the restore, and stays."""
    ours(harness)
    harness.worker.submit("job", lambda writer: writer.apply(SLOW[:1], REASON))
    harness.report()
    harness.worker.writer.now_ns = lambda: time.monotonic_ns() + NS_PER_S
    harness.hang_at("scheduler")
    knobs = list(harness.worker.writer.owned)[::-1]
    assert knobs[0] == SCHEDULER
    harness.worker.submit("restore", lambda writer: writer.release(knobs, REASON))
    assert harness.stuck.wait(DEADLINE_S)
    assert set(harness.worker.writer.owned) == {SCHEDULER}
    assert harness.sysfs.read_text("/sys/block/bcache0/bcache/writeback_percent") == "10"
    harness.let_go.set()
    assert harness.report()[0] == "restore"


def test_the_thread_of_slow_writes_ends_with_the_worker(harness: GateHarness) -> None:
    before = set(threading.enumerate())
    worker = GateWorker(harness.worker.writer, lambda *_report: None)
    worker.submit("job", lambda writer: writer.apply(SLOW[:1], REASON))
    until(lambda: worker.idle)
    assert len(set(threading.enumerate()) - before) == 2
    assert worker.stop(DEADLINE_S)
    until(lambda: set(threading.enumerate()) == before)
    assert PERCENT not in harness.worker.writer.owned


def test_a_slow_write_without_a_thread_keeps_no_later_gate_waiting(
    harness: GateHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours(harness)

    def refused(*_: object) -> None:
        raise Unavailable("no thread can be started")

    with monkeypatch.context() as patch:
        patch.setattr(BackgroundWorker, "submit", refused)
        harness.worker.submit("job", lambda writer: writer.apply(SLOW[:1], REASON))
        time.sleep(0.1)
    until(lambda: harness.worker.idle)
    harness.set_gate(paced(2))
    assert harness.report()[0] == "gate"
