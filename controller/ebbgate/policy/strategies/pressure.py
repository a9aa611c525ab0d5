# SPDX-License-Identifier: GPL-2.0-only
"""Why dirty data must go out under load, where no gap comes. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from ebbgate.model.frame import Frame
from ebbgate.model.records import Direction
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.signals import forecast
from ebbgate.units import NS_PER_S

_EASE: Final = 2.0
"""Hysteresis: the level itself moves as soon as the gate opens."""
_ROOM_EASE_MAX: Final = 0.05
"""Twice a large `free_floor` is all the room there is: bcache takes dirty data up to 40 %."""


class Bounds(NamedTuple):
    """Dirty data goes out under load while one of these is undercut."""

    full_s: float
    room_ratio: float
    light_ratio: float


def bounds(params: DestageParams, *, pressed: bool) -> Bounds:
    """Return the bounds; once `pressed`, those that must be reached again."""
    full_s, room, light = params.full_soon_s, params.room_ratio_min, params.light_ratio
    if not pressed:
        return Bounds(full_s, room, light)
    # No device is more than always busy.
    eased_light = min(light * _EASE, (1 + light) / 2)
    return Bounds(full_s * _EASE, min(room * _EASE, room + _ROOM_EASE_MAX), eased_light)


def reason(state: DestageState, frame: Frame, params: DestageParams) -> str:
    """Return why dirty data must go out under load; empty if it need not."""
    pressed = state.phase is Phase.PRESSURE
    below = bounds(params, pressed=pressed)
    # Dirty data below the start level goes on waiting in gaps.
    waited_ns = frame.at_ns - max(state.waiting_since_ns, state.gap_end_ns)
    full_s = unaided_full_s(frame) if pressed else mean_full_s(frame)
    # A short burst is absorbed, however fast it fills the cache.
    lasting = waited_ns >= params.burst_ns
    room = frame.dirty_room_bytes
    # A cache without room is full also while nobody writes; the next condition asks for writes.
    if lasting and full_s is not None and full_s < below.full_s and room != 0:
        if pressed:
            return f"without write-back the cache would be full in {full_s:.0f} s"
        return f"the cache is full in {full_s:.0f} s"
    if filling(frame) and little_room(frame, below.room_ratio):
        return "the kernel has little room left for dirty data"
    aged_ns = min(waited_ns, frame.at_ns - state.sweep.done_ns)
    if aged_ns >= params.age_max_ns:
        return f"dirty data has waited for an idle gap for {aged_ns // NS_PER_S} s"
    busy = frame.backing_busy_foreground_ratio
    light = busy is not None and busy < below.light_ratio
    lasting = _calm_ns(state, frame, waited_ns) >= params.light_after_ns
    # It begins where users wait half as long as they may.
    if light and lasting and not _slow(frame, params, 1.0 if pressed else 0.5):
        return f"no idle gap, but users keep the backing device only {busy:.0%} busy"
    return ""


def little_room(frame: Frame, least_ratio: float) -> bool:
    """Return whether the room for dirty data is below this share of the cache, or there is none."""
    room, cache = frame.dirty_room_bytes, frame.cache_bytes
    if room is None or not cache:
        return False
    return room == 0 or room < least_ratio * cache


def filling(frame: Frame) -> bool:
    """Return whether users write what is cached as dirty data, or would be if there were room.

    A full bcache writes through, so that no dirty data arrives, and its room would never come back.
    """
    if frame.flows is not None:
        return frame.flows.dirty_in_bytes_per_s > 0 or frame.flows.through_bytes_per_s > 0
    through = frame.paths.get((Direction.WRITE, "writethrough"))
    return bool(frame.dirty_in_bytes_per_s) or (through is not None and through.bytes > 0)


def _calm_ns(state: DestageState, frame: Frame, waited_ns: int) -> int:
    """Return for how long a light load has lasted.

    The time counts again after a pressure that was too much for users; otherwise it would be back
    within a second.
    """
    if state.phase is Phase.WAIT:
        return min(waited_ns, frame.at_ns - state.since_ns)
    return waited_ns


def must_destage(frame: Frame | None, params: DestageParams) -> bool:
    """Return whether dirty data must go, however long users wait; also if the room is unknown."""
    if frame is None or frame.dirty_room_bytes is None or not frame.cache_bytes:
        return True
    full_s, below = unaided_full_s(frame), bounds(params, pressed=True)
    if full_s is not None and full_s < below.full_s:
        return True
    return little_room(frame, below.room_ratio)


def mean_full_s(frame: Frame) -> float | None:
    """Return in how many seconds the cache is full at the mean rates of some seconds.

    In the one second that `time_to_full_s` looks at, the page cache may flush, or not.
    """
    room, flows = frame.dirty_room_bytes, frame.flows
    if room is None or flows is None:
        return frame.time_to_full_s
    return forecast.time_to_full_s(room, flows.dirty_in_bytes_per_s, flows.destage_bytes_per_s)


def unaided_full_s(frame: Frame) -> float | None:
    """Return in how many seconds the cache would be full if nothing was written back.

    Write-back under load would otherwise end its own reason within seconds, and each end of it
    would be the next reason. Where what arrives is unknown, the forecast counts as it is.
    """
    room, arriving = frame.dirty_room_bytes, frame.dirty_in_bytes_per_s
    if frame.flows is not None:
        arriving = frame.flows.dirty_in_bytes_per_s
    if room is None or not arriving:
        return frame.time_to_full_s
    return forecast.time_to_full_s(room, arriving, 0.0)


def _slow(frame: Frame, params: DestageParams, share: float) -> bool:
    """Return whether users wait longer than this share of what the policy allows."""
    for direction, most_ns in (
        (Direction.READ, params.read_p99_max_ns),
        (Direction.WRITE, params.write_p99_max_ns),
    ):
        p99_ns = frame.worst_p99_ns(direction)
        if most_ns is not None and p99_ns is not None and p99_ns > share * most_ns:
            return True
    return False
