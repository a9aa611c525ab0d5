# SPDX-License-Identifier: GPL-2.0-only
"""The conditions of the strategies, for people: measured values and thresholds. Pure."""

from __future__ import annotations

from ebbgate.model.decision import Condition
from ebbgate.model.frame import Frame
from ebbgate.policy.strategies import idle_destage, stream_bypass
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState
from ebbgate.policy.strategies.stream_bypass import StreamParams
from ebbgate.units import format_bytes, format_ns, format_rate, format_ratio


def of_destage(state: DestageState, frame: Frame, params: DestageParams) -> tuple[Condition, ...]:
    """Return the conditions of idle_destage."""
    floor = idle_destage.start_bytes(frame, params)
    dirty, idle_ns, full = frame.dirty_bytes, frame.idle_ns, frame.time_to_full_s
    room, cache = frame.dirty_room_bytes, frame.cache_bytes
    wait_ns = state.wait.wait_ns
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
            "idle for",
            None if idle_ns is None else format_ns(idle_ns),
            ">=",
            f"{format_ns(wait_ns)} ({'learned' if state.wait.learned else 'not learned yet'})",
            idle_ns is not None and idle_ns >= wait_ns,
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


def of_streams(frame: Frame, params: StreamParams) -> tuple[Condition, ...]:
    """Return the conditions of stream_bypass."""
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
