# SPDX-License-Identifier: GPL-2.0-only
"""The newest gate wins, a close does not wait for a pulse, and a hang is reported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Event

import pytest

from ebbgate.actuators.bcache_steps import write
from ebbgate.actuators.gate_worker import GateWorker, Later
from ebbgate.actuators.knob_writer import KnobWriter, Reason
from ebbgate.model.decision import Gate, GateKind, Outcome
from ebbgate.units import MIB, NS_PER_S
from tests.builders import volume
from tests.fake_journal import FakeJournal
from tests.fake_sysfs import WatchedSysfs, fake_bcache
from tests.waiting import until

REASON = Reason("idle_destage", "a test")
PULSE = Gate(GateKind.PULSED, 8 * MIB, pulse_ns=30 * NS_PER_S)
CLOSED = Gate(GateKind.CLOSED, 512)
DEADLINE_S = 5.0


class Bench:
    """A gate worker whose reports a test waits for."""

    def __init__(self, root: Path, later: Later | None = None) -> None:
        fake_bcache(root)
        self.sysfs = WatchedSysfs(root)
        self.reports: Queue[tuple[str, list[Outcome], int]] = Queue()
        writer = KnobWriter(self.sysfs, volume(), FakeJournal(), "this boot")
        self.worker = GateWorker(writer, lambda *report: self.reports.put(report), later)
        self.stuck = Event()
        self.let_go = Event()

    def report(self) -> tuple[str, list[Outcome], int]:
        return self.reports.get(timeout=DEADLINE_S)

    def hang_at(self, knob: str) -> None:
        """The next write to the knob hangs until `let_go`."""

        def hang() -> None:
            self.stuck.set()
            assert self.let_go.wait(DEADLINE_S)

        self.sysfs.before[knob] = hang

    def set_gate(self, gate: Gate, name: str = "gate", since_ns: int | None = None) -> None:
        self.worker.set_gate(gate, REASON, name, since_ns)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.let_go.set()
    bench.worker.writer.interrupt.set()
    assert bench.worker.stop(DEADLINE_S)


def paced(rate_mib: int) -> Gate:
    return Gate(GateKind.PACED, rate_mib * MIB)


def test_a_gate_is_set_and_reported_with_the_time_of_its_edge(bench: Bench) -> None:
    bench.set_gate(paced(8), "pace", since_ns=17)
    name, outcomes, since_ns = bench.report()
    assert (name, since_ns) == ("pace", 17)
    assert outcomes[-1].action.knob == "writeback_percent"


def test_only_the_newest_waiting_gate_is_set(bench: Bench) -> None:
    bench.hang_at("writeback_delay")
    bench.set_gate(paced(1))
    assert bench.stuck.wait(DEADLINE_S)
    for rate in range(2, 9):
        bench.set_gate(paced(rate))
    bench.let_go.set()
    bench.report()
    bench.report()
    until(lambda: bench.worker.idle)
    rates = [value for knob, value in bench.sysfs.log if knob == "writeback_rate"]
    assert rates == [str(1 * MIB // 512), str(8 * MIB // 512)]
    with pytest.raises(Empty):
        bench.reports.get_nowait()


def test_a_close_does_not_wait_for_a_pulse(bench: Bench) -> None:
    bench.set_gate(PULSE)
    until(lambda: ("writeback_running", "1") in bench.sysfs.log)
    begun = time.monotonic()
    bench.set_gate(CLOSED)
    bench.report()
    bench.report()
    assert time.monotonic() - begun < DEADLINE_S
    assert bench.sysfs.log[-2:] == [("writeback_percent", "40"), ("writeback_rate", "1")]


def test_a_close_before_the_pulse_began_shortens_it(bench: Bench) -> None:
    bench.hang_at("writeback_running")
    bench.set_gate(PULSE)
    assert bench.stuck.wait(DEADLINE_S)
    bench.set_gate(CLOSED)
    bench.let_go.set()
    bench.report()
    bench.report()
    assert bench.sysfs.log[-1] == ("writeback_rate", "1")


def test_all_jobs_run_in_order_after_the_gate(bench: Bench) -> None:
    bench.hang_at("writeback_delay")
    bench.set_gate(paced(1))
    assert bench.stuck.wait(DEADLINE_S)
    for cutoff in (1, 2, 3):
        steps = (write("sequential_cutoff", cutoff * MIB),)
        bench.worker.submit(f"cutoff {cutoff}", lambda writer, s=steps: writer.apply(s, REASON))  # type: ignore[misc]
    bench.set_gate(paced(2))
    bench.let_go.set()
    assert [bench.report()[0] for _ in range(5)] == [
        "gate",
        "gate",
        "cutoff 1",
        "cutoff 2",
        "cutoff 3",
    ]


def test_the_generation_grows_with_each_write(bench: Bench) -> None:
    until(lambda: bench.worker.idle)
    before = bench.worker.generation
    bench.hang_at("writeback_delay")
    bench.set_gate(paced(1))
    assert bench.stuck.wait(DEADLINE_S)
    assert not bench.worker.idle
    assert bench.worker.generation > before
    bench.let_go.set()
    until(lambda: bench.worker.idle)
    assert bench.worker.generation == before + 2


def test_a_stop_finishes_waiting_jobs(bench: Bench) -> None:
    bench.set_gate(paced(1))
    bench.worker.submit(
        "cutoff", lambda writer: writer.apply((write("sequential_cutoff", MIB),), REASON)
    )
    assert bench.worker.stop(DEADLINE_S)
    assert ("sequential_cutoff", str(MIB)) in bench.sysfs.log


def test_a_write_that_hangs_in_the_kernel_is_reported(bench: Bench) -> None:
    bench.hang_at("writeback_delay")
    bench.set_gate(paced(1))
    assert bench.stuck.wait(DEADLINE_S)
    assert not bench.worker.stop(0.05)


def ours(bench: Bench) -> None:
    """Write the knobs of the gate once, so that they are owned."""
    bench.set_gate(paced(1))
    bench.report()
    until(lambda: bench.worker.idle)


@pytest.mark.parametrize("gate", [CLOSED, paced(9)])
def test_a_gate_of_owned_knobs_is_set_before_the_call_returns(bench: Bench, gate: Gate) -> None:
    ours(bench)
    bench.set_gate(gate)
    assert bench.sysfs.log[-1] == ("writeback_rate", str(gate.rate_bytes_per_s // 512))
    assert bench.worker.idle
    assert bench.report()[0] == "gate"


def test_a_gate_of_owned_knobs_does_not_overtake_a_running_job(bench: Bench) -> None:
    ours(bench)
    bench.hang_at("sequential_cutoff")
    steps = (write("sequential_cutoff", MIB),)
    bench.worker.submit("cutoff", lambda writer: writer.apply(steps, REASON))
    assert bench.stuck.wait(DEADLINE_S)
    bench.set_gate(CLOSED)
    assert bench.sysfs.log[-1][0] != "writeback_rate" or bench.sysfs.log[-1][1] != "1"
    bench.let_go.set()
    assert [bench.report()[0] for _ in range(2)] == ["cutoff", "gate"]
    assert bench.sysfs.log[-1] == ("writeback_rate", "1")


def test_a_job_with_a_bug_does_not_end_the_thread(bench: Bench) -> None:
    def bug(_: KnobWriter) -> list[Outcome]:
        raise ZeroDivisionError

    bench.worker.submit("bug", bug)
    bench.set_gate(paced(1))
    assert bench.report()[0] == "gate"
    bench.set_gate(Gate(GateKind.RELEASED))
    bench.report()
    assert bench.worker.writer.owned == {}


class Timers:
    """Timers that a test fires."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Callable[[], None]]] = []

    def later(self, after_ns: int, call: Callable[[], None]) -> None:
        self.waiting.append((after_ns, call))

    def fire(self) -> None:
        due, self.waiting = self.waiting, []
        for _, call in due:
            call()


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[tuple[Bench, Timers]]:
    """A worker with timers, whose gate knobs are owned."""
    timers = Timers()
    bench = Bench(tmp_path, timers.later)
    ours(bench)
    bench.sysfs.log.clear()
    yield bench, timers
    assert bench.worker.stop(DEADLINE_S)


