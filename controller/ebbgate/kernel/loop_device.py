# SPDX-License-Identifier: GPL-2.0-only
"""Asks the kernel for the file behind a loop device.

I/O: the ioctl LOOP_GET_STATUS64; reads only. Numbers: include/uapi/linux/loop.h. The path in sysfs
may lead to another file by now: one that took its place, or one of another mount namespace.
"""

from __future__ import annotations

import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_GET_STATUS64: Final = 0x4C05
# device and inode of the file, offset; the rest is not used here
_STATUS: Final = struct.Struct("=QQ8xQ200x")


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


def read_loop_file(device: str, path: str) -> LoopFile:
    """Return the file behind a loop device. `path`: what sysfs says. Raises OSError."""
    handle = os.open(Path("/dev", device), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        buffer = bytearray(_STATUS.size)
        fcntl.ioctl(handle, _GET_STATUS64, buffer)
    finally:
        os.close(handle)
    number, inode, offset = _STATUS.unpack(buffer)
    return LoopFile(device, path, (os.major(number), os.minor(number)), inode, offset)
