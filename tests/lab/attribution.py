# SPDX-License-Identifier: GPL-2.0-only
"""Requests of two cgroups to two files on a cached volume, and whom the probe found for them.

I/O: the guest and the probe. Started by its path, this file is the program that reads or writes.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.lab.session import Session
    from tests.probe_records import Record

BLOCK_BYTES: Final = 65536
"""Requests are so far apart: one to each block of dm-cache."""
PAGE_BYTES: Final = 4096
_ROOT: Final = "/sys/fs/cgroup"

Misses = dict[tuple[int, ...], tuple[int, int]]
"""Reads and writes by owner: a cgroup's id, or device and number of an inode."""


@dataclass(frozen=True, slots=True)
class Attributed:
    """All that a probe found in some records."""

    cgroups: Misses
    inodes: Misses


def attributed(records: Iterable[Record]) -> Attributed:
    """Add up the misses of records that have them all."""
    cgroups, inodes = Counter[tuple[tuple[int, ...], int]](), Counter[tuple[tuple[int, ...], int]]()
    for record in records:
        assert record["since_ns"] < record["until_ns"] <= record["ns"]
        for kind, owners, width in (("cgroups", cgroups, 1), ("inodes", inodes, 2)):
            assert record[f"{kind}_left_out"] == record[f"{kind}_dropped"] == 0
            for *owner, reads, writes in _rows(record[kind], width + 2):
                owners[tuple(owner), 0] += reads
                owners[tuple(owner), 1] += writes
    return Attributed(_misses(cgroups), _misses(inodes))


def _rows(numbers: list[int], width: int) -> Iterator[tuple[int, ...]]:
    return zip(*(numbers[start::width] for start in range(width)), strict=True)


def _misses(counts: Counter[tuple[tuple[int, ...], int]]) -> Misses:
    return {owner: (counts[owner, 0], counts[owner, 1]) for owner, _ in counts}


@contextmanager
def cgroups(guest: Session) -> Iterator[tuple[str, str]]:
    """Two cgroups whose I/O is told apart. Below the second is one that the I/O is not told of."""
    names = "first", "second"
    guest.check(f"echo +io +memory > {_ROOT}/cgroup.subtree_control")
    guest.check(["mkdir", f"{_ROOT}/first", f"{_ROOT}/second", f"{_ROOT}/second/below"])
    try:
        yield names
    finally:
        guest.check(["rmdir", f"{_ROOT}/second/below", f"{_ROOT}/second", f"{_ROOT}/first"])
        guest.check(f"echo -io -memory > {_ROOT}/cgroup.subtree_control")


def cgroup_id(guest: Session, name: str) -> tuple[int, ...]:
    return (int(guest.check(["stat", "-c", "%i", f"{_ROOT}/{name}"])),)


def inode_of(guest: Session, path: str) -> tuple[int, ...]:
    """The device as the kernel numbers it, and the inode."""
    dev, inode = map(int, guest.check(["stat", "-c", "%d %i", path]).split())
    return (os.major(dev) << 20 | os.minor(dev), inode)


def new_file(guest: Session, path: str, blocks: int) -> None:
    """A file whose data is on the disk alone: written in halves of a block, past the page cache."""
    half = BLOCK_BYTES // 2
    guest.check(
        f"dd if=/dev/urandom of={path} bs={half} count={2 * blocks} oflag=direct status=none"
    )
    guest.check(["sync"])


def use(guest: Session, cgroup: str, how: str, path: str, blocks: range) -> None:
    """Have a program of a cgroup use the first page of some blocks of a file."""
    numbers = str(blocks.start), str(blocks.stop)
    argv = ["/usr/bin/python3", "-I", __file__, f"{_ROOT}/{cgroup}", how, path, *numbers]
    guest.check(argv, timeout_s=120)


def _program(cgroup: str, how: str, path: str, blocks: range) -> None:
    Path(cgroup, "cgroup.procs").write_text(str(os.getpid()))
    direct = os.O_DIRECT if how in ("private", "shared", "write past") else 0
    file = os.open(path, os.O_RDWR | direct)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    kind = mmap.MAP_SHARED if how == "shared" else mmap.MAP_PRIVATE
    memory = mmap.mmap(-1, PAGE_BYTES, flags=kind | mmap.MAP_ANONYMOUS)
    for number in blocks:
        if how == "write":
            os.pwrite(file, bytes([number]) * PAGE_BYTES, number * BLOCK_BYTES)
        elif how == "write past":
            assert os.pwritev(file, [memory], number * BLOCK_BYTES) == PAGE_BYTES
        else:
            assert os.preadv(file, [memory], number * BLOCK_BYTES) == PAGE_BYTES
    os.fsync(file)


if __name__ == "__main__":
    _program(sys.argv[1], sys.argv[2], sys.argv[3], range(int(sys.argv[4]), int(sys.argv[5])))
