# SPDX-License-Identifier: GPL-2.0-only
"""Limits of a policy: hard bounds above every strategy and rule. Pure.

They apply to what ebbgate writes, not to the kernel's own settings: a released gate and a cutoff
that nobody sets stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ebbgate.knobs.catalog import CUTOFF, RATE, THRESHOLD
from ebbgate.model.decision import Decision, Gate, GateKind, Proposal
from ebbgate.model.volume import Volume
from ebbgate.units import bytes_to_sectors, format_bytes, format_rate

_SHUT = (GateKind.CLOSED, GateKind.RESTING, GateKind.HELD)
LIMITS = "limits"
"""Their name among the proposals."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`low`, `high`: None for no bound."""

    low: int | None = None
    high: int | None = None

    @property
    def any(self) -> bool:
        """Whether there is a bound."""
        return self.low is not None or self.high is not None

    def clamp(self, value: int) -> int:
        """Return the nearest value within the bounds."""
        if self.low is not None and value < self.low:
            return self.low
        return self.high if self.high is not None and value > self.high else value


NONE = Bounds()


@dataclass(frozen=True, slots=True)
class Limits:
    """`destage_rate`: bytes per second (bcache); `destage_depth`: pieces at once (dm-cache);
    `sequential_cutoff`: bytes (bcache); `ssd_writes_per_day`: from how many writes of the whole
    cache a day promote_hot adds none; None: any.
    """

    destage_rate: Bounds = NONE
    destage_depth: Bounds = NONE
    sequential_cutoff: Bounds = NONE
    ssd_writes_per_day: float | None = None

    @property
    def any(self) -> bool:
        """Whether any knob is limited."""
        return self.destage_rate.any or self.destage_depth.any or self.sequential_cutoff.any


NO_LIMITS = Limits()


def knob_limits(limits: Limits, knob: str, volume: Volume) -> tuple[int | None, int | None]:
    """The lowest and highest value of a knob, in the unit in which the kernel takes it."""
    if knob == CUTOFF:
        return limits.sequential_cutoff.low, limits.sequential_cutoff.high
    if knob == RATE:
        low, high = limits.destage_rate.low, limits.destage_rate.high
        return low and bytes_to_sectors(low), high and bytes_to_sectors(high)
    if knob == THRESHOLD and volume.mapping is not None:
        sectors, depth = volume.mapping.block_sectors, limits.destage_depth
        return depth.low and depth.low * sectors, depth.high and depth.high * sectors
    return None, None


def clamp_gate(gate: Gate | None, limits: Limits) -> Gate | None:
    """Return the gate within the limits; an open gate that no rests keep below the highest rate
    becomes one at that rate.
    """
    if gate is None or gate.kind is GateKind.RELEASED:
        return gate
    if limits.destage_depth.any:
        depth_ios = limits.destage_depth.clamp(gate.depth_ios)
        if depth_ios == gate.depth_ios:
            return gate
        kind = GateKind.PACED if depth_ios else GateKind.CLOSED
        return Gate(kind, depth_ios=depth_ios, queue_depth=gate.queue_depth)
    return _clamp_rate(gate, limits.destage_rate) if limits.destage_rate.any else gate


def _clamp_rate(gate: Gate, bounds: Bounds) -> Gate:
    rate = bounds.clamp(gate.rate_bytes_per_s)
    if gate.kind is GateKind.OPEN:
        if bounds.high is None or 0 < gate.rate_bytes_per_s <= bounds.high:
            return gate
        return Gate(GateKind.PACED, bounds.high, queue_depth=gate.queue_depth)
    if rate == gate.rate_bytes_per_s:
        return gate
    if gate.kind in _SHUT and rate > gate.rate_bytes_per_s:
        return Gate(GateKind.PACED, rate, queue_depth=gate.queue_depth)
    return replace(gate, rate_bytes_per_s=rate)


def clamp(decision: Decision, limits: Limits) -> Decision:
    """Return the decision within the limits, with a proposal that says what they changed."""
    if not limits.any:
        return decision
    gate = clamp_gate(decision.gate, limits)
    cutoff = decision.sequential_cutoff_bytes
    bounded = None if cutoff is None else limits.sequential_cutoff.clamp(cutoff)
    changes = []
    if gate != decision.gate:
        changes.append(f"destage {_gate_text(decision.gate)} -> {_gate_text(gate)}")
    elif gate is not None and gate.kind is GateKind.OPEN and gate.rate_bytes_per_s:
        changes.append(f"destage at most {format_rate(gate.rate_bytes_per_s)} on average")
    if cutoff is not None and bounded is not None and bounded != cutoff:
        changes.append(f"sequential cutoff {format_bytes(cutoff)} -> {format_bytes(bounded)}")
    applied = Proposal(LIMITS, f"in force: {', '.join(changes) or 'nothing exceeds them'}")
    return replace(
        decision,
        proposals=(*decision.proposals, applied),
        gate=gate,
        sequential_cutoff_bytes=bounded,
    )


def _gate_text(gate: Gate | None) -> str:
    if gate is None or gate.kind in (GateKind.RELEASED, GateKind.OPEN):
        return "unbounded"
    if gate.depth_ios:
        return f"{gate.depth_ios} at once"
    return format_rate(gate.rate_bytes_per_s)
