# SPDX-License-Identifier: GPL-2.0-only
"""Finds the file behind a loop device, and where in that file a part of the device lies.

I/O: sysfs, an ioctl of the loop device; reads only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ebbgate.errors import Unavailable
from ebbgate.kernel.loop_device import LoopFile, read_loop_file
from ebbgate.kernel.sysfs import CLASS_BLOCK, Sysfs
from ebbgate.layout.fiemap import Extent
from ebbgate.probes.block import whole_disk
from ebbgate.warm.plan import Piece

HOLE: Final = "in a hole of the loop device's file"


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
        return read_loop_file(name, path)
    except OSError as error:
        raise Unavailable(
            f"the loop device {name} cannot be asked for its file: {error.strerror}",
            f"warm that file: {path}",
        ) from error


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
