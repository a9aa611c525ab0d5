# SPDX-License-Identifier: GPL-2.0-only
"""Writes files in which each block names its offset, and finds these blocks on a volume.

Runs in the guest with nothing but Python: `layout_pattern.py write FILE`, or `compare` with what
`ebbgate layout show --json` printed on standard input; `same` compares with what the files have.
I/O: files, block devices.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
from pathlib import Path

BLOCK = 4096
_RUNS = 200


def pattern(offset: int) -> bytes:
    """Return the block at an offset of the file."""
    return f"{offset:016x}".encode() * (BLOCK // 16)


def write(path: str) -> None:
    """Write runs of 1 to 12 blocks with a hole behind each, and space that is never written."""
    with Path(path).open("wb") as file:
        offset = 0
        for number in range(_RUNS):
            for _ in range(1 + number % 12):
                os.pwrite(file.fileno(), pattern(offset), offset)
                offset += BLOCK
            offset += BLOCK * (1 + number % 3)
        os.posix_fallocate(file.fileno(), offset, 16 * BLOCK)
        os.fsync(file.fileno())
    os.sync()


def compare(*, files: bool) -> None:
    """Print how many bytes of the ranges were read on the volume, and which differ."""
    document = json.load(sys.stdin)
    bad, count = [], 0
    for file in document["files"]:
        own = os.open(file["path"], os.O_RDONLY) if files else -1
        for found in file["ranges"]:
            device = os.open(f"/dev/{found['volume']}", os.O_RDONLY | os.O_DIRECT)
            for at in range(0, found["length_bytes"], BLOCK):
                offset = found["offset_bytes"] + at
                buffer = mmap.mmap(-1, BLOCK)
                os.preadv(device, [buffer], found["volume_bytes"] + at)
                count += BLOCK
                if buffer[:] != (os.pread(own, BLOCK, offset) if files else pattern(offset)):
                    bad.append(offset)
            os.close(device)
    print(json.dumps({"bytes": count, "bad": bad}))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2])
    else:
        compare(files=sys.argv[1] == "same")
