# SPDX-License-Identifier: GPL-2.0-only
"""Runs rules and strategies on an event and resolves their proposals into one decision. Pure.

Rules come first, then the strategies, each in the order of the policy. For each setting the first
proposal wins, and the others stay visible in the decision. The policy's limits apply to the result.
An edge needs the gate at once, so `gate` finds it without the proposals; `decide` takes it from the
same place.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import NamedTuple

from ebbgate.model.decision import Decision, Gate, GateKind, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.promotion import ChunksMoved
from ebbgate.model.records import Edge, QueueSample
from ebbgate.model.volume import SUSPENDED, UNWRITABLE
from ebbgate.policy import hold, limits, rules
from ebbgate.policy.defaults import IDLE_DESTAGE, PROMOTE_HOT, STREAM_BYPASS, Policy
from ebbgate.policy.hold import HoldState
from ebbgate.policy.other_knobs import NO_GATE
from ebbgate.policy.rules import RulesState
from ebbgate.policy.state import State
from ebbgate.policy.strategies import (
    explanation,
    idle_destage,
    promote_hot,
    promote_stop,
    promote_words,
    stream_bypass,
)
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.promote_hot import PromotePhase, PromoteState
from ebbgate.policy.strategies.promote_stop import MOVER_CUTOFF_BYTES, PromoteParams
from ebbgate.policy.strategies.stream_bypass import StreamMode, StreamParams, StreamState
from ebbgate.units import NS_PER_MS, format_bytes

PACE_PERIOD_NS = 20 * NS_PER_MS
"""How often the probe samples the queue while the gate is open."""
_NOBODY = Proposal("", "")
_NOT_PROMOTED = PromoteState()


class Ruling(NamedTuple):
    """A gate, the rule or strategy that it comes from, and why; None where ebbgate sets none."""

    gate: Gate | None
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """What the probe should do for this volume.

    - `wait_ns`: idle time before an idle edge.
    - `pace_period_ns`: time between samples of the queue; 0: none.
    """

    wait_ns: int
    pace_period_ns: int


def on_frame(state: State, frame: Frame, policy: Policy) -> State:
    """Handle a tick with all signals."""
    if why_not := unsupported(frame):
        return _not_tuned(state, frame, policy, why_not)
    ruled = rules.on_frame(state.rules, frame, policy.rules, frame.at_ns)
    held = _hold(state, ruled, frame, policy)
    destage, streams = DestageState(), StreamState()
    if policy.destage is not None:
        destage = idle_destage.on_frame(state.destage, frame, policy.destage)
        if _gate_rule(ruled, policy, held) is not None:
            # The queue is not sampled while a rule decides: what was measured before ends here.
            destage = replace(destage, pace=replace(destage.pace, window_start=None))
    if policy.streams is not None:
        streams = stream_bypass.on_frame(state.streams, frame, policy.streams)
    congested = state.congested or frame.bypass_bytes.get("congested", 0) > 0
    # Built in one go: each copy of a frozen class costs as much as a strategy.
    return State(
        destage=destage,
        streams=streams,
        rules=ruled,
        congested=congested,
        frame=frame,
        edge=_later_edge(state.edge, frame),
        arbiter=state.arbiter,
        hold=held,
        promotion=_promotion(state, frame, policy, destage.phase),
    )


def _not_tuned(state: State, frame: Frame, policy: Policy, why_not: str) -> State:
    """Return the state while nothing can be tuned.

    A snapshot suspends a volume for a moment, and what rules and a hold count in hours goes on.
    """
    suspended = frame.state == SUSPENDED
    destage = DestageState()
    if policy.destage is not None:
        destage = idle_destage.on_frame(state.destage, frame, policy.destage, why_not)
    return State(
        destage=destage,
        congested=state.congested,
        rules=rules.pause(state.rules) if suspended and policy.rules else RulesState(),
        frame=frame,
        arbiter=state.arbiter,
        hold=state.hold if suspended else hold.NONE,
        promotion=_promotion(state, frame, policy, Phase.UNKNOWN),
    )


def _later_edge(edge: Edge | None, frame: Frame) -> Edge | None:
    """Return the last edge if it came after the probe's record in a frame.

    The daemon looks as often as the probe sends records, but not at the same moments.
    """
    if edge is None or frame.probed_at_ns is None or frame.probed_at_ns > edge.at_ns:
        return None
    return edge


def on_moved(state: State, report: ChunksMoved) -> State:
    """Handle a report of the mover."""
    return replace(state, promotion=promote_hot.on_moved(state.promotion, report))


def _promotion(state: State, frame: Frame, policy: Policy, destage: Phase) -> PromoteState:
    if policy.promotion is None:
        return _NOT_PROMOTED
    if why_not := promote_stop.unsupported(frame):
        return replace(state.promotion, phase=PromotePhase.UNKNOWN, why=why_not)
    return promote_hot.on_frame(
        state.promotion, frame, policy.promotion, _needs_disks(state, destage)
    )


def _needs_disks(state: State, destage: Phase) -> str:
    """Return what else of ebbgate needs the disks more than a promotion; empty if nothing does."""
    if destage is Phase.PRESSURE:
        return "dirty data is written back under load"
    if state.arbiter.drain is not None:
        return "a user has asked to write dirty data back"
    return "a warm-up reads" if state.arbiter.warm_cutoff_bytes is not None else ""


def on_edge(state: State, edge: Edge, policy: Policy) -> State:
    """Handle an edge."""
    if policy.destage is None:
        return replace(state, edge=edge)
    destage = idle_destage.on_edge(state.destage, edge, policy.destage)
    return replace(state, edge=edge, destage=destage)


def on_queue(state: State, sample: QueueSample, policy: Policy) -> State:
    """Handle a sample of the backing device's queue."""
    if policy.destage is None:
        return state
    return replace(state, destage=idle_destage.on_queue(state.destage, sample, policy.destage))


