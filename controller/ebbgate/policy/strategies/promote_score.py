# SPDX-License-Identifier: GPL-2.0-only
"""How often users will miss a chunk in the cache, estimated from the misses of late. Pure.

A chunk's own misses say little while they are few, so its rate is shrunk toward the mean of its
group (a file, a relation; the volume for all others): the less the chunks of a group differ, the
more. A chunk that nobody has missed yet thus gets a share of the heat of its file, and where
requests have no locality every chunk gets the mean. The misses of a chunk follow a gamma-Poisson
model whose shape is estimated from the group by the method of moments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from heapq import nlargest
from typing import Final, NamedTuple

from ebbgate.model.heat import ChunkMisses, HeatPeriod, VolumeLayout
from ebbgate.model.owners import NO_OWNERS, Owners
from ebbgate.units import NS_PER_S

ASYNC_WEIGHT: Final = 1 / 3
"""Nobody waits for these misses: each counts as this share of a synchronous read."""
WINDOWS_MIN: Final = 2
"""A chunk counts as hot only after misses in so many windows: not after a single scan."""
_CHUNKS_MAX: Final = 4096
_FORGOTTEN: Final = 0.1
"""Chunks with fewer misses than this are no longer kept."""
_SHAPE_MIN, _SHAPE_MAX = 0.01, 1e6


class ChunkScore(NamedTuple):
    """`misses`: weighted and decayed. `windows`: with misses, counted up to `WINDOWS_MIN`."""

    misses: float
    windows: int


UNSEEN: Final = ChunkScore(0.0, 0)


@dataclass(frozen=True, slots=True)
class Scores:
    """What was missed of late. `seconds`: the time that it covers, decayed like the misses.

    `misses`: of all chunks that were not moved since, also of those that are not kept.
    `chunk_count`: of the volume, as far as known. `ended_ns`: of the last window.
    """

    chunks: Mapping[int, ChunkScore] = field(default_factory=dict)
    seconds: float = 0.0
    misses: float = 0.0
    chunk_count: int = 0
    ended_ns: int = 0

    @property
    def mean_rate(self) -> float:
        """Misses per second of a chunk of which nothing else is known."""
        # The first window may have only misses of chunks that it does not list.
        known = self.misses and self.seconds and self.chunk_count
        return self.misses / self.seconds / self.chunk_count if known else 0.0


@dataclass(frozen=True, slots=True)
class GroupHeat:
    """The misses of a group of chunks. `rate`: per chunk and second; `shape`: of the gamma.

    `name`: empty for chunks of no file.
    """

    name: str
    rate: float
    shape: float

    def expected_rate(self, misses: float, seconds: float) -> float:
        """Return the misses per second to expect of a chunk with so many in that time."""
        if self.rate <= 0:
            return 0.0
        return (misses + self.shape) / (seconds + self.shape / self.rate)


def weighted(found: ChunkMisses, write_weight: float) -> float:
    """Return the misses of a chunk in synchronous reads, what each costs users."""
    return found.sync_reads + ASYNC_WEIGHT * found.other_reads + write_weight * found.writes


def add_window(
    scores: Scores, window: HeatPeriod, half_life_ns: int, write_weight: float
) -> Scores:
    """Return the scores after a window; older misses count less."""
    begun_ns = scores.ended_ns or window.started_ns
    keep = 0.5 ** (max(0, window.ended_ns - begun_ns) / half_life_ns)
    chunks = _faded(scores.chunks, keep)
    listed, ios, highest = 0.0, 0, scores.chunk_count - 1
    for each in window.chunks:
        misses = weighted(each, write_weight)
        listed += misses
        ios += each.sync_reads + each.other_reads + each.writes
        highest = max(highest, each.chunk)
        if misses:
            before, windows = chunks.get(each.chunk, UNSEEN)
            chunks[each.chunk] = ChunkScore(before + misses, min(windows + 1, WINDOWS_MIN))
    if len(chunks) > _CHUNKS_MAX:
        chunks = dict(nlargest(_CHUNKS_MAX, chunks.items(), key=lambda item: item[1].misses))
    others = window.left_out_ios + window.dropped_ios
    unlisted = others * listed / ios if ios else ASYNC_WEIGHT * others
    seconds = (window.ended_ns - window.started_ns) / NS_PER_S
    return Scores(
        chunks=chunks,
        seconds=scores.seconds * keep + seconds,
        misses=scores.misses * keep + listed + unlisted,
        chunk_count=highest + 1,
        ended_ns=window.ended_ns,
    )


def _faded(chunks: Mapping[int, ChunkScore], keep: float) -> dict[int, ChunkScore]:
    return {
        chunk: ChunkScore(misses * keep, windows)
        for chunk, (misses, windows) in chunks.items()
        if misses * keep >= _FORGOTTEN
    }


def without(scores: Scores, moved: tuple[int, ...]) -> Scores:
    """Forget the misses of chunks that are in the cache now.

    Left in the sum they would count as misses of all other chunks, whose hot ones would then seem
    to be no hotter than the mean.
    """
    gone = scores.chunks.keys() & moved
    if not gone:
        return scores
    left = {chunk: each for chunk, each in scores.chunks.items() if chunk not in gone}
    misses = scores.misses - sum(scores.chunks[chunk].misses for chunk in gone)
    return replace(scores, chunks=left, misses=max(0.0, misses))


def with_layout(scores: Scores, layout: VolumeLayout | None) -> Scores:
    """Return the scores of a volume that is at least as large as its layout."""
    end = layout.runs[-1].end if layout is not None and layout.runs else 0
    return replace(scores, chunk_count=end) if end > scores.chunk_count else scores


class Groups:
    """The groups of a volume, and how hot each is."""

    def __init__(self, scores: Scores, owners: Owners = NO_OWNERS) -> None:
        self.scores = scores
        self.owners = owners
        self.heats = self._heats(scores)

    def _heats(self, scores: Scores) -> Mapping[int, GroupHeat]:
        sizes = {group: self.owners.size_of(group) for group in self.owners.runs}
        sizes[-1] = max(1, scores.chunk_count - sum(sizes.values()))
        sums = dict.fromkeys(sizes, 0.0)
        squares = dict.fromkeys(sizes, 0.0)
        for chunk, (misses, _) in scores.chunks.items():
            group = self.owners.group_of(chunk)
            sums[group] += misses
            squares[group] += misses * misses
        # Most chunks that are not kept have no group. Without their misses the others would seem
        # to be hotter than they are.
        sums[-1] += max(0.0, scores.misses - sum(sums.values()))
        return {
            group: self._heat(group, size, sums[group], squares[group], scores.seconds)
            for group, size in sizes.items()
        }

    def _heat(
        self, group: int, size: int, total: float, squares: float, seconds: float
    ) -> GroupHeat:
        mean = total / size
        beyond = squares / size - mean * mean - mean
        shape = mean * mean / beyond if beyond > 0 else _SHAPE_MAX
        rate = mean / seconds if seconds else 0.0
        return GroupHeat(self.owners.name_of(group), rate, min(max(shape, _SHAPE_MIN), _SHAPE_MAX))
