# SPDX-License-Identifier: GPL-2.0-only
"""What goes above every strategy: wishes of people, then the no-regret guard. Pure.

The strategies' decision comes in, the one that applies comes out; the losers stay visible in it.
Never holds what keeps a volume safe: a gate that opens because the kernel would soon stop caching
writes stays open, whatever users felt after the last time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from ebbgate.model.decision import Condition, Decision, Gate, GateKind, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.override import ActiveOverride
from ebbgate.policy import drain, evaluate, limits, overrides, rollback_guard
from ebbgate.policy.defaults import IDLE_DESTAGE, STREAM_BYPASS, Policy
from ebbgate.policy.drain import DrainPlan
from ebbgate.policy.evaluate import PolicyState
from ebbgate.policy.rollback_guard import RollbackState, Verdict, WatchedSetting
from ebbgate.policy.strategies import idle_destage
from ebbgate.policy.strategies.destage_state import DestageParams, Phase
from ebbgate.policy.strategies.stream_bypass import StreamMode
from ebbgate.units import format_ns

NO_REGRET = "no_regret"
_STREAM_KNOBS = frozenset({"sequential_cutoff", "max_sectors_kb"})
_EASE = 2.0
"""As in idle_destage: the level itself moves as soon as the gate opens."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The gate that applies; `by`, `why`: who decided it where that was no strategy, else empty."""

    gate: Gate | None
    by: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ArbiterState:
    """`sets`: wishes for knobs, each with its value in words; `gate_knobs`: of this kind of volume;
    `drain`: the wish for one; `plan`: at the last tick.
    """

    sets: tuple[tuple[ActiveOverride, str], ...] = ()
    gate_knobs: frozenset[str] = frozenset()
    drain: ActiveOverride | None = None
    plan: DrainPlan | None = None
    regret: RollbackState = field(default_factory=RollbackState)

    @property
    def gate_is_wished(self) -> bool:
        """Does a person want a knob of the gate?"""
        return any(each.wish.knob in self.gate_knobs for each, _ in self.sets)


def on_frame(
    over: ArbiterState, frame: Frame, state: PolicyState, policy: Policy, *, applied: bool
) -> ArbiterState:
    """A tick. `applied`: are decisions carried out? What is only shown cannot be regretted."""
    stands = _stands(over, state, policy) if applied else {}
    over = replace(over, regret=rollback_guard.on_frame(over.regret, frame, stands, policy.regret))
    if over.drain is None:
        return over
    return replace(over, plan=drain.plan_of(frame, over.drain.left_ns(frame.at_ns)))


def gate(over: ArbiterState, state: PolicyState, policy: Policy, now_ns: int) -> Ruling:
    """The gate that applies: all that the fast path needs."""
    return _gate(over, evaluate.gate(state, policy), state, policy, now_ns)


def decide(
    over: ArbiterState, state: PolicyState, policy: Policy, now_ns: int, *, explained: bool = True
) -> Decision:
    """The decision that applies, with every proposal; `explained` as in `evaluate.decide`."""
    decision = evaluate.decide(state, policy, now_ns, explained=explained)
    ruling = _gate(over, decision.gate, state, policy, now_ns)
    wished, by = ruling.gate, ruling.by
    own: list[Proposal] = []
    if over.sets:
        own.append(overrides.proposal(over.sets, over.gate_knobs, now_ns))
    if over.drain is not None:
        opened = wished if by == drain.DRAIN else None
        own.append(drain.proposal(over.plan, over.drain, now_ns, opened))
    own += [_taken_back(found, over, state, ruling, now_ns) for found in _held(over, now_ns)]
    if not own:
        return decision
    if by:
        decision = replace(decision, gate=wished, gate_strategy=by)
    decision = _streams(decision, own)
    return replace(decision, proposals=(*own, *decision.proposals))


def _stands(
    over: ArbiterState, state: PolicyState, policy: Policy
) -> Mapping[WatchedSetting, Hashable]:
    """What a strategy has set of all that the guard watches; None where it rests, or a person or
    a rule, which is a person's too, has the say.
    """
    stands: dict[WatchedSetting, Hashable] = {}
    streams, wished = state.streams, {each.wish.knob for each, _ in over.sets}
    ruled = any(rule.sequential_cutoff_bytes is not None for rule in state.rules.in_force)
    acts = policy.streams is not None and streams.stance is not StreamMode.REST and not ruled
    if acts and wished.isdisjoint(_STREAM_KNOBS):
        stands[WatchedSetting.STREAMS] = (streams.stance, streams.cutoff_bytes)
    if _presses(state) and not over.gate_is_wished and over.drain is None:
        stands[WatchedSetting.GATE] = Phase.PRESSURE
    return stands


