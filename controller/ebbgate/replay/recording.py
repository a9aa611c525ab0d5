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
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge, HeatRecord, QueueSample, Tick, Tracked
from ebbgate.model.volume import VolumeState
from ebbgate.policy.engine import DecisionKey, Outcome, Policy, State, step
from ebbgate.probes.recording import Recorded, SysfsSnapshot
from ebbgate.replay.history_events import DISK_STATE, signals_of
from ebbgate.signals.frame import FrameState, build, on_heat, on_tick, on_tracked, reset_counters


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one volume's part of the recording led to so far."""

    frames: FrameState = field(default_factory=FrameState)
    state: State = field(default_factory=State)
    last_key: DecisionKey = ()
    has_sysfs: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a volume and what it led to.

    `outcome`: None where the event is not one for the policy. `decision`: None where it is the same
    as the one before.
    """

    volume: str
    event: Recorded
    after: Replayed
    outcome: Outcome | None = None
    decision: Decision | None = None


def notes_of(policies: Iterable[Policy]) -> Iterator[str]:
    """Yield what the daemon knew and a recording does not have, as far as the policies use it."""
    rules = (rule for policy in policies for rule in policy.rules)
    for name in dict.fromkeys(rule.name for rule in rules if DISK_STATE in signals_of(rule)):
        yield (
            f"rule {name} uses {DISK_STATE}, which a recording does not have: here it is always"
            " `unknown`"
        )


def replay(events: Iterable[Recorded], policy: Policy) -> Iterator[Decision]:
    """Yield decisions in the order of time, each with its full explanation."""
    for each in steps(events, policy):
        if each.decision is not None:
            yield each.decision


def steps(events: Iterable[Recorded], policy: Policy) -> Iterator[Step]:
    """Yield every event that belongs to a volume, with the state of the policy after it."""
    volumes: dict[str, Replayed] = {}
    for event in events:
        name = getattr(event, "volume", "")
        if name:
            found = _step(name, volumes.get(name, Replayed()), event, policy)
            volumes[name] = found.after
            yield found


def _step(name: str, before: Replayed, event: Recorded, policy: Policy) -> Step:
    after = _absorbed(before, event)
    for_policy = _policy_event(name, before, after, event)
    if for_policy is None:
        return Step(name, event, after)
    state, outcome = step(after.state, for_policy, policy, for_policy.at_ns)
    after = replace(after, state=state)
    if isinstance(event, QueueSample) or state.frame is None:
        return Step(name, event, after, outcome)
    decision = outcome.explained()
    key = outcome.key(decision)
    changed = decision if key != after.last_key else None
    return Step(name, event, replace(after, last_key=key), outcome, changed)


def _absorbed(before: Replayed, event: Recorded) -> Replayed:
    """Return the volume with what the event adds to its signals."""
    if isinstance(event, Tick):
        return replace(before, frames=on_tick(before.frames, event))
    if isinstance(event, HeatRecord):
        return replace(before, frames=on_heat(before.frames, event))
    if isinstance(event, SysfsSnapshot):
        return replace(before, has_sysfs=True)
    if isinstance(event, Tracked):
        # The probe starts to follow the volume: its counters begin anew, as in the loop.
        return replace(before, frames=on_tracked(reset_counters(before.frames), event))
    return before


def _policy_event(
    name: str, before: Replayed, after: Replayed, event: Recorded
) -> Frame | Edge | QueueSample | None:
    if isinstance(event, Edge | QueueSample):
        return event
    if isinstance(event, SysfsSnapshot):
        return build(after.frames, event.state, name, event.state.at_ns)
    # In a recording with sysfs the first snapshot comes after the first tick.
    if isinstance(event, Tick) and not before.has_sysfs and before.frames.ticks:
        return build(after.frames, _unknown(event.at_ns), name, event.at_ns)
    return None


def _unknown(at_ns: int) -> VolumeState:
    return VolumeState(at_ns, None, None, None, None, None, {})
