# SPDX-License-Identifier: GPL-2.0-only
"""A file on btrfs is warmed by reading it, if it has one device. I/O: loop devices; needs root."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ebbgate.errors import Unavailable
from ebbgate.units import KIB, MIB
from ebbgate.warm.parallel_reads import ParallelReads
from ebbgate.warm.plan import READ_BYTES_MAX, Read
from ebbgate.warm.target import open_file


def run(*argv: str | Path) -> str:
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def able() -> None:
    if "\tbtrfs\n" not in Path("/proc/filesystems").read_text() or os.geteuid() != 0:
        pytest.skip("needs root, and a kernel with btrfs")
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("needs mkfs.btrfs")


@contextmanager
def mounted(folder: Path, disks: int = 1) -> Iterator[tuple[Path, str]]:
    """A btrfs; yields where it is mounted, and its first device."""
    with ExitStack() as ending:
        devices = []
        for number in range(disks):
            disk = folder / f"disk{number}"
            disk.touch()
            os.truncate(disk, 160 * MIB)
            devices.append(run("losetup", "-f", "--show", disk))
            ending.callback(run, "losetup", "-d", devices[-1])
        run("mkfs.btrfs", "-q", "-f", "-m", "single", "-d", "single", *devices)
        place = folder / "mounted"
        place.mkdir()
        run("mount", "-t", "btrfs", devices[0], place)
        ending.callback(run, "umount", place)
        yield place, devices[0]


def written(path: Path, content: bytes) -> Path:
    with path.open("wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    return path


def test_a_file_is_read_from_the_one_device(tmp_path: Path) -> None:
    with mounted(tmp_path) as (folder, device):
        content = os.urandom(2 * MIB)
        target = open_file(str(written(folder / "file", content)))
        try:
            number = Path(device).stat().st_rdev
            assert target.devno == (os.major(number), os.minor(number))
            assert sum(piece.length_bytes for piece in target.pieces) == 2 * MIB
            assert target.left_out == {}
            assert target.changed() == ""
            (folder / "file").unlink()
            assert target.changed() == "the file was deleted"
        finally:
            os.close(target.handle)


def test_reads_at_once_are_not_taken_for_errors_of_the_disk(tmp_path: Path) -> None:
    """btrfs compares what is read with its checksums in the buffer itself."""
    with mounted(tmp_path) as (folder, _):
        target = open_file(str(written(folder / "file", os.urandom(24 * MIB))))
        try:
            reads = ParallelReads(target.handle, memoryview(mmap.mmap(-1, READ_BYTES_MAX)))
            places = [Read(at, 64 * KIB) for at in range(0, 24 * MIB, 64 * KIB)]
            for first in range(0, len(places), 8):
                reads.send(places[first : first + 8])
                reads.wait(MIB // 2)
            reads.wait()
        finally:
            target.close()
        counts = dict(line.split() for line in run("btrfs", "device", "stats", folder).splitlines())
        assert [counts[name] for name in counts if "corruption" in name] == ["0"]


def test_what_is_compressed_is_left_out_with_a_word(tmp_path: Path) -> None:
    with mounted(tmp_path) as (folder, _):
        run("mount", "-o", "remount,compress-force=zstd", folder)
        target = open_file(str(written(folder / "file", b"pattern!" * (MIB // 8))))
        os.close(target.handle)
        assert target.left_out == {"compressed or otherwise encoded": MIB}
        assert target.pieces == ()


def test_a_file_system_of_two_devices_is_refused(tmp_path: Path) -> None:
    with mounted(tmp_path, disks=2) as (folder, _):
        path = written(folder / "file", bytes(MIB))
        with pytest.raises(Unavailable, match="is on a btrfs of 2 devices"):
            open_file(str(path))