def gate(state: State, policy: Policy) -> Ruling:
    """Return the gate within the limits: all that an edge needs."""
    chosen = _chosen_gate(state, policy)
    clamped = limits.clamp_gate(chosen.gate, policy.limits)
    return chosen if clamped is chosen.gate else chosen._replace(gate=clamped)


def _chosen_gate(state: State, policy: Policy) -> Ruling:
    """Return the gate of the first rule or strategy that sets one."""
    frame = state.frame
    if frame is not None and (why_not := unsupported(frame)):
        return Ruling(None, IDLE_DESTAGE, why_not)
    rule = _gate_rule(state.rules, policy, state.hold)
    if rule is not None:
        return Ruling(rule.gate, rule.strategy, rule.reason)
    # Of the strategies only this one sets the gate.
    if policy.destage is None or IDLE_DESTAGE not in policy.order:
        return Ruling(None, *NO_GATE)
    if frame is not None and (why_not := idle_destage.unsupported(frame)):
        return Ruling(None, IDLE_DESTAGE, why_not)
    own = idle_destage.gate_of(state.destage, policy.destage)
    return Ruling(own, IDLE_DESTAGE, state.destage.why)


def probe_settings(state: State, policy: Policy) -> ProbeSettings:
    """Return what the probe should do."""
    wait_ns = state.destage.wait.wait_ns
    if policy.destage is None or not state.destage.sampled:
        return ProbeSettings(wait_ns, 0)
    chosen = _chosen_gate(state, policy)
    if chosen.gate is None or chosen.by != IDLE_DESTAGE:
        return ProbeSettings(wait_ns, 0)
    return ProbeSettings(wait_ns, PACE_PERIOD_NS)


def decide(
    state: State,
    policy: Policy,
    now_ns: int,
    *,
    explained: bool = True,
    passed_over: Container[str] = (),
) -> Decision:
    """Return the decision with every proposal; if not `explained`, without their conditions.

    The result is the same; formatting all conditions takes longer than deciding. Rules that are off
    are left out if not `explained`. `passed_over`: whose cutoff does not apply, nor whose split.
    """
    frame = state.current_frame if explained else None
    volume = state.frame.volume if state.frame else ""
    proposals = list(_rule_proposals(state, policy, now_ns, frame))
    for name in policy.order:
        if name == IDLE_DESTAGE and policy.destage is not None:
            proposals.append(_destage_proposal(state, policy.destage, frame))
        if name == STREAM_BYPASS and policy.streams is not None:
            proposals.append(_stream_proposal(state, policy.streams, frame))
        if name == PROMOTE_HOT and policy.promotion is not None:
            proposals.append(_promote_proposal(state, policy.promotion, now_ns, frame))
    proposals += [Proposal(name, why, unsupported=why) for name, why in policy.cannot.items()]
    chosen = _chosen_gate(state, policy)
    decision = resolve(volume, now_ns, tuple(proposals), chosen, passed_over)
    return limits.clamp(_above_mover_reads(decision), policy.limits)


def resolve(
    volume: str,
    now_ns: int,
    proposals: tuple[Proposal, ...],
    chosen: Ruling,
    passed_over: Container[str] = (),
) -> Decision:
    """Return one decision: for each setting but the gate the first proposal wins."""
    asked = [p for p in proposals if p.strategy not in passed_over]
    cutoff = next((p for p in asked if p.sequential_cutoff_bytes is not None), _NOBODY)
    split = next((p for p in asked if p.split_requests), None)
    congestion = next((p for p in proposals if p.congestion_bypass is not None), _NOBODY)
    promoting = next((p for p in proposals if p.promotion is not None), _NOBODY)
    return Decision(
        volume,
        now_ns,
        proposals,
        gate=chosen.gate,
        gate_strategy=chosen.by if chosen.gate is not None else "",
        sequential_cutoff_bytes=cutoff.sequential_cutoff_bytes,
        cutoff_strategy=(split or cutoff).strategy,
        split_requests=split is not None,
        congestion_bypass=congestion.congestion_bypass,
        collect_garbage=any(p.collect_garbage for p in proposals),
        promotion=promoting.promotion,
        promotion_strategy=promoting.strategy,
    )


