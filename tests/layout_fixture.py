# SPDX-License-Identifier: GPL-2.0-only
"""Files with given extents, on stacks of a fake machine above bcache0."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ebbgate.kernel import loop_device
from ebbgate.kernel.device_mapper import DeviceMapper, Target
from ebbgate.kernel.loop_device import LoopFile
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.layout import fiemap
from ebbgate.layout.fiemap import Extent, FileLayout
from ebbgate.layout.mounts import Mount, Mounts
from ebbgate.units import MIB, SECTOR_BYTES
from tests.fake_sysfs import FakeSysfs

BCACHE0 = "252:0"


class FakeTables(DeviceMapper):
    """Tables of dm devices by name."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, tuple[Target, ...]] = {}
        self.before_read: Callable[[], object] = lambda: None

    def present(self) -> bool:
        return True

    def blocked(self) -> str:
        return ""

    def names(self) -> tuple[str, ...]:
        return ()

    def table(self, ref: str) -> tuple[Target, ...]:
        self.before_read()
        if ref not in self.tables:
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), ref)
        return self.tables[ref]


class FakeMounts(Mounts):
    """Every file is on this file system."""

    def __init__(self, filesystem: str = "ext4") -> None:
        super().__init__()
        self.filesystem = filesystem

    def of(self, handle: int) -> Mount:
        return Mount(self.filesystem)


class LayoutMachine:
    """A fake machine with bcache0, on which a test puts devices and files."""

    def __init__(self, fake: FakeSysfs, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.fake = fake
        self.dm = FakeTables()
        self.mounts = FakeMounts()
        fake.sysfs = Sysfs(fake.root, self.dm)
        self._folder = folder
        self._extents: dict[str, list[Extent]] = {}
        self.loops: dict[str, LoopFile] = {}
        self.realtime = False
        patch.setattr(fiemap, "read_layout", self._read_layout)
        patch.setattr(fiemap, "is_realtime", lambda _: self.realtime)
        patch.setattr(loop_device, "read_loop_file", self._read_loop_file)

    def holds_files(self, device: str, folder: Path | None = None) -> None:
        """Let files of a folder (by default the test's) be on this device."""
        number = (folder or self._folder).stat().st_dev
        own = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
        self.fake.sysfs.locate(own).unlink(missing_ok=True)
        real = self.fake.sysfs.real(f"/sys/class/block/{device}")
        assert real is not None
        self.fake.link(own, str(real))

    def file(self, extents: Sequence[tuple[int, ...]], name: str = "data") -> Path:
        """Make a file of these extents: offset, place, length, flags."""
        path = self._folder / name
        self._extents[str(path)] = [Extent(*each) for each in extents]
        path.touch()
        os.truncate(path, max((each[0] + each[2] for each in extents), default=0))
        return path

    def partition(self, disk: str, name: str, devno: str, start_bytes: int, size: int) -> None:
        disk_folder = self.fake.sysfs.real(f"/sys/class/block/{disk}")
        real = f"{disk_folder}/{name}"
        self.fake.write(f"{real}/dev", devno)
        self.fake.write(f"{real}/size", str(size // SECTOR_BYTES))
        self.fake.write(f"{real}/start", str(start_bytes // SECTOR_BYTES))
        self.fake.write(f"{real}/partition", "1")
        self.fake.link(f"/sys/class/block/{name}", real)
        self.fake.link(f"/sys/dev/block/{devno}", real)

    def mapped(self, name: str, title: str, devno: str, *targets: Target) -> None:
        """Add a dm device with a table."""
        size = sum(target.length_sectors for target in targets) * SECTOR_BYTES
        real = self.fake.disk(name, devno, size_bytes=size)
        self.fake.write(f"{real}/dm/name", title)
        self.fake.write(f"{real}/dm/uuid", "LVM-x")
        self.dm.tables[title] = targets

    def loop(self, name: str, devno: str, file: Path | str, offset: int, size: int) -> None:
        real = self.fake.disk(name, devno, size_bytes=size)
        self.fake.write(f"{real}/loop/backing_file", str(file))
        with suppress(FileNotFoundError):
            found = Path(file).stat()
            behind = os.major(found.st_dev), os.minor(found.st_dev)
            self.loops[name] = LoopFile(name, str(file), behind, found.st_ino, offset)

    def _read_loop_file(self, device: str, path: str) -> LoopFile:
        if device not in self.loops:
            raise PermissionError(errno.EACCES, "Permission denied", f"/dev/{device}")
        return self.loops[device]

    def _read_layout(self, handle: int, name: str, extents_max: int) -> FileLayout:
        return FileLayout(os.fstat(handle).st_size, 1, tuple(self._extents[name]))


def guest_document(**changes: Any) -> dict[str, Any]:
    """A file of 2 MiB at 5 MiB of the guest's only disk."""
    place = {"start_bytes": 0, "length_bytes": 2 * MIB, "chunk_bytes": 0, "why": ""}
    below = [{"layer": "vda", "start_bytes": 5 * MIB}]
    file = {"kind": "file", "name": "/db/a", "size_bytes": 2 * MIB}
    disk = {"kind": "disk", "name": "vda", "size_bytes": 16 * MIB, "segments": []}
    layers = [file | {"segments": [place | {"below": below}]}, disk]
    document = {"ebbgate_agent": 1, "files": ["/db/a"], "layers": layers, "errors": []}
    return document | changes
