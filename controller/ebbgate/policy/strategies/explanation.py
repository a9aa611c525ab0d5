# SPDX-License-Identifier: GPL-2.0-only
"""The conditions of the strategies, for people: measured values and thresholds. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import ge, le, lt
from typing import Final

from ebbgate.model.decision import DISK_QUEUE, Condition
from ebbgate.model.frame import Frame
from ebbgate.policy.strategies import (
    calm_time,
    disk_queue,
    gap_use,
    idle_destage,
    pressure,
    stream_bypass,
)
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.gap_use import Rest
from ebbgate.policy.strategies.stream_bypass import StreamParams
from ebbgate.units import NS_PER_MS, format_bytes, format_ns, format_rate, format_ratio

_TOLD_NS_MIN: Final = 10 * NS_PER_MS
"""A shorter part of a rest is not worth a word."""
_TOLD_RARER_MIN: Final = 1.05
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {">=": ge, "<": lt, "<=": le}


def of_destage(state: DestageState, frame: Frame, params: DestageParams) -> tuple[Condition, ...]:
    """Return the conditions of idle_destage."""
    floor = idle_destage.start_bytes(frame, params)
    idle = _condition("idle for", frame.idle_ns, ">=", state.wait.wait_ns, format_ns)
    origin = "learned" if state.wait.learned else "not learned yet"
    if params.wait_ns is not None:
        origin = "set by the policy"
    return (
        *_of_queue(state, frame, params),
        *_of_cap(state, frame, params),
        *_of_calm(state, frame),
        _condition("dirty data", frame.dirty_bytes, ">=", floor, format_bytes),
        replace(idle, threshold=f"{idle.threshold} ({origin})"),
        *_of_end(state, frame, params),
        *_of_fill(state, frame),
        *_of_pressure(state, frame, params),
    )


def _of_pressure(state: DestageState, frame: Frame, params: DestageParams) -> tuple[Condition, ...]:
    """Return the conditions of write-back under load: of its begin, or of what keeps it up."""
    pressed = state.phase is Phase.PRESSURE
    below = pressure.bounds(params, pressed=pressed)
    full_s = pressure.unaided_full_s(frame) if pressed else pressure.mean_full_s(frame)
    if full_s is None and frame.flows_known and frame.dirty_room_bytes is not None:
        full_s = math.inf
    full = _condition("time to full", full_s, "<", below.full_s, _seconds)
    threshold = f"{full.threshold} (without write-back)" if pressed else full.threshold
    # A cache without any room presses, whatever the policy asks for.
    room_min = max(1.0, below.room_ratio * (frame.cache_bytes or 0))
    room = _condition("room for dirty data", frame.dirty_room_bytes, "<", room_min, format_bytes)
    if room.holds and not pressure.filling(frame):
        room = replace(room, threshold=f"{room.threshold} while users write", holds=False)
    busy = frame.backing_busy_foreground_ratio
    return (
        # A full cache has no time left; what starts write-back then is that it has no room.
        *(() if frame.dirty_room_bytes == 0 else (replace(full, threshold=threshold),)),
        room,
        _condition("backing device busy for users", busy, "<", below.light_ratio, format_ratio),
    )


def _of_queue(state: DestageState, frame: Frame, params: DestageParams) -> tuple[Condition, ...]:
    """Return why the disks' queues are shallow in a gap or not; nothing where none is known.

    Only bfq gains by it: under other schedulers the disks keep their own depth.
    """
    now = disk_queue.described(frame)
    if not now or not params.queue_depth:
        return ()
    needed = f"{disk_queue.HOLDS_BACK}, a depth to set to {params.queue_depth}"
    if frame.disk_users.volumes:
        needed += ", no other volume"
    return (Condition(DISK_QUEUE, now, "=", needed, state.shallow),)


def _of_cap(state: DestageState, frame: Frame, params: DestageParams) -> tuple[Condition, ...]:
    """Return what users felt of the last gap, and the cap on the next; nothing where unknown."""
    felt_ns, target_ns = frame.disturbance_ns, params.disturbance_ns
    cap = state.cap.bytes_per_s
    if target_ns is None or (felt_ns is None and cap is None):
        return ()
    found = _condition("wait after write-back", felt_ns, "<=", target_ns, format_ns)
    text = "no limit in gaps" if cap is None else f"in gaps at most {format_rate(cap)}"
    if cap is not None and state.gap.foreseeing and not state.gap.short:
        text = "no limit before a likely return"
    elif cap is not None:
        text += _of_raised_cap(state, cap, frame.at_ns, params)
        text += "; the gate rests now" if state.gap.rest is Rest.RATE and state.resting else ""
    return (replace(found, threshold=f"{found.threshold} longer ({text})"),)


def _of_raised_cap(state: DestageState, cap: float, now_ns: int, params: DestageParams) -> str:
    """Return what has become of the cap in a gap that outlives the recent ones."""
    rarer = gap_use.rarer(state.gap, now_ns - state.idle_since_ns)
    if state.phase is not Phase.DESTAGE or rarer <= _TOLD_RARER_MIN:
        return ""
    if rarer * cap >= params.pace.rate_max_bytes_per_s:
        return "; none any more in this gap, which outlives the others"
    return f"; {format_rate(rarer * cap)} in this one, which outlives the others"


def _of_calm(state: DestageState, frame: Frame) -> tuple[Condition, ...]:
    """Return for how long gaps have been left alone, while they are."""
    since_ns = frame.at_ns - state.calm.since_ns
    if not calm_time.lasts(state.calm, frame.at_ns):
        return ()
    found = _condition("gaps left alone for", since_ns, ">=", calm_time.CALM_NS, format_ns)
    return (replace(found, threshold=f"{found.threshold} (no like requests to compare with)"),)


def _of_end(state: DestageState, frame: Frame, params: DestageParams) -> tuple[Condition, ...]:
    """Return when the gate rests because a request is likely; nothing where no time is."""
    gap, in_gap = state.gap, state.phase is Phase.DESTAGE
    cost_ns = params.wait.disturbance_cost_ns
    window = gap.window if in_gap else gap_use.likely_end(gap, state.wait.wait_ns, cost_ns)
    if window is None:
        return ()
    likely_ns = window.first_ns if window.first_ns > window.from_ns else window.until_ns
    before_ns = min(gap.run_off_ns, likely_ns - window.from_ns)
    rests = "rests now," if state.resting and gap.rest is Rest.END else "rests"
    found = _condition("likely return", frame.idle_ns, ">=", window.from_ns, format_ns)
    text = f"after {format_ns(window.from_ns + before_ns)} of idle time; the gate {rests}"
    text += f" {format_ns(before_ns)} before"
    hidden_ns = min(gap.hidden_ns, before_ns)
    if hidden_ns >= _TOLD_NS_MIN:
        text += f", {format_ns(hidden_ns)} of it for the disk's own write cache"
    if params.head_return:
        text += "; then one read brings a hard disk's heads back"
    return (replace(found, threshold=f"{found.threshold} ({text})"),)


def _of_fill(state: DestageState, frame: Frame) -> tuple[Condition, ...]:
    """Return how long the disk goes on with what it holds, in a gap where that is followed."""
    gap = state.gap
    if gap.fill is None or state.phase is not Phase.DESTAGE:
        return ()
    rarer = gap_use.rarer(gap, frame.idle_ns or 0)
    most_ns, text = gap.fill.most_ns * rarer, "users may return at any time"
    if gap.foreseeing:
        most_ns, text = max(0, state.pace.likely_until_ns - frame.at_ns), "until users return"
    found = _condition("disk's own write cache", gap.fill.held_ns, "<=", most_ns, format_ns)
    return (replace(found, threshold=f"{found.threshold} ({text})"),)


def of_streams(frame: Frame, params: StreamParams) -> tuple[Condition, ...]:
    """Return the conditions of stream_bypass."""
    load = stream_bypass.load_of(frame, params)
    write = None if load is None else load.write_bytes_per_s
    read = None if load is None else load.read_bytes_per_s
    random = None if load is None else load.random_write_bytes_per_s
    rate_min, random_min = params.stream_bytes_per_s_min, params.random_bytes_per_s_min
    return (
        _condition("write stream", write, ">=", rate_min, format_rate),
        _condition("read stream", read, ">=", rate_min, format_rate),
        _condition("random writes", random, ">=", random_min, format_rate),
    )


def _seconds(seconds: float) -> str:
    return "never" if math.isinf(seconds) else f"{seconds:.0f} s"


def _condition(
    signal: str, value: float | None, comparison: str, bound: float, text: Callable[[float], str]
) -> Condition:
    """Return the condition; one on an unknown value does not hold."""
    if value is None:
        return Condition(signal, None, comparison, text(bound), holds=False)
    holds = _COMPARE[comparison](value, bound)
    return Condition(signal, text(value), comparison, text(bound), holds)
