# SPDX-License-Identifier: GPL-2.0-only
"""Only regular files are opened, and what happens to them meanwhile is noticed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from ebbgate.errors import Unavailable
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.layout.fiemap import Extent, FileLayout
from ebbgate.layout.mounts import Mount, Mounts
from ebbgate.units import KIB
from ebbgate.warm.plan import Piece
from ebbgate.warm.target import Target, open_file, open_ranges, read_unit


def refusal(path: Path | str) -> str:
    with pytest.raises(Unavailable) as caught:
        open_file(str(path))
    return caught.value.message


def test_nothing_but_a_regular_file_is_opened(tmp_path: Path) -> None:
    # A pipe would hang if it were opened.
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "link", "/dev/null"):
        assert "is no regular file" in refusal(path)
    assert "No such file" in refusal(tmp_path / "missing")
    assert "cannot be opened" in refusal("/proc/self/\0")
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot be opened" in refusal(tmp_path / "loop")


def test_a_file_without_a_device_is_refused() -> None:
    assert "does not tell on which device" in refusal("/proc/self/maps") or "O_DIRECT" in refusal(
        "/proc/self/maps"
    )


@pytest.mark.parametrize(
    ("filesystem", "step"),
    [("overlay", "name the file in the folder below the overlay"), ("zfs", "--range VOLUME")],
)
def test_a_file_without_a_device_gets_the_next_step_for_its_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filesystem: str, step: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("ebbgate.warm.target.is_realtime", lambda _: True)
    monkeypatch.setattr(Mounts, "of", lambda *_: Mount(filesystem))
    with pytest.raises(Unavailable) as raised:
        open_file(str(tmp_path / "file"))
    assert step in raised.value.hint


def test_a_file_is_read_in_the_order_of_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(8 * KIB))
    extents = (Extent(0, 64 * KIB, 4 * KIB), Extent(4 * KIB, 0, 4 * KIB))
    layout = FileLayout(8 * KIB, None, extents)
    monkeypatch.setattr("ebbgate.warm.target.read_layout", lambda *_: layout)
    target = open_file(str(file))
    assert [piece.offset_bytes for piece in target.pieces] == [4 * KIB, 0]
    os.close(target.handle)


def test_a_file_ends_with_its_last_unit_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XFS may have allocated more behind it for what comes next."""
    file = tmp_path / "file"
    file.write_bytes(bytes(5000))
    unit = max(4 * KIB, file.stat().st_blksize)
    extents = (Extent(0, 64 * KIB, unit * 2), Extent(unit * 2, unit * 100, 64 * unit))
    layout = FileLayout(5000, None, extents)
    monkeypatch.setattr("ebbgate.warm.target.read_layout", lambda *_: layout)
    target = open_file(str(file))
    target.close()
    assert sum(piece.length_bytes for piece in target.pieces) == -(-5000 // unit) * unit
    assert target.readable(512) == (Piece(0, 64 * KIB, 5120),)
    assert target.readable(4 * KIB) == (Piece(0, 64 * KIB, 8 * KIB),)


def test_a_range_is_read_from_the_expected_device_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(KIB))
    with pytest.raises(Unavailable):
        open_ranges(str(file), (1, 2), [(0, KIB)])


def delete(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    os.truncate(path, 10)


def rename(path: Path) -> None:
    path.rename(path.with_name("other"))


def replace(path: Path) -> None:
    new = path.with_name("new")
    new.write_bytes(bytes(4 * KIB))
    # Keeps the old one in being, as a process that still has it open does.
    path.rename(path.with_name("old"))
    new.rename(path)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(KIB))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (delete, "the file was deleted"),
        (truncate, "the file was truncated"),
        (rename, "the file was renamed"),
        (replace, "the file was replaced"),
        (grow, ""),
    ],
)
def test_a_file_that_changes_is_noticed(
    tmp_path: Path, change: Callable[[Path], None], found: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(4 * KIB))
    handle = os.open(path, os.O_RDONLY)
    try:
        target = Target(handle, (0, 0), (), {}, str(path), 4 * KIB)
        assert target.changed() == ""
        change(path)
        assert target.changed() == found
    finally:
        os.close(handle)


def status_of(devno: tuple[int, int], *, is_device: bool = False) -> os.stat_result:
    """Return the status of a file on a device, or of that device."""
    number = os.makedev(*devno)
    mode = stat.S_IFBLK if is_device else stat.S_IFREG
    more = {"st_rdev": number if is_device else 0, "st_blksize": 4 * KIB}
    return os.stat_result((mode, 1, 0 if is_device else number, *[0] * 7), more)


def test_reads_are_as_long_as_the_blocks_of_the_files_own_device(tmp_path: Path) -> None:
    disk = tmp_path / "devices/vda"
    for folder in (disk / "queue", disk / "vda1", tmp_path / "dev/block", tmp_path / "class/block"):
        folder.mkdir(parents=True)
    (disk / "queue/logical_block_size").write_text("2048\n")
    (disk / "vda1/partition").write_text("1\n")
    for name, number, folder in (("vda", "252:0", disk), ("vda1", "252:1", disk / "vda1")):
        (tmp_path / "dev/block" / number).symlink_to(folder)
        (tmp_path / "class/block" / name).symlink_to(folder)
    sysfs = Sysfs(tmp_path)
    assert read_unit(status_of((252, 0)), sysfs) == 2 * KIB
    assert read_unit(status_of((252, 1)), sysfs) == 2 * KIB
    assert read_unit(status_of((252, 0), is_device=True), sysfs) == 2 * KIB
    assert read_unit(status_of((252, 9)), sysfs) == 512, "an unknown device"
    assert read_unit(status_of((0, 45)), sysfs) == 4 * KIB, "a file on btrfs"


def test_an_opened_file_knows_how_long_its_reads_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(8 * KIB))
    layout = FileLayout(8 * KIB, None, (Extent(0, 0, 8 * KIB),))
    monkeypatch.setattr("ebbgate.warm.target.read_layout", lambda *_: layout)
    monkeypatch.setattr("ebbgate.warm.target.read_unit", lambda _: 8 * KIB)
    target = open_file(str(file))
    assert target.unit_bytes == 8 * KIB
    target.close()
