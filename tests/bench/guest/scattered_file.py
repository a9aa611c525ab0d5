# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest: fills the folder's file system but for holes, and writes a file into them.

Prints how many holes there are: extents of 4 to 64 KiB, as in an old file system. `--read OFFSET`:
reads 4 KiB of each 64 KiB of the file instead, past the page cache, and prints its requests.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import random
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20
KEEP_SIZE, PUNCH_HOLE = 1, 2
RESERVE_BYTES = 2 * MIB


def allocate(handle: int, mode: int, offset: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(handle, mode, ctypes.c_long(offset), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")


def punch_holes(folder: Path, want_bytes: int, seed: int) -> int:
    """Leave no room but for holes of as many bytes; return how many."""
    rng = random.Random(seed)
    space = os.statvfs(folder)
    # ext4 keeps up to 16 MiB for itself, which nobody can allocate.
    length = space.f_bavail * space.f_frsize - RESERVE_BYTES
    handle = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT)
    allocate(handle, 0, 0, length)
    at = count = made = 0
    while made < want_bytes and at < length - 128 * KIB:
        at += rng.randrange(1, 17) * 4 * KIB
        hole = rng.randrange(1, 17) * 4 * KIB
        allocate(handle, KEEP_SIZE | PUNCH_HOLE, at, hole)
        at, made, count = at + hole, made + hole, count + 1
    os.close(handle)
    return count


def write(path: Path, length: int) -> None:
    """Write past the page cache, so that the blocks are chosen at once."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    buffer = mmap.mmap(-1, MIB)
    buffer.write(os.urandom(MIB))
    for _ in range(length // MIB):
        os.write(handle, buffer)
    os.fsync(handle)
    os.close(handle)


def read(path: Path, first: int) -> int:
    """Read a little of each 64 KiB, from an offset on; return how often."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, 4 * KIB)
    offsets = range(first, path.stat().st_size, 64 * KIB)
    for offset in offsets:
        os.preadv(handle, [buffer], offset)
    os.close(handle)
    return len(offsets)


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--mib", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--read", type=int, metavar="OFFSET")
    options = parser.parse_args()
    if options.read is not None:
        print(read(options.file, options.read))
        return
    length = options.mib * MIB
    print(punch_holes(options.file.parent, length + RESERVE_BYTES, options.seed))
    os.sync()
    write(options.file, length)


if __name__ == "__main__":
    main()
