# SPDX-License-Identifier: GPL-2.0-only
"""A decision, spelt as knob writes. No I/O.

Which knobs of bcache and why (kernel 6.1, drivers/md/bcache):

writeback_percent
    above 0 the rate limit holds; 0 lifts it and uses the idle I/O class. 40 is the kernel's own
    maximum: its controller then leaves destage to us.
writeback_rate
    sectors per second; the kernel overwrites it at each update, so it is re-asserted.
writeback_rate_update_seconds
    60: the kernel's controller interferes as rarely as it can.
writeback_delay
    0: it is read once per scan of the index, and its sleep cannot be interrupted.
writeback_running
    only ever written as the 1 that it already is, to wake the writeback thread.
idle_max_writeback_rate
    0: otherwise the kernel opens the gate by itself after 30 s.

And of dm-cache (drivers/md/dm-cache-target.c):

migration_threshold
    sectors that idle writeback may have under way; below one cache block it does nothing. Queued
    promotions go out in any case.
max_sectors_kb
    of the volume's queue: a write as long as a cache block is taken in at once, dirty, while free
    blocks are left (optimisable_bio); a shorter one has to prove itself first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ebbgate.model.decision import Gate, GateKind
from ebbgate.probes.dm_knobs import FLUSH, MAX_SECTORS, TABLE, THRESHOLD
from ebbgate.signals.kernel_sleep import DELAY
from ebbgate.units import NS_PER_S, SECTOR_BYTES

PERCENT = "writeback_percent"
RATE = "writeback_rate"
RUNNING = "writeback_running"
CUTOFF = "sequential_cutoff"
CONGESTED = ("congested_read_threshold_us", "congested_write_threshold_us")
TRIGGER_GC = "trigger_gc"
PERCENT_PACED = "40"

BASE: Mapping[str, str] = {
    DELAY: "0",
    "writeback_rate_update_seconds": "60",
    "idle_max_writeback_rate": "0",
}
"""Set once when the gate is first taken over, put back when it is released."""

GATE_KNOBS = (*BASE, PERCENT, RATE)
KERNEL_WRITES = frozenset({RATE})
"""Knobs that the kernel itself changes: a foreign value is no sign of an administrator's hand."""
TRIGGERS = frozenset({RUNNING, TRIGGER_GC, FLUSH})
"""Writes that start something and leave no value behind: nothing to journal."""

FAST = frozenset({PERCENT, RATE, RUNNING, THRESHOLD, TABLE})
"""Written many times a second, so not read back each time: compared once a second instead. And a
table: the kernel either takes a whole one or refuses it."""
INTERVAL_NS_MIN: Mapping[str, int] = {
    CUTOFF: NS_PER_S,
    TRIGGER_GC: NS_PER_S,
    MAX_SECTORS: NS_PER_S,
}
"""The shortest time between two writes of a knob, whatever a strategy asks for. Not for a gate: a
request waits for its close. A restore never waits."""

CLAMPS: Mapping[str, tuple[int, int]] = {
    PERCENT: (0, 40),
    RATE: (1, 1 << 30),
    CUTOFF: (64 * 1024, (1 << 32) - 1),
    DELAY: (0, 3600),
    "writeback_rate_update_seconds": (1, 60),
    "idle_max_writeback_rate": (0, 1),
    CONGESTED[0]: (0, 10_000_000),
    CONGESTED[1]: (0, 10_000_000),
    RUNNING: (1, 1),
    TRIGGER_GC: (1, 1),
    THRESHOLD: (0, 1 << 20),
    MAX_SECTORS: (16, 1 << 20),
}
"""Hard bounds on everything that is ever written, whatever a strategy asks for.

A cutoff of 1..511 would bypass everything and 0 stops the detector's bookkeeping: never written.
"""


class StepKind(StrEnum):
    """`write`: set a knob; `sleep`: hold the state between two writes."""

    WRITE = "write"
    SLEEP = "sleep"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan: a knob and its value, or a sleep in nanoseconds."""

    kind: StepKind
    knob: str = ""
    value: str = ""
    sleep_ns: int = 0
    always: bool = False


def write(knob: str, value: int | str, *, always: bool = False) -> Step:
    """A write within the clamps. `always`: even where the value is there already (a trigger)."""
    low, high = CLAMPS[knob]
    return Step(StepKind.WRITE, knob, str(min(high, max(low, int(value)))), always=always)


_PACED = write(PERCENT, PERCENT_PACED)
_WIDE = write(PERCENT, 0)
_KICK = write(RUNNING, 1, always=True)
_BASE_STEPS = tuple(write(knob, value) for knob, value in BASE.items())


def gate_steps(gate: Gate) -> tuple[Step, ...]:
    """The writes that bring the gate about; RELEASED is not among them (that is a restore)."""
    rate = write(RATE, max(1, gate.rate_bytes_per_s // SECTOR_BYTES))
    if gate.kind in (GateKind.CLOSED, GateKind.PACED):
        # The rate first: it bounds what still goes out while the percentage changes.
        return (rate, _PACED)
    if gate.kind is GateKind.PULSED:
        return (rate, _WIDE, _KICK, Step(StepKind.SLEEP, sleep_ns=gate.pulse_ns), _PACED)
    if gate.kind is GateKind.OPEN:
        return (_WIDE, _KICK)
    raise ValueError(f"no steps lead to a gate that is {gate.kind}")


def base_steps() -> tuple[Step, ...]:
    """What must hold before the gate is driven."""
    return _BASE_STEPS


def cutoff_steps(cutoff_bytes: int) -> tuple[Step, ...]:
    """Set the sequential cutoff."""
    return (write(CUTOFF, cutoff_bytes),)


def congestion_off_steps() -> tuple[Step, ...]:
    """Switch the bypass of a slow cache device off."""
    return tuple(write(knob, 0) for knob in CONGESTED)
