# SPDX-License-Identifier: GPL-2.0-only
"""Finds out which group of files owns each chunk of a volume. Pure."""

from __future__ import annotations

from typing import Final

from ebbgate.errors import Unavailable
from ebbgate.model.heat import CHUNK_BYTES, ChunkRun

RUNS_MAX: Final = 1 << 15
"""About 5 MiB of memory in the daemon."""
PARTS_MAX: Final = 1 << 18
"""About 50 MiB of memory."""


class ChunkOwners:
    """Collects the pieces of files on a volume."""

    def __init__(self) -> None:
        self._whole: list[tuple[int, int, int]] = []
        self._parts: dict[tuple[int, int], int] = {}
        self._most = PARTS_MAX

    def bound(self, share: int) -> None:
        """Take only so large a part (1/share) of all pieces from now on."""
        self._most = min(PARTS_MAX, self._count() + PARTS_MAX // share)

    def add(self, group: int, start_bytes: int, length_bytes: int) -> None:
        """Add a piece of a group. Raises Unavailable where there are too many."""
        if self._count() >= self._most:
            raise Unavailable(
                f"the files lie in more than {self._most} pieces",
                "name fewer files, or larger ones",
            )
        end_bytes = start_bytes + length_bytes
        first, end = -(-start_bytes // CHUNK_BYTES), end_bytes // CHUNK_BYTES
        if first > end:
            # It begins and ends within one chunk.
            self._add_part(end, group, length_bytes)
            return
        if first < end:
            self._whole.append((first, end, group))
        if lead := first * CHUNK_BYTES - start_bytes:
            self._add_part(first - 1, group, lead)
        if rest := end_bytes - end * CHUNK_BYTES:
            self._add_part(end, group, rest)

    def runs(self) -> tuple[tuple[ChunkRun, ...], int]:
        """Return the runs of chunks by owner, and how many chunks are in none.

        A chunk of several groups goes to the one that owns most of it. The longest runs are
        returned where there are too many.
        """
        merged = self._merged()
        if len(merged) <= RUNS_MAX:
            return tuple(merged), 0
        merged.sort(key=lambda run: run.first - run.end)
        left_out = sum(run.end - run.first for run in merged[RUNS_MAX:])
        return tuple(sorted(merged[:RUNS_MAX], key=lambda run: run.first)), left_out

    def _count(self) -> int:
        return len(self._parts) + len(self._whole)

    def _add_part(self, chunk: int, group: int, length_bytes: int) -> None:
        key = (chunk, group)
        self._parts[key] = self._parts.get(key, 0) + length_bytes

    def _merged(self) -> list[ChunkRun]:
        most: dict[int, tuple[int, int]] = {}
        for (chunk, group), length in self._parts.items():
            if length > most.get(chunk, (0, 0))[0]:
                most[chunk] = (length, group)
        shared = ((chunk, chunk + 1, group) for chunk, (_, group) in most.items())
        found: list[ChunkRun] = []
        # The longest first where several begin at one chunk: files may share extents.
        for first, end, group in sorted((*self._whole, *shared), key=lambda run: (run[0], -run[1])):
            last = found[-1] if found else ChunkRun(0, 0, -1)
            begin = max(first, last.end)
            if begin >= end:
                continue
            if last.group == group and last.end == begin:
                found[-1] = ChunkRun(last.first, end, group)
            else:
                found.append(ChunkRun(begin, end, group))
        return found
