# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: moves hot files into the cache as the published system does, for comparison.

Every 30 s it scores each file by (3 x reads + writes) of the hard disk per unit of size, and reads
the best files' chunks of 1 MiB so that the kernel caches them, for a fixed share of the time. A
file counts from 200 requests on (Matsuzawa and Shinagawa, 2016). Ends when it is killed.

I/O: see misses.py; the files.
"""

from __future__ import annotations

import argparse
import mmap
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ebbgate.units import KIB
from ebbgate.warm.parallel_reads import ParallelReads
from ebbgate.warm.plan import Read
from ebbgate.warm.target import Target, open_file
from tests.bench.guest.misses import CHUNK_BYTES, Misses, add_options

PERIOD_S = 30.0
REQUESTS_MIN = 200
PARALLEL = 32
READ_BYTES = 16 * KIB
"""Pages that users missed are cached already, and bcache caches only the first hole of a read."""
LEFT_OUT_BYTES = 4 * KIB
"""At the end of each chunk, so that no sequence reaches bcache's cutoff."""
ROUNDS_MAX = 8


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of the volume that lies in a file: its number, its place in the file, its length."""

    number: int
    offset_bytes: int
    length_bytes: int


def chunks_of(target: Target) -> list[Chunk]:
    """Cut what a file has on the volume at multiples of a chunk."""
    found = []
    for piece in target.pieces:
        at = 0
        while at < piece.length_bytes:
            place = piece.device_bytes + at
            length = min(CHUNK_BYTES - place % CHUNK_BYTES, piece.length_bytes - at)
            found.append(Chunk(place // CHUNK_BYTES, piece.offset_bytes + at, length))
            at += length
    return found


def best_files(
    counts: Mapping[int, tuple[int, int]], files: Mapping[str, Sequence[Chunk]]
) -> list[str]:
    """Return the files with enough requests, best first. `counts`: reads and writes by chunk."""
    scores = {}
    for name, chunks in files.items():
        pairs = [counts.get(chunk.number, (0, 0)) for chunk in chunks]
        reads, writes = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
        if reads + writes >= REQUESTS_MIN:
            scores[name] = (3 * reads + writes) / sum(chunk.length_bytes for chunk in chunks)
    return sorted(scores, key=lambda name: -scores[name])


class Mover:
    """Reads chunks of a file so that the kernel caches them.

    `block_bytes`: of a dm-cache, 0 for bcache. `stat`: what the backing device has done.
    """

    def __init__(self, target: Target, stat: Path, block_bytes: int) -> None:
        self.chunks = chunks_of(target)
        self._stat = stat
        self._block_bytes = block_bytes
        self._reads = ParallelReads(target.handle, memoryview(mmap.mmap(-1, CHUNK_BYTES)))

    def move(self, chunk: Chunk) -> None:
        """Read one chunk."""
        end = chunk.offset_bytes + chunk.length_bytes - LEFT_OUT_BYTES
        step = self._block_bytes or READ_BYTES
        size = LEFT_OUT_BYTES if self._block_bytes else READ_BYTES
        reads = [Read(at, min(size, end - at)) for at in range(chunk.offset_bytes, end, step)]
        for _ in range(ROUNDS_MAX if self._block_bytes else 1):
            before = self._backing_reads()
            for start in range(0, len(reads), PARALLEL):
                self._reads.read(reads[start : start + PARALLEL])
            # smq promotes a block at the second to fifth read; what users miss meanwhile is few.
            if self._backing_reads() - before <= len(reads) // 8:
                break

    def _backing_reads(self) -> int:
        return int(self._stat.read_text().split()[0])


def to_move(chunks: Iterable[Chunk], moved: set[int], counts: Mapping[int, object]) -> list[Chunk]:
    """Return the chunks that were never moved, or that users have missed since."""
    return [each for each in chunks if each.number not in moved or each.number in counts]


def move_each_period(share: float, misses: Misses, movers: Mapping[str, Mover]) -> None:
    """Move the best files' chunks for this share of the time, without end."""
    files = {name: mover.chunks for name, mover in movers.items()}
    moved: set[int] = set()
    while True:
        time.sleep(PERIOD_S * (1 - share))
        counts = misses.take()
        end = time.monotonic() + PERIOD_S * share
        for name in best_files(counts, files):
            for chunk in to_move(files[name], moved, counts):
                if time.monotonic() >= end:
                    break
                movers[name].move(chunk)
                moved.add(chunk.number)
        time.sleep(max(0.0, end - time.monotonic()))


def main() -> None:
    """Move what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--share", type=float, help="without it: move these files at once, and end")
    add_options(parser)
    options = parser.parse_args()
    stat = Path(f"/sys/dev/block/{options.backing}/stat")
    movers = {name: Mover(open_file(name), stat, options.block) for name in options.files}
    if options.share is not None:
        misses = Misses(options.backing, is_dm=bool(options.block))
        move_each_period(options.share, misses, movers)
    for mover in movers.values():
        for chunk in mover.chunks:
            mover.move(chunk)


if __name__ == "__main__":
    main()
