# SPDX-License-Identifier: GPL-2.0-only
"""What a disk has accepted and not yet written to its platter.

Pure. The extents never overlap: a write over cached data is merged with it, since only the newest
content will ever be written. Each extent keeps what the platter holds in its place, which is what
a power cut brings back.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass

RUN_BYTES_MAX = 512 * 1024
"""Extents that follow each other are written in one go, up to this length."""


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """A range of the disk that is newer in the cache than on the platter."""

    offset_bytes: int
    before: bytes
    """What the platter holds there; its length is that of the extent."""
    number: int
    """Of the oldest write in it."""
    arrival_ns: int
    """Of the newest write in it."""

    @property
    def length_bytes(self) -> int:
        """Its length."""
        return len(self.before)

    @property
    def end_bytes(self) -> int:
        """First byte behind it."""
        return self.offset_bytes + len(self.before)

    def over(self, older: Extent) -> Extent:
        """Merge with an extent that this one overlaps and whose platter content is older."""
        start = min(self.offset_bytes, older.offset_bytes)
        before = bytearray(max(self.end_bytes, older.end_bytes) - start)
        for extent in (self, older):
            at = extent.offset_bytes - start
            before[at : at + extent.length_bytes] = extent.before
        number, arrival_ns = min(self.number, older.number), max(self.arrival_ns, older.arrival_ns)
        return Extent(start, bytes(before), number, arrival_ns)


class WriteCache:
    """The extents of one disk."""

    def __init__(self) -> None:
        self.used_bytes = 0
        self._offsets: list[int] = []
        self._extents: dict[int, Extent] = {}
        # Numbers that may be gone already: they are dropped once they come up.
        self._numbers: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[Extent]:
        return (self._extents[offset] for offset in self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, extent: Extent) -> None:
        """Take in a write."""
        for older in self.overlapping(extent.offset_bytes, extent.length_bytes):
            self._drop(older)
            extent = extent.over(older)
        insort(self._offsets, extent.offset_bytes)
        self._extents[extent.offset_bytes] = extent
        heapq.heappush(self._numbers, (extent.number, extent.offset_bytes))
        self.used_bytes += extent.length_bytes

    def written(self, extent: Extent) -> None:
        """Forget an extent that is on the platter, unless it was overwritten meanwhile."""
        if self._extents.get(extent.offset_bytes) is extent:
            self._drop(extent)

    def clear(self) -> list[Extent]:
        """Forget everything; return what there was."""
        lost = list(self)
        for extent in lost:
            self._drop(extent)
        return lost

    def overlapping(self, offset_bytes: int, length_bytes: int) -> list[Extent]:
        """Extents that share a byte with a range, from low to high."""
        index = bisect_left(self._offsets, offset_bytes)
        if index and self._extents[self._offsets[index - 1]].end_bytes > offset_bytes:
            index -= 1
        end_index = bisect_left(self._offsets, offset_bytes + length_bytes, index)
        return [self._extents[offset] for offset in self._offsets[index:end_index]]

    def covers(self, offset_bytes: int, length_bytes: int) -> bool:
        """Whether the whole of a range is cached."""
        at = offset_bytes
        for extent in self.overlapping(offset_bytes, length_bytes):
            if extent.offset_bytes > at:
                return False
            at = extent.end_bytes
        return at >= offset_bytes + length_bytes

    def oldest_number(self) -> int | None:
        """Number of the oldest write that is not on the platter."""
        while self._numbers:
            number, offset = self._numbers[0]
            extent = self._extents.get(offset)
            if extent is not None and extent.number == number:
                return number
            heapq.heappop(self._numbers)
        return None

    def run_upward(self, head_bytes: int) -> tuple[Extent, ...]:
        """The next extents upward from the head, from the lowest again if there are none."""
        index = bisect_left(self._offsets, head_bytes) % max(1, len(self._offsets))
        run: list[Extent] = []
        length_bytes = 0
        for offset in self._offsets[index:]:
            extent = self._extents[offset]
            length_bytes += extent.length_bytes
            if run and (offset != run[-1].end_bytes or length_bytes > RUN_BYTES_MAX):
                break
            run.append(extent)
        return tuple(run)

    def _drop(self, extent: Extent) -> None:
        del self._extents[extent.offset_bytes]
        del self._offsets[bisect_left(self._offsets, extent.offset_bytes)]
        self.used_bytes -= extent.length_bytes
