# SPDX-License-Identifier: GPL-2.0-only
"""Runs the policy on a recording: what would have been decided, and when. Pure.

The same steps as the daemon's loop, without a kernel to act on: edges and queue samples at once, a
frame at each state of sysfs (at each tick in a recording that has none: then the dirty level is
unknown). Only decisions that differ from the last one come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ebbgate.model.decision import Decision
from ebbgate.model.records import Edge, QueueSample, Tick, Tracked
from ebbgate.model.volume import VolumeState
from ebbgate.policy import arbiter, evaluate
from ebbgate.policy.arbiter import ArbiterState
from ebbgate.policy.decision_key import DecisionKey, decision_key
from ebbgate.policy.defaults import Policy
from ebbgate.policy.evaluate import PolicyState
from ebbgate.probes.recording import Recorded, SysfsSnapshot
from ebbgate.signals.frame import FrameState, absorb, begin_anew, build, tracked


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one volume's part of the recording led to so far."""

    frames: FrameState = field(default_factory=FrameState)
    state: PolicyState = field(default_factory=PolicyState)
    over: ArbiterState = field(default_factory=ArbiterState)
    last_key: DecisionKey = ()
    has_sysfs: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a volume and what it led to. `decision`: set where it differs from the last."""

    volume: str
    event: Recorded
    after: Replayed
    decision: Decision | None


def replay(events: Iterable[Recorded], policy: Policy) -> Iterator[Decision]:
    """Decisions in the order of their time, each with its full explanation."""
    for step in steps(events, policy):
        if step.decision is not None:
            yield step.decision


def steps(events: Iterable[Recorded], policy: Policy) -> Iterator[Step]:
    """Every event that belongs to a volume, with the state of the policy after it."""
    volumes: dict[str, Replayed] = {}
    for event in events:
        name = getattr(event, "volume", "")
        if not name:
            continue
        after, at_ns = _step(volumes.get(name, Replayed()), event, policy)
        decision = None
        if at_ns is not None and after.state.frame is not None:
            decision = arbiter.decide(after.over, after.state, policy, at_ns)
            key = decision_key(after.state, decision)
            if key == after.last_key:
                decision = None
            after = replace(after, last_key=key)
        volumes[name] = after
        yield Step(name, event, after, decision)


def _step(before: Replayed, event: Recorded, policy: Policy) -> tuple[Replayed, int | None]:
    """The volume after the event; the time if something may have been decided at it."""
    if isinstance(event, Tick):
        after = replace(before, frames=absorb(before.frames, event))
        # In a recording with sysfs its first word comes after the first tick.
        if before.has_sysfs or not before.frames.ticks:
            return after, None
        return _frame(after, event.volume, _unknown(event.at_ns), policy), event.at_ns
    if isinstance(event, Edge):
        return replace(before, state=evaluate.on_edge(before.state, event, policy)), event.at_ns
    if isinstance(event, QueueSample):
        return replace(before, state=evaluate.on_queue(before.state, event, policy)), None
    if isinstance(event, SysfsSnapshot):
        after = replace(before, has_sysfs=True)
        return _frame(after, event.volume, event.state, policy), event.state.at_ns
    if isinstance(event, Tracked):
        # The probe starts to follow the volume: its counters begin anew, as in the loop.
        return replace(before, frames=tracked(begin_anew(before.frames), event)), None
    return before, None


def _frame(before: Replayed, volume: str, seen: VolumeState, policy: Policy) -> Replayed:
    frame = build(before.frames, seen, volume, seen.at_ns)
    state = evaluate.on_frame(before.state, frame, policy)
    over = arbiter.on_frame(before.over, frame, state, policy, applied=True)
    return replace(before, state=state, over=over)


def _unknown(at_ns: int) -> VolumeState:
    return VolumeState(at_ns, None, None, None, None, None, {})
