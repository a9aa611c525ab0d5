# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: reads a hot set. `--warm`: all of it, twice, in shuffled order, so that it is
cached; otherwise random direct reads of 4 KiB. Prints how many requests it made.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random

WARM_BYTES, READ_BYTES, READS = 65536, 4096, 400


def main() -> None:
    """Read the range that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    parser.add_argument("low", type=int)
    parser.add_argument("length", type=int)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    size = WARM_BYTES if options.warm else READ_BYTES
    offsets = list(range(options.low, options.low + options.length, size))
    if options.warm:
        offsets *= 2
        rng.shuffle(offsets)
    else:
        offsets = rng.sample(offsets, READS)
    handle = os.open(options.device, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, size)
    for offset in offsets:
        os.preadv(handle, [buffer], offset)
    print(len(offsets))


if __name__ == "__main__":
    main()
