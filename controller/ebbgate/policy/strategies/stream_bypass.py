# SPDX-License-Identifier: GPL-2.0-only
"""Absorb a stream while there is room for it, keep it out of a filling cache otherwise. Pure.

Seeds: Jo and Won write sequential segments around a filling cache; Nishina et al. gain by absorbing
a write burst whole. Both are right at different times:

    rest     no stream: the kernel's own cutoff
    absorb   a write stream has the cache to itself and the room will do: cutoff wide open
    bypass   random writes need the room, or it runs out, or the stream only reads: cutoff low

The kernel counts run lengths under any cutoff but 0, so a lower cutoff acts on the very next
request of a stream that was being absorbed (drivers/md/bcache/request.c, check_should_bypass).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from ebbgate.model.frame import Frame
from ebbgate.model.records import Direction
from ebbgate.signals.streams import bytes_beyond, cutoff_for
from ebbgate.units import GIB, KIB, MIB, NS_PER_S, format_bytes, format_rate


class StreamMode(StrEnum):
    """What is done about streams."""

    REST = "rest"
    ABSORB = "absorb"
    BYPASS = "bypass"


@dataclass(frozen=True, slots=True)
class StreamParams:
    """What a policy may set.

    `stream_run_bytes`: a run this long is a stream; `random_run_bytes`: a shorter one is random.
    `fill_ratio_max`: from this dirty level (0..1) on none is absorbed. `stream_bytes_per_s_min`:
    slower streams are left to the kernel. `random_bytes_per_s_min`: from here on random writes
    compete for the room (10 of 4 KiB a second). `reserve_ratio`: share of the cache kept for them.
    `lookahead_s`: the room must outlast a tick and its handling. `hold_ns`: a mode against
    streams outlives its reason by this long, so that short pauses do not undo it. `reads`: can read
    streams be kept out, too? `by_size`: writes are kept out by the size of their requests
    (dm-cache), not by a cutoff. That has a price, since a block that is written in halves is
    touched twice and may be promoted for it: with more than `promotions_per_s_max` it is left off
    for `split_pause_ns`.
    """

    stream_run_bytes: int = 512 * KIB
    random_run_bytes: int = 128 * KIB
    stream_bytes_per_s_min: int = 4 * MIB
    random_bytes_per_s_min: int = 40 * KIB
    cutoff_floor_bytes: int = 256 * KIB
    cutoff_ceiling_bytes: int = 4 * MIB
    cutoff_wide_bytes: int = 2 * GIB
    reserve_ratio: float = 0.02
    fill_ratio_max: float | None = None
    lookahead_s: float = 0.35
    hold_ns: int = 3 * NS_PER_S
    reads: bool = True
    by_size: bool = False
    promotions_per_s_max: float = 32.0
    split_pause_ns: int = 60 * NS_PER_S


@dataclass(frozen=True, slots=True)
class StreamState:
    """The mode, since when and why.

    `seen_ns`: when a stream was last seen, `against_ns`: when one was last kept out (0: never).
    `promoted`: time (ns) and count of promotions when it was begun to split requests, moved on once
    a second; `no_split_until_ns`: until then none are split.
    """

    mode: StreamMode = StreamMode.REST
    since_ns: int = 0
    why: str = "no stream"
    cutoff_bytes: int | None = None
    seen_ns: int = 0
    against_ns: int = 0
    promoted: tuple[int, int] | None = None
    no_split_until_ns: int = 0


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """The recent load in the words of this strategy."""

    write_bytes_per_s: float
    read_bytes_per_s: float
    random_write_bytes_per_s: float


def load_of(frame: Frame, params: StreamParams) -> StreamLoad | None:
    """Streams and random writes over the frame's window; None where the probe says nothing."""
    if frame.foreground is None or frame.window_ns == 0:
        return None
    seconds = frame.window_ns / NS_PER_S
    streams, random_bytes = {}, 0.0
    for direction in Direction:
        runs = frame.run_delta_bytes.get(direction, ())
        streams[direction] = bytes_beyond(runs, params.stream_run_bytes) / seconds
        if direction is Direction.WRITE:
            random_bytes = (sum(runs) - bytes_beyond(runs, params.random_run_bytes)) / seconds
    # Random writes are counted by their bytes, which are the room that they take.
    read = streams[Direction.READ] if params.reads else 0.0
    return StreamLoad(streams[Direction.WRITE], read, random_bytes)


