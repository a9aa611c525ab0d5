# SPDX-License-Identifier: GPL-2.0-only
"""What a real qcow2 image has on its disk is on the device where it was said.

I/O: a loop device with ext4, qemu-img; needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ebbgate.kernel.sysfs import Sysfs
from ebbgate.layout.chain import ChainReader, disk_name
from ebbgate.layout.images import ImageFormat
from ebbgate.layout.mapping import Piece, place
from ebbgate.layout.mounts import Mounts
from ebbgate.units import KIB, MIB
from tests.loop_device import loop_device

_PROGRAMS = ("qemu-img", "qemu-io", "losetup", "mkfs.ext4", "mount")


@dataclass(frozen=True)
class Machine:
    """A loop device that stands for a volume, and a folder on it."""

    device: Path
    folder: Path

    def pieces(self, image: Path) -> list[Piece]:
        """Return where the disk in an image lies."""
        reader = ChainReader(Sysfs(), Mounts(), {self.device.name: "volume"})
        return place(reader.read(image, ImageFormat.QCOW2), disk_name(image))

    def content(self, piece: Piece) -> bytes:
        with self.device.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return os.pread(file.fileno(), piece.length_bytes, piece.layer_bytes)


def run(*argv: str | Path) -> str:
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    missing = [each for each in _PROGRAMS if shutil.which(each) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root, and {', '.join(_PROGRAMS)}")
    below, folder = tmp_path / "below", tmp_path / "mounted"
    below.touch()
    os.truncate(below, 64 * MIB)
    folder.mkdir()
    run("mkfs.ext4", "-q", "-F", "-b", "4096", below)
    with loop_device(below) as device:
        run("mount", "-t", "ext4", device, folder)
        try:
            yield Machine(device, folder)
        finally:
            run("umount", folder)


def test_each_mapped_part_of_the_disk_is_where_it_was_said(machine: Machine) -> None:
    image, raw = machine.folder / "vm.qcow2", machine.folder.with_name("raw")
    run("qemu-img", "create", "-q", "-f", "qcow2", image, "32M")
    # Not in the order of the disk, so that neither is the image.
    for number, at in enumerate((20 * MIB, 5 * MIB, 11 * MIB + 64 * KIB, 300 * KIB)):
        write = f"write -q -P {number + 1} {at} {96 * KIB + number * MIB}"
        run("qemu-io", "-f", "qcow2", "-c", write, image)
    run("sync", "-f", image)
    run("qemu-img", "convert", "-f", "qcow2", "-O", "raw", image, raw)
    disk = raw.read_bytes()
    pieces = machine.pieces(image)
    assert sum(piece.length_bytes for piece in pieces) == 32 * MIB
    for piece in pieces:
        expected = disk[piece.offset_bytes : piece.offset_bytes + piece.length_bytes]
        if piece.why:
            assert not any(expected), piece
        else:
            assert piece.layer == machine.device.name
            assert machine.content(piece) == expected, piece
    mapped = sum(piece.length_bytes for piece in pieces if not piece.why)
    assert mapped >= 6 * MIB + 4 * 96 * KIB
