# SPDX-License-Identifier: GPL-2.0-only
"""Drains by a deadline: how fast that must go, and whether it will be in time. Pure.

In a gap `idle_destage` already drains as fast as the next request allows. Where it rests there to
keep a rate that users do not feel (`drain_cap`), and under load, the gate opens as wide as the
deadline demands and no wider. dm-cache itself waits for a second without I/O to its slow device,
whatever the gate: under a load that never stops only `ebbgate clean` drains it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ebbgate.model.decision import Condition, Gate, GateKind, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.override import ActiveOverride
from ebbgate.policy.limits import NO_LIMITS, Limits
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.gap_use import Rest
from ebbgate.policy.strategies.pace_state import PaceParams, ThrottleKind
from ebbgate.units import NS_PER_S, format_bytes, format_ns, format_rate

DRAIN = "drain"
_SHARE, _SPARE_S = 0.8, 10.0
"""The share of the time left to plan with, less a few seconds. With a share alone the planned end
would move away as time passes.
"""
_LEFT_S_MIN = 1.0
_DIGITS = 3
"""Binary digits of a rate that are kept, so that small changes write no knob."""


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """What is left to drain, and how fast that must go.

    - `needed_bytes_per_s`: includes new dirty data.
    - `measured_bytes_per_s`: the rate of destage of the last seconds.
    - `eta_s`: at that rate; None if it is unknown or too low.
    """

    dirty_bytes: int
    left_s: float
    needed_bytes_per_s: float
    measured_bytes_per_s: float | None
    eta_s: float | None

    @property
    def in_time(self) -> bool | None:
        """Whether it will be clean in time at the present rate; None if that is unknown."""
        if self.dirty_bytes == 0:
            return True
        return None if self.eta_s is None else self.eta_s <= self.left_s


def plan_of(frame: Frame, left_ns: int | None) -> DrainPlan | None:
    """Return the plan; None if the dirty level or the rate of new dirty data is unknown."""
    dirty, comes_in = frame.dirty_bytes, frame.dirty_in_bytes_per_s
    goes_out = frame.destage_bytes_per_s
    if frame.flows is not None:
        # The page cache flushes every 5 s, so the rates of one second are far off.
        comes_in, goes_out = frame.flows.dirty_in_bytes_per_s, frame.flows.destage_bytes_per_s
    if dirty is None or comes_in is None or left_ns is None:
        return None
    left_s = left_ns / NS_PER_S
    needed = dirty / max(_LEFT_S_MIN, left_s * _SHARE - _SPARE_S) + comes_in
    net = None if goes_out is None else goes_out - comes_in
    eta_s = dirty / net if net is not None and net > 0 else None
    return DrainPlan(dirty, left_s, needed, goes_out, eta_s)


def gate_of(
    plan: DrainPlan | None, state: DestageState, proposed: Gate | None, params: DestageParams
) -> Gate | None:
    """Return the gate that the deadline demands; None if the strategy's own is wide enough."""
    # If the state is unknown, the kernel decides.
    if plan is None or plan.dirty_bytes == 0 or state.phase is Phase.UNKNOWN:
        return None
    if state.phase is Phase.DESTAGE and not _rests_too_slow(plan, state):
        return None
    if proposed is not None and proposed.kind is GateKind.OPEN:
        return None
    own = proposed if proposed is not None and proposed.kind is GateKind.PACED else None
    queue_depth = proposed.queue_depth if proposed is not None else 0
    if params.pressure_pace.throttle is ThrottleKind.DEPTH:
        depth = _depth_ios(plan, state, params.pace)
        wide = own is not None and own.depth_ios >= depth
        return None if wide else Gate(GateKind.PACED, 0, depth, queue_depth)
    rate = _rounded(plan.needed_bytes_per_s, params.pace)
    wide = own is not None and own.rate_bytes_per_s >= rate
    return None if wide else Gate(GateKind.PACED, rate, queue_depth=queue_depth)


def _rests_too_slow(plan: DrainPlan, state: DestageState) -> bool:
    """Return whether the gate rests in a gap to keep a rate below the needed one."""
    cap = state.cap.bytes_per_s
    return state.gap.rest is Rest.RATE and cap is not None and plan.needed_bytes_per_s > cap


def proposal(
    plan: DrainPlan | None,
    active: ActiveOverride,
    now_ns: int,
    gate: Gate | None,
    limits: Limits = NO_LIMITS,
) -> Proposal:
    """Return the drain's proposal, with the measured and the needed rate."""
    who, left = active.override.who, format_ns(active.left_ns(now_ns) or 0)
    if plan is None:
        return Proposal(DRAIN, f"requested by {who}, {left} left: the dirty level is unknown")
    measured, needed = plan.measured_bytes_per_s, plan.needed_bytes_per_s
    return Proposal(
        DRAIN,
        f"requested by {who}, {left} left: {plan_text(plan, limits)}",
        (
            Condition(
                "destage",
                None if measured is None else format_rate(measured),
                ">=",
                f"{format_rate(needed)} (needed)",
                measured is not None and measured >= needed,
            ),
        ),
        gate=gate,
    )


def plan_text(plan: DrainPlan, limits: Limits = NO_LIMITS) -> str:
    """Return e.g. `3.1 GiB dirty, needs 12 MiB/s, done in about 4 min: in time`.

    `limits`: of the policy, which bind a drain, too.
    """
    if plan.dirty_bytes == 0:
        return "nothing is dirty"
    text = f"{format_bytes(plan.dirty_bytes)} dirty, needs {format_rate(plan.needed_bytes_per_s)}"
    highest, depth = limits.destage_rate.high, limits.destage_depth.high
    if highest is not None and plan.needed_bytes_per_s > highest:
        text += f" (the policy allows {format_rate(highest)})"
    if depth is not None:
        text += f" (the policy allows {depth} pieces at once)"
    if plan.eta_s is None and plan.measured_bytes_per_s:
        rate = format_rate(plan.measured_bytes_per_s)
        return f"{text}; at {rate} dirty data does not shrink: NOT in time at this rate"
    if plan.eta_s is None:
        return f"{text}; rate not known yet"
    verdict = "in time" if plan.in_time else "NOT in time at this rate"
    return f"{text}, done in about {format_ns(plan.eta_s * NS_PER_S)}: {verdict}"


def _rounded(rate: float, params: PaceParams) -> int:
    """Return the rate rounded up to a few binary digits, within the bounds of the pace."""
    whole = math.ceil(min(params.rate_max_bytes_per_s, max(params.rate_min_bytes_per_s, rate)))
    step = 1 << max(0, whole.bit_length() - _DIGITS)
    return min(params.rate_max_bytes_per_s, -(-whole // step) * step)


def _depth_ios(plan: DrainPlan, state: DestageState, params: PaceParams) -> int:
    """Return the depth: the needed rate's share of what the disk was measured to do."""
    widest = max(params.depth_wide_ios, params.depth_max_ios)
    known = state.pace.throughput_bytes_per_s
    share = plan.needed_bytes_per_s / known if known > 0 else 1.0
    return round(min(widest, max(params.depth_min_ios, math.ceil(widest * share))))
