# SPDX-License-Identifier: GPL-2.0-only
"""Runs the strategies on an event and resolves their proposals into one decision. Pure.

Strategies come in the order of the policy; for each setting the first that has a wish wins, and the
losers stay visible in the decision.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ebbgate.model.decision import Condition, Decision, Gate, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge, EdgeKind, QueueSample
from ebbgate.policy import idle_destage, stream_bypass
from ebbgate.policy.defaults import IDLE_DESTAGE, STREAM_BYPASS, Policy
from ebbgate.policy.destage_state import DestageParams, DestageState
from ebbgate.policy.stream_bypass import Stance, StreamParams, StreamState
from ebbgate.units import NS_PER_MS, format_bytes, format_ns, format_rate, format_ratio

PACE_PERIOD_NS = 20 * NS_PER_MS
"""How often the probe samples the queue while the gate is open."""


_ILL = {
    "suspended": "the volume is suspended: nothing is asked of it until it is resumed",
    "needs_check": "its metadata needs a check (cache_check, lvconvert --repair): left alone",
    "read-only": "its metadata can no longer be written: left alone",
    "failed": "the kernel calls the cache failed: nothing is written to it",
}
"""States in which not even a message is sent (dm-cache-target.c, cache_status)."""


@dataclass(frozen=True, slots=True)
class PolicyState:
    """What the strategies remember of one volume, and the last frame they saw."""

    destage: DestageState = field(default_factory=DestageState)
    streams: StreamState = field(default_factory=StreamState)
    congested: bool = False
    frame: Frame | None = None


@dataclass(frozen=True, slots=True)
class ProbeWishes:
    """What the probe should do for this volume: quiet time before an idle edge, queue samples.

    `pace_above_ios`: samples are wanted of a deeper queue only; None: of each.
    """

    wait_ns: int
    pace_period_ns: int
    pace_above_ios: int | None = None

    @property
    def pace(self) -> tuple[int, ...]:
        """The arguments of the probe's `pace` command."""
        above = () if self.pace_above_ios is None else (self.pace_above_ios,)
        return (self.pace_period_ns, *above)


def on_frame(state: PolicyState, frame: Frame, policy: Policy) -> PolicyState:
    """A tick with all signals."""
    if unsupported(frame):
        return replace(state, destage=DestageState(), streams=StreamState(), frame=frame)
    if policy.destage is not None:
        state = replace(state, destage=idle_destage.on_frame(state.destage, frame, policy.destage))
    if policy.streams is not None:
        state = replace(state, streams=stream_bypass.on_frame(state.streams, frame, policy.streams))
    congested = state.congested or frame.bypass_bytes.get("congested", 0) > 0
    return replace(state, congested=congested, frame=frame)


def on_edge(state: PolicyState, edge: Edge, policy: Policy) -> PolicyState:
    """The load came or went."""
    if state.frame is not None:
        # Newer than the last frame, so the explanation shows it.
        idle = edge.kind is EdgeKind.IDLE
        quiet_ns = edge.length_ns if idle else 0
        state = replace(state, frame=replace(state.frame, idle=idle, quiet_ns=quiet_ns))
    if policy.destage is None:
        return state
    return replace(state, destage=idle_destage.on_edge(state.destage, edge, policy.destage))


def on_queue(state: PolicyState, sample: QueueSample, policy: Policy) -> PolicyState:
    """A sample of the backing device's queue."""
    if policy.destage is None:
        return state
    return replace(state, destage=idle_destage.on_queue(state.destage, sample, policy.destage))


def gate(state: PolicyState, policy: Policy) -> Gate | None:
    """The wished gate alone: all that the fast path needs."""
    if policy.destage is None or (state.frame is not None and unsupported(state.frame)):
        return None
    return idle_destage.gate_of(state.destage, policy.destage)


def wishes(state: PolicyState, policy: Policy) -> ProbeWishes:
    """What the probe should be told."""
    wait_ns = state.destage.wait.wait_ns
    if policy.destage is None or not state.destage.pacing:
        return ProbeWishes(wait_ns, 0)
    above = idle_destage.samples_above_ios(state.destage, policy.destage)
    return ProbeWishes(wait_ns, PACE_PERIOD_NS, above)


def decide(state: PolicyState, policy: Policy, now_ns: int, *, explained: bool = True) -> Decision:
    """The decision with every proposal; not `explained`: without their conditions.

    What is decided is the same; to put all conditions into words takes longer than to decide.
    """
    frame = state.frame
    volume = frame.volume if frame else ""
    proposals = []
    if policy.destage is not None:
        proposals.append(_destage_proposal(state, policy.destage, explained))
    if policy.streams is not None:
        proposals.append(_stream_proposal(state, policy.streams, explained))
    proposals += [Proposal(name, why, unsupported=why) for name, why in policy.cannot.items()]
    return resolve(volume, now_ns, tuple(proposals))


def resolve(volume: str, now_ns: int, proposals: tuple[Proposal, ...]) -> Decision:
    """One decision: for each setting the first proposal that has a wish wins."""
    decision = Decision(volume, now_ns, proposals)
    for proposal in proposals:
        decision = _merge(decision, proposal)
    return decision


