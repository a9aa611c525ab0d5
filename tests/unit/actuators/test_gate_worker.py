# SPDX-License-Identifier: GPL-2.0-only
"""The newest gate wins, and a hang is reported."""

from __future__ import annotations

import errno
import time
from dataclasses import replace
from queue import Empty

import pytest

from ebbgate.actuators.bcache_steps import GATE_KNOBS, write
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.knobs.catalog import IDLE_MAX_RATE, PERCENT, RATE, RUNNING
from ebbgate.model.decision import Gate, GateKind, Outcome, OutcomeKind
from ebbgate.units import MIB, NS_PER_S
from tests.fake_sysfs import failing
from tests.gate_worker_fixture import CLOSED, DEADLINE_S, OPEN, REASON, GateHarness, ours, paced
from tests.waiting import until


def test_a_gate_is_set_and_reported_with_the_time_of_its_edge(harness: GateHarness) -> None:
    harness.set_gate(paced(8), "pace", since_ns=17)
    name, outcomes, since_ns = harness.report()
    assert (name, since_ns) == ("pace", 17)
    assert [each.action.knob for each in outcomes][-2:] == ["writeback_percent", RUNNING]


def test_only_the_newest_waiting_gate_is_set(harness: GateHarness) -> None:
    harness.hang_at("writeback_delay")
    harness.set_gate(paced(1))
    assert harness.stuck.wait(DEADLINE_S)
    for rate in range(2, 9):
        harness.set_gate(paced(rate))
    harness.let_go.set()
    harness.report()
    harness.report()
    until(lambda: harness.worker.idle)
    rates = [value for knob, value in harness.sysfs.log if knob == "writeback_rate"]
    assert rates == [str(1 * MIB // 512), str(8 * MIB // 512)]
    with pytest.raises(Empty):
        harness.reports.get_nowait()


def test_a_gate_opens_after_the_knobs_of_its_close_are_journalled(harness: GateHarness) -> None:
    seen = []
    for knob in GATE_KNOBS:
        harness.journal.before[knob] = lambda: seen.append(list(harness.sysfs.log))
    harness.set_gate(OPEN)
    assert harness.report()[0] == "gate"
    assert seen == [[]] * len(GATE_KNOBS)
    assert (PERCENT, "0") in harness.sysfs.log
    harness.set_gate(CLOSED, since_ns=NS_PER_S)
    assert harness.report()[2] == NS_PER_S


def test_a_gate_does_not_open_where_a_close_came_while_the_journal_waited(
    harness: GateHarness,
) -> None:
    harness.hang_in_journal(RATE)
    harness.set_gate(OPEN)
    assert harness.stuck.wait(DEADLINE_S)
    harness.set_gate(CLOSED, since_ns=17)
    harness.let_go.set()
    assert harness.report()[1] == []
    _name, outcomes, since_ns = harness.report()
    assert since_ns is None, "nothing was open, so no request waited"
    assert [each.action.new for each in outcomes if each.action.knob == PERCENT] == ["40"]
    assert (PERCENT, "0") not in harness.sysfs.log


def test_a_gate_does_not_open_where_its_close_cannot_be_journalled(harness: GateHarness) -> None:
    harness.journal.before[RATE] = failing(errno.ENOSPC)
    harness.set_gate(OPEN)
    _name, outcomes, _since_ns = harness.report()
    assert [(each.action.knob, each.kind) for each in outcomes] == [(RATE, OutcomeKind.REFUSED)]
    assert harness.sysfs.log == []


def test_a_journal_that_refuses_one_knob_is_not_asked_for_the_others(harness: GateHarness) -> None:
    asked = []
    harness.journal.broken = True
    for knob in GATE_KNOBS:
        harness.journal.before[knob] = lambda knob=knob: asked.append(knob)  # type: ignore[misc]
    harness.set_gate(OPEN)
    harness.report()
    assert asked == [RUNNING]


def test_a_gate_opens_although_a_knob_that_it_could_do_without_fails(harness: GateHarness) -> None:
    harness.sysfs.reading[IDLE_MAX_RATE] = failing(errno.EIO)
    harness.set_gate(OPEN)
    harness.report()
    assert (PERCENT, "0") in harness.sysfs.log


def test_a_close_of_an_open_gate_has_a_latency_although_a_knob_was_journalled_meanwhile(
    harness: GateHarness,
) -> None:
    harness.set_gate(OPEN)
    harness.report()
    until(lambda: harness.worker.idle)
    began_ns = harness.worker.writer.now_ns()
    del harness.worker.writer.owned[RATE]
    harness.set_gate(CLOSED, since_ns=began_ns)
    assert harness.report()[2] == began_ns


def test_all_jobs_run_in_order_after_the_gate(harness: GateHarness) -> None:
    harness.hang_at("writeback_delay")
    harness.set_gate(paced(1))
    assert harness.stuck.wait(DEADLINE_S)
    for cutoff in (1, 2, 3):
        steps = (write("sequential_cutoff", cutoff * MIB),)
        harness.worker.submit(f"cutoff {cutoff}", lambda writer, s=steps: writer.apply(s, REASON))  # type: ignore[misc]
    harness.set_gate(paced(2))
    harness.let_go.set()
    assert [harness.report()[0] for _ in range(5)] == [
        "gate",
        "gate",
        "cutoff 1",
        "cutoff 2",
        "cutoff 3",
    ]


def test_the_generation_grows_with_each_write(harness: GateHarness) -> None:
    until(lambda: harness.worker.idle)
    before = harness.worker.generation
    harness.hang_at("writeback_delay")
    harness.set_gate(paced(1))
    assert harness.stuck.wait(DEADLINE_S)
    assert not harness.worker.idle
    assert harness.worker.generation > before
    harness.let_go.set()
    until(lambda: harness.worker.idle)
    assert harness.worker.generation == before + 2


def test_a_stop_finishes_waiting_jobs(harness: GateHarness) -> None:
    harness.set_gate(paced(1))
    harness.worker.submit(
        "cutoff", lambda writer: writer.apply((write("sequential_cutoff", MIB),), REASON)
    )
    assert harness.worker.stop(DEADLINE_S)
    assert ("sequential_cutoff", str(MIB)) in harness.sysfs.log


def test_a_write_that_hangs_in_the_kernel_is_reported(harness: GateHarness) -> None:
    harness.hang_at("writeback_delay")
    harness.set_gate(paced(1))
    assert harness.stuck.wait(DEADLINE_S)
    assert not harness.worker.stop(0.05)


@pytest.mark.parametrize("gate", [CLOSED, Gate(GateKind.RESTING, 512), paced(9)])
def test_a_gate_of_owned_knobs_is_set_before_the_call_returns(
    harness: GateHarness, gate: Gate
) -> None:
    ours(harness)
    harness.set_gate(gate)
    assert harness.sysfs.log[-1] == ("writeback_rate", str(gate.rate_bytes_per_s // 512))
    assert harness.worker.idle
    assert harness.report()[0] == "gate"


def test_a_caller_does_not_wait_for_the_journal_of_a_queue(harness: GateHarness) -> None:
    ours(harness)
    depth = "queue_depth:vda"
    harness.hang_in_journal(depth)
    shallow = replace(paced(9), queue_depth=4)
    harness.set_gate(shallow)
    assert harness.stuck.wait(DEADLINE_S), "the call returns while the thread waits"
    harness.let_go.set()
    assert depth in [each.action.knob for each in harness.report()[1]]
    until(lambda: harness.worker.idle)
    harness.set_gate(replace(shallow, rate_bytes_per_s=MIB))
    assert harness.worker.idle, "its queue is owned by now"


def test_a_gate_of_owned_knobs_does_not_overtake_a_running_job(harness: GateHarness) -> None:
    ours(harness)
    harness.hang_at("sequential_cutoff")
    steps = (write("sequential_cutoff", MIB),)
    harness.worker.submit("cutoff", lambda writer: writer.apply(steps, REASON))
    assert harness.stuck.wait(DEADLINE_S)
    harness.set_gate(CLOSED)
    assert harness.sysfs.log[-1][0] != "writeback_rate" or harness.sysfs.log[-1][1] != "1"
    harness.let_go.set()
    assert [harness.report()[0] for _ in range(2)] == ["cutoff", "gate"]
    assert harness.sysfs.log[-1] == ("writeback_rate", "1")


def test_a_job_with_a_bug_does_not_end_the_thread(harness: GateHarness) -> None:
    def bug(_: KnobWriter) -> list[Outcome]:
        raise ZeroDivisionError

    harness.worker.submit("bug", bug)
    harness.set_gate(paced(1))
    assert harness.report()[0] == "gate"
    harness.set_gate(Gate(GateKind.RELEASED))
    harness.report()
    assert harness.worker.writer.owned == {}


def test_the_writer_stays_usable_after_an_error(harness: GateHarness) -> None:
    def bug() -> None:
        raise ZeroDivisionError

    ours(harness)
    harness.sysfs.before["writeback_rate"] = bug
    with pytest.raises(ZeroDivisionError):
        harness.set_gate(CLOSED)
    del harness.sysfs.before["writeback_rate"]
    harness.set_gate(Gate(GateKind.RELEASED))
    harness.report()
    assert harness.worker.writer.owned == {}


def test_a_close_is_left_to_the_thread_while_a_read_hangs(
    harness: GateHarness,
) -> None:
    ours(harness)
    harness.sysfs.log.clear()
    harness.worker.writer.reading_since_ns = harness.worker.writer.now_ns() - NS_PER_S
    harness.hang_at("writeback_rate")
    begun = time.monotonic()
    harness.set_gate(CLOSED)
    assert time.monotonic() - begun < DEADLINE_S / 2, "the caller hung with the write"
    assert harness.stuck.wait(DEADLINE_S)
    harness.let_go.set()
    until(lambda: harness.worker.idle)
    assert ("writeback_rate", "1") in harness.sysfs.log