def unsupported(frame: Frame) -> str:
    """Return why nothing can be tuned on this volume now; empty if it can."""
    if why_not := UNWRITABLE.get(frame.state or ""):
        return why_not
    if frame.cache_mode is not None and frame.cache_mode != "writeback":
        # The mode may have been changed while data was dirty, which flushes nothing.
        left = "there is no dirty data"
        if frame.dirty_bytes != 0:
            left = "the kernel alone writes back what is still dirty"
        return f"the cache mode is {frame.cache_mode}: {left}"
    return ""


def _gate_rule(ruled: RulesState, policy: Policy, held: HoldState) -> Proposal | None:
    """Return the first proposal of a rule that sets the gate; None without one.

    One that holds is passed over once the hold had to end.
    """
    for proposal in rules.in_force(ruled, policy.rules):
        if proposal.gate is not None and not (held.over and _holds(proposal)):
            return proposal
    return None


def _holds(proposal: Proposal) -> bool:
    return proposal.gate is not None and proposal.gate.kind is GateKind.HELD


def _hold(state: State, ruled: RulesState, frame: Frame, policy: Policy) -> HoldState:
    first = _gate_rule(ruled, policy, hold.NONE)
    wanted = first is not None and _holds(first)
    params = policy.destage or DestageParams()
    return hold.on_frame(state.hold, frame, params, policy.hold_ns_max, wanted=wanted)


def _rule_proposals(
    state: State, policy: Policy, now_ns: int, explain: Frame | None
) -> tuple[Proposal, ...]:
    if state.frame is None or not policy.rules:
        return ()
    why_not = unsupported(state.frame)
    if why_not:
        return tuple(
            Proposal(r.proposal.strategy, why_not, unsupported=why_not) for r in policy.rules
        )
    if explain is None:
        found = rules.in_force(state.rules, policy.rules)
    else:
        found = rules.proposals(state.rules, policy.rules, explain, now_ns)
    if not state.hold.text:
        return found
    return tuple(
        replace(each, reason=f"{each.reason}; {state.hold.text}") if _holds(each) else each
        for each in found
    )


def _destage_proposal(state: State, params: DestageParams, explain: Frame | None) -> Proposal:
    frame, destage = state.frame, state.destage
    why_not = (unsupported(frame) or idle_destage.unsupported(frame)) if frame else ""
    if why_not:
        return Proposal(IDLE_DESTAGE, why_not, unsupported=why_not)
    return Proposal(
        IDLE_DESTAGE,
        f"{destage.phase}: {destage.why}",
        explanation.of_destage(destage, explain, params) if explain else (),
        gate=idle_destage.gate_of(destage, params),
        collect_garbage=destage.collect,
    )


def _stream_proposal(state: State, params: StreamParams, explain: Frame | None) -> Proposal:
    streams = state.streams
    why_not = unsupported(state.frame) if state.frame else ""
    if why_not:
        return Proposal(STREAM_BYPASS, why_not, unsupported=why_not)
    reason = f"{streams.mode}: {streams.why}"
    if state.congested:
        reason += "; the kernel mistook jitter of the cache device for congestion"
    cutoff = None if streams.mode is StreamMode.REST or params.by_size else streams.cutoff_bytes
    return Proposal(
        STREAM_BYPASS,
        reason,
        explanation.of_streams(explain, params) if explain else (),
        sequential_cutoff_bytes=cutoff,
        split_requests=params.by_size and streams.mode is StreamMode.BYPASS,
        congestion_bypass=False if state.congested else None,
    )


def _promote_proposal(
    state: State, params: PromoteParams, now_ns: int, explain: Frame | None
) -> Proposal:
    found = state.promotion
    why_not = promote_stop.unsupported(state.frame) if state.frame else ""
    if why_not:
        return Proposal(PROMOTE_HOT, why_not, unsupported=why_not)
    # Moves make the cache device slow, and the kernel would bypass it then.
    works = found.phase in (PromotePhase.MOVE, PromotePhase.REST, PromotePhase.STOP)
    return Proposal(
        PROMOTE_HOT,
        promote_words.reason(found, now_ns),
        promote_words.conditions(found, explain, params) if explain else (),
        congestion_bypass=False if works and params.by_cutoff else None,
        promotion=found.promotion,
    )


def _above_mover_reads(decision: Decision) -> Decision:
    """Raise a cutoff under which the kernel would not cache what is moved."""
    cutoff = decision.sequential_cutoff_bytes
    if decision.promotion is None or cutoff is None or cutoff >= MOVER_CUTOFF_BYTES:
        return decision
    least, before = format_bytes(MOVER_CUTOFF_BYTES), format_bytes(cutoff)
    note = f"; meanwhile the cutoff is {least} instead of {before} ({decision.cutoff_strategy})"
    proposals = tuple(
        replace(each, reason=each.reason + note, sequential_cutoff_bytes=MOVER_CUTOFF_BYTES)
        if each.strategy == PROMOTE_HOT
        else each
        for each in decision.proposals
    )
    return replace(
        decision,
        proposals=proposals,
        sequential_cutoff_bytes=MOVER_CUTOFF_BYTES,
        cutoff_strategy=PROMOTE_HOT,
    )
