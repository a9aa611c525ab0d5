# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: counts pages of a database that the cache missed, by chunk of the volume.

As a program, prints one JSON object when its time is over: reads and writes by chunk. Independent
of the probe, to be compared with it. I/O: a trace instance of the kernel, named after the process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import threading
import time
from collections import Counter
from pathlib import Path

from ebbgate.units import MIB, SECTOR_BYTES

CHUNK_BYTES = MIB
PAGE_SECTORS = 16
"""A page of PostgreSQL. What ebbgate or a mover reads has other lengths."""
BCACHE_DATA_SECTORS = 16
MISSED = re.compile(r"bcache_read: \S+ +(\w+) (\d+) \+|block_bio_remap: \S+ (\w+) .*\) (\d+)")


def missed(line: str) -> tuple[int, bool] | None:
    """Return chunk and whether it was a write, of a line of the trace."""
    found = MISSED.search(line)
    if found is None:
        return None
    if found[1]:
        return (int(found[2]) - BCACHE_DATA_SECTORS) * SECTOR_BYTES // CHUNK_BYTES, "W" in found[1]
    return int(found[4]) * SECTOR_BYTES // CHUNK_BYTES, "W" in found[3]


class Misses:
    """Counts misses from a trace of its own. `backing`: as `add_options` has it."""

    def __init__(self, backing: str, *, is_dm: bool) -> None:
        major, minor = map(int, backing.split(":"))
        trace = Path(f"/sys/kernel/tracing/instances/misses-{os.getpid()}")
        trace.mkdir()
        if is_dm:
            event, which = "block/block_bio_remap", f"dev == {major << 20 | minor}"
        else:
            event, which = "bcache/bcache_read", "cache_hit == 0 && bypass == 0"
        folder = trace / "events" / event
        (folder / "filter").write_text(f"nr_sector == {PAGE_SECTORS} && {which}")
        (folder / "enable").write_text("1")
        self._lock = threading.Lock()
        self._reads: Counter[int] = Counter()
        self._writes: Counter[int] = Counter()
        threading.Thread(target=self._follow, args=(trace,), daemon=True).start()

    def take(self) -> dict[int, tuple[int, int]]:
        """Return reads and writes by chunk since the last call."""
        with self._lock:
            reads, self._reads = self._reads, Counter()
            writes, self._writes = self._writes, Counter()
        return {chunk: (reads[chunk], writes[chunk]) for chunk in {*reads, *writes}}

    def _follow(self, trace: Path) -> None:
        with (trace / "trace_pipe").open() as lines:
            for line in lines:
                found = missed(line)
                if found is not None:
                    with self._lock:
                        (self._writes if found[1] else self._reads)[found[0]] += 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what tells of the cache."""
    parser.add_argument("--backing", required=True, help="MAJ:MIN of what holds all data")
    parser.add_argument("--block", type=int, default=0, help="bytes of a block of dm-cache")


def main() -> None:
    """Count for some seconds."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    misses = Misses(options.backing, is_dm=bool(options.block))
    time.sleep(options.seconds)
    print(json.dumps(misses.take()))


if __name__ == "__main__":
    main()