def on_frame(state: StreamState, frame: Frame, params: StreamParams) -> StreamState:
    """The mode at this tick."""
    load = load_of(frame, params)
    if load is None or frame.dirty_room_bytes is None or not frame.cache_bytes:
        return _take(state, StreamMode.REST, frame, "the load or the room is unknown", None)
    stream = max(load.write_bytes_per_s, load.read_bytes_per_s)
    if stream < params.stream_bytes_per_s_min:
        if state.mode is StreamMode.REST or frame.at_ns - state.seen_ns >= params.hold_ns:
            return _take(state, StreamMode.REST, frame, "no stream", None)
        return state
    state = replace(state, seen_ns=frame.at_ns)
    against = _reason_against(state, frame, load, params)
    if against:
        state = replace(state, against_ns=frame.at_ns)
    elif state.mode is StreamMode.BYPASS and frame.at_ns - state.against_ns < params.hold_ns:
        return state
    if not against:
        why = (
            f"a write stream of {format_rate(load.write_bytes_per_s)} has no rivals,"
            f" {format_bytes(frame.dirty_room_bytes)} of room"
        )
        return _take(state, StreamMode.ABSORB, frame, why, params.cutoff_wide_bytes)
    if params.by_size:
        return _by_size(state, frame, against, params)
    if state.mode is StreamMode.BYPASS:
        return replace(state, why=against)
    return _take(state, StreamMode.BYPASS, frame, against, _tight(frame, params))


def _by_size(state: StreamState, frame: Frame, against: str, params: StreamParams) -> StreamState:
    """Keep the stream out by splitting requests, as long as that costs less than it saves."""
    if frame.at_ns < state.no_split_until_ns:
        return _take(state, StreamMode.REST, frame, state.why, None)
    promoted = None if frame.promotions is None else (frame.at_ns, frame.promotions)
    if state.mode is not StreamMode.BYPASS:
        state = replace(state, promoted=promoted)
        return _take(state, StreamMode.BYPASS, frame, against, None)
    if promoted is None or state.promoted is None:
        return replace(state, why=against, promoted=promoted)
    seconds = (promoted[0] - state.promoted[0]) / NS_PER_S
    if seconds < 1.0:
        return replace(state, why=against)
    per_s = (promoted[1] - state.promoted[1]) / seconds
    if per_s <= params.promotions_per_s_max:
        return replace(state, why=against, promoted=promoted)
    why = f"split writes caused {per_s:.0f} promotions per second; not split any more"
    state = replace(state, no_split_until_ns=frame.at_ns + params.split_pause_ns)
    return _take(state, StreamMode.REST, frame, why, None)


def _reason_against(
    state: StreamState, frame: Frame, load: StreamLoad, params: StreamParams
) -> str:
    """Why the stream should not be absorbed; empty when it may be."""
    room, cache = frame.dirty_room_bytes or 0, frame.cache_bytes or 1
    if load.read_bytes_per_s > load.write_bytes_per_s:
        return f"a read stream of {format_rate(load.read_bytes_per_s)} would evict hot data"
    if load.random_write_bytes_per_s >= params.random_bytes_per_s_min:
        rate = format_rate(load.random_write_bytes_per_s)
        return f"random writes of {rate} need the room"
    dirty, most = frame.dirty_ratio, params.fill_ratio_max
    # The level falls as soon as the stream is kept out: in again only well below.
    ease = 0.9 if state.mode is StreamMode.BYPASS else 1.0
    if most is not None and dirty is not None and dirty >= most * ease:
        return f"{dirty:.0%} of the cache is dirty, streams may fill {most:.0%}"
    filling = (frame.dirty_in_bytes_per_s or 0.0) * params.lookahead_s
    need = params.reserve_ratio * cache + filling
    # Once it bypasses, a stream is not let in again before there is room for a good part of one.
    if state.mode is StreamMode.BYPASS:
        need = max(need, 0.25 * cache)
    if room < need:
        return f"only {format_bytes(room)} of room, {format_bytes(need)} is reserved"
    return ""


def _tight(frame: Frame, params: StreamParams) -> int:
    """A cutoff that catches the streams that run now and spares what is shorter."""
    runs = [0.0] * 33
    for measured in frame.run_delta_bytes.values():
        for bucket, count in enumerate(measured):
            runs[bucket] += count
    return cutoff_for(runs, params.cutoff_floor_bytes, params.cutoff_ceiling_bytes)


def _take(
    state: StreamState, mode: StreamMode, frame: Frame, why: str, cutoff: int | None
) -> StreamState:
    if mode is state.mode:
        return replace(state, why=why)
    return replace(state, mode=mode, since_ns=frame.at_ns, why=why, cutoff_bytes=cutoff)
