# SPDX-License-Identifier: GPL-2.0-only
"""Puts overrides and the rollback guard above the strategies. Pure.

Turns the decision of rules and strategies into the one that applies; what was overruled stays
visible in it. The guard never endangers a volume: a gate that opens because the kernel would soon
stop caching writes stays open, whatever the latency was last time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from ebbgate.knobs.catalog import CONGESTED, CUTOFF, MAX_SECTORS
from ebbgate.model.decision import Condition, Decision, Gate, GateKind, Proposal
from ebbgate.model.frame import Frame
from ebbgate.policy import drain, evaluate, limits, overrides, rollback_guard, rules
from ebbgate.policy.defaults import IDLE_DESTAGE, STREAM_BYPASS, Policy
from ebbgate.policy.evaluate import Ruling
from ebbgate.policy.rollback_guard import Verdict, WatchedSetting
from ebbgate.policy.state import ArbiterState, OverrideChange, State, WarmChange
from ebbgate.policy.strategies import idle_destage, pressure
from ebbgate.policy.strategies.destage_state import Phase
from ebbgate.policy.strategies.stream_bypass import StreamMode
from ebbgate.units import format_bytes, format_ns

ROLLBACK_GUARD = "rollback_guard"
WARM = "warm"
"""The name among the proposals of a warm-up."""
_STREAM_KNOBS = frozenset({CUTOFF, MAX_SECTORS})
_ABOVE = frozenset({overrides.OVERRIDE, drain.DRAIN, ROLLBACK_GUARD, WARM})
"""These proposals come and go; those of rules and strategies are there all the time."""


DecisionKey = tuple[object, ...]


def on_overrides(state: State, change: OverrideChange) -> State:
    """Put other overrides in force."""
    arbiter = replace(
        state.arbiter, sets=change.sets, gate_knobs=change.gate_knobs, drain=change.drain
    )
    destage = state.destage
    if state.arbiter.drain is not None and change.drain is None:
        # What the drain wrote above the cap would keep the gate at rest for hours.
        destage = replace(destage, gap=replace(destage.gap, ahead_bytes=0.0))
    return replace(state, arbiter=arbiter, destage=destage)


def on_warm(state: State, change: WarmChange) -> State:
    """Begin or end a warm-up."""
    return replace(state, arbiter=replace(state.arbiter, warm_cutoff_bytes=change.cutoff_bytes))


def on_frame(state: State, frame: Frame, policy: Policy, *, applied: bool) -> State:
    """Take a tick in. `applied`: decisions are carried out; others cannot harm anybody."""
    arbiter = state.arbiter
    settings = _watched_settings(state, policy) if applied else {}
    rollback = rollback_guard.on_frame(arbiter.rollback, frame, settings, policy.rollback)
    plan = None
    if arbiter.drain is not None:
        plan = drain.plan_of(frame, arbiter.drain.left_ns(frame.at_ns))
    return replace(state, arbiter=replace(arbiter, plan=plan, rollback=rollback))


def decide(state: State, policy: Policy, now_ns: int, *, explained: bool = True) -> Decision:
    """Return the decision that applies, with every proposal; `explained` as in `evaluate`."""
    arbiter, verdicts = state.arbiter, _verdicts(state, policy, now_ns)
    over = _passed_over(arbiter, policy, verdicts)
    decision = evaluate.decide(state, policy, now_ns, explained=explained, passed_over=over)
    warms = arbiter.warm_cutoff_bytes is not None
    if not (arbiter.sets or arbiter.drain or verdicts or warms):
        return decision
    ruled, own = ruling(state, policy, now_ns), list[Proposal]()
    if arbiter.sets:
        own.append(overrides.proposal(arbiter.sets, arbiter.gate_knobs, now_ns))
    if arbiter.drain is not None:
        opened = ruled.gate if ruled.by == drain.DRAIN else None
        own.append(drain.proposal(arbiter.plan, arbiter.drain, now_ns, opened, policy.limits))
    for each in verdicts:
        yields = each.setting is WatchedSetting.GATE and _presses(state, policy)
        own.append(_rollback_proposal(each, state, ruled, now_ns, yields=yields))
    if ruled.by in _ABOVE:
        decision = replace(decision, gate=ruled.gate, gate_strategy=ruled.by)
    decision = _streams(decision, own)
    if arbiter.warm_cutoff_bytes is not None:
        least = policy.limits.sequential_cutoff.clamp(arbiter.warm_cutoff_bytes)
        knobs = {knob for each in own for knob, _ in each.knobs}
        decision, proposal = _above_warm_reads(decision, least, free=knobs.isdisjoint(CONGESTED))
        own.append(proposal)
    return replace(decision, proposals=(*own, *decision.proposals))


def decision_key(state: State, policy: Policy, decision: Decision) -> DecisionKey:
    """Return a key that is equal for decisions that differ only in measured figures or in the pace.

    A rest is part of how a gap is used and no decision of its own.
    """
    kind = decision.gate.kind if decision.gate else None
    if decision.gate_strategy == IDLE_DESTAGE and state.destage.phase is Phase.DESTAGE:
        kind = GateKind.OPEN
    return (
        kind,
        state.destage.phase,
        state.streams.mode,
        decision.sequential_cutoff_bytes,
        decision.congestion_bypass,
        tuple(rule.strategy for rule in rules.in_force(state.rules, policy.rules)),
        state.hold.settled,
        state.promotion.key if policy.promotion is not None else None,
        tuple(proposal.unsupported for proposal in decision.proposals),
        tuple((p.strategy, p.knobs) for p in decision.proposals if p.strategy in _ABOVE),
    )


def _watched_settings(state: State, policy: Policy) -> Mapping[WatchedSetting, Hashable]:
    """Return what the strategies have set of all that the guard watches.

    A setting is left out where the strategy rests, or where a person or a rule decides.
    """
    found: dict[WatchedSetting, Hashable] = {}
    arbiter, streams = state.arbiter, state.streams
    overridden = {each.override.knob for each, _ in arbiter.sets}
    in_force = rules.in_force(state.rules, policy.rules)
    ruled = any(rule.sequential_cutoff_bytes is not None for rule in in_force)
    acts = policy.streams is not None and streams.mode is not StreamMode.REST and not ruled
    if acts and overridden.isdisjoint(_STREAM_KNOBS):
        found[WatchedSetting.STREAMS] = (streams.mode, streams.cutoff_bytes)
    if _presses(state, policy) and not arbiter.gate_overridden and arbiter.drain is None:
        found[WatchedSetting.GATE] = Phase.PRESSURE
    return found


def _presses(state: State, policy: Policy) -> bool:
    """Return whether the strategy itself destages under load."""
    if state.destage.phase is not Phase.PRESSURE:
        return False
    own = evaluate.gate(state, policy)
    return own.gate is not None and own.by == IDLE_DESTAGE


def ruling(state: State, policy: Policy, now_ns: int) -> Ruling:
    """Return the gate that applies, which proposal it comes from, and why."""
    arbiter, params = state.arbiter, policy.destage
    if arbiter.gate_overridden:
        released = Gate(GateKind.RELEASED)
        return Ruling(released, overrides.OVERRIDE, "a user has set a knob of the gate")
    own = evaluate.gate(state, policy)
    if params is None or own.gate is None or own.gate.kind is GateKind.RELEASED:
        return own
    if arbiter.drain is not None and arbiter.plan is not None:
        destage = state.destage
        if own.by != IDLE_DESTAGE and destage.phase is Phase.DESTAGE:
            # A rule has the gate, so the gap by itself does not drain as fast as it could.
            destage = replace(destage, phase=Phase.WAIT)
        opened = drain.gate_of(arbiter.plan, destage, own.gate, params)
        within = limits.clamp_gate(opened, policy.limits)
        if within is None or within == own.gate:
            return own
        return Ruling(within, drain.DRAIN, drain.plan_text(arbiter.plan, policy.limits))
    if own.by != IDLE_DESTAGE or state.destage.phase is not Phase.PRESSURE:
        return own
    rolled_back = rollback_guard.verdict(arbiter.rollback, WatchedSetting.GATE, now_ns) is not None
    if rolled_back and not pressure.must_destage(state.frame, params):
        closed = replace(state.destage, phase=Phase.WAIT)
        shut = limits.clamp_gate(idle_destage.gate_of(closed, params), policy.limits)
        return Ruling(shut, ROLLBACK_GUARD, "users waited longer after the gate was opened")
    return own


def _verdicts(state: State, policy: Policy, now_ns: int) -> list[Verdict]:
    """Return why strategies of this policy are suspended."""
    rollback = state.arbiter.rollback
    used = {WatchedSetting.GATE: policy.destage, WatchedSetting.STREAMS: policy.streams}
    settings = [setting for setting in WatchedSetting if used[setting] is not None]
    found = (rollback_guard.verdict(rollback, setting, now_ns) for setting in settings)
    return [each for each in found if each is not None]


def _passed_over(
    arbiter: ArbiterState, policy: Policy, verdicts: Sequence[Verdict]
) -> frozenset[str]:
    """Return whose sequential cutoff does not apply: a person has set it, or the guard has."""
    if not _STREAM_KNOBS.isdisjoint(each.override.knob for each, _ in arbiter.sets):
        return frozenset((STREAM_BYPASS, *(rule.proposal.strategy for rule in policy.rules)))
    suspended = any(each.setting is WatchedSetting.STREAMS for each in verdicts)
    return frozenset((STREAM_BYPASS,)) if suspended else frozenset()


def _streams(decision: Decision, own: list[Proposal]) -> Decision:
    """Apply the proposals of overrides and guard on cutoff, split requests and congestion."""
    knobs = {knob for proposal in own for knob, _ in proposal.knobs}
    if not knobs.isdisjoint(CONGESTED):
        decision = replace(decision, congestion_bypass=None)
    for proposal in own:
        if CUTOFF in dict(proposal.knobs):
            cutoff = proposal.sequential_cutoff_bytes
            return replace(
                decision, sequential_cutoff_bytes=cutoff, cutoff_strategy=proposal.strategy
            )
        rolled_back = WatchedSetting.STREAMS in proposal.suppresses and _by_streams(decision)
        if MAX_SECTORS in dict(proposal.knobs) or rolled_back:
            return replace(
                decision,
                sequential_cutoff_bytes=None,
                split_requests=False,
                cutoff_strategy=proposal.strategy,
            )
    return decision


def _by_streams(decision: Decision) -> bool:
    """Return whether the cutoff would be stream_bypass's."""
    wishes = (
        each.strategy
        for each in decision.proposals
        if each.sequential_cutoff_bytes is not None or each.split_requests
    )
    return next(wishes, "") == STREAM_BYPASS


