# SPDX-License-Identifier: GPL-2.0-only
"""Files are found on their cached volume; what cannot be mapped is one line with the next step."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ebbgate.errors import EbbgateError, NotFound, PermissionDenied, Unavailable, UsageError
from ebbgate.kernel.device_mapper import Target
from ebbgate.layout.fiemap import ExtentFlag
from ebbgate.layout.locate import Located, Locator, expand
from ebbgate.layout.mapping import LayerKind
from ebbgate.units import GIB
from tests.fake_sysfs import fake_bcache
from tests.layout_fixture import BCACHE0, LayoutMachine

MIB = 1 << 20
SECTORS = 2048
"""Of a MiB."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LayoutMachine:
    """Files are directly on bcache0."""
    made = LayoutMachine(fake_bcache(tmp_path / "sys"), tmp_path, monkeypatch)
    made.holds_files("bcache0")
    return made


def locate(machine: LayoutMachine, path: Path) -> Located:
    return Locator(machine.fake.sysfs, machine.mounts).locate(path)


def places(located: Located) -> list[tuple[int, int, str, int]]:
    return [
        (each.offset_bytes, each.length_bytes, each.layer, each.layer_bytes)
        for each in located.pieces
    ]


# ---- stacks -------------------------------------------------------------------------------------
def test_a_file_directly_on_a_volume_is_found(machine: LayoutMachine) -> None:
    path = machine.file([(0, MIB, 8192), (8192, 5 * MIB, 4096)])
    found = locate(machine, path)
    assert places(found) == [(0, 8192, "bcache0", MIB), (8192, 4096, "bcache0", 5 * MIB)]
    assert [(layer.kind, layer.name) for layer in found.layers] == [
        (LayerKind.FILE, str(path)),
        (LayerKind.VOLUME, "bcache0"),
    ]


def test_a_file_on_striped_lvm_on_partitions_is_found(machine: LayoutMachine) -> None:
    machine.partition("bcache0", "bcache0p1", "252:1", MIB, 8 * MIB)
    machine.partition("bcache0", "bcache0p2", "252:2", 16 * MIB, 8 * MIB)
    table = Target(0, 8 * SECTORS, "striped", "2 128 252:1 2048 252:2 2048")
    machine.mapped("dm-0", "vg-data", "253:0", table)
    machine.holds_files("dm-0")
    found = locate(machine, machine.file([(0, 65536, 131072)]))
    assert places(found) == [
        (0, 65536, "bcache0", 18 * MIB - MIB),
        (65536, 65536, "bcache0", 2 * MIB + 65536),
    ]
    assert [layer.name for layer in found.layers][1:] == [
        "dm-0",
        "bcache0p1",
        "bcache0",
        "bcache0p2",
    ]


def test_a_file_system_in_a_loop_device_on_dm_crypt_is_found(machine: LayoutMachine) -> None:
    crypt = Target(0, 64 * SECTORS, "crypt", f"aes-xts-plain64 :64:logon:key 0 {BCACHE0} 32768")
    machine.mapped("dm-0", "secret", "253:0", crypt)
    machine.holds_files("dm-0")
    image = machine.file([(0, 2 * MIB, MIB), (MIB, 8 * MIB, MIB)], "disk.img")
    machine.loop("loop0", "7:0", image, 4096, 2 * MIB - 4096)
    with TemporaryDirectory(dir="/dev/shm") as other:
        if Path(other).stat().st_dev == image.stat().st_dev:
            pytest.skip("needs a second file system")
        machine.holds_files("loop0", Path(other))
        found = locate(machine, machine.file([(0, MIB - 8192, 8192)], f"{other}/data"))
    assert places(found) == [
        (0, 4096, "bcache0", 18 * MIB + MIB - 4096),
        (4096, 4096, "bcache0", 24 * MIB),
    ]
    kinds = [layer.kind for layer in found.layers]
    assert kinds == ["file", "loop", "file", "dm", "volume"]


