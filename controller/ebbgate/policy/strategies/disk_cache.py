# SPDX-License-Identifier: GPL-2.0-only
"""Measures how long a disk's own write cache takes to empty. Pure.

A disk with a write cache completes writes at once until the cache is full, and from then on as fast
as its platters take them. No sample shows what the cache holds, but the begin of a gap does: the
cache is empty then, and what it takes in comes on top of what the platters take. With C(t) pieces
completed until t after the gate has opened, and a later rate r,

    C(t) = held + r * t        so the cache is empty again held / r after the gate has closed.

A disk without a write cache has no such excess. Its rate changes a little within a gap, too, so a
begin counts only if it is clearly faster than the rest, and the median of some gaps is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median_low
from typing import Final

from ebbgate.model.records import QueueSample
from ebbgate.units import NS_PER_MS, NS_PER_S

_STEP_NS: Final = 50 * NS_PER_MS
"""Not every sample is kept: they come every 20 ms."""
SLOW_STEP_NS: Final = 4 * _STEP_NS
"""Where a cache may take seconds to fill."""
_POINTS_MAX: Final = 60
"""Three seconds: a cache of 32 MiB is full long before."""
_SPAN_NS_MIN: Final = 600 * NS_PER_MS
"""In less time the cache may still be filling."""
_FASTER_MIN: Final = 1.3
"""So many times as much as later must be completed in the first quarter."""
_RECENT: Final = 5
"""Gaps of which the median is taken."""


@dataclass(frozen=True, slots=True)
class DiskCache:
    """What was measured.

    - `points`: of the present gap, since the gate opened; the gate was open all the time.
    - `closed`: no gap has begun, or the gate was closed since, so samples say nothing.
    - `recent_ns`: how long the cache took to empty after recent gaps, the newest last.
    - `written_per_s`: pieces that the platters took in the last gap that filled the cache; 0: none.
    """

    points: tuple[QueueSample, ...] = ()
    closed: bool = True
    recent_ns: tuple[int, ...] = ()
    written_per_s: float = 0.0

    @property
    def empties_ns(self) -> int:
        """How long the disk goes on writing after the last completion; 0: unknown, or no cache."""
        return median_low(self.recent_ns) if self.recent_ns else 0


def begin(cache: DiskCache) -> DiskCache:
    """Return the state for a gate that opens in a gap."""
    return replace(cache, points=(), closed=False)


def on_queue(cache: DiskCache, sample: QueueSample, step_ns: int = _STEP_NS) -> DiskCache:
    """Take in a sample while the gate is open; one in `step_ns` is kept."""
    points = cache.points
    if cache.closed or len(points) == _POINTS_MAX:
        return cache
    if points and sample.at_ns - points[-1].at_ns < step_ns:
        return cache
    return replace(cache, points=(*points, sample))


def close(cache: DiskCache, usable: bool = True) -> DiskCache:
    """Measure at the first rest of a gap or at its end; not `usable`: the rate was limited."""
    cache, points = replace(cache, points=(), closed=True), cache.points
    if not usable or not points or _passed_ns(points[0], points[-1]) < _SPAN_NS_MIN:
        return cache
    half = points[len(points) // 2]
    later = _per_s(half, points[-1])
    if later <= 0:
        return cache
    if _per_s(points[0], points[len(points) // 4]) < _FASTER_MIN * later:
        return replace(cache, recent_ns=(*cache.recent_ns, 0)[-_RECENT:])
    held = half.done_ios - points[0].done_ios - later * _passed_ns(points[0], half) / NS_PER_S
    found_ns = max(0, round(held / later * NS_PER_S))
    return replace(cache, recent_ns=(*cache.recent_ns, found_ns)[-_RECENT:], written_per_s=later)


def _per_s(first: QueueSample, last: QueueSample) -> float:
    return (last.done_ios - first.done_ios) * NS_PER_S / max(1, _passed_ns(first, last))


def _passed_ns(first: QueueSample, last: QueueSample) -> int:
    return last.at_ns - first.at_ns
