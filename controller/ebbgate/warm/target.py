# SPDX-License-Identifier: GPL-2.0-only
"""Opens what is to be warmed, and finds where its data lies. I/O: files, sysfs; reads only."""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbgate.errors import Unavailable
from ebbgate.kernel.loop_device import LoopFile
from ebbgate.kernel.sysfs import CLASS_BLOCK, Sysfs
from ebbgate.layout.fiemap import Extent, is_realtime, read_layout
from ebbgate.layout.mounts import Mounts
from ebbgate.probes.block import whole_disk
from ebbgate.units import SECTOR_BYTES, sectors_to_bytes
from ebbgate.warm.btrfs import device_of
from ebbgate.warm.loop import loop_file, within_file
from ebbgate.warm.plan import UNIT_BYTES, Piece, block_count, cut_at


@dataclass(frozen=True, slots=True)
class File:
    """An open file; `loop`: what it is behind, unless it is the one that was asked for."""

    handle: int
    path: str
    loop: LoopFile | None = None


@dataclass(slots=True)
class Target:
    """What is to be read.

    `handle`: open for direct reads. `pieces`: what lies on the device `devno`, in the order in
    which it is read: of a file, the order of the device (of btrfs, of its own addresses, which are
    as contiguous). `left_out`: bytes that cannot be warmed, by reason. `path`: of a file; empty for
    a range of a volume. `generation`: see `FileLayout`. `files`: of a file below which there are
    loop devices: from that file down to the one that is read. `unit_bytes`: reads of `handle` past
    the page cache begin at multiples of it and are as long.
    """

    handle: int
    devno: tuple[int, int]
    pieces: tuple[Piece, ...]
    left_out: Mapping[str, int]
    path: str = ""
    size_bytes: int = 0
    generation: int | None = None
    files: tuple[File, ...] = ()
    unit_bytes: int = SECTOR_BYTES

    @property
    def named(self) -> int:
        """The open file or volume that was asked for."""
        return self.files[0].handle if self.files else self.handle

    def readable(self, unit_bytes: int) -> tuple[Piece, ...]:
        """Return the pieces up to the last unit in which the file has data.

        The last block of a file reaches beyond its end, where a read finds nothing and reaches no
        device. The file behind a loop device has data there.
        """
        if not self.path or self.files:
            return self.pieces
        return tuple(cut_at(self.pieces, _rounded_up(self.size_bytes, unit_bytes)))

    def block_counts(self, request: Mapping[str, Any]) -> dict[str, int]:
        """Return how many blocks it touches of each of the `block_sizes` of a request, if any."""
        sizes = request.get("block_sizes", ())
        return {str(size): block_count(self.pieces, size) for size in sizes}

    def close(self) -> None:
        """Close all files."""
        for handle in {self.handle, *(file.handle for file in self.files)}:
            os.close(handle)

    def changed(self) -> str:
        """Return what has happened to the file since it was opened; empty if it is as it was."""
        if not self.path:
            return ""
        own = os.fstat(self.named)
        try:
            named = Path(self.path).stat()
        except OSError:
            return "the file was renamed" if own.st_nlink else "the file was deleted"
        if (named.st_dev, named.st_ino) != (own.st_dev, own.st_ino):
            return "the file was replaced"
        return "the file was truncated" if own.st_size < self.size_bytes else ""

    def moved(self) -> bool:
        """Return whether data of the file has left the places that are read. Raises Unavailable.

        A file that is read itself is found wherever it is; one on a loop device is read by its
        places in another file.
        """
        return bool(self.files) and not _covers(_places(self.files).pieces, self.pieces)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a file lies on a device; see `Target`."""

    devno: tuple[int, int]
    pieces: tuple[Piece, ...]
    left_out: Counter[str]
    generation: int | None


def open_file(path: str) -> Target:
    """Open a regular file, whatever else the path may lead to. Raises Unavailable.

    Of a file on a loop device the file behind that device is opened, too, and read: reads through
    the device end in the page cache of that file, and are no reads of this process.
    """
    files = [File(_open_regular(path), path)]
    try:
        while loop := _loop_below(files[-1]):
            files.append(File(_open_behind(loop, path), loop.path, loop))
        size, found = os.fstat(files[0].handle).st_size, _places(files)
        unit = read_unit(os.fstat(files[-1].handle))
    except BaseException:
        for file in files:
            os.close(file.handle)
        raise
    several = tuple(files) if len(files) > 1 else ()
    place = files[-1].handle, found.devno, found.pieces, found.left_out
    return Target(*place, path, size, found.generation, several, unit)


def device_below_loops(devno: tuple[int, int], path: str) -> tuple[int, int]:
    """Return the device on which a loop device of this number lies at last; else this number.

    `path`: a file or folder on it. Raises Unavailable.
    """
    while loop := loop_file(devno):
        handle = _open_behind(loop, path)
        try:
            devno = _device(File(handle, loop.path))
            if _on_btrfs(handle):
                return devno
        finally:
            os.close(handle)
    return devno


def _open_regular(path: str, loop: LoopFile | None = None) -> int:
    """Open a regular file for direct reads; `loop`: it must be the file behind this device."""
    try:
        # Follows links once, and opens neither devices nor pipes.
        found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise Unavailable(f"{path} cannot be opened: {_reason(error)}") from error
    try:
        status = os.fstat(found)
        if loop and not loop.is_same(status):
            raise Unavailable(f"{path} is not the file of {loop.device}")
        if not stat.S_ISREG(status.st_mode):
            raise Unavailable(
                f"{path} is no regular file", "name files; for a volume: --range VOLUME:FROM-TO"
            )
        return _open_direct(f"/proc/self/fd/{found}", path)
    finally:
        os.close(found)


def _open_behind(loop: LoopFile, path: str) -> int:
    """Open the file of a loop device, below `path`. Raises Unavailable."""
    try:
        return _open_regular(loop.path, loop)
    except Unavailable as error:
        raise Unavailable(
            f"{path} is on {loop.device}, a loop device, and its file cannot be read:"
            f" {error.message}",
            error.hint or "it was deleted, or is in another mount namespace: see losetup --list",
        ) from error


def _loop_below(file: File) -> LoopFile | None:
    """Return the file of the loop device on which a file lies; None where there is none.

    Also on btrfs, which does not tell where on the device files lie.
    """
    return None if _on_btrfs(file.handle) else loop_file(_device(file))


def _on_btrfs(handle: int) -> bool:
    return os.major(os.fstat(handle).st_dev) == 0


def _device(file: File) -> tuple[int, int]:
    """Return the device on which the data of a file lies. Raises Unavailable."""
    number = os.fstat(file.handle).st_dev
    devno: tuple[int, int] | None = _split(number)
    if os.major(number) == 0:
        devno = device_of(file.handle, file.path)
    if devno is None or is_realtime(file.handle):
        raise Unavailable(
            f"the file system of {file.path} does not tell on which device its data lies",
            _next_step(file.handle),
        )
    return devno


def _next_step(handle: int) -> str:
    """Return what to do about a file whose file system tells no device."""
    mount = Mounts().of(handle)
    if mount.filesystem == "overlay":
        return mount.refusal
    return "warm a part of the volume: --range VOLUME:FROM-TO"


def _places(files: Sequence[File]) -> _Places:
    """Return where the first of these files lies in the last one, and on its device."""
    first, *behind = files
    found = _own_places(first)
    for file in behind:
        assert file.loop is not None
        devno, layout = _device(file), read_layout(file.handle, file.path)
        inside, left_out = within_file(
            found.pieces, file.loop, layout.extents, _start_of_partition(devno)
        )
        kept = found.left_out + left_out
        found = _Places(devno, _in_order(inside), kept, found.generation)
    return found


def _own_places(file: File) -> _Places:
    """Return where a file lies on the device of its file system.

    Without the blocks behind its end, which XFS may have allocated for what comes next.
    """
    devno = _device(file)
    start = _start_of_partition(devno)
    pieces, left_out = list[Piece](), Counter[str]()
    layout = read_layout(file.handle, file.path)
    block_bytes = max(UNIT_BYTES, os.fstat(file.handle).st_blksize)
    for extent in layout.extents:
        if extent.obstacle:
            left_out[extent.obstacle] += extent.length_bytes
        else:
            pieces.append(_piece(extent, start))
    kept = cut_at(pieces, _rounded_up(layout.size_bytes, block_bytes))
    return _Places(devno, _in_order(kept), left_out, layout.generation)


def _in_order(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    return tuple(sorted(pieces, key=lambda piece: piece.device_bytes))


def _covers(now: Iterable[Piece], before: Iterable[Piece]) -> bool:
    """Return whether all parts of the file that is read in `before` are in `now`, too.

    The file that was asked for may have grown, which may also have joined pieces.
    """
    ranges: list[tuple[int, int]] = []
    for piece in sorted(now, key=lambda piece: piece.offset_bytes):
        start, end = piece.offset_bytes, piece.offset_bytes + piece.length_bytes
        if ranges and start <= ranges[-1][1]:
            start, end = ranges[-1][0], max(end, ranges.pop()[1])
        ranges.append((start, end))
    for piece in before:
        number = bisect_right(ranges, piece.offset_bytes, key=lambda each: each[0]) - 1
        if number < 0 or piece.offset_bytes + piece.length_bytes > ranges[number][1]:
            return False
    return True


def open_ranges(device: str, devno: tuple[int, int], ranges: Iterable[tuple[int, int]]) -> Target:
    """Open parts of a volume, which are read in this order. Raises Unavailable."""
    handle = _open_direct(device, device)
    status = os.fstat(handle)
    if not stat.S_ISBLK(status.st_mode) or _split(status.st_rdev) != devno:
        raise Unavailable(f"{device} is another device by now")
    pieces = tuple(Piece(start, start, end - start) for start, end in ranges)
    return Target(handle, devno, pieces, {}, unit_bytes=read_unit(status))


def read_unit(status: os.stat_result, sysfs: Sysfs | None = None) -> int:
    """Return the bytes of the smallest read past the page cache of an open file or block device.

    A device between the file and the cached volume may have larger blocks than that volume
    (dm-crypt with sectors of 4096 bytes): the kernel refuses smaller reads. btrfs, whose number is
    of no device, answers them from the page cache.
    """
    sysfs = sysfs or Sysfs()
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    if os.major(number) == 0:
        return max(SECTOR_BYTES, status.st_blksize)
    real = sysfs.real(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if real is None:
        return SECTOR_BYTES
    queue = CLASS_BLOCK / whole_disk(sysfs, real.name) / "queue"
    return sysfs.read_int(queue / "logical_block_size") or SECTOR_BYTES


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


def _rounded_up(count_bytes: int, unit_bytes: int) -> int:
    return -(-count_bytes // unit_bytes) * unit_bytes


def _split(devno: int) -> tuple[int, int]:
    return os.major(devno), os.minor(devno)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