def test_parts_of_a_volume_group_that_are_not_cached_are_left_out(machine: LayoutMachine) -> None:
    machine.fake.disk("sdz", "8:16")
    machine.mapped(
        "dm-0",
        "vg-data",
        "253:0",
        Target(0, SECTORS, "linear", f"{BCACHE0} 0"),
        Target(SECTORS, SECTORS, "linear", "8:16 0"),
    )
    machine.holds_files("dm-0")
    found = locate(machine, machine.file([(0, 0, 2 * MIB)]))
    assert places(found) == [(0, MIB, "bcache0", 0)]
    assert [(each.length_bytes, each.why) for each in found.left_out] == [
        (MIB, "on sdz, which is not cached")
    ]


def test_extents_that_must_not_be_used_are_left_out(machine: LayoutMachine) -> None:
    machine.file([(0, 0, 4096, ExtentFlag.DELALLOC), (4096, MIB, 4096), (8192, MIB + 100, 4096)])
    found = locate(machine, machine.file([(0, 0, 4096, ExtentFlag.DELALLOC), (4096, MIB, 4096)]))
    assert places(found) == [(4096, 4096, "bcache0", MIB)]
    assert [each.why for each in found.left_out] == ["not allocated yet"]


def test_an_extent_between_sectors_is_left_out(machine: LayoutMachine) -> None:
    found = locate(machine, machine.file([(0, MIB + 100, 4096), (4096, MIB, 4096)]))
    assert [each.why for each in found.left_out] == ["not aligned to blocks"]


@pytest.mark.parametrize("extents", [[], [(0, 0, 4096, ExtentFlag.UNWRITTEN)]])
def test_a_file_without_data_lies_nowhere(
    machine: LayoutMachine, extents: list[tuple[int, ...]]
) -> None:
    assert locate(machine, machine.file(extents)).pieces == ()


# ---- what cannot be mapped ----------------------------------------------------------------------
def refusal(machine: LayoutMachine, path: Path) -> EbbgateError:
    with pytest.raises(EbbgateError) as caught:
        locate(machine, path)
    assert caught.value.hint or isinstance(caught.value, NotFound | UsageError)
    assert "\n" not in caught.value.message
    return caught.value


def test_a_file_on_another_device_is_reported(machine: LayoutMachine) -> None:
    machine.fake.disk("sdz", "8:16")
    machine.holds_files("sdz")
    error = refusal(machine, machine.file([(0, 0, 4096)]))
    assert error.message.endswith("data lies on sdz, which is not cached")
    assert error.hint == "cached volumes here: bcache0"


def test_a_volume_without_cache_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = fake_bcache(tmp_path / "sys")
    fake.disk("vdc", "254:32")
    fake.bcache("bcache1", backing="vdc", cache=None, devno="252:16")
    machine = LayoutMachine(fake, tmp_path, monkeypatch)
    machine.holds_files("bcache1")
    error = refusal(machine, machine.file([(0, 0, 4096)]))
    assert error.message.endswith("data lies on bcache1, which has no cache attached")


def test_extents_behind_the_end_of_the_volume_are_refused(machine: LayoutMachine) -> None:
    error = refusal(machine, machine.file([(0, 0, 4096), (4096, 2 * GIB, 4096)]))
    assert error.message.endswith("data cannot be used: behind the end of bcache0")


def test_a_move_by_pvmove_is_refused(machine: LayoutMachine) -> None:
    mirror = f"core 3 1024 nosync block_on_error 2 {BCACHE0} 0 {BCACHE0} 2048 1 handle_errors"
    machine.mapped("dm-1", "vg-pvmove0", "253:1", Target(0, SECTORS, "mirror", mirror))
    machine.mapped("dm-0", "vg-data", "253:0", Target(0, SECTORS, "linear", "253:1 0"))
    machine.holds_files("dm-0")
    error = refusal(machine, machine.file([(0, 0, 4096)]))
    assert "pvmove is moving its data (vg-pvmove0); wait for its end" in error.message


