# SPDX-License-Identifier: GPL-2.0-only
"""Writes the real plan's knobs on simulated time, one after the other. Pure.

As ebbgate.actuators.gate_worker: the newest gate wins.
"""

from __future__ import annotations

from collections import deque

from ebbgate.actuators.bcache_steps import Step, gate_steps, write
from ebbgate.knobs.catalog import PERCENT, RATE, RUNNING
from ebbgate.model.decision import Gate, GateKind
from ebbgate.units import NS_PER_US
from tests.sim.clock import Clock
from tests.sim.disk import Disk
from tests.sim.writeback import Writeback

DEPTH = 32
ORIGINALS = (write(PERCENT, 10), write(RATE, 8), write(RUNNING, 1))


class SimKnobWriter:
    """`write_ns`: how long one write to sysfs takes. `written`: every write, with its end."""

    def __init__(
        self, clock: Clock, writeback: Writeback, disk: Disk, *, write_ns: int = 350 * NS_PER_US
    ) -> None:
        self._clock = clock
        self._writeback = writeback
        self._disk = disk
        self._write_ns = write_ns
        self._steps: deque[Step] = deque()
        self._next_gate: Gate | None = None
        self._busy = False
        self._values: dict[str, str] = {}
        self.written: list[tuple[int, str, str]] = []

    def set_gate(self, gate: Gate) -> None:
        """Write the gate's knobs as soon as possible."""
        self._next_gate = gate
        if not self._busy:
            self._next()

    def _next(self) -> None:
        self._busy = True
        if not self._steps and self._next_gate is not None:
            gate, self._next_gate = self._next_gate, None
            self._disk.set_depth(gate.queue_depth or DEPTH)
            self._steps.extend(ORIGINALS if gate.kind is GateKind.RELEASED else gate_steps(gate))
        if not self._steps:
            self._busy = False
            return
        step = self._steps.popleft()
        if not step.always and self._values.get(step.knob) == step.value:
            self._next()
        else:
            self._clock.after(self._write_ns, lambda: self._store(step))

    def _store(self, step: Step) -> None:
        self._values[step.knob] = step.value
        self.written.append((self._clock.now_ns, step.knob, step.value))
        if step.knob == PERCENT:
            self._writeback.percent = int(step.value)
        elif step.knob == RATE:
            self._writeback.rate_sectors_per_s = int(step.value)
        elif step.knob == RUNNING:
            self._writeback.run(step.value == "1")
        self._next()
