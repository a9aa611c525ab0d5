# SPDX-License-Identifier: GPL-2.0-only
"""The thread that owns a volume's hand: the newest wish wins, and a close never waits for a pulse.

I/O: threads. A write to sysfs takes bcache's global lock and may hang for seconds behind a
registration elsewhere, so it must not happen on the event loop.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread

from ebbgate.actuators.hand import Hand, Reason
from ebbgate.actuators.plan import GATE_KNOBS, base_steps, gate_steps
from ebbgate.model.decision import Gate, GateKind, Outcome

Job = Callable[[Hand], list[Outcome]]
Report = Callable[[str, list[Outcome], int], None]
"""Called on the thread with the job's name, its outcomes and the wish's time (monotonic ns)."""


@dataclass(frozen=True, slots=True)
class _Wish:
    gate: Gate
    reason: Reason
    name: str
    at_ns: int


class GateThread:
    """Runs gate wishes (only the newest counts) and other jobs (all, in order) on one hand."""

    def __init__(self, hand: Hand, report: Report) -> None:
        self.hand = hand
        self._report = report
        self._jobs: deque[tuple[str, Job, int]] = deque()
        self._wish: _Wish | None = None
        self._busy = False
        self._stop = False
        self._changed = Condition()
        self.generation = 0
        """Grows with each write: a reader of sysfs compares it before and after."""
        self._thread = Thread(target=self._run, name=f"gate-{hand.volume.name}", daemon=True)
        self._thread.start()

    def wish(self, gate: Gate, reason: Reason, name: str = "gate") -> None:
        """Bring the gate about as soon as possible; an older wish that still waits is dropped."""
        with self._changed:
            self._wish = _Wish(gate, reason, name, time.monotonic_ns())
            self.hand.interrupt.set()
            self._changed.notify_all()

    def submit(self, name: str, job: Job) -> None:
        """Run a job on the thread, after the current wish."""
        with self._changed:
            self._jobs.append((name, job, time.monotonic_ns()))
            self._changed.notify_all()

    @property
    def quiet(self) -> bool:
        """Nothing is being written and nothing waits."""
        with self._changed:
            return not self._busy and self._wish is None and not self._jobs

    def stop(self, timeout_s: float) -> bool:
        """Finish what waits, then end the thread. False when it hangs in the kernel."""
        with self._changed:
            self._stop = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._wish is None and not self._jobs and not self._stop:
                    self._changed.wait()
                wish, self._wish = self._wish, None
                job = self._jobs.popleft() if wish is None and self._jobs else None
                if wish is None and job is None:
                    return
                self.hand.interrupt.clear()
                self._busy = True
                self.generation += 1
            if wish is not None:
                self._report(wish.name, drive(self.hand, wish.gate, wish.reason), wish.at_ns)
            elif job is not None:
                self._report(job[0], job[1](self.hand), job[2])
            with self._changed:
                self._busy = False
                self.generation += 1


def drive(hand: Hand, gate: Gate, reason: Reason) -> list[Outcome]:
    """Bring one gate about, taking the base knobs over first or giving all of them back.

    The knobs make sense only together: where one of them is manual, all are left alone.
    """
    if gate.kind is GateKind.RELEASED or not hand.manual.isdisjoint(GATE_KNOBS):
        return hand.release(reversed(GATE_KNOBS), reason)
    outcomes = []
    for step in base_steps():
        if step.knob not in hand.held and step.knob not in hand.lacking:
            outcomes += hand.apply((step,), reason)
    return [*outcomes, *hand.apply(gate_steps(gate), reason)]
