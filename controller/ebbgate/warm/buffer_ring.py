# SPDX-License-Identifier: GPL-2.0-only
"""Hands out parts of a buffer to reads that are under way at once. Pure.

Nobody looks at what is read, but the kernel does: btrfs compares it with its checksums, in place,
and would take what another read has put there for corrupt. It then counts an error of the disk and,
where there are two copies, writes the block anew. dm-integrity compares, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class BufferRing:
    """The parts of a buffer of `size_bytes` that reads have, by number, oldest first.

    They are handed out in order. One is free again once those before it are.
    """

    size_bytes: int
    _parts: dict[int, tuple[int, int]] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)
    _count: int = 0
    _at: int = 0

    def take(self, length_bytes: int) -> tuple[int, int] | None:
        """Return the number of a new part, and where it begins; None while there is no room."""
        if not 0 < length_bytes <= self.size_bytes:
            raise ValueError(f"a read of {length_bytes} bytes for a buffer of {self.size_bytes}")
        start = self._room_for(length_bytes)
        if start is None:
            return None
        self._count += 1
        self._parts[self._count] = start, length_bytes
        self._at = start + length_bytes
        return self._count, start

    def end(self, number: int) -> None:
        """Take a part back."""
        self._ended.add(number)
        while self._parts and (oldest := next(iter(self._parts))) in self._ended:
            self._ended.discard(oldest)
            del self._parts[oldest]

    def _room_for(self, length_bytes: int) -> int | None:
        if not self._parts:
            return 0
        oldest, _ = next(iter(self._parts.values()))
        end = self.size_bytes if self._at > oldest else oldest
        if self._at + length_bytes <= end:
            return self._at
        return 0 if self._at > oldest and length_bytes <= oldest else None