def unsupported(frame: Frame) -> str:
    """Why nothing can be tuned on this volume now; empty when it can."""
    if frame.state == "no cache":
        return "no cache is attached"
    if frame.state == "inconsistent":
        return "the kernel calls the volume inconsistent: nothing is written to it"
    if frame.state in _ILL:
        return _ILL[frame.state]
    if frame.cache_mode is not None and frame.cache_mode != "writeback":
        return f"the cache mode is {frame.cache_mode}: no dirty data to let out"
    return ""


def _merge(decision: Decision, proposal: Proposal) -> Decision:
    if decision.gate is None and proposal.gate is not None:
        decision = replace(decision, gate=proposal.gate, gate_strategy=proposal.strategy)
    wished = proposal.sequential_cutoff_bytes
    if decision.sequential_cutoff_bytes is None and wished is not None:
        decision = replace(
            decision, sequential_cutoff_bytes=wished, cutoff_strategy=proposal.strategy
        )
    if proposal.split_requests:
        decision = replace(decision, split_requests=True, cutoff_strategy=proposal.strategy)
    if decision.congestion_bypass is None and proposal.congestion_bypass is not None:
        decision = replace(decision, congestion_bypass=proposal.congestion_bypass)
    if proposal.collect_garbage:
        decision = replace(decision, collect_garbage=True)
    return decision


def _destage_proposal(state: PolicyState, params: DestageParams, explained: bool) -> Proposal:
    frame, machine = state.frame, state.destage
    why_not = unsupported(frame) if frame else ""
    if why_not:
        return Proposal(IDLE_DESTAGE, why_not, unsupported=why_not)
    return Proposal(
        IDLE_DESTAGE,
        f"{machine.phase}: {machine.why}",
        _destage_conditions(machine, frame, params) if frame and explained else (),
        gate=idle_destage.gate_of(machine, params),
        collect_garbage=machine.collect,
    )


def _destage_conditions(
    machine: DestageState, frame: Frame, params: DestageParams
) -> tuple[Condition, ...]:
    floor = idle_destage.start_bytes(frame, params)
    dirty, quiet, full = frame.dirty_bytes, frame.quiet_ns, frame.time_to_full_s
    room, cache = frame.dirty_room_bytes, frame.cache_bytes
    wait_ns = machine.wait.wait_ns
    room_min = params.room_ratio_min * (cache or 0)
    busy = frame.backing_busy_foreground_ratio
    return (
        Condition(
            "dirty data",
            None if dirty is None else format_bytes(dirty),
            ">=",
            format_bytes(floor),
            dirty is not None and dirty >= floor,
        ),
        Condition(
            "quiet for",
            None if quiet is None else format_ns(quiet),
            ">=",
            f"{format_ns(wait_ns)} ({'learned' if machine.wait.learned else 'not learned yet'})",
            quiet is not None and quiet >= wait_ns,
        ),
        Condition(
            "time to full",
            "never" if full is None else f"{full:.0f} s",
            "<",
            f"{params.full_soon_s:.0f} s",
            full is not None and full < params.full_soon_s,
        ),
        Condition(
            "room for dirty data",
            None if room is None else format_bytes(room),
            "<",
            format_bytes(room_min),
            room is not None and room < room_min,
        ),
        Condition(
            "backing device busy for users",
            None if busy is None else format_ratio(busy),
            "<",
            format_ratio(params.light_ratio),
            busy is not None and busy < params.light_ratio,
        ),
    )


def _stream_proposal(state: PolicyState, params: StreamParams, explained: bool) -> Proposal:
    frame, streams = state.frame, state.streams
    why_not = unsupported(frame) if frame else ""
    if why_not:
        return Proposal(STREAM_BYPASS, why_not, unsupported=why_not)
    reason = f"{streams.stance}: {streams.why}"
    if state.congested:
        reason += "; the kernel took jitter of the cache device for congestion and bypassed it"
    cutoff = None if streams.stance is Stance.REST or params.by_size else streams.cutoff_bytes
    return Proposal(
        STREAM_BYPASS,
        reason,
        _stream_conditions(frame, params) if frame and explained else (),
        sequential_cutoff_bytes=cutoff,
        split_requests=params.by_size and streams.stance is Stance.BYPASS,
        congestion_bypass=False if state.congested else None,
    )


def _stream_conditions(frame: Frame, params: StreamParams) -> tuple[Condition, ...]:
    load = stream_bypass.load_of(frame, params)
    rate_min, random_min = params.stream_bytes_per_s_min, params.random_bytes_per_s_min
    return (
        Condition(
            "write stream",
            None if load is None else f"{format_bytes(load.write_bytes_per_s)}/s",
            ">=",
            f"{format_bytes(rate_min)}/s",
            load is not None and load.write_bytes_per_s >= rate_min,
        ),
        Condition(
            "read stream",
            None if load is None else f"{format_bytes(load.read_bytes_per_s)}/s",
            ">=",
            f"{format_bytes(rate_min)}/s",
            load is not None and load.read_bytes_per_s >= rate_min,
        ),
        Condition(
            "random writes",
            None if load is None else format_rate(load.random_write_bytes_per_s),
            ">=",
            format_rate(random_min),
            load is not None and load.random_write_bytes_per_s >= random_min,
        ),
    )