def test_a_pulse_with_timers_does_not_use_the_thread(timed: tuple[Bench, Timers]) -> None:
    bench, timers = timed
    bench.set_gate(PULSE)
    assert bench.sysfs.log[-2:] == [("writeback_percent", "0"), ("writeback_running", "1")]
    assert bench.worker.idle
    assert [after_ns for after_ns, _ in timers.waiting] == [PULSE.pulse_ns]
    timers.fire()
    assert bench.sysfs.log[-1] == ("writeback_percent", "40")


def test_a_repeated_pulse_writes_nothing_and_ends_once(timed: tuple[Bench, Timers]) -> None:
    bench, timers = timed
    bench.set_gate(PULSE)
    before = list(bench.sysfs.log)
    bench.set_gate(PULSE)
    assert bench.sysfs.log == before
    first, second = timers.waiting
    first[1]()
    assert bench.sysfs.log == before
    second[1]()
    assert bench.sysfs.log[-1] == ("writeback_percent", "40")


def test_the_end_of_a_pulse_does_not_open_a_gate_that_was_closed(
    timed: tuple[Bench, Timers],
) -> None:
    bench, timers = timed
    bench.set_gate(PULSE)
    bench.set_gate(CLOSED)
    closed = list(bench.sysfs.log)
    assert closed[-2:] == [("writeback_rate", "1"), ("writeback_percent", "40")]
    timers.fire()
    assert bench.sysfs.log == closed
    bench.set_gate(PULSE)
    assert bench.sysfs.log[-1] == ("writeback_running", "1")


def test_the_end_of_a_pulse_waits_for_a_running_job(timed: tuple[Bench, Timers]) -> None:
    bench, timers = timed
    bench.set_gate(PULSE)
    bench.hang_at("sequential_cutoff")
    steps = (write("sequential_cutoff", MIB),)
    bench.worker.submit("cutoff", lambda writer: writer.apply(steps, REASON))
    assert bench.stuck.wait(DEADLINE_S)
    timers.fire()
    bench.let_go.set()
    until(lambda: bench.worker.idle)
    assert bench.sysfs.log[-1] == ("writeback_percent", "40")


def test_the_writer_stays_usable_after_an_error(bench: Bench) -> None:
    def bug() -> None:
        raise ZeroDivisionError

    ours(bench)
    bench.sysfs.before["writeback_rate"] = bug
    with pytest.raises(ZeroDivisionError):
        bench.set_gate(CLOSED)
    del bench.sysfs.before["writeback_rate"]
    bench.set_gate(Gate(GateKind.RELEASED))
    bench.report()
    assert bench.worker.writer.owned == {}


def test_a_close_is_left_to_the_thread_while_a_read_hangs(timed: tuple[Bench, Timers]) -> None:
    bench, _ = timed
    bench.worker.writer.reading_since_ns = bench.worker.writer.now_ns() - NS_PER_S
    bench.hang_at("writeback_rate")
    begun = time.monotonic()
    bench.set_gate(CLOSED)
    assert time.monotonic() - begun < DEADLINE_S / 2, "the caller hung with the write"
    assert bench.stuck.wait(DEADLINE_S)
    bench.let_go.set()
    until(lambda: bench.worker.idle)
    assert ("writeback_rate", "1") in bench.sysfs.log
