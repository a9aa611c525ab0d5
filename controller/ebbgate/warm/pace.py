# SPDX-License-Identifier: GPL-2.0-only
"""Whether a volume can be warmed, and when its warm-up stands back for users. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ebbgate.knobs.catalog import CUTOFF
from ebbgate.model.frame import Frame
from ebbgate.model.volume import UNWRITABLE, Kind
from ebbgate.units import KIB, NS_PER_S, format_bytes, format_ratio, parse_hprint
from ebbgate.warm.plan import RUN_BYTES_MAX, blocks_text, run_bytes_max

CACHES_NO_READS: Final = "dm-writecache caches no reads"
SHARE_MAX: Final = 0.9
"""More than this share of the cache would push itself out again."""
_DIRTY_MAX: Final = 0.9
_IN_USE_MAX: Final = 0.95
"""Above this share of buckets in use bcache caches nothing (drivers/md/bcache/bcache.h,
CUTOFF_CACHE_ADD).
"""
_TOUCHES_DISK: Final = frozenset({"miss", "bypass", "writethrough"})
"""Paths of users' requests that need the backing device."""
STEP_BYTES: Final = 64 * KIB
"""A read beside users: of 1 MiB it takes the disk twice as long."""
STEP_REQUESTS: Final = 400
"""Users' requests for the disk between two such reads, each of which delays one or two of them.
Where users pause, the pauses are enough, and none is sent.
"""
_STEP_NS_MIN, _STEP_NS_MAX = NS_PER_S // 4, 10 * NS_PER_S
BURST_SHARE: Final = 1 / 18
"""bcache collects garbage after a sixteenth of the cache was inserted (drivers/md/bcache/btree.h,
set_gc_sectors); meanwhile no bucket can be freed (in v6.1), and what is read is not cached. So a
little less is read, and then the collection is begun while nothing is read.
"""
_COLLECTION_REST_S: Final = 2.0
"""Where it is not known how long a collection takes: none was yet."""
_COLLECTION_REST_S_MIN, _COLLECTION_REST_S_MAX = 0.25, 20.0
_COLLECTIONS_A_REST: Final = 4
"""It takes longer the more is in the cache, and while requests are under way."""


class Speed(StrEnum):
    """`go`: one read after the other; `step`: a single one; `hold`: none."""

    GO = "go"
    STEP = "step"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Pace:
    """How a warm-up may go on; `why`: why not at full speed. `run_bytes`: see `plan`.

    `every_ns`: of `step`, since the last read of any speed.
    """

    speed: Speed
    why: str = ""
    run_bytes: int = RUN_BYTES_MAX
    every_ns: int = 0


def obstacle(
    kind: Kind, frame: Frame, cache_bytes: int, before_bytes: int = 0, data_bytes: int | None = None
) -> str:
    """Return why the volume cannot be warmed with this much; empty if it can.

    `cache_bytes`: of the cache; `before_bytes`: of warm-ups that come before and are not done yet.
    `data_bytes`: of what is warmed, where that is less, since dm-cache caches whole blocks.
    """
    if kind is Kind.DM_WRITECACHE:
        return CACHES_NO_READS
    if frame.state is not None and frame.state in UNWRITABLE:
        return UNWRITABLE[frame.state]
    if frame.cache_mode in ("none", "passthrough"):
        return f"its cache mode is {frame.cache_mode}, in which reads are not cached"
    if frame.dirty_ratio is not None and frame.dirty_ratio >= _DIRTY_MAX:
        return (
            f"{format_ratio(frame.dirty_ratio)} of the cache is dirty, which leaves no room: it has"
            " to be written back first"
        )
    data_bytes = cache_bytes if data_bytes is None else data_bytes
    text = _room_obstacle(frame, cache_bytes, before_bytes, data_bytes)
    return text or _cutoff_obstacle(frame)