def _presses(state: PolicyState) -> bool:
    """Does the strategy itself destage beside the load?"""
    own = evaluate.gate_reason(state)[0] == IDLE_DESTAGE
    return own and state.destage.phase is Phase.PRESSURE


def _gate(
    over: ArbiterState, wished: Gate | None, state: PolicyState, policy: Policy, now_ns: int
) -> Ruling:
    if over.gate_is_wished:
        return Ruling(
            Gate(GateKind.RELEASED), overrides.OVERRIDE, "a person has set a knob of the gate"
        )
    params = policy.destage
    if params is None or wished is None or wished.kind is GateKind.RELEASED:
        return Ruling(wished)
    if over.drain is not None and over.plan is not None:
        opened = drain.gate_of(over.plan, state.destage, wished, params)
        return Ruling(opened, drain.DRAIN, drain.sentence(over.plan)) if opened else Ruling(wished)
    held = rollback_guard.verdict(over.regret, WatchedSetting.GATE, now_ns) is not None
    if held and _presses(state) and not pressing(state.frame, params):
        closed = replace(state.destage, phase=Phase.WAIT)
        shut = limits.clamp_gate(idle_destage.gate_of(closed, params), policy.limits)
        return Ruling(shut, NO_REGRET, "users waited longer after it was opened")
    return Ruling(wished)


def pressing(frame: Frame | None, params: DestageParams) -> bool:
    """Must dirty data go, whatever users feel? Yes, too, where the room for it is unknown."""
    if frame is None or frame.dirty_room_bytes is None or not frame.cache_bytes:
        return True
    full_s, room = frame.time_to_full_s, frame.dirty_room_bytes
    if full_s is not None and full_s < params.full_soon_s * _EASE:
        return True
    return room < params.room_ratio_min * _EASE * frame.cache_bytes


def _held(over: ArbiterState, now_ns: int) -> list[Verdict]:
    found = (rollback_guard.verdict(over.regret, setting, now_ns) for setting in WatchedSetting)
    return [each for each in found if each is not None]


def _streams(decision: Decision, own: list[Proposal]) -> Decision:
    """Cutoff, split requests and congestion: a wish first, then what was taken back."""
    knobs = {knob for proposal in own for knob, _ in proposal.knobs}
    if knobs & {"congested_read_threshold_us", "congested_write_threshold_us"}:
        decision = replace(decision, congestion_bypass=None)
    for proposal in own:
        if "sequential_cutoff" in dict(proposal.knobs):
            cutoff = proposal.sequential_cutoff_bytes
            return replace(
                decision, sequential_cutoff_bytes=cutoff, cutoff_strategy=proposal.strategy
            )
        regretted = (
            WatchedSetting.STREAMS in proposal.takes_back
            and decision.cutoff_strategy == STREAM_BYPASS
        )
        if "max_sectors_kb" in dict(proposal.knobs) or regretted:
            return replace(
                decision,
                sequential_cutoff_bytes=None,
                split_requests=False,
                cutoff_strategy=proposal.strategy,
            )
    return decision


def _taken_back(
    found: Verdict,
    over: ArbiterState,
    state: PolicyState,
    ruling: Ruling,
    now_ns: int,
) -> Proposal:
    left = over.regret.of(found.setting).held_until_ns - now_ns
    what = "stream_bypass" if found.setting is WatchedSetting.STREAMS else "destage beside the load"
    before, after = format_ns(found.before_ns), format_ns(found.after_ns)
    yields = found.setting is WatchedSetting.GATE and _presses(state)
    reason = (
        f"{what} is held off for {format_ns(max(0, left))} more: the p99 of"
        f" {found.direction}s was {after} after it, {before} before"
    )
    if yields and ruling.by != NO_REGRET:
        reason += "; gives way, since dirty data must go"
    return Proposal(
        NO_REGRET,
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
        gate=ruling.gate if ruling.by == NO_REGRET else None,
        takes_back=(str(found.setting),),
    )
