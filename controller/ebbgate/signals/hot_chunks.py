# SPDX-License-Identifier: GPL-2.0-only
"""Which chunks of a volume were used last, in bounded memory. Pure.

As the probe samples one block of each MiB, a chunk is as recent as the last reference to one of its
sampled blocks. Chunks that were referenced again after some time come before those that were
referenced once, so that a scan of the whole volume does not displace them (the idea of 2Q: Johnson
and Shasha, VLDB 1994).
"""

from __future__ import annotations

from typing import Final

from ebbgate.model.hot_set import CHUNK_BYTES_MIN, CHUNKS_MAX, ChunkRange, HotSet
from ebbgate.model.records import ReuseSamples
from ebbgate.signals.miss_ratio import BLOCK_BYTES
from ebbgate.units import NS_PER_S

AGAIN_NS: Final = 10 * NS_PER_S
"""References within this time are one use: a stream references a large chunk several times."""
_GROUPS: Final = 8
"""Within a group the order is that of the disk, so that warming it costs fewer seeks."""


class HotChunks:
    """The chunks of one volume that were used last, as many as the cache holds.

    It changes in place: a copy for each reference would cost more than the reference.
    """

    def __init__(self, cache_bytes: int) -> None:
        self.chunk_bytes = CHUNK_BYTES_MIN
        while self.chunk_bytes * CHUNKS_MAX < cache_bytes:
            self.chunk_bytes *= 2
        self._chunks_max = max(1, cache_bytes // self.chunk_bytes)
        # In the order of their last reference; the value of a chunk that was used once is when.
        self._once: dict[int, int] = {}
        self._again: dict[int, None] = {}

    def on_samples(self, record: ReuseSamples) -> None:
        """Take references to sampled blocks."""
        blocks = self.chunk_bytes // BLOCK_BYTES
        for reference in record.references:
            self._refer((reference >> 1) // blocks, record.at_ns)

    def _refer(self, chunk: int, at_ns: int) -> None:
        first_ns = self._once.pop(chunk, None)
        if chunk in self._again:
            del self._again[chunk]
            self._again[chunk] = None
        elif first_ns is not None and at_ns - first_ns >= AGAIN_NS:
            self._again[chunk] = None
            self._trim(self._again)
        else:
            self._once[chunk] = at_ns if first_ns is None else first_ns
            self._trim(self._once)

    def _trim(self, chunks: dict[int, int] | dict[int, None]) -> None:
        if len(chunks) > self._chunks_max:
            del chunks[next(iter(chunks))]

    def hot_set(self, observed_ns: int) -> HotSet:
        """Return the chunks that were used last, up to the size of the cache."""
        chunks = [*reversed(self._again), *reversed(self._once)][: self._chunks_max]
        size = max(1, -(-len(chunks) // _GROUPS))
        ranges: list[ChunkRange] = []
        for start in range(0, len(chunks), size):
            ranges += _merged(chunks[start : start + size])
        return HotSet(self.chunk_bytes, tuple(ranges), observed_ns)


def _merged(chunks: list[int]) -> list[ChunkRange]:
    """Return the ranges of these chunks, ascending."""
    found: list[ChunkRange] = []
    for chunk in sorted(chunks):
        if found and found[-1].end == chunk:
            found[-1] = ChunkRange(found[-1].first, found[-1].count + 1)
        else:
            found.append(ChunkRange(chunk))
    return found