def _room_obstacle(frame: Frame, cache_bytes: int, before_bytes: int, data_bytes: int) -> str:
    room, dirty = room_bytes(frame), frame.dirty_bytes or 0
    whole = cache_bytes + before_bytes
    if frame.cache_bytes is None or room is None or whole <= room:
        return ""
    before = ""
    if before_bytes:
        before = f", {format_bytes(before_bytes)} of which are of jobs that are not done yet"
    return (
        f"{blocks_text(whole, data_bytes + before_bytes)} do not fit{before}: the cache has"
        f" {format_bytes(frame.cache_bytes)}, of which {SHARE_MAX:.0%} may be warmed at once"
        + (f", less {format_bytes(dirty)} of dirty data" if dirty else "")
    )


def room_bytes(frame: Frame) -> int | None:
    """Return how much may be warmed at once; None if it is unknown.

    What is dirty stays until it is written back, so that more would push itself out again.
    """
    if frame.cache_bytes is None:
        return None
    return max(0, int(SHARE_MAX * frame.cache_bytes) - (frame.dirty_bytes or 0))


def pace(
    kind: Kind, frame: Frame, *, destages: bool, ticks_without_disk: int, return_is_near: bool
) -> Pace:
    """Return how to go on after a tick.

    `destages`: the gate is open in a gap. `ticks_without_disk`: for how many ticks no request of
    users has needed the backing device. `return_is_near`: users are away, but likely not for long.
    """
    if why := stands_back(kind, frame, destages=destages):
        return Pace(Speed.HOLD, why)
    run = run_bytes(frame)
    if return_is_near:
        return Pace(Speed.HOLD, "users are likely to be back soon", run)
    if frame.idle or ticks_without_disk > 1:
        return Pace(Speed.GO, run_bytes=run)
    why = f"users need the disk: one read for {STEP_REQUESTS} of theirs, or every 10 s"
    return Pace(Speed.STEP, why, min(run, STEP_BYTES), _step_ns(frame))


def stands_back(kind: Kind, frame: Frame, *, destages: bool) -> str:
    """Return why nothing may be read now, whatever users do; empty if it may."""
    if low := _cutoff_obstacle(frame):
        return low
    full = frame.in_use_ratio is not None and frame.in_use_ratio > _IN_USE_MAX
    if kind is Kind.BCACHE and full:
        return "over 95% of the cache is in use, and bcache caches nothing"
    if frame.idle is None or frame.foreground is None:
        return "the load of users is unknown"
    return "dirty data is written back first" if destages else ""


def collection_rest_s(longest_ms: int | None) -> float:
    """Return for how many seconds nothing should be read, so that bcache collects its garbage.

    `longest_ms`: its longest collection so far; None or 0 if that is unknown.
    """
    if not longest_ms or longest_ms < 0:
        return _COLLECTION_REST_S
    rest_s = _COLLECTIONS_A_REST * longest_ms / 1000
    return min(max(rest_s, _COLLECTION_REST_S_MIN), _COLLECTION_REST_S_MAX)


def disk_requests(frame: Frame) -> int:
    """Return how many requests of users reached the backing device in the frame's window."""
    return sum(each.ios for (_, path), each in frame.paths.items() if path in _TOUCHES_DISK)


def _step_ns(frame: Frame) -> int:
    expected_ns = STEP_REQUESTS * frame.window_ns // max(1, disk_requests(frame))
    return min(max(expected_ns, _STEP_NS_MIN), _STEP_NS_MAX)


def run_bytes(frame: Frame) -> int:
    """Return how long a sequence of reads may be; 0 if none of a sensible length is safe."""
    text = frame.knobs.get(CUTOFF)
    return RUN_BYTES_MAX if text is None else run_bytes_max(parse_hprint(text))


def _cutoff_obstacle(frame: Frame) -> str:
    if run_bytes(frame):
        return ""
    return (
        f"{CUTOFF} is {format_bytes(parse_hprint(frame.knobs[CUTOFF]))}: reads that pass it are too"
        " short to be useful"
    )