def test_a_thin_volume_is_refused(machine: LayoutMachine) -> None:
    machine.mapped("dm-0", "vg-thin", "253:0", Target(0, SECTORS, "thin", f"{BCACHE0} 1"))
    machine.holds_files("dm-0")
    error = refusal(machine, machine.file([(0, 0, 4096)]))
    assert error.message.endswith("data lies below a device of type thin (vg-thin)")
    assert error.hint == "warm it by reading the file"


def test_a_table_that_changes_at_each_reading_is_refused(machine: LayoutMachine) -> None:
    def move() -> None:
        (target,) = machine.dm.tables["vg-data"]
        start = int(target.params.split()[1]) + 8
        machine.dm.tables["vg-data"] = (Target(0, SECTORS, "linear", f"{BCACHE0} {start}"),)

    machine.mapped("dm-0", "vg-data", "253:0", Target(0, SECTORS, "linear", f"{BCACHE0} 0"))
    machine.holds_files("dm-0")
    machine.dm.before_read = move
    error = refusal(machine, machine.file([(0, 0, 4096)]))
    assert "data change while they are read" in error.message
    assert "pvmove" in error.hint


def test_a_file_that_is_replaced_is_read_again(machine: LayoutMachine) -> None:
    path = machine.file([(0, 0, 4096)])
    machine.mapped("dm-0", "vg-data", "253:0", Target(0, SECTORS, "linear", f"{BCACHE0} 0"))
    machine.holds_files("dm-0")

    def replace() -> None:
        machine.dm.before_read = lambda: None
        path.unlink()
        machine.file([(0, 8192, 4096)])

    machine.dm.before_read = replace
    assert places(locate(machine, path)) == [(0, 4096, "bcache0", 8192)]


def test_a_table_that_cannot_be_read_is_reported(machine: LayoutMachine) -> None:
    machine.mapped("dm-0", "vg-data", "253:0", Target(0, SECTORS, "linear", f"{BCACHE0} 0"))
    machine.dm.tables.clear()
    machine.holds_files("dm-0")
    assert "the table of vg-data cannot be read" in refusal(machine, machine.file([])).message


@pytest.mark.parametrize("filesystem", ["btrfs", "zfs", "overlay", "nfs4", ""])
def test_other_file_systems_are_refused(machine: LayoutMachine, filesystem: str) -> None:
    machine.mounts.filesystem = filesystem
    named = filesystem or "an unknown file system"
    error = refusal(machine, machine.file([(0, 0, 4096)]))
    assert error.message.endswith(f"data is on {named}: its place cannot be used")


def test_a_file_in_the_realtime_section_is_refused(machine: LayoutMachine) -> None:
    machine.realtime = True
    assert "realtime section" in refusal(machine, machine.file([(0, 0, 4096)])).message


def test_a_loop_device_of_a_deleted_file_is_refused(machine: LayoutMachine) -> None:
    machine.loop("loop0", "7:0", "/srv/gone.img (deleted)", 0, MIB)
    machine.holds_files("loop0")
    error = refusal(machine, machine.file([(0, 0, 4096)]))
    assert error.message.startswith("the file of loop0 is not here: /srv/gone.img (deleted)")


def on_a_loop_device(machine: LayoutMachine, other: str) -> Path:
    """A file on a loop device, whose file is `disk.img` on bcache0."""
    image = machine.file([(0, 2 * MIB, 2 * MIB)], "disk.img")
    machine.holds_files("bcache0")
    if Path(other).stat().st_dev == image.stat().st_dev:
        pytest.skip("needs a second file system")
    machine.loop("loop0", "7:0", image, 0, 2 * MIB)
    machine.holds_files("loop0", Path(other))
    return image


