# SPDX-License-Identifier: GPL-2.0-only
"""Reuse distances of a sample of blocks, in bounded memory. Pure.

Fixed-size SHARDS (Waldspurger et al., FAST 2015). Whether a block is followed depends on its hash
alone, so all its references are seen or none. If the table is full, the threshold falls to the
highest hash in it, and a smaller share of the blocks is followed from then on.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

BLOCKS_MAX: Final = 4096
"""Blocks that are followed: some 300 bytes each; the error of the curve falls with their root."""
_HASH_BITS: Final = 32
_HASHES: Final = 1 << _HASH_BITS
_WORD: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a followed block.

    `distance`: other blocks that were referenced since its last reference, of all that were
    offered; None at the first one. `weight`: how many references to offered blocks it stands for.
    """

    distance: float | None
    weight: float


class ReuseTable:
    """The blocks that are followed, in the order of their last reference.

    It changes in place: a copy for each reference would cost more than the reference.
    """

    def __init__(self, blocks_max: int = BLOCKS_MAX) -> None:
        self._blocks_max = blocks_max
        self._threshold = _HASHES
        self._clock = 0
        # Sorted, because each reference gets a new time.
        self._times: list[int] = []
        self._time_of: dict[int, int] = {}
        self._counts: dict[int, float] = {}
        self._by_hash: list[int] = []

    def __len__(self) -> int:
        return len(self._time_of)

    @property
    def weight(self) -> float:
        """How many of the offered blocks a followed one stands for."""
        return _HASHES / self._threshold

    @property
    def skew(self) -> tuple[float, float]:
        """Return the sum of the counted references by block, and the sum of their squares."""
        # A running sum would collect errors of rounding, and end below zero.
        counts = self._counts.values()
        return sum(counts), sum(count * count for count in counts)

    def refer(self, block: int, *, counted: bool = True) -> Reference | None:
        """Take a reference to an offered block; None if the block is not followed."""
        hash_ = _hash(block)
        if hash_ >= self._threshold:
            return None
        weight = self.weight
        self._clock += 1
        distance = self._touch(block, hash_)
        if counted:
            self._counts[block] = self._counts.get(block, 0.0) + 1
        if len(self._time_of) > self._blocks_max:
            self._evict()
        return Reference(None if distance is None else distance * weight, weight)

    def halve(self) -> None:
        """Let the references counted so far count half."""
        self._counts = {block: count / 2 for block, count in self._counts.items()}

    def _touch(self, block: int, hash_: int) -> int | None:
        """Give the block the latest time; return how many were referenced since its last one."""
        last = self._time_of.get(block)
        distance = None
        if last is None:
            heappush(self._by_hash, -(hash_ << 64 | block))
        else:
            place = bisect_left(self._times, last)
            distance = len(self._times) - place - 1
            del self._times[place]
        self._times.append(self._clock)
        self._time_of[block] = self._clock
        return distance

    def _evict(self) -> None:
        """Lower the threshold to the highest hash; no block with it is followed any more."""
        self._threshold = -self._by_hash[0] >> 64
        while self._by_hash and -self._by_hash[0] >> 64 == self._threshold:
            block = -heappop(self._by_hash) & _WORD
            del self._times[bisect_left(self._times, self._time_of.pop(block))]
            self._counts.pop(block, None)


def _hash(block: int) -> int:
    """Return a hash of `_HASH_BITS` (the finalizer of SplitMix64)."""
    mixed = (block + 0x9E3779B97F4A7C15) & _WORD
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
    return (mixed ^ mixed >> 31) >> (64 - _HASH_BITS)
