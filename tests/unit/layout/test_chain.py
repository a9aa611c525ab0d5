# SPDX-License-Identifier: GPL-2.0-only
"""A file system in a file is written while it is read; only data that has moved is a change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ebbgate.errors import Unavailable
from ebbgate.kernel.device_mapper import Target
from ebbgate.layout import fiemap, images
from ebbgate.layout.chain import ChainReader, disk_name
from ebbgate.layout.fiemap import ExtentFlag, FileLayout
from ebbgate.layout.images import ImageFormat
from ebbgate.layout.mapping import Below, Segment, place
from ebbgate.units import GIB, KIB, MIB
from tests.fake_sysfs import FakeSysfs
from tests.layout_fixture import BCACHE0, LayoutMachine

UNWRITTEN = ExtentFlag.UNWRITTEN
DATA = (0, 8 * MIB, MIB)
"""What the file of the loop device has at first: offset, place, length. Behind it there is space
that was allocated and not written.
"""
SPACE = (MIB, 9 * MIB, MIB, UNWRITTEN)


@dataclass
class LoopMachine:
    """A file on loop0, whose file `image` is on bcache0."""

    machine: LayoutMachine
    path: Path
    image: Path

    def reader(self) -> ChainReader:
        machine = self.machine
        return ChainReader(machine.fake.sysfs, machine.mounts, {"bcache0": "bcache0"})

    def write(self, *extents: tuple[int, ...]) -> None:
        """Give the image these extents."""
        self.machine.file(extents, "disk.img")

    def attach(self, **changes: Any) -> None:
        """Attach loop0 to another file or place."""
        loops = self.machine.loops
        loops["loop0"] = replace(loops["loop0"], **changes)


@pytest.fixture
def on_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopMachine]:
    fake = FakeSysfs(tmp_path / "sys")
    fake.disk("bcache0", BCACHE0, size_bytes=GIB)
    machine = LayoutMachine(fake, tmp_path, monkeypatch)
    machine.holds_files("bcache0")
    image = machine.file([DATA, SPACE], "disk.img")
    machine.loop("loop0", "7:0", image, 0, 64 * MIB)
    with TemporaryDirectory(dir="/dev/shm") as other:
        if Path(other).stat().st_dev == image.stat().st_dev:
            pytest.skip("needs a second file system")
        machine.holds_files("loop0", Path(other))
        path = machine.file([(0, 0, 4 * KIB)], f"{other}/data")
        yield LoopMachine(machine, path, image)


@pytest.mark.parametrize(
    "extents",
    [
        (DATA, SPACE),
        (DATA, SPACE, (2 * MIB, 40 * MIB, MIB)),
        (DATA, SPACE, (4 * MIB, 40 * MIB, MIB)),
        ((0, 8 * MIB, 2 * MIB),),
        (DATA, (MIB, 9 * MIB, 4 * KIB), (MIB + 4 * KIB, 9 * MIB + 4 * KIB, MIB, UNWRITTEN)),
        ((0, 8 * MIB, 4 * KIB), (4 * KIB, 8 * MIB + 4 * KIB, MIB - 4 * KIB), SPACE),
        (DATA, (MIB, 50 * MIB, MIB)),
    ],
    ids=["same", "grown", "hole filled", "written", "part written", "split", "space elsewhere"],
)
def test_a_file_that_is_only_written_has_not_changed(
    on_loop: LoopMachine, extents: tuple[tuple[int, ...], ...]
) -> None:
    reader = on_loop.reader()
    assert list(reader.read_next(on_loop.path))[1:] == ["loop0", str(on_loop.image), "bcache0"]
    on_loop.write(*extents)
    assert not reader.changed()


@pytest.mark.parametrize(
    "extents",
    [
        ((0, 30 * MIB, MIB), SPACE),
        ((0, 8 * MIB, 4 * KIB), (4 * KIB, 30 * MIB, MIB - 4 * KIB), SPACE),
        ((0, 8 * MIB, 4 * KIB), (8 * KIB, 8 * MIB + 8 * KIB, MIB - 8 * KIB), SPACE),
        ((4 * KIB, 8 * MIB + 4 * KIB, MIB - 4 * KIB), SPACE),
        ((0, 8 * MIB, MIB, UNWRITTEN), SPACE),
        ((0, 8 * MIB, MIB - 4 * KIB), SPACE),
        (DATA,),
        (SPACE,),
        (),
    ],
    ids=[
        *("moved", "part moved", "hole within", "hole at the start", "unwritten"),
        *("hole at the end", "shorter", "data gone", "empty"),
    ],
)
def test_data_that_has_moved_or_gone_is_a_change(
    on_loop: LoopMachine, extents: tuple[tuple[int, ...], ...]
) -> None:
    reader = on_loop.reader()
    reader.read_next(on_loop.path)
    on_loop.write(*extents)
    assert reader.changed()


def test_another_generation_of_the_inode_is_a_change(
    on_loop: LoopMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, read = on_loop.reader(), fiemap.read_layout
    reader.read_next(on_loop.path)
    monkeypatch.setattr(fiemap, "read_layout", lambda *args: replace(read(*args), generation=2))
    assert reader.changed()


def test_a_file_that_took_the_place_of_the_other_is_a_change(on_loop: LoopMachine) -> None:
    reader = on_loop.reader()
    reader.read_next(on_loop.path)
    on_loop.image.rename(on_loop.image.with_name("old.img"))
    on_loop.write(DATA, SPACE)
    on_loop.attach(inode=on_loop.image.stat().st_ino)
    assert reader.changed()


def test_a_loop_device_that_begins_elsewhere_in_its_file_is_a_change(on_loop: LoopMachine) -> None:
    reader = on_loop.reader()
    reader.read_next(on_loop.path)
    on_loop.attach(offset_bytes=4 * KIB)
    assert reader.changed()


def test_a_loop_device_whose_file_gets_more_data_at_each_reading_is_read(
    on_loop: LoopMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, readings = fiemap.read_layout, count()

    def growing(handle: int, name: str, extents_max: int) -> FileLayout:
        if name == str(on_loop.image):
            more = 4 * KIB * next(readings)
            on_loop.write(DATA, SPACE, (4 * MIB, 40 * MIB, 4 * KIB + more))
        return read(handle, name, extents_max)

    monkeypatch.setattr(fiemap, "read_layout", growing)
    found = on_loop.reader().read(on_loop.path)
    assert [(piece.layer, piece.layer_bytes) for piece in place(found, str(on_loop.path))] == [
        ("bcache0", 8 * MIB)
    ]


def test_an_image_that_gets_more_data_while_it_is_read_is_read(
    on_loop: LoopMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own map of the guest's disk must stay as it is."""
    maps = iter(range(0, 10 * KIB, KIB))
    grows = count(1)

    def segments(_: Path, layer: str) -> tuple[int, tuple[Segment, ...]]:
        on_loop.write(DATA, SPACE, (4 * MIB, 40 * MIB, 4 * KIB * next(grows)))
        return MIB, (Segment(0, 4 * KIB, (Below(layer, 0),)),)

    def moving(path: Path, layer: str) -> tuple[int, tuple[Segment, ...]]:
        return MIB, (Segment(0, 4 * KIB, (Below(layer, next(maps)),)),)

    reader = on_loop.reader()
    monkeypatch.setattr(images, "qcow2_segments", segments)
    assert disk_name(on_loop.image) in reader.read_next_image(on_loop.image, ImageFormat.QCOW2)
    monkeypatch.setattr(images, "qcow2_segments", moving)
    with pytest.raises(Unavailable, match="change while they are read"):
        reader.read_next_image(on_loop.image, ImageFormat.QCOW2)


