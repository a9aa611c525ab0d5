# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: bursts of random direct reads at depth 1 with idle gaps between them.

Prints one JSON object: per burst the latencies in ms, and the dirty level (MiB) where each gap
began and ended, so that what a gap drained is told from what the burst did.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import time
from pathlib import Path

BLOCK_BYTES = 4096
UNITS = {"k": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}


def dirty_mib(path: Path) -> float:
    """The dirty level that the kernel prints (`420.3M`)."""
    text = path.read_text().strip()
    return float(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else float(text) / 2**20


def main() -> None:
    """Run the bursts that the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    parser.add_argument("--dirty", type=Path, required=True, help="the volume's dirty_data")
    parser.add_argument("--bursts", type=int, default=6)
    parser.add_argument("--reads", type=int, default=100)
    parser.add_argument("--gap-s", type=float, default=2.5)
    parser.add_argument("--low", type=int, default=0, help="first byte of the range that is read")
    parser.add_argument("--high", type=int, required=True)
    parser.add_argument("--until", type=Path, help="read without a gap until this file is there")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    handle = os.open(options.device, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, BLOCK_BYTES)
    while options.until is not None and not options.until.exists():
        os.preadv(handle, [buffer], rng.randrange(options.low, options.high, BLOCK_BYTES))
    bursts, gaps = [], []
    for number in range(options.bursts):
        latencies = []
        for _ in range(options.reads):
            offset = rng.randrange(options.low, options.high, BLOCK_BYTES)
            start = time.perf_counter_ns()
            os.preadv(handle, [buffer], offset)
            latencies.append((time.perf_counter_ns() - start) / 1e6)
        bursts.append(latencies)
        if number == options.bursts - 1:
            break
        end = time.monotonic() + options.gap_s
        before = dirty_mib(options.dirty)
        time.sleep(max(0.0, end - time.monotonic() - 0.02))
        gaps.append((before, dirty_mib(options.dirty)))
        time.sleep(max(0.0, end - time.monotonic()))
    print(json.dumps({"bursts": bursts, "gaps": gaps}))


if __name__ == "__main__":
    main()
