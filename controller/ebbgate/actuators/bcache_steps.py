# SPDX-License-Identifier: GPL-2.0-only
"""The writes that bring a gate, a cutoff or the congestion bypass of bcache about. No I/O.

What each knob is written for: `knobs.catalog`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ebbgate.knobs.catalog import (
    CONGESTED,
    CUTOFF,
    DELAY,
    IDLE_MAX_RATE,
    PERCENT,
    RATE,
    RUNNING,
    UPDATE_SECONDS,
)
from ebbgate.knobs.values import clamped
from ebbgate.model.decision import Gate, GateKind
from ebbgate.units import SECTOR_BYTES

PERCENT_PACED = "40"

BASE: Mapping[str, str] = {RUNNING: "1", DELAY: "0", UPDATE_SECONDS: "60", IDLE_MAX_RATE: "0"}
"""Written once before the first gate, restored when the gate is released, the first one last."""

GATE_KNOBS = (*BASE, PERCENT, RATE)


@dataclass(frozen=True, slots=True)
class Step:
    """One write: a knob and its value.

    `always`: write it even where the value is there already (a trigger). `note`: why the value is
    not the requested one. `made_from`: the original that the value was made from; in place of
    another one it is not written.
    """

    knob: str
    value: str
    always: bool = False
    note: str = ""
    made_from: str | None = None


def write(knob: str, value: int | str, *, always: bool = False) -> Step:
    """Return a write of the value, moved into the bounds. Raises KeyError without bounds."""
    within, note = clamped(knob, int(value))
    return Step(knob, str(within), always=always, note=note)


_PACED = write(PERCENT, PERCENT_PACED)
_WIDE = write(PERCENT, 0)
_RUN = write(RUNNING, 1)
_KICK = write(RUNNING, 1, always=True)
_BASE_STEPS = tuple(write(knob, value) for knob, value in BASE.items())


def gate_steps(gate: Gate) -> tuple[Step, ...]:
    """Return the writes that set the gate. Raises ValueError for RELEASED, which is a restore."""
    rate = write(RATE, max(1, gate.rate_bytes_per_s // SECTOR_BYTES))
    if gate.kind in (GateKind.CLOSED, GateKind.RESTING, GateKind.PACED):
        # The rate first: it bounds destage while the percentage changes, and after a hold.
        return (rate, _PACED, _RUN)
    if gate.kind is GateKind.HELD:
        # The thread's key buffer still goes out, so as fast as it can: at a rate it takes minutes.
        return (_WIDE, write(RUNNING, 0))
    if gate.kind is GateKind.OPEN:
        return (_WIDE, _KICK)
    raise ValueError(f"no steps lead to a gate that is {gate.kind}")


def base_steps() -> tuple[Step, ...]:
    """Return the writes that come before the first gate."""
    return _BASE_STEPS


def cutoff_steps(cutoff_bytes: int) -> tuple[Step, ...]:
    """Set the sequential cutoff."""
    return (write(CUTOFF, cutoff_bytes),)


def congestion_off_steps() -> tuple[Step, ...]:
    """Switch the bypass of a slow cache device off."""
    return tuple(write(knob, 0) for knob in CONGESTED)
