# SPDX-License-Identifier: GPL-2.0-only
"""Absorbs a stream while there is room for it, else keeps it out of the cache. Pure.

Based on Jo and Won, who write sequential segments around a filling cache, and on Nishina et al.,
who absorb whole write bursts. Each is right at times:

    rest     no stream: the kernel's own cutoff
    absorb   only a write stream, and enough room: high cutoff
    bypass   random writes need the room, it runs out, or the stream only reads: low cutoff

The kernel counts run lengths under any cutoff but 0, so a lower cutoff acts on the very next
request of a stream that was being absorbed (drivers/md/bcache/request.c, check_should_bypass).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from ebbgate.model.frame import Frame
from ebbgate.model.records import Direction
from ebbgate.signals.histogram import bytes_beyond, cutoff_for
from ebbgate.units import GIB, KIB, MIB, MINUTE_NS, NS_PER_S, format_bytes, format_ns, format_rate


class StreamMode(StrEnum):
    """What happens to streams."""

    REST = "rest"
    ABSORB = "absorb"
    BYPASS = "bypass"


@dataclass(frozen=True, slots=True)
class StreamParams:
    """What a policy may set.

    - `stream_run_bytes`: a run this long is a stream; `random_run_bytes`: a shorter one is random.
    - `stream_bytes_per_s_min`: slower streams are left to the kernel.
    - `random_bytes_per_s_min`: from this rate random writes compete for the room (10 of 4 KiB/s).
    - `reserve_ratio`: share of the cache that streams leave free.
    - `fill_ratio_max`: no stream is absorbed from this dirty level (0..1) on.
    - `lookahead_s`: the room must last for this long: a tick and its handling.
    - `hold_ns`: a mode outlives its reason by this long, so that short pauses do not end it.
    - `reads`: whether read streams can be kept out, too.
    - `by_size`: writes are kept out by the size of their requests (dm-cache), not by a cutoff. A
      block that is written in halves is touched twice and may be promoted for it, so with more than
      `promotions_per_s_max` this stops for `split_pause_ns`.
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
    split_pause_ns: int = MINUTE_NS


@dataclass(frozen=True, slots=True)
class StreamState:
    """The mode and why. Times are 0 until the event has happened.

    - `seen_ns`: when a stream was last seen.
    - `against_ns`: when there was last a reason to keep a stream out.
    - `promoted`: time (ns) and count of promotions a second ago, or when splitting began.
    - `no_split_until_ns`: no requests are split before this time.
    """

    mode: StreamMode = StreamMode.REST
    why: str = "no stream"
    cutoff_bytes: int | None = None
    seen_ns: int = 0
    against_ns: int = 0
    promoted: tuple[int, int] | None = None
    no_split_until_ns: int = 0


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """Streams and random writes over the frame's window."""

    write_bytes_per_s: float
    read_bytes_per_s: float
    random_write_bytes_per_s: float


def load_of(frame: Frame, params: StreamParams) -> StreamLoad | None:
    """Return the load over the frame's window; None if the probe reported nothing."""
    if frame.foreground is None or frame.window_ns == 0:
        return None
    seconds = frame.window_ns / NS_PER_S
    streams, random_bytes = {}, 0.0
    for direction in Direction:
        runs = frame.run_delta_bytes.get(direction, ())
        streams[direction] = bytes_beyond(runs, params.stream_run_bytes) / seconds
        if direction is Direction.WRITE:
            random_bytes = (sum(runs) - bytes_beyond(runs, params.random_run_bytes)) / seconds
    # Random writes count by bytes, which is the room that they take.
    read = streams[Direction.READ] if params.reads else 0.0
    return StreamLoad(streams[Direction.WRITE], read, random_bytes)


def on_frame(state: StreamState, frame: Frame, params: StreamParams) -> StreamState:
    """Handle a tick."""
    state = _allowed(state, params)
    load = load_of(frame, params)
    if load is None or frame.dirty_room_bytes is None or not frame.cache_bytes:
        return _take(state, StreamMode.REST, "the load or the room is unknown", None)
    stream = max(load.write_bytes_per_s, load.read_bytes_per_s)
    if stream < params.stream_bytes_per_s_min:
        if state.mode is StreamMode.REST or frame.at_ns - state.seen_ns >= params.hold_ns:
            return _take(state, StreamMode.REST, "no stream", None)
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
        return _take(state, StreamMode.ABSORB, why, params.cutoff_wide_bytes)
    if params.by_size:
        return _by_size(state, frame, against, params)
    if state.mode is StreamMode.BYPASS:
        return replace(state, why=against, cutoff_bytes=_tightened(state, frame, params))
    return _take(state, StreamMode.BYPASS, against, _tight(frame, params))