def _above_warm_reads(decision: Decision, least: int, *, free: bool) -> tuple[Decision, Proposal]:
    """Raise a cutoff that a strategy or rule has chosen; a person's stays as it is.

    `free`: no person has set how the kernel treats a slow cache device; otherwise it is not to
    bypass one, since the warm-up itself makes it slow.
    """
    cutoff = decision.sequential_cutoff_bytes
    reason = f"a warm-up reads: strategies set no sequential cutoff below {format_bytes(least)}"
    congestion = False if free else None
    if congestion is False:
        decision = replace(decision, congestion_bypass=False)
    proposal = Proposal(WARM, reason, congestion_bypass=congestion)
    if cutoff is None or cutoff >= least or decision.cutoff_strategy == overrides.OVERRIDE:
        return decision, proposal
    reason += f", such as {format_bytes(cutoff)} ({decision.cutoff_strategy})"
    raised = replace(decision, sequential_cutoff_bytes=least, cutoff_strategy=WARM)
    return raised, replace(proposal, reason=reason, sequential_cutoff_bytes=least)


def _rollback_proposal(
    found: Verdict, state: State, ruled: Ruling, now_ns: int, *, yields: bool
) -> Proposal:
    left = state.arbiter.rollback.of(found.setting).suspended_until_ns - now_ns
    what = STREAM_BYPASS if found.setting is WatchedSetting.STREAMS else "write-back under load"
    before, after = format_ns(found.before_ns), format_ns(found.after_ns)
    reason = (
        f"{what} is suspended for {format_ns(max(0, left))}: the p99 of"
        f" {found.direction}s rose from {before} to {after} after it"
    )
    if yields and ruled.by != ROLLBACK_GUARD:
        reason += "; ignored, since dirty data must be written back"
    return Proposal(
        ROLLBACK_GUARD,
        reason,
        (
            Condition(
                f"p99 of {found.direction}s after the action",
                after,
                ">",
                f"{format_ns(found.bound_ns)} (before: {before})",
                True,
            ),
        ),
        gate=ruled.gate if ruled.by == ROLLBACK_GUARD else None,
        suppresses=(str(found.setting),),
    )