@pytest.mark.parametrize("part", ["inode", "device"])
def test_a_file_that_took_the_place_of_a_loop_devices_file_is_refused(
    machine: LayoutMachine, part: str
) -> None:
    with TemporaryDirectory(dir="/dev/shm") as other:
        image = on_a_loop_device(machine, other)
        path = machine.file([(0, 0, 4096)], f"{other}/data")
        assert places(locate(machine, path)) == [(0, 4096, "bcache0", 2 * MIB)]
        found = machine.loops["loop0"]
        by_part = {
            "inode": replace(found, inode=found.inode + 1),
            "device": replace(found, devno=(9, 7)),
        }
        machine.loops["loop0"] = by_part[part]
        error = refusal(machine, path)
    here, devno = image.stat().st_ino, f"{found.devno[0]}:{found.devno[1]}"
    used = (here + 1, devno) if part == "inode" else (here, "9:7")
    assert error.message == (
        f"{image} is not the file of loop0: it is inode {here} of device {devno},"
        f" loop0 uses inode {used[0]} of device {used[1]}"
    )
    assert "another mount namespace" in (error.hint or "")


def test_a_loop_device_that_cannot_be_asked_for_its_file_is_refused(machine: LayoutMachine) -> None:
    with TemporaryDirectory(dir="/dev/shm") as other:
        on_a_loop_device(machine, other)
        path = machine.file([(0, 0, 4096)], f"{other}/data")
        machine.loops.clear()
        error = refusal(machine, path)
    assert error.message == "the loop device loop0 cannot be asked for its file: Permission denied"
    assert error.hint == "run this as root"


def test_layers_that_contain_themselves_end(machine: LayoutMachine) -> None:
    path = machine.file([(0, 0, 4096)])
    machine.loop("loop0", "7:0", path, 0, MIB)
    machine.holds_files("loop0")
    assert refusal(machine, path).message.endswith("data lies on itself")


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("", UsageError, "is a folder"),
        ("pipe", UsageError, "is neither a file nor a block device"),
        ("none", NotFound, "no such file"),
        ("data/below", NotFound, "no such file"),
    ],
)
def test_what_is_no_file_is_reported(
    machine: LayoutMachine, tmp_path: Path, name: str, kind: type[EbbgateError], message: str
) -> None:
    machine.file([])
    os.mkfifo(tmp_path / "pipe")
    error = refusal(machine, tmp_path / name)
    assert isinstance(error, kind)
    assert message in error.message


def test_a_file_that_may_not_be_read_needs_root(
    machine: LayoutMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    path = machine.file([])
    monkeypatch.setattr(os, "open", refuse)
    error = refusal(machine, path)
    assert isinstance(error, PermissionDenied)
    assert error.hint == "run this as root"


# ---- patterns -----------------------------------------------------------------------------------
def test_a_pattern_names_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    for name in ("a.ibd", "b.ibd", "db/c.ibd", "db/d.txt", "[x].ibd"):
        (tmp_path / name).touch()
    found = list(expand([f"{tmp_path}/**/*.ibd", f"{tmp_path}/a.ibd", f"{tmp_path}/[x].ibd"]))
    names = [str(each.relative_to(tmp_path)) for each in found if isinstance(each, Path)]
    assert names == ["[x].ibd", "a.ibd", "b.ibd", "db/c.ibd"]


def test_a_pattern_without_a_file_is_an_error(tmp_path: Path) -> None:
    (error,) = expand([f"{tmp_path}/*.none"])
    assert isinstance(error, NotFound)


def test_a_pattern_of_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbgate.layout.locate.FILES_MAX", 1)
    for name in "ab":
        (tmp_path / name).touch()
    error, other = expand([f"{tmp_path}/*", f"{tmp_path}/a"])
    assert isinstance(error, UsageError)
    assert error.message == f"{tmp_path}/* matches more than 1 files"
    assert other == tmp_path / "a"


def test_an_unreadable_layout_is_the_files_own_error(
    machine: LayoutMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise Unavailable("the layout of data changes while it is read", "try again later")

    monkeypatch.setattr("ebbgate.layout.fiemap.read_layout", fail)
    assert "changes" in refusal(machine, machine.file([])).message