def test_files_may_lie_on_any_number_of_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSysfs(tmp_path / "sys")
    fake.disk("bcache0", BCACHE0, size_bytes=GIB)
    machine = LayoutMachine(fake, tmp_path, monkeypatch)
    reader = ChainReader(fake.sysfs, machine.mounts, {"bcache0": "bcache0"})
    path = machine.file([DATA])
    for number in range(300):
        table = Target(0, 2048, "linear", f"{BCACHE0} {number * 2048}")
        machine.mapped(f"dm-{number}", f"vg-{number}", f"253:{number}", table)
        machine.holds_files(f"dm-{number}")
        assert f"dm-{number}" in reader.read_next(path)
    assert not reader.changed()


def test_a_stack_of_too_many_layers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSysfs(tmp_path / "sys")
    machine = LayoutMachine(fake, tmp_path, monkeypatch)
    for number in range(300):
        table = Target(0, 2048, "linear", f"253:{number + 1} 0")
        machine.mapped(f"dm-{number}", f"vg-{number}", f"253:{number}", table)
    machine.holds_files("dm-0")
    reader = ChainReader(fake.sysfs, machine.mounts, {"bcache0": "bcache0"})
    with pytest.raises(Unavailable, match="32 layers lie on dm-31"):
        reader.read_next(machine.file([DATA]))
