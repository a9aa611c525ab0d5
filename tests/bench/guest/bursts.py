# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: bursts of random direct reads at depth 1 with idle gaps between them.

Prints one JSON object: per burst the latencies in ms, and the dirty level (MiB) where each gap
began and ended, so that what a gap drained is told from what the burst did. And what was moved
(MiB) during each burst: destaged, and (of dm-cache) promoted or demoted; and how long it took.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

BLOCK_BYTES = 4096
READERS = 3
UNITS = {"k": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}


def dirty_mib(path: Path) -> float:
    """The dirty level that the kernel prints (`420.3M`)."""
    text = path.read_text().strip()
    return float(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else float(text) / 2**20


class Bcache:
    """Dirty level from sysfs, which has only two digits above 1 GiB: what was destaged is what the
    backing disk wrote, since nobody else writes to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stat = path.resolve().parent.parent / "stat"
        self._written_mib = 0.0

    def _disk_mib(self) -> float:
        return int(self._stat.read_text().split()[6]) * 512 / 2**20

    def dirty_mib(self) -> float:
        self._written_mib = self._disk_mib()
        return dirty_mib(self._path)

    def left_mib(self, before_mib: float) -> float:
        """What is left of `before_mib`, the last level; 0 only if nothing is dirty."""
        written_mib = self._disk_mib() - self._written_mib
        return max(0.1, before_mib - written_mib) if dirty_mib(self._path) else 0.0

    def moved_mib(self, dirty_before_mib: float) -> tuple[float, float]:
        return max(0.0, dirty_before_mib - self.left_mib(dirty_before_mib)), 0.0


class DmCache:
    """Dirty level, promotions and demotions from the status line."""

    def __init__(self, name: str) -> None:
        sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "controller"))
        from ebbgate.kernel.device_mapper import DeviceMapper  # noqa: PLC0415
        from ebbgate.probes.dm_status import parse_cache_status  # noqa: PLC0415

        self._dm, self._name, self._parse = DeviceMapper(), name, parse_cache_status
        self._copied_mib = self._copied()

    def _status(self) -> Any:
        return self._parse(self._dm.status(self._name)[0].params)

    def _copied(self) -> float:
        status = self._status()
        return float((status.promotions + status.demotions) * status.block_bytes / 2**20)

    def dirty_mib(self) -> float:
        status = self._status()
        self._copied_mib = self._copied()
        return float(status.dirty * status.block_bytes / 2**20)

    def left_mib(self, _before_mib: float) -> float:
        return self.dirty_mib()

    def moved_mib(self, dirty_before_mib: float) -> tuple[float, float]:
        copied_before = self._copied_mib
        drained = dirty_before_mib - self.dirty_mib()
        return max(0.0, drained), self._copied_mib - copied_before


def read_until(handle: int, options: argparse.Namespace) -> None:
    """Reads without a gap until a file is there.

    Several at once: on a busy host one reader is away for longer than many a gap lasts. Not where
    the bursts will read: what was read once is in the cache.
    """

    def read(reader: int) -> None:
        rng = random.Random(f"reader {reader} of {options.seed}")
        buffer = mmap.mmap(-1, BLOCK_BYTES)
        while not options.until.exists():
            os.preadv(handle, [buffer], rng.randrange(options.low, options.high, BLOCK_BYTES))

    readers = [threading.Thread(target=read, args=(reader,)) for reader in range(READERS)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


def warm_up(handle: int, options: argparse.Namespace) -> None:
    """Runs bursts that do not count, until a file is there."""
    rng = random.Random(f"warm-up of {options.seed}")
    buffer = mmap.mmap(-1, BLOCK_BYTES)
    while options.count_from is not None and not options.count_from.exists():
        for _ in range(options.reads):
            os.preadv(handle, [buffer], rng.randrange(options.low, options.high, BLOCK_BYTES))
        time.sleep(options.gap_s)


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--dirty", type=Path, help="the volume's dirty_data (bcache)")
    source.add_argument("--dm", help="the volume's name (dm-cache)")
    parser.add_argument("--bursts", type=int, default=6)
    parser.add_argument("--reads", type=int, default=100)
    parser.add_argument("--gap-s", type=float, default=2.5)
    parser.add_argument(
        "--spread", type=float, default=0.0, help="gaps are so much longer or shorter"
    )
    parser.add_argument("--low", type=int, default=0, help="first byte of the range that is read")
    parser.add_argument("--high", type=int, required=True)
    parser.add_argument("--until", type=Path, help="read without a gap until this file is there")
    parser.add_argument("--count-from", type=Path, help="bursts count once this file is there")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Run the bursts that the command line describes."""
    options = parsed()
    rng = random.Random(options.seed)
    gap_rng = random.Random(f"gaps of {options.seed}")
    handle = os.open(options.device, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, BLOCK_BYTES)
    if options.until is not None:
        read_until(handle, options)
    level = DmCache(options.dm) if options.dm else Bcache(options.dirty)
    warm_up(handle, options)
    bursts, gaps, moved = [], [], []
    for number in range(options.bursts):
        latencies = []
        began, dirty_before = time.monotonic(), level.dirty_mib()
        for _ in range(options.reads):
            offset = rng.randrange(options.low, options.high, BLOCK_BYTES)
            start = time.perf_counter_ns()
            os.preadv(handle, [buffer], offset)
            latencies.append((time.perf_counter_ns() - start) / 1e6)
        moved.append((*level.moved_mib(dirty_before), time.monotonic() - began))
        bursts.append(latencies)
        if number == options.bursts - 1:
            break
        gap_s = options.gap_s * (1 + options.spread * gap_rng.uniform(-1, 1))
        end = time.monotonic() + gap_s
        before = level.dirty_mib()
        time.sleep(max(0.0, end - time.monotonic() - 0.02))
        gaps.append((before, level.left_mib(before)))
        time.sleep(max(0.0, end - time.monotonic()))
    print(json.dumps({"bursts": bursts, "gaps": gaps, "moved": moved}))


if __name__ == "__main__":
    main()
