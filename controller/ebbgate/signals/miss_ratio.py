# SPDX-License-Identifier: GPL-2.0-only
"""The miss-ratio curve: which share of reads a cache of another size would miss. Pure.

The cache of the model holds blocks of 4 KiB, takes in each block that is read or written, and
evicts the least recently used one. A read hits it if fewer other blocks were referenced since the
block's last reference than the cache holds. Only a sample of the blocks is seen (`reuse`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final

from ebbgate.signals.reuse import BLOCKS_MAX, ReuseTable
from ebbgate.units import DAY_NS

BLOCK_BYTES: Final = 4096
SAMPLED_OF: Final = 256
"""The probe sends references to one block of each so many (bpf/reuse.h)."""
HALF_LIFE_NS: Final = DAY_NS
"""After this time a read counts half, so the curve follows the load of the last days."""
_SUB_BITS: Final = 5
"""There are 2^5 buckets for each octave of the distance; lower distances are exact."""
_NOISE: Final = 3.0
"""A sample that is further off, in standard deviations, is not corrected beyond that."""


class MissRatioCurve:
    """Learns the curve of one volume from sampled references; changes in place.

    `sampled_of`: one of so many blocks is offered to `refer`.
    """

    def __init__(self, sampled_of: int = SAMPLED_OF, blocks_max: int = BLOCKS_MAX) -> None:
        self._sampled_of = sampled_of
        self._table = ReuseTable(blocks_max)
        self._hits: list[float] = []
        self._reads = 0.0
        self._all_reads = 0.0
        self._halved_ns: int | None = None

    @property
    def reads(self) -> float:
        """How many sampled reads the curve rests on; old ones count less."""
        return self._reads

    def refer(self, block: int, *, read: bool) -> None:
        """Take a reference to a sampled block."""
        found = self._table.refer(block, counted=read)
        if found is None or not read:
            return
        self._reads += found.weight
        if found.distance is None:
            return
        bucket = _bucket(int(found.distance * self._sampled_of))
        if bucket >= len(self._hits):
            self._hits.extend([0.0] * (bucket + 1 - len(self._hits)))
        self._hits[bucket] += found.weight

    def count_reads(self, blocks: float) -> None:
        """Add to the number of blocks that were read, sampled or not."""
        self._all_reads += blocks

    def advance(self, now_ns: int) -> None:
        """Let old reads count less."""
        if self._halved_ns is None:
            self._halved_ns = now_ns
        while now_ns - self._halved_ns >= HALF_LIFE_NS:
            self._halved_ns += HALF_LIFE_NS
            self._table.halve()
            self._hits = [count / 2 for count in self._hits]
            self._reads /= 2
            self._all_reads /= 2

    def miss_ratios(self, sizes_bytes: Sequence[int]) -> tuple[float, ...]:
        """Return the share (0..1) of reads that a cache of each size would miss; 1 without reads.

        The sizes must rise.
        """
        if not self._reads:
            return (1.0,) * len(sizes_bytes)
        factor = self._correction() / self._reads
        found, hits, bucket = [], 0.0, 0
        for size in sizes_bytes:
            blocks = size / BLOCK_BYTES
            while bucket < len(self._hits) and _edge(bucket + 1) <= blocks:
                hits += self._hits[bucket]
                bucket += 1
            part = self._partial(bucket, blocks)
            found.append(min(1.0, max(0.0, self._reads - hits - part) * factor))
        return tuple(found)

    def _partial(self, bucket: int, blocks: float) -> float:
        """Return the hits of a bucket in which the size lies, spread evenly over it."""
        if bucket >= len(self._hits):
            return 0.0
        low, high = _edge(bucket), _edge(bucket + 1)
        return self._hits[bucket] * max(0.0, blocks - low) / (high - low)

    def _correction(self) -> float:
        """Return the factor on the misses that corrects for hot blocks in or out of the sample.

        The sample should have its share of all reads. If it has more or fewer, blocks that are
        referenced more often than others are in it or not, and such a block misses not much more
        often than others: of `reads` too many or too few only `slope` would be misses, which is the
        slope of a line through zero that fits the misses of blocks (one each) to their reads.
        Without hot blocks the slope is 1, and nothing is corrected.
        """
        total, squares = self._table.skew
        bound = _NOISE * sqrt(squares) * self._table.weight
        missing = self._all_reads / self._sampled_of - self._reads
        missing = min(bound, max(-bound, missing))
        expected = self._reads + missing
        if not squares or expected <= 0 or not self._all_reads:
            return 1.0
        return (self._reads + total / squares * missing) / expected


def _bucket(distance: int) -> int:
    """Return the bucket of a distance."""
    octave = max(0, distance.bit_length() - _SUB_BITS - 1)
    return (octave << _SUB_BITS) + (distance >> octave)


def _edge(bucket: int) -> int:
    """Return the lowest distance of a bucket."""
    octave = max(0, (bucket >> _SUB_BITS) - 1)
    return (bucket - (octave << _SUB_BITS)) << octave
