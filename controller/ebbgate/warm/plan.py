# SPDX-License-Identifier: GPL-2.0-only
"""Which reads make the kernel cache data, and in which order. Pure.

bcache caches what a read misses unless the read continues a sequence that has reached the cutoff: a
request continues one that ended exactly where it starts (drivers/md/bcache/request.c,
check_should_bypass). So ascending reads that leave out a few KiB now and then are never such a
sequence, and cost the disk no seek. What was left out is read at the end.

dm-cache (smq) promotes a block once the region of 16 blocks around it was read often enough of
late (drivers/md/dm-cache-policy-smq.c, update_promote_levels). The size of a request does not
count. So a few regions at a time get one short read in each block, again and again, until all are
hits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ebbgate.units import KIB, MIB, format_bytes

UNIT_BYTES: Final = 4 * KIB
SEQUENCES_MAX: Final = 128
"""The sequences of all requests that bcache remembers (drivers/md/bcache/bcache.h, RECENT_IO)."""
READ_BYTES_MAX: Final = MIB
"""bcache caches at most 256 pages of one request that misses."""
PIECE_BYTES: Final = 2 * UNIT_BYTES
"""Of a request to bcache for a range of which pages are cached already, as users have missed them.
Of what is missing in a request bcache caches only the first contiguous part; the rest is read all
the same, in the idle class, and waits for seconds while users read. A request of two units has no
such rest, wherever the file system has put the pages.
"""
PASSES_BYTES: Final = (READ_BYTES_MAX, PIECE_BYTES, UNIT_BYTES)
"""Longest request of each pass over a file. The last is for where a part of a page is cached."""
RUN_BYTES_MIN: Final = 64 * KIB
RUN_BYTES_MAX: Final = 4 * MIB
"""Longer sequences would save nothing more: 4 KiB are left out after each."""
CUTOFF_MARGIN: Final = 0.9
"""sysfs shows the cutoff with one decimal, so that the true one may be a twentieth lower."""
WINDOW_BLOCKS: Final = 64
"""Cache blocks that are read in turn: four of the regions that smq counts."""


@dataclass(frozen=True, slots=True)
class Read:
    """A request: where in the file or device that is read, and how much."""

    offset_bytes: int
    length_bytes: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of what is to be warmed that is contiguous on the device, at `device_bytes`."""

    offset_bytes: int
    device_bytes: int
    length_bytes: int


def aligned(pieces: Iterable[Piece], unit_bytes: int) -> tuple[tuple[Piece, ...], int]:
    """Cut the pieces to whole units of the device; return them and how much was cut."""
    found, cut = [], 0
    for piece in pieces:
        lead = -piece.device_bytes % unit_bytes
        length = max(0, piece.length_bytes - lead) // unit_bytes * unit_bytes
        cut += piece.length_bytes - length
        if length:
            found.append(Piece(piece.offset_bytes + lead, piece.device_bytes + lead, length))
    return tuple(found), cut


def cut_at(pieces: Iterable[Piece], end_bytes: int) -> Iterator[Piece]:
    """Yield what of the pieces lies before this place of the file."""
    for piece in pieces:
        length = min(piece.length_bytes, end_bytes - piece.offset_bytes)
        if length > 0:
            yield Piece(piece.offset_bytes, piece.device_bytes, length)


def run_bytes_max(cutoff_bytes: int) -> int:
    """Return how long a sequence of reads may be under this cutoff (0: the kernel has none).

    0 if no sequence of a sensible length is safe.
    """
    if cutoff_bytes == 0:
        return RUN_BYTES_MAX
    length = min(int(cutoff_bytes * CUTOFF_MARGIN), RUN_BYTES_MAX) // UNIT_BYTES * UNIT_BYTES
    return length if length >= RUN_BYTES_MIN else 0


@dataclass(slots=True)
class BcachePlan:
    """Ascending reads that are no sequence for the kernel, then what they left out.

    `pieces`: mostly in the order of the device. `left_out`: still to be read, each with its place
    on the device. `ended`: where the last reads have ended on the device, and how long their
    sequences were; plans that follow each other at once share it.
    """

    pieces: Sequence[Piece]
    read_max: int = READ_BYTES_MAX
    left_out: deque[tuple[int, Read]] = field(default_factory=deque)
    ended: dict[int, int] = field(default_factory=dict)
    _index: int = 0
    _at: int = 0

    def next(self, run_max: int) -> Read | None:
        """Return the next read, none of which continues a sequence beyond `run_max` bytes."""
        while self._index < len(self.pieces):
            piece = self.pieces[self._index]
            start, rest = piece.device_bytes + self._at, piece.length_bytes - self._at
            offset = piece.offset_bytes + self._at
            room = run_max - self.ended.get(start, 0)
            if room < UNIT_BYTES:
                length = min(UNIT_BYTES, rest)
                self.left_out.append((start, Read(offset, length)))
                self._step(piece, length)
                continue
            length = min(self.read_max, rest, room // UNIT_BYTES * UNIT_BYTES)
            self._step(piece, length)
            return self._sent(start, Read(offset, length))
        return self._sent(*self.left_out.popleft()) if self.left_out else None

    def _sent(self, start: int, read: Read) -> Read:
        """Note what the kernel remembers of a read."""
        self.ended[start + read.length_bytes] = self.ended.pop(start, 0) + read.length_bytes
        if len(self.ended) > SEQUENCES_MAX:
            del self.ended[next(iter(self.ended))]
        return read

    def _step(self, piece: Piece, length: int) -> None:
        self._at += length
        if self._at == piece.length_bytes:
            self._index += 1
            self._at = 0


def spread(pieces: Iterable[Piece], step_bytes: int, first_bytes: int) -> Iterator[Read]:
    """Yield a place every so many bytes of all pieces, each with what follows it in its piece."""
    skip = first_bytes
    for piece in pieces:
        at = skip
        while at < piece.length_bytes:
            yield Read(piece.offset_bytes + at, piece.length_bytes - at)
            at += step_bytes
        skip = at - piece.length_bytes


def blocks(pieces: Iterable[Piece], block_bytes: int) -> Iterator[Read]:
    """Yield the first part that lies in each cache block which the pieces touch.

    One that pieces in order share is yielded once. A cache may have millions of them.
    """
    last = -1
    for piece in pieces:
        end = piece.device_bytes + piece.length_bytes
        for block in range(piece.device_bytes // block_bytes, -(-end // block_bytes)):
            start = max(piece.device_bytes, block * block_bytes)
            offset = piece.offset_bytes + start - piece.device_bytes
            if block != last:
                yield Read(offset, min(end, (block + 1) * block_bytes) - start)
            last = block


def block_count(pieces: Iterable[Piece], block_bytes: int) -> int:
    """Return how many cache blocks the pieces touch, in whatever order they are."""
    found = behind = 0
    for piece in sorted(pieces, key=lambda piece: piece.device_bytes):
        first = max(behind, piece.device_bytes // block_bytes)
        behind = max(first, -(-(piece.device_bytes + piece.length_bytes) // block_bytes))
        found += behind - first
    return found


def blocks_max(size_bytes: int, pieces: int, block_bytes: int) -> int:
    """Return how many blocks, or places so far apart, so many pieces touch at most."""
    return -(-size_bytes // block_bytes) + pieces


def blocks_text(cache_bytes: int, size_bytes: int) -> str:
    """Return what data takes of a cache: `1 GiB of whole cache blocks (8 MiB of data)`."""
    taken, data = format_bytes(cache_bytes), format_bytes(size_bytes)
    return taken if taken == data else f"{taken} of whole cache blocks ({data} of data)"
