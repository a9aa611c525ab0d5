# SPDX-License-Identifier: GPL-2.0-only
"""The exact miss-ratio curve of a sequence of references (Mattson's stack distances). Pure.

It shares nothing with `ebbgate.signals.reuse`, which it checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

Reference = tuple[int, bool]
"""A block, and whether it is read."""


@dataclass(frozen=True, slots=True)
class ExactCurve:
    """How many reads each distance has, and reads and blocks in all."""

    distances: Counter[int]
    reads: int
    blocks: int

    def miss_ratios(self, sizes_blocks: Sequence[float]) -> list[float]:
        """Return the share of reads that an LRU cache of each size misses."""
        hits = list(accumulate(self.distances[i] for i in range(self.blocks)))
        found = []
        for size in sizes_blocks:
            # A distance below the size is a hit.
            below = min(-int(-size // 1), len(hits))
            found.append(1 - hits[below - 1] / self.reads if below > 0 else 1.0)
        return found


def exact_curve(references: Sequence[Reference]) -> ExactCurve:
    """Simulate LRU caches of all sizes at once, with a Fenwick tree over time."""
    tree = [0] * (len(references) + 1)
    last: dict[int, int] = {}
    distances: Counter[int] = Counter()
    for time, (block, read) in enumerate(references, start=1):
        before = last.get(block)
        if before is not None:
            if read:
                distances[len(last) - _sum(tree, before)] += 1
            _add(tree, before, -1)
        _add(tree, time, 1)
        last[block] = time
    return ExactCurve(distances, sum(read for _, read in references), len(last))


def _add(tree: list[int], place: int, count: int) -> None:
    while place < len(tree):
        tree[place] += count
        place += place & -place


def _sum(tree: Sequence[int], place: int) -> int:
    """Return the count at places up to this one."""
    found = 0
    while place:
        found += tree[place]
        place -= place & -place
    return found
