# SPDX-License-Identifier: GPL-2.0-only
"""Reads the layers from a file or block device down to cached volumes.

I/O: sysfs, device-mapper, loop devices, /proc, FIEMAP; reads only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from ebbgate.errors import EbbgateError, NotFound, PermissionDenied, Unavailable, UsageError
from ebbgate.kernel import loop_device
from ebbgate.kernel.device_mapper import Target
from ebbgate.kernel.sysfs import CLASS_BLOCK, Sysfs
from ebbgate.layout import dm_table, fiemap, images
from ebbgate.layout.images import ImageFormat
from ebbgate.layout.mapping import Below, Layer, LayerKind, Layers, Segment, still_holds
from ebbgate.layout.mounts import Mounts
from ebbgate.layout.path_handle import path_handle, reopened
from ebbgate.probes.dm_status import lvm_name
from ebbgate.units import SECTOR_BYTES, sectors_to_bytes

_DEPTH_MAX: Final = 32
"""Layers on each other; there may be any number of devices beside each other."""
_TRIES: Final = 3
TableOf = Callable[[str], Iterable[Target]]
"""Returns the table of a dm device by its name. Raises OSError."""


class ChainReader:
    """Reads chains of layers on one machine."""

    def __init__(
        self,
        sysfs: Sysfs,
        mounts: Mounts,
        titles: Mapping[str, str],
        table: TableOf | None = None,
        extents_max: int = fiemap.EXTENTS_MAX,
    ) -> None:
        """`titles`: of the volumes by kernel name; the layers end there."""
        self._sysfs = sysfs
        self._mounts = mounts
        self._titles = titles
        self._table = table or sysfs.dm.table
        self._extents_max = extents_max
        self._layers: dict[str, Layer] = {}
        self._unfinished: set[str] = set()

    def read(self, path: Path, image: ImageFormat | None = None) -> dict[str, Layer]:
        """Return the layers by name, the top one first; all are read twice to notice a change.

        `image`: the top layer is the disk in this image. Raises EbbgateError with the next step
        where a layer cannot be mapped.
        """
        for _ in range(_TRIES):
            found = self._read_once(path, image)
            if _hold(found, self._read_once(path, image)):
                return found
        raise _changes(path)

    def read_next(self, path: Path) -> Mapping[str, Layer]:
        """Return the layers below a file, which is called `str(path)`.

        Devices that an earlier call has read are not read again: see `changed`. Raises
        EbbgateError.
        """
        return self._next(path, None)

    def read_next_image(self, path: Path, image: ImageFormat) -> Mapping[str, Layer]:
        """Return the layers below the disk in an image, which is called `disk_name(path)`.

        Else as `read_next`. It is read twice, since a guest may write to it.
        """
        found = self._next(path, image)
        if image is not ImageFormat.RAW and not _hold(found, self._next(path, image)):
            raise _changes(path)
        return found

    def _next(self, path: Path, image: ImageFormat | None) -> Mapping[str, Layer]:
        try:
            self._add_top(path, image)
            return dict(self._layers)
        finally:
            for name in (*self._unfinished, str(path), disk_name(path)):
                self._layers.pop(name, None)
            self._unfinished.clear()

    def changed(self) -> bool:
        """Return whether a device below the files of `read_next` is another by now.

        Also whether the file of a loop device is, or its data has moved. A file system in it is
        written while it is read, which only adds to what is known of the file.
        """
        before, self._layers = self._layers, {}
        try:
            for name, layer in before.items():
                if layer.kind is LayerKind.FILE:
                    self._add_path(Path(name))
                else:
                    self._add_device(name)
        except EbbgateError:
            return True
        return not _hold(before, self._layers)

    def _read_once(self, path: Path, image: ImageFormat | None) -> dict[str, Layer]:
        self._layers, self._unfinished = {}, set()
        self._add_top(path, image)
        return self._layers

    def _add_top(self, path: Path, image: ImageFormat | None) -> None:
        if image:
            self._add(disk_name(path), lambda: self._image(path, image))
        else:
            self._add_path(path)

    def _image(self, path: Path, image: ImageFormat) -> Layer:
        below = self._add_path(path)
        name, size = disk_name(path), self._layers[below].size_bytes
        if image is ImageFormat.RAW:
            return Layer(
                LayerKind.IMAGE, name, size, (Segment(0, size, (Below(below, 0),)),), image
            )
        size, segments = images.qcow2_segments(path, below)
        return Layer(LayerKind.IMAGE, name, size, segments, image)

    def _add_path(self, path: Path) -> str:
        with _seen(path) as place:
            status = os.fstat(place)
            if stat.S_ISBLK(status.st_mode):
                return self._add_number(_number(status.st_rdev), str(path))
            if stat.S_ISDIR(status.st_mode):
                raise UsageError(f"{path} is a folder", f"name its files: '{path}/**/*'")
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{path} is neither a file nor a block device")
            with _opened(path, place) as handle:
                return self._add_file(path, handle, status)

    def _add_file(self, path: Path, handle: int, status: os.stat_result) -> str:
        mount = self._mounts.of(handle)
        if mount.refusal:
            known = mount.filesystem or "an unknown file system"
            raise Unavailable(f"{path} is on {known}: its place cannot be used", mount.refusal)
        if fiemap.is_realtime(handle):
            raise Unavailable(
                f"{path} is in the realtime section of XFS, on another device",
                "warm it by reading the file",
            )

        def read() -> Layer:
            layout = fiemap.read_layout(handle, str(path), self._extents_max)
            device = self._add_number(_number(status.st_dev), str(path))
            return Layer(
                LayerKind.FILE,
                str(path),
                layout.size_bytes,
                tuple(_extent_segment(extent, device) for extent in layout.extents),
                mount.filesystem,
                (status.st_dev, status.st_ino, layout.generation),
            )

        return self._add(str(path), read)

    def _add(self, name: str, read: Callable[[], Layer]) -> str:
        """Add a layer once, before those below it, so that they are in order from top to bottom."""
        if name in self._unfinished:
            raise Unavailable(f"{name} lies on itself", "see losetup --list")
        if name not in self._layers:
            if len(self._unfinished) >= _DEPTH_MAX:
                raise Unavailable(f"{_DEPTH_MAX} layers lie on {name}: more are not followed")
            self._layers[name] = Layer(LayerKind.DISK, name, 0)
            self._unfinished.add(name)
            self._layers[name] = read()
            self._unfinished.remove(name)
        return name

    def _add_number(self, number: str, what: str) -> str:
        real = self._sysfs.real(Path("/sys/dev/block") / number)
        if real is None:
            raise Unavailable(f"{what} is on no local block device (number {number})")
        return self._add_device(real.name)

    def _add_device(self, name: str) -> str:
        return self._add(name, lambda: self._device(name))

    def _device(self, name: str) -> Layer:
        here = CLASS_BLOCK / name
        size = sectors_to_bytes(self._sysfs.read_int(here / "size") or 0)
        if name in self._titles:
            return Layer(LayerKind.VOLUME, name, size, about=self._titles[name])
        if self._sysfs.exists(here / "partition"):
            return self._partition(name, here, size)
        if self._sysfs.exists(here / "dm"):
            return self._dm(name, here, size)
        if self._sysfs.exists(here / "loop"):
            return self._loop(name, here, size)
        return Layer(LayerKind.DISK, name, size)

    def _partition(self, name: str, here: Path, size: int) -> Layer:
        real = self._sysfs.real(here)
        start = self._sysfs.read_int(here / "start")
        if real is None or start is None:
            raise Unavailable(f"the partition {name} has vanished")
        below = Below(self._add_device(real.parent.name), sectors_to_bytes(start))
        return Layer(LayerKind.PARTITION, name, size, (Segment(0, size, (below,)),))

    def _dm(self, name: str, here: Path, size: int) -> Layer:
        title = self._sysfs.read_text(here / "dm/name") or name
        try:
            table = self._table(title)
        except OSError as error:
            raise Unavailable(
                f"the table of {title} cannot be read: {error.strerror}", "run this as root"
            ) from error
        found = dm_table.segments(title, table, lambda each: self._add_number(each, title))
        uuid = self._sysfs.read_text(here / "dm/uuid") or ""
        return Layer(LayerKind.DM, name, size, found, lvm_name(title, uuid) or title)

    def _loop(self, name: str, here: Path, size: int) -> Layer:
        file = self._sysfs.read_text(here / "loop/backing_file") or ""
        try:
            offset = _loop_offset(name, file)
            below = Below(self._add_path(Path(file)), offset)
        except NotFound as error:
            why = f"the file of {name} is not here: {file} (deleted, or in another namespace)"
            raise Unavailable(why, "attach the loop device again, or run this there") from error
        return Layer(LayerKind.LOOP, name, size, (Segment(0, size, (below,)),), file)


def disk_name(image: Path) -> str:
    """Return the name of the layer that is the disk in an image."""
    return f"disk in {image}"


def _loop_offset(name: str, file: str) -> int:
    """Return where a loop device begins in its file, which this path must lead to.

    Another file may have taken its place, or be there in this mount namespace.
    """
    with _seen(Path(file)) as place:
        status = os.fstat(place)
    try:
        found = loop_device.read_loop_file(name, file)
    except OSError as error:
        why = f"the loop device {name} cannot be asked for its file: {error.strerror}"
        raise Unavailable(why, "run this as root") from error
    if not found.is_same(status):
        number = f"{found.devno[0]}:{found.devno[1]}"
        raise Unavailable(
            f"{file} is not the file of {name}: it is inode {status.st_ino} of device"
            f" {_number(status.st_dev)}, {name} uses inode {found.inode} of device {number}",
            "the file was replaced, or is in another mount namespace: attach the loop device"
            " again, or run this there",
        )
    return found.offset_bytes


def _hold(before: Layers, now: Layers) -> bool:
    """Return whether the same layers are there, and what is known of each still holds."""
    if before.keys() != now.keys():
        return False
    return all(still_holds(layer, now[name]) for name, layer in before.items())


def _changes(path: Path) -> Unavailable:
    return Unavailable(
        f"the layers below {path} change while they are read",
        "it is being written, replaced or moved (pvmove, lvconvert): try again later",
    )


def _extent_segment(extent: fiemap.Extent, device: str) -> Segment:
    why = extent.obstacle
    if not why and (extent.device_bytes | extent.offset_bytes) % SECTOR_BYTES:
        why = fiemap.OBSTACLES[fiemap.ExtentFlag.NOT_ALIGNED]
    below = () if why else (Below(device, extent.device_bytes),)
    return Segment(extent.offset_bytes, extent.length_bytes, below, why=why)


@contextmanager
def _seen(path: Path) -> Iterator[int]:
    with ExitStack() as closing:
        try:
            place = closing.enter_context(path_handle(path))
        except OSError as error:
            raise _not_opened(path, error) from error
        yield place


@contextmanager
def _opened(path: Path, place: int) -> Iterator[int]:
    """Open a file that was seen at this path."""
    try:
        handle = reopened(place)
    except OSError as error:
        raise _not_opened(path, error) from error
    try:
        yield handle
    finally:
        os.close(handle)


def _not_opened(path: Path, error: OSError) -> EbbgateError:
    if isinstance(error, PermissionError):
        return PermissionDenied(f"{path} cannot be opened: {error.strerror}", "run this as root")
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotFound(f"no such file: {path}")
    return Unavailable(f"{path} cannot be opened: {error.strerror}")


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"
