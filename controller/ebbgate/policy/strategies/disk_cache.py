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
    """

    points: tuple[QueueSample, ...] = ()
    closed: bool = True
    recent_ns: tuple[int, ...] = ()

    @property
    def empties_ns(self) -> int:
        """How long the disk goes on writing after the last completion; 0: unknown, or no cache."""
        return median_low(self.recent_ns) if self.recent_ns else 0


def begin(cache: DiskCache) -> DiskCache:
    """Return the state for a gate that opens in a gap."""
    return replace(cache, points=(), closed=False)


def on_queue(cache: DiskCache, sample: QueueSample) -> DiskCache:
    """Take in a sample while the gate is open."""
    points = cache.points
    if cache.closed or len(points) == _POINTS_MAX:
        return cache
    if points and sample.at_ns - points[-1].at_ns < _STEP_NS:
        return cache
    return replace(cache, points=(*points, sample))


def close(cache: DiskCache, usable: bool = True) -> DiskCache:
    """Measure at the first rest of a gap or at its end; not `usable`: the rate was limited."""
    found_ns = _measured_ns(cache.points) if usable else None
    recent_ns = cache.recent_ns if found_ns is None else (*cache.recent_ns, found_ns)[-_RECENT:]
    return DiskCache((), True, recent_ns)


def _measured_ns(points: tuple[QueueSample, ...]) -> int | None:
    """Return how long the cache takes to empty; None: too little was seen."""
    if not points or points[-1].at_ns - points[0].at_ns < _SPAN_NS_MIN:
        return None
    quarter, half, last = points[len(points) // 4], points[len(points) // 2], points[-1]
    later = _per_s(half, last)
    if later <= 0:
        return None
    if _per_s(points[0], quarter) < _FASTER_MIN * later:
        return 0
    held = half.done_ios - points[0].done_ios - later * _passed_ns(points[0], half) / NS_PER_S
    return max(0, round(held / later * NS_PER_S))


def _per_s(first: QueueSample, last: QueueSample) -> float:
    return (last.done_ios - first.done_ios) * NS_PER_S / max(1, _passed_ns(first, last))


def _passed_ns(first: QueueSample, last: QueueSample) -> int:
    return last.at_ns - first.at_ns
