# SPDX-License-Identifier: GPL-2.0-only
"""A file on a loop device is warmed by reading the file behind the device.

I/O: loop devices; the tests with `mounted` need root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ebbgate.errors import Unavailable
from ebbgate.kernel.loop_device import LoopFile
from ebbgate.layout.fiemap import Extent, ExtentFlag
from ebbgate.units import KIB, MIB, SECTOR_BYTES
from ebbgate.warm import target as target_module
from ebbgate.warm.loop import HOLE, loop_file, within_file
from ebbgate.warm.plan import Piece
from ebbgate.warm.target import Target, device_below_loops, open_file
from ebbgate.warm.touch import devno_of_folder

LOOP = LoopFile("loop0", "/srv/image", (252, 0), 12, 4 * KIB)
START = 64 * MIB


def test_a_piece_is_cut_at_the_extents_of_the_file() -> None:
    extents = (Extent(0, 100 * KIB, 16 * KIB), Extent(16 * KIB, 40 * KIB, 16 * KIB))
    found, left_out = within_file([Piece(0, 8 * KIB, 8 * KIB)], LOOP, extents, START)
    assert found == [
        Piece(12 * KIB, START + 112 * KIB, 4 * KIB),
        Piece(16 * KIB, START + 40 * KIB, 4 * KIB),
    ]
    assert left_out == {}


def test_what_lies_nowhere_in_the_file_is_left_out_with_a_word() -> None:
    extents = (
        Extent(8 * KIB, 0, 4 * KIB, ExtentFlag.UNWRITTEN),
        Extent(16 * KIB, 80 * KIB, 4 * KIB),
    )
    found, left_out = within_file([Piece(0, 0, 32 * KIB)], LOOP, extents, 0)
    assert found == [Piece(16 * KIB, 80 * KIB, 4 * KIB)]
    assert left_out == {
        HOLE: 24 * KIB,
        "allocated but never written in the loop device's file": 4 * KIB,
    }
    assert within_file([Piece(0, 0, MIB)], LOOP, (), 0) == ([], {HOLE: MIB})


def test_a_device_that_is_no_loop_device_has_no_file() -> None:
    number = Path("/dev/null").stat().st_rdev
    assert loop_file((os.major(number), os.minor(number))) is None
    assert device_below_loops((1, 3), "/srv/a") == (1, 3)


# ---- on this machine's kernel --------------------------------------------------------------------
def run(*argv: str | Path) -> str:
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextmanager
def mounted(
    folder: Path, offset: int = 0, size: int = 32 * MIB, *, partition: bool = False
) -> Iterator[Path]:
    """An ext4 on a loop device, which begins within its file; yields where it is mounted."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("needs root and mkfs.ext4")
    with ExitStack() as ending:
        image = folder / "image"
        image.write_bytes(bytes(offset))
        os.truncate(image, offset + size)
        argv = ["losetup", "-f", "--show", "-o", str(offset), str(image)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip("needs a loop device")
        device = done.stdout.strip()
        ending.callback(run, "losetup", "-d", device)
        if partition:
            run("addpart", device, "1", "2048", str((size - MIB) // SECTOR_BYTES))
            ending.callback(run, "delpart", device, "1")
            device += "p1"
        run("mkfs.ext4", "-q", device)
        place = folder / "mounted"
        place.mkdir()
        run("mount", device, place)
        ending.callback(run, "umount", place)
        yield place


def written(path: Path, content: bytes) -> Path:
    with path.open("wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    # The places in the file behind the loop device are known once that is written, too.
    run("sync")
    return path


def content_of(target: Target) -> bytes:
    """Return what lies at the pieces of the file that is read."""
    path = target.files[-1].path
    with Path(path).open("rb") as file:
        return b"".join(
            os.pread(file.fileno(), piece.length_bytes, piece.offset_bytes)
            for piece in sorted(target.pieces, key=lambda piece: piece.offset_bytes)
        )


def usable(folder: Path) -> None:
    """Skip where the tests' own folder is on a file system without places."""
    if os.major(folder.stat().st_dev) == 0:
        pytest.skip("needs a folder on a block device")


def test_a_file_on_a_loop_device_is_read_through_the_file_behind_it(tmp_path: Path) -> None:
    usable(tmp_path)
    with mounted(tmp_path, offset=1 * MIB) as folder:
        content = os.urandom(2 * MIB)
        path = written(folder / "file", content)
        target = open_file(str(path))
        try:
            below = tmp_path.stat().st_dev
            assert target.devno == device_below_loops((os.major(below), os.minor(below)), "")
            assert target.left_out == {}
            assert content_of(target) == content
            assert os.fstat(target.named).st_ino == path.stat().st_ino
            assert os.fstat(target.handle).st_ino == (tmp_path / "image").stat().st_ino
            own = path.stat().st_dev
            assert device_below_loops((os.major(own), os.minor(own)), "") == target.devno
            with ExitStack() as ending:
                handle = os.open(folder, os.O_RDONLY)
                ending.callback(os.close, handle)
                missing = devno_of_folder(handle, folder)
            assert missing == target.devno, "of a pinned file that is missing"
        finally:
            target.close()


def test_a_file_is_found_below_two_loop_devices_and_a_partition(tmp_path: Path) -> None:
    usable(tmp_path)
    with mounted(tmp_path) as outer, mounted(outer, size=16 * MIB, partition=True) as inner:
        content = os.urandom(MIB)
        target = open_file(str(written(inner / "file", content)))
        try:
            outermost = tmp_path / "image"
            assert [file.path for file in target.files[1:]] == [
                str(outer / "image"),
                str(outermost),
            ]
            assert content_of(target) == content
            assert target.left_out == {}
        finally:
            target.close()


def test_what_happens_to_the_file_is_noticed_although_another_one_is_read(tmp_path: Path) -> None:
    usable(tmp_path)
    with mounted(tmp_path) as folder:
        path = written(folder / "file", os.urandom(MIB))
        target = open_file(str(path))
        try:
            assert (target.changed(), target.moved()) == ("", False)
            with path.open("ab") as file:
                file.write(os.urandom(MIB))
                os.fsync(file.fileno())
            run("sync")
            assert (target.changed(), target.moved()) == ("", False), "it has only grown"
            run("fallocate", "-p", "-o", "0", "-l", str(64 * KIB), path)
            assert target.moved()
            path.unlink()
            assert target.changed() == "the file was deleted"
        finally:
            target.close()


def test_all_files_are_closed(tmp_path: Path) -> None:
    usable(tmp_path)
    with mounted(tmp_path) as folder:
        path = written(folder / "file", os.urandom(MIB))
        before = set(Path("/proc/self/fd").iterdir())
        open_file(str(path)).close()
        assert set(Path("/proc/self/fd").iterdir()) == before


def test_a_loop_device_whose_file_is_gone_is_refused(tmp_path: Path) -> None:
    with mounted(tmp_path) as folder:
        path = written(folder / "file", os.urandom(MIB))
        (tmp_path / "image").unlink()
        with pytest.raises(Unavailable, match=r"a loop device, and its file cannot be read: .*\("):
            open_file(str(path))


def test_another_file_of_that_name_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    file.touch()
    other.touch()
    behind = LoopFile("loop0", str(other), (0, 0), 1, 0)
    assert not behind.is_same(other.stat())
    monkeypatch.setattr(target_module, "_on_btrfs", lambda _: False)
    monkeypatch.setattr(target_module, "loop_file", lambda _: behind)
    with pytest.raises(Unavailable, match=f"{other} is not the file of loop0") as caught:
        open_file(str(file))
    assert "losetup --list" in caught.value.hint