def _by_size(state: StreamState, frame: Frame, against: str, params: StreamParams) -> StreamState:
    """Keep the stream out by splitting requests while that causes few promotions."""
    left_ns = state.no_split_until_ns - frame.at_ns
    if left_ns > 0:
        why = f"split writes caused too many promotions; not split for another {format_ns(left_ns)}"
        return _take(state, StreamMode.REST, why, None)
    promoted = None if frame.promotions is None else (frame.at_ns, frame.promotions)
    if state.mode is not StreamMode.BYPASS:
        state = replace(state, promoted=promoted)
        return _take(state, StreamMode.BYPASS, against, None)
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
    return _take(state, StreamMode.REST, why, None)


def _reason_against(
    state: StreamState, frame: Frame, load: StreamLoad, params: StreamParams
) -> str:
    """Return why the stream should not be absorbed; empty if it may be."""
    room, cache = frame.dirty_room_bytes or 0, frame.cache_bytes or 1
    if load.read_bytes_per_s > load.write_bytes_per_s:
        return f"a read stream of {format_rate(load.read_bytes_per_s)} would evict hot data"
    if load.random_write_bytes_per_s >= params.random_bytes_per_s_min:
        rate = format_rate(load.random_write_bytes_per_s)
        return f"random writes of {rate} need the room"
    dirty, most = frame.dirty_ratio, params.fill_ratio_max
    # Hysteresis: the level falls as soon as the stream is kept out.
    ease = 0.9 if state.mode is StreamMode.BYPASS else 1.0
    if most is not None and dirty is not None and dirty >= most * ease:
        return f"{dirty:.0%} of the cache is dirty, streams may fill {most:.0%}"
    filling = (frame.dirty_in_bytes_per_s or 0.0) * params.lookahead_s
    need = params.reserve_ratio * cache + filling
    # Hysteresis: a stream that was kept out is absorbed again only with room for much of it.
    if state.mode is StreamMode.BYPASS:
        need = max(need, 0.25 * cache)
    if room < need:
        return f"only {format_bytes(room)} of room, {format_bytes(need)} is reserved"
    return ""


def _allowed(state: StreamState, params: StreamParams) -> StreamState:
    """Return the state with a cutoff that the policy allows, which may have changed meanwhile."""
    cutoff = state.cutoff_bytes
    if cutoff is None:
        return state
    allowed = min(params.cutoff_ceiling_bytes, max(params.cutoff_floor_bytes, cutoff))
    if state.mode is StreamMode.ABSORB:
        allowed = params.cutoff_wide_bytes
    return state if allowed == cutoff else replace(state, cutoff_bytes=allowed)


def _tight(frame: Frame, params: StreamParams) -> int:
    """Return a cutoff that keeps the present streams out and spares shorter runs."""
    return cutoff_for(_runs(frame), params.cutoff_floor_bytes, params.cutoff_ceiling_bytes)


def _tightened(state: StreamState, frame: Frame, params: StreamParams) -> int | None:
    """Return the cutoff; the tight one where the present cutoff catches less than half as much.

    A backup of large files may go on with small ones, without a pause.
    """
    tight, cutoff, runs = _tight(frame, params), state.cutoff_bytes, _runs(frame)
    if cutoff is None:
        return tight
    return tight if 2 * bytes_beyond(runs, cutoff) < bytes_beyond(runs, tight) else cutoff


def _runs(frame: Frame) -> list[float]:
    """Return the bytes by length of their runs, of reads and writes together."""
    runs = [0.0] * 33
    for measured in frame.run_delta_bytes.values():
        for bucket, count in enumerate(measured):
            runs[bucket] += count
    return runs


def _take(state: StreamState, mode: StreamMode, why: str, cutoff: int | None) -> StreamState:
    if mode is state.mode:
        return replace(state, why=why)
    return replace(state, mode=mode, why=why, cutoff_bytes=cutoff)
