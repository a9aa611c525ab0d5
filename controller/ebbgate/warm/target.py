# SPDX-License-Identifier: GPL-2.0-only
"""Opens what is to be warmed, and finds where its data lies. I/O: files, sysfs; reads only."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ebbgate.errors import Unavailable
from ebbgate.layout.fiemap import Extent, is_realtime, read_layout
from ebbgate.units import sectors_to_bytes
from ebbgate.warm.btrfs import device_of
from ebbgate.warm.plan import Piece


@dataclass(slots=True)
class Target:
    """What is to be read.

    `handle`: open for direct reads. `pieces`: what lies on the device `devno`, in the order in
    which it is read: of a file, the order of the device (of btrfs, of its own addresses, which are
    as contiguous). `left_out`: bytes
    that cannot be warmed, by reason. `path`: of a file; empty for a range of a volume.
    `generation`: see `FileLayout`.
    """

    handle: int
    devno: tuple[int, int]
    pieces: tuple[Piece, ...]
    left_out: Mapping[str, int]
    path: str = ""
    size_bytes: int = 0
    generation: int | None = None

    def changed(self) -> str:
        """Return what has happened to the file since it was opened; empty if it is as it was."""
        if not self.path:
            return ""
        own = os.fstat(self.handle)
        if own.st_nlink == 0:
            return "the file was deleted"
        if own.st_size < self.size_bytes:
            return "the file was truncated"
        try:
            named = Path(self.path).stat()
        except OSError:
            return "the file was renamed"
        same = (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)
        return "" if same else "the file was replaced"


def open_file(path: str) -> Target:
    """Open a regular file, whatever else the path may lead to. Raises Unavailable."""
    try:
        # Follows links once, and opens neither devices nor pipes.
        found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise Unavailable(f"{path} cannot be opened: {_reason(error)}") from error
    try:
        status = os.fstat(found)
        if not stat.S_ISREG(status.st_mode):
            raise Unavailable(
                f"{path} is no regular file", "name files; for a volume: --range VOLUME:FROM-TO"
            )
        handle = _open_direct(f"/proc/self/fd/{found}", path)
    finally:
        os.close(found)
    try:
        return _file_target(handle, path, status)
    except BaseException:
        os.close(handle)
        raise


def _file_target(handle: int, path: str, status: os.stat_result) -> Target:
    devno: tuple[int, int] | None = _split(status.st_dev)
    if os.major(status.st_dev) == 0:
        devno = device_of(handle, path)
    if devno is None or is_realtime(handle):
        raise Unavailable(
            f"the file system of {path} does not tell on which device its data lies",
            "warm a part of the volume: --range VOLUME:FROM-TO",
        )
    start = _start_of_partition(devno)
    pieces, left_out = [], Counter[str]()
    layout = read_layout(handle, path)
    for extent in layout.extents:
        if extent.obstacle:
            left_out[extent.obstacle] += extent.length_bytes
        else:
            pieces.append(_piece(extent, start))
    pieces.sort(key=lambda piece: piece.device_bytes)
    size, generation = status.st_size, layout.generation
    return Target(handle, devno, tuple(pieces), left_out, path, size, generation)


def open_ranges(device: str, devno: tuple[int, int], ranges: Iterable[tuple[int, int]]) -> Target:
    """Open parts of a volume, which are read in this order. Raises Unavailable."""
    handle = _open_direct(device, device)
    status = os.fstat(handle)
    if not stat.S_ISBLK(status.st_mode) or _split(status.st_rdev) != devno:
        raise Unavailable(f"{device} is another device by now")
    pieces = tuple(Piece(start, start, end - start) for start, end in ranges)
    return Target(handle, devno, pieces, {})


def _open_direct(path: str, name: str) -> int:
    flags = os.O_RDONLY | os.O_DIRECT | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise Unavailable(
                f"the file system of {name} cannot read past the page cache (O_DIRECT)",
                "warm a part of the volume: --range VOLUME:FROM-TO",
            ) from error
        raise Unavailable(f"{name} cannot be opened: {_reason(error)}") from error


def _piece(extent: Extent, start: int) -> Piece:
    return Piece(extent.offset_bytes, start + extent.device_bytes, extent.length_bytes)


def _start_of_partition(devno: tuple[int, int]) -> int:
    """Return where a partition begins on its disk; 0 for another device."""
    try:
        text = Path(f"/sys/dev/block/{devno[0]}:{devno[1]}/start").read_text()
    except OSError:
        return 0
    return sectors_to_bytes(int(text))


def _split(devno: int) -> tuple[int, int]:
    return os.major(devno), os.minor(devno)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
