# SPDX-License-Identifier: GPL-2.0-only
"""Reads the extents of an open file. I/O: the ioctls FIEMAP, GETVERSION and FSGETXATTR; reads only.

Numbers and flags: include/uapi/linux/fiemap.h and fs.h.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag
from typing import Final, NamedTuple

from ebbgate.errors import Unavailable
from ebbgate.layout.coverage import still_there

_FIEMAP: Final = 0xC020660B
_GETVERSION: Final = 0x80087601
_FSGETXATTR: Final = 0x801C581F
# start, length, flags, mapped_extents, extent_count, reserved
_HEAD: Final = struct.Struct("=QQIIII")
# logical, physical, length, reserved64[2], flags, reserved[3]
_EXTENT: Final = struct.Struct("=QQQ16xI12x")
_FSXATTR: Final = struct.Struct("=I24x")
_LONG: Final = struct.Struct("@l")
_FSX_REALTIME: Final = 1
_BATCH: Final = 512
EXTENTS_MAX: Final = 1 << 20
"""More extents than any file should have: about 200 MiB of memory here."""
_TRIES: Final = 3


class ExtentFlag(IntFlag):
    """What the file system says of an extent."""

    LAST = 0x1
    UNKNOWN = 0x2
    DELALLOC = 0x4
    ENCODED = 0x8
    ENCRYPTED = 0x80
    NOT_ALIGNED = 0x100
    INLINE = 0x200
    TAIL = 0x400
    UNWRITTEN = 0x800
    MERGED = 0x1000
    SHARED = 0x2000


OBSTACLES: Final[Mapping[ExtentFlag, str]] = {
    ExtentFlag.DELALLOC: "not allocated yet",
    ExtentFlag.UNKNOWN: "of unknown place",
    ExtentFlag.UNWRITTEN: "allocated but never written",
    ExtentFlag.INLINE: "stored within metadata",
    ExtentFlag.TAIL: "packed with the end of other files",
    ExtentFlag.ENCRYPTED: "encrypted by the file system",
    ExtentFlag.ENCODED: "compressed or otherwise encoded",
    ExtentFlag.NOT_ALIGNED: "not aligned to blocks",
}
"""Flags that forbid using an extent's place on the device; the first that is set is named."""
_HARMLESS: Final = ExtentFlag.LAST | ExtentFlag.MERGED | ExtentFlag.SHARED


@dataclass(frozen=True, slots=True)
class Extent:
    """A part of a file that is contiguous on the file system's device."""

    offset_bytes: int
    device_bytes: int
    length_bytes: int
    flags: int = 0

    @property
    def end_bytes(self) -> int:
        """The offset in the file behind it."""
        return self.offset_bytes + self.length_bytes

    @property
    def obstacle(self) -> str:
        """Why its place on the device must not be used; empty where it may be."""
        for flag, why in OBSTACLES.items():
            if self.flags & flag:
                return why
        unknown = self.flags & ~int(_HARMLESS)
        return f"of a kind that ebbgate does not know (flags {unknown:#x})" if unknown else ""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The extents of a file, by offset.

    `generation`: changes when the inode's number is used for another file; None where the file
    system has none.
    """

    size_bytes: int
    generation: int | None
    extents: tuple[Extent, ...]


def read_layout(handle: int, name: str, extents_max: int = EXTENTS_MAX) -> FileLayout:
    """Return where an open file lies, read twice to notice a change.

    A write in place is none: the file stays usable, whatever its times say. Of a file that gets
    more data at each try, what was read first is returned, if it is still there. Raises Unavailable
    where the file system does not tell, and where the file changes at each try.
    """
    for left in reversed(range(_TRIES)):
        first, extents = _stamp(handle), _checked(handle, name, extents_max)
        again, last = _checked(handle, name, extents_max), _stamp(handle)
        if extents is None or again is None:
            continue
        if first == last and extents == again:
            return FileLayout(*last, extents)
        grown = first.generation == last.generation and first.size_bytes <= last.size_bytes
        if left == 0 and grown and still_there(_usable(extents), _usable(again)):
            return FileLayout(*first, extents)
    raise Unavailable(
        f"the layout of {name} changes while it is read",
        "it is being written, truncated or moved: try again later",
    )


def is_realtime(handle: int) -> bool:
    """Return whether the file's data is in the realtime section of XFS: on another device."""
    buffer = bytearray(_FSXATTR.size)
    try:
        fcntl.ioctl(handle, _FSGETXATTR, buffer)
    except OSError:
        return False
    (flags,) = _FSXATTR.unpack(buffer)
    return bool(flags & _FSX_REALTIME)


def _usable(extents: Iterable[Extent]) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of a file that have a place."""
    for each in extents:
        if not each.obstacle:
            yield each.offset_bytes, each.end_bytes, each.device_bytes - each.offset_bytes


class _Stamp(NamedTuple):
    size_bytes: int
    generation: int | None


def _stamp(handle: int) -> _Stamp:
    return _Stamp(os.fstat(handle).st_size, _generation(handle))


def _generation(handle: int) -> int | None:
    buffer = bytearray(_LONG.size)
    try:
        fcntl.ioctl(handle, _GETVERSION, buffer)
    except OSError:
        return None
    (number,) = _LONG.unpack(buffer)
    return int(number)


def _checked(handle: int, name: str, extents_max: int) -> tuple[Extent, ...] | None:
    """Return all extents; None where they overlap, so changed between two calls."""
    extents: list[Extent] = []
    try:
        for extent in _read(handle):
            if extents and extent.offset_bytes < extents[-1].end_bytes:
                return None
            extents.append(extent)
            if len(extents) > extents_max:
                raise Unavailable(
                    f"{name} has more than {extents_max} extents",
                    "defragment or copy it; its place cannot be used",
                )
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY, errno.EBADR):
            raise Unavailable(
                f"the file system of {name} does not tell where files lie",
                "such a file can only be warmed by reading it",
            ) from error
        raise Unavailable(f"the extents of {name} cannot be read: {error.strerror}") from error
    return tuple(extents)


def _read(handle: int) -> Iterator[Extent]:
    """Yield the extents as the kernel lists them. Nothing is flushed for it."""
    start = 0
    while True:
        buffer = bytearray(_HEAD.pack(start, (1 << 64) - 1 - start, 0, 0, _BATCH, 0))
        buffer += bytes(_BATCH * _EXTENT.size)
        fcntl.ioctl(handle, _FIEMAP, buffer)
        count = _HEAD.unpack_from(buffer)[3]
        for number in range(count):
            extent = Extent(*_EXTENT.unpack_from(buffer, _HEAD.size + number * _EXTENT.size))
            yield extent
            start = extent.end_bytes
            if extent.flags & ExtentFlag.LAST:
                return
        if count == 0:
            return
