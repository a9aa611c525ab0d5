# SPDX-License-Identifier: GPL-2.0-only
"""What promote_hot does and why, for people: measured values and thresholds. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ebbgate.model.decision import Condition
from ebbgate.model.frame import Frame
from ebbgate.policy.strategies import promote_stop
from ebbgate.policy.strategies.promote_benefit import (
    HELD_OUT,
    HORIZON_PERIODS,
    STAND_DOWN_PERIODS,
)
from ebbgate.policy.strategies.promote_choice import COST_MARGIN, Plan
from ebbgate.policy.strategies.promote_hot import PromotePhase, PromoteState
from ebbgate.policy.strategies.promote_stop import PromoteParams
from ebbgate.units import format_bytes, format_ns, format_ratio


def reason(state: PromoteState, now_ns: int) -> str:
    """Return one sentence: what promote_hot does, and why."""
    return f"{state.phase}: {_why(state, now_ns)}"


def _why(state: PromoteState, now_ns: int) -> str:
    plan = state.plan
    if state.phase in (PromotePhase.UNKNOWN, PromotePhase.STOP):
        return state.why
    if state.phase is PromotePhase.LEARN:
        return "which parts of the volume users miss in the cache"
    if state.phase is PromotePhase.STAND_DOWN:
        left = format_ns(max(0, state.until_ns - now_ns))
        return f"tries again in {left}; {_verdict(state)}"
    if plan.listed:
        return _progress(plan)
    if not plan.admitted:
        return "no part of the volume was missed in two windows of 10 s of late"
    best, least = format_ns(max(0.0, plan.best_ns)), format_ns(plan.least_ns)
    if plan.best_ns > plan.least_ns:
        return "the cache takes no more in this period"
    return f"the best move would save {best} of disk time, and {least} make it worth it"


def _verdict(state: PromoteState) -> str:
    gain, cost = state.benefit.gain_ns, state.benefit.cost_ns
    if gain is None or cost is None:
        return "moves brought less than was predicted"
    return f"moves saved {_signed(gain)} of disk time a period and cost {format_ns(cost)}"


def _progress(plan: Plan) -> str:
    held_out = sum(each.held_out for each in plan.listed.values())
    total = len(plan.listed) - held_out
    named = ", ".join(f"{count} of {name or 'no file'}" for name, count in plan.groups)
    owners = f" ({named})" if any(name for name, _ in plan.groups) else ""
    moved = f"{total} MiB to move"
    if plan.done:
        moved = f"{len(plan.done - plan.failed)} of {total} MiB are moved"
    if plan.failed:
        moved += f", {len(plan.failed)} could not be"
    return f"{moved}{owners}, {held_out} held out to compare"


def conditions(state: PromoteState, frame: Frame, params: PromoteParams) -> tuple[Condition, ...]:
    """Return what decides whether anything is moved."""
    return (
        *_of_choice(state.plan),
        *_of_benefit(state),
        *_of_share(state, params),
        *_of_cache(state, frame, params),
    )


def _of_choice(plan: Plan) -> Iterator[Condition]:
    if not plan.at_ns:
        return
    yield Condition(
        "MiB missed in two windows of 10 s, with those of their files",
        f"{plan.admitted}",
        ">=",
        "1",
        plan.admitted > 0,
    )
    if plan.admitted:
        horizon = f"{HORIZON_PERIODS} periods"
        yield Condition(
            f"disk time that the best move saves in {horizon}",
            _signed(plan.best_ns),
            ">",
            f"{format_ns(plan.least_ns)} ({COST_MARGIN:g} times its cost)",
            plan.best_ns > plan.least_ns,
        )


def _of_benefit(state: PromoteState) -> Iterator[Condition]:
    benefit, last = state.benefit, state.benefit.last
    if last is None:
        return
    moved, held_out = f"{last.moved} moved MiB", f"{last.held_out} held out (1 of {HELD_OUT})"
    yield Condition(
        "disk time saved in the last period",
        f"{_signed(last.gain_ns)}, standard error {format_ns(last.error_ns)}",
        ">=",
        f"{format_ns(last.cost_ns)} cost ({moved}, {held_out})",
        last.gain_ns >= last.cost_ns,
    )
    yield Condition(
        "periods in a row with less gain than cost",
        f"{benefit.under}",
        "<",
        f"{STAND_DOWN_PERIODS} (gain is {format_ratio(benefit.ratio)} of what was predicted)",
        benefit.under < STAND_DOWN_PERIODS,
    )
    yield Condition(
        "disk time saved so far",
        f"{_signed(benefit.total_gain_ns)}, error at most {format_ns(benefit.total_error_ns)}",
        ">=",
        f"{format_ns(benefit.total_cost_ns)} cost",
        benefit.total_gain_ns >= benefit.total_cost_ns,
    )


def _of_share(state: PromoteState, params: PromoteParams) -> Iterator[Condition]:
    share, last = state.share, state.share.last
    if last is None:
        return
    yield Condition(
        f"p95 of reads from {last.kind} during moves",
        format_ns(last.moving_ns),
        "<=",
        f"{format_ns(round(last.most_ns))} ({last.factor:.2g} times that before them); moves take"
        f" {format_ratio(share.share)} of the time, at most {format_ratio(params.time_share_max)}",
        not last.felt,
    )


def _of_cache(state: PromoteState, frame: Frame, params: PromoteParams) -> Iterator[Condition]:
    if params.by_cutoff and frame.in_use_ratio is not None:
        most = promote_stop.IN_USE_MAX
        holds = frame.in_use_ratio <= most
        used = format_ratio(frame.in_use_ratio)
        yield Condition("cache in use", used, "<=", format_ratio(most), holds)
    day_bytes = promote_stop.bytes_per_day(frame, params)
    if day_bytes is None:
        return
    left = state.budget.left_bytes
    spent = None if left is None else format_bytes(day_bytes - left)
    yield Condition(
        "written to the cache in a day",
        spent,
        "<",
        f"{format_bytes(day_bytes)} ({params.writes_per_day:g} DWPD)",
        left is not None and left > 0,
    )


def _signed(duration_ns: float) -> str:
    return format_ns(duration_ns) if duration_ns >= 0 else f"-{format_ns(-duration_ns)}"
