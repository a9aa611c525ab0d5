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

from ebbgate.knobs.bounds import (
    CONGESTED,
    CUTOFF,
    PERCENT,
    RATE,
    RUNNING,
    clamped,
)
from ebbgate.knobs.dm_cache import TABLE, THRESHOLD
from ebbgate.model.decision import Gate, GateKind
from ebbgate.signals.kernel_sleep import DELAY
from ebbgate.units import SECTOR_BYTES

PERCENT_PACED = "40"

BASE: Mapping[str, str] = {
    DELAY: "0",
    "writeback_rate_update_seconds": "60",
    "idle_max_writeback_rate": "0",
}
"""Set once when the gate is first taken over, put back when it is released."""

GATE_KNOBS = (*BASE, PERCENT, RATE)
FAST = frozenset({PERCENT, RATE, RUNNING, THRESHOLD, TABLE})
"""Written many times a second, so not read back each time: compared once a second instead. And a
table: the kernel either takes a whole one or refuses it."""


class StepKind(StrEnum):
    """`write`: set a knob; `sleep`: hold the state between two writes."""

    WRITE = "write"
    SLEEP = "sleep"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan: a knob and its value, or a sleep in nanoseconds.

    `note`: that the value is not the one that was asked for, and why.
    """

    kind: StepKind
    knob: str = ""
    value: str = ""
    sleep_ns: int = 0
    always: bool = False
    note: str = ""


def write(knob: str, value: int | str, *, always: bool = False) -> Step:
    """A write within the bounds. `always`: even where the value is there already (a trigger)."""
    within, note = clamped(knob, int(value))
    return Step(StepKind.WRITE, knob, str(within), always=always, note=note)


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
