# SPDX-License-Identifier: GPL-2.0-only
"""Finds the device of a file on btrfs, whose own device number names none.

I/O: the ioctl BTRFS_IOC_FS_INFO, sysfs; reads only. Numbers: include/uapi/linux/btrfs.h.
"""

from __future__ import annotations

import fcntl
import struct
from pathlib import Path
from typing import Final
from uuid import UUID

from ebbgate.errors import Unavailable

_FS_INFO: Final = 0x8400941F
_FS_INFO_BYTES: Final = 1024
# max_id, num_devices, fsid
_HEAD: Final = struct.Struct("=QQ16s")


def device_of(handle: int, path: str) -> tuple[int, int] | None:
    """Return the number of the only device of an open file's btrfs; None on another file system.

    Raises Unavailable where there are several.
    """
    buffer = bytearray(_FS_INFO_BYTES)
    try:
        fcntl.ioctl(handle, _FS_INFO, buffer)
    except OSError:
        return None
    _, count, fsid = _HEAD.unpack_from(buffer)
    if count != 1:
        raise Unavailable(
            f"{path} is on a btrfs of {count} devices: which of them has its data is not known",
            "warm a part of the volume: --range VOLUME:FROM-TO",
        )
    for found in Path("/sys/fs/btrfs", str(UUID(bytes=fsid)), "devices").glob("*/dev"):
        major, minor = found.read_text().split(":")
        return int(major), int(minor)
    return None
