# SPDX-License-Identifier: GPL-2.0-only
"""Where users missed the cache in the last minutes, in bounded memory. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from ebbgate.model.heat import HeatPeriod
from ebbgate.units import NS_PER_S

HALF_LIFE_NS: Final = 120 * NS_PER_S
_CHUNKS_MAX: Final = 4096
_FORGOTTEN: Final = 0.5
"""Chunks with fewer misses than this are no longer kept."""


@dataclass(frozen=True, slots=True)
class RecentMisses:
    """Misses by chunk; older ones count less, and the time that they cover likewise.

    `unlisted`: of chunks that are not kept. `ended_ns`: of the last period.
    """

    chunks: Mapping[int, float] = field(default_factory=dict)
    unlisted: float = 0.0
    observed_ns: float = 0.0
    ended_ns: int = 0


def add_period(recent: RecentMisses, period: HeatPeriod) -> RecentMisses:
    """Return the misses after one more period."""
    begun_ns = recent.ended_ns or period.started_ns
    keep = 0.5 ** (max(0, period.ended_ns - begun_ns) / HALF_LIFE_NS)
    chunks = {chunk: misses * keep for chunk, misses in recent.chunks.items()}
    for each in period.chunks:
        misses = each.sync_reads + each.other_reads + each.writes
        chunks[each.chunk] = chunks.get(each.chunk, 0.0) + misses
    total = sum(chunks.values())
    kept = {chunk: misses for chunk, misses in chunks.items() if misses >= _FORGOTTEN}
    if len(kept) > _CHUNKS_MAX:
        kept = dict(sorted(kept.items(), key=itemgetter(1), reverse=True)[:_CHUNKS_MAX])
    others = period.left_out_ios + period.dropped_ios + total - sum(kept.values())
    return RecentMisses(
        chunks=kept,
        unlisted=recent.unlisted * keep + others,
        observed_ns=recent.observed_ns * keep + period.ended_ns - period.started_ns,
        ended_ns=period.ended_ns,
    )


def middle_chunk(recent: RecentMisses) -> int | None:
    """Return the median chunk of the misses; None where none is known.

    From there the heads of a disk have the shortest way to them on average.
    """
    left = sum(recent.chunks.values()) / 2
    for chunk, misses in sorted(recent.chunks.items()):
        left -= misses
        if left <= 0:
            return chunk
    return None


def bin_chunks(chunk_count: int, bins_max: int) -> int:
    """Return how many chunks each part of a volume has, so that there are at most so many."""
    return max(1, -(-chunk_count // bins_max))


def binned(
    values: Iterable[tuple[int, float]], chunk_count: int, chunks_each: int
) -> tuple[int, ...]:
    """Return the sums by part of the volume; chunks beyond its end are left out."""
    sums = [0.0] * -(-chunk_count // chunks_each)
    for chunk, value in values:
        if chunk < chunk_count:
            sums[chunk // chunks_each] += value
    return tuple(round(each) for each in sums)
