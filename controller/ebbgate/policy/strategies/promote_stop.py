# SPDX-License-Identifier: GPL-2.0-only
"""Why nothing may be moved into the cache now, whatever it would bring. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ebbgate.knobs.catalog import CUTOFF
from ebbgate.model.frame import Frame
from ebbgate.model.records import Direction
from ebbgate.model.volume import UNWRITABLE
from ebbgate.units import DAY_NS, KIB, format_bytes, format_ns, format_ratio, parse_hprint

IN_USE_MAX: Final = 0.9
DIRTY_MAX: Final = 0.9
CUTOFF_MIN_BYTES: Final = 80 * KIB
"""Under a lower cutoff no sequence of reads is cached that is worth its seek."""
MOVER_CUTOFF_BYTES: Final = 1280 * KIB
"""Under this cutoff a whole chunk can be read at a time."""
_NOTHING_CACHED: Final = ("none", "passthrough")


@dataclass(frozen=True, slots=True)
class PromoteParams:
    """What a policy may set.

    - `files`: globs of the files whose layout gives groups.
    - `time_share_max`: the largest share of time in which the mover reads.
    - `cache_ratio_max`: the largest share of the cache that one period may fill.
    - `period_ns`: the time between two judgements of what moves bring.
    - `read_p99_max_ns`, `write_p99_max_ns`: the objectives.
    - `writes_per_day`: how often a day the cache may be written in full; None: any.
    - `by_cutoff`: the kernel does not cache sequences beyond a cutoff, and bypasses a slow cache
      device (bcache).
    """

    files: tuple[str, ...] = ()
    time_share_max: float = 0.8
    cache_ratio_max: float = 1 / 8
    period_ns: int = 30 * 1_000_000_000
    read_p99_max_ns: int | None = None
    write_p99_max_ns: int | None = None
    writes_per_day: float | None = None
    by_cutoff: bool = True


@dataclass(frozen=True, slots=True)
class WriteBudget:
    """What may still be written to the cache today.

    `left_bytes`: None if it is not limited or not known. `written_bytes`: at `at_ns`, when
    `kept_bytes` were left.
    """

    left_bytes: float | None = None
    kept_bytes: float | None = None
    written_bytes: int = 0
    at_ns: int = 0


def charge(budget: WriteBudget, frame: Frame, params: PromoteParams) -> WriteBudget:
    """Return the budget after what was written since; it fills up over a day.

    It begins with what is left of the time since boot, of which the first day counts in full. What
    is written while the counts are not known is charged once they are.
    """
    if params.writes_per_day is None:
        return WriteBudget()
    written, day_bytes = frame.cache_written_bytes, bytes_per_day(frame, params)
    if written is None or day_bytes is None:
        return replace(budget, left_bytes=None)
    if budget.kept_bytes is None:
        left = day_bytes * max(1.0, frame.at_ns / DAY_NS) - written
    else:
        filled = day_bytes * (frame.at_ns - budget.at_ns) / DAY_NS
        left = budget.kept_bytes + filled - max(0, written - budget.written_bytes)
    left = min(max(left, -day_bytes), day_bytes)
    return WriteBudget(left, left, written, frame.at_ns)


def bytes_per_day(frame: Frame, params: PromoteParams) -> float | None:
    """Return how much may be written to the cache in a day; None: any, or unknown."""
    if params.writes_per_day is None or not frame.cache_bytes:
        return None
    return params.writes_per_day * frame.cache_bytes


def unsupported(frame: Frame) -> str:
    """Return why nothing can be promoted on this volume now; empty if it can."""
    if why_not := UNWRITABLE.get(frame.state or ""):
        return why_not
    if frame.cache_mode in _NOTHING_CACHED:
        return f"the cache mode is {frame.cache_mode}: the kernel caches no reads"
    return ""


def full_or_spent(frame: Frame, params: PromoteParams, budget: WriteBudget) -> str:
    """Return why the cache takes nothing now; empty if it does."""
    return (
        _full(frame, params)
        or _spent(frame, params, budget)
        or (_low_cutoff(frame) if params.by_cutoff else "")
    )


def slow_users(frame: Frame, params: PromoteParams) -> str:
    """Return which objective is exceeded; empty if none is."""
    for direction, most_ns in (
        (Direction.READ, params.read_p99_max_ns),
        (Direction.WRITE, params.write_p99_max_ns),
    ):
        p99_ns = frame.worst_p99_ns(direction)
        if most_ns is not None and p99_ns is not None and p99_ns > most_ns:
            most = format_ns(most_ns)
            return f"the p99 of {direction}s is {format_ns(p99_ns)}, above its objective of {most}"
    return ""


def _full(frame: Frame, params: PromoteParams) -> str:
    # dm-cache counts clean blocks as used, though it may replace them at any time.
    if params.by_cutoff and frame.in_use_ratio is not None and frame.in_use_ratio > IN_USE_MAX:
        used = format_ratio(frame.in_use_ratio)
        return f"{used} of the cache is in use, more than {format_ratio(IN_USE_MAX)}"
    if frame.dirty_ratio is not None and frame.dirty_ratio > DIRTY_MAX:
        dirty = format_ratio(frame.dirty_ratio)
        return f"{dirty} of the cache is dirty, more than {format_ratio(DIRTY_MAX)}"
    return ""


def _spent(frame: Frame, params: PromoteParams, budget: WriteBudget) -> str:
    if params.writes_per_day is None:
        return ""
    day_bytes = bytes_per_day(frame, params)
    if day_bytes is None or budget.left_bytes is None:
        return "ssd_writes is limited, but how much was written to the cache is unknown"
    if budget.left_bytes > 0:
        return ""
    spent = format_bytes(day_bytes - budget.left_bytes)
    return f"{spent} of {format_bytes(day_bytes)} a day (ssd_writes) is written to the cache"


def _low_cutoff(frame: Frame) -> str:
    try:
        cutoff = parse_hprint(frame.knobs[CUTOFF])
    except (KeyError, ValueError):
        return ""
    if cutoff == 0 or cutoff >= CUTOFF_MIN_BYTES:
        return ""
    least = format_bytes(CUTOFF_MIN_BYTES)
    return f"the sequential cutoff of {format_bytes(cutoff)} is below {least}: no read is cached"
