# SPDX-License-Identifier: GPL-2.0-only
"""Finds the file behind a loop device, and where in that file a part of the device lies.

I/O: sysfs, the ioctl LOOP_GET_STATUS64; reads only. Numbers: include/uapi/linux/loop.h.
"""

from __future__ import annotations

import fcntl
import os
import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbgate.errors import Unavailable
from ebbgate.kernel.sysfs import CLASS_BLOCK, Sysfs
from ebbgate.layout.fiemap import Extent
from ebbgate.probes.block import whole_disk
from ebbgate.warm.plan import Piece

_GET_STATUS64: Final = 0x4C05
# device and inode of the file, offset; the rest is not used here
_STATUS: Final = struct.Struct("=QQ8xQ200x")
HOLE: Final = "in a hole of the loop device's file"


@dataclass(frozen=True, slots=True)
class LoopFile:
    """The file behind a loop device.

    `device`: kernel name of the loop device. `devno`, `inode`: of the file. `offset_bytes`: where
    the device begins in it.
    """

    device: str
    path: str
    devno: tuple[int, int]
    inode: int
    offset_bytes: int

    def is_same(self, status: os.stat_result) -> bool:
        """Return whether this is the status of the file."""
        own = os.major(status.st_dev), os.minor(status.st_dev), status.st_ino
        return own == (*self.devno, self.inode)


def loop_file(devno: tuple[int, int]) -> LoopFile | None:
    """Return the file behind a loop device or a partition of one; None for another device.

    Raises Unavailable where the kernel does not say.
    """
    sysfs = Sysfs()
    real = sysfs.real(f"/sys/dev/block/{devno[0]}:{devno[1]}")
    if real is None:
        return None
    name = whole_disk(sysfs, real.name)
    path = sysfs.read_text(CLASS_BLOCK / name / "loop/backing_file")
    if path is None:
        return None
    try:
        device, inode, offset = _status(Path("/dev", name))
    except OSError as error:
        raise Unavailable(
            f"the loop device {name} cannot be asked for its file: {error.strerror}",
            f"warm that file: {path}",
        ) from error
    return LoopFile(name, path, (os.major(device), os.minor(device)), inode, offset)


def _status(device: Path) -> tuple[int, int, int]:
    """Return the device number, inode and offset of the file. Raises OSError."""
    handle = os.open(device, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        buffer = bytearray(_STATUS.size)
        fcntl.ioctl(handle, _GET_STATUS64, buffer)
    finally:
        os.close(handle)
    number, inode, offset = _STATUS.unpack(buffer)
    return number, inode, offset


def within_file(
    pieces: Iterable[Piece], loop: LoopFile, extents: Sequence[Extent], start_bytes: int
) -> tuple[list[Piece], Counter[str]]:
    """Return where pieces of a loop device lie in its file, and what cannot be used, by reason.

    `extents`: of the file, in order. `start_bytes`: of its file system on the device below.
    """
    found, left_out = [], Counter[str]()
    offsets = [extent.offset_bytes for extent in extents]
    for piece in pieces:
        begin = loop.offset_bytes + piece.device_bytes
        first = max(0, bisect_right(offsets, begin) - 1)
        for at, length, extent in _cut(begin, begin + piece.length_bytes, extents, first):
            if extent is None:
                left_out[HOLE] += length
            elif extent.obstacle:
                left_out[f"{extent.obstacle} in the loop device's file"] += length
            else:
                place = start_bytes + extent.device_bytes + at - extent.offset_bytes
                found.append(Piece(at, place, length))
    return found, left_out


def _cut(
    at: int, end: int, extents: Sequence[Extent], number: int
) -> Iterator[tuple[int, int, Extent | None]]:
    """Yield the parts of a range of the file, each with its extent; None for a hole."""
    while at < end and number < len(extents):
        extent = extents[number]
        if extent.offset_bytes > at:
            stop = min(end, extent.offset_bytes)
            yield at, stop - at, None
            at = stop
        stop = min(end, extent.end_bytes)
        if stop > at:
            yield at, stop - at, extent
            at = stop
        number += 1
    if at < end:
        yield at, end - at, None
