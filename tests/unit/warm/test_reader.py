# SPDX-License-Identifier: GPL-2.0-only
"""Hits are told from misses by what the volume and its backing device have completed."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ebbgate.errors import Unavailable
from ebbgate.units import KIB
from ebbgate.warm.collection import LONGEST
from ebbgate.warm.plan import Read
from ebbgate.warm.reader import Counts, Reader, check_statistics
from ebbgate.warm.target import Target

WHOLE = Read(0, 512 * KIB)


class Disk(Reader):
    """Reads take some time, in which others reach the backing device, too.

    `hit`: whether ours are. `busy_ratio`: in how many cases others complete a read meanwhile.
    """

    def __init__(self, hit: bool, busy_ratio: float, read_s: float, patch: pytest.MonkeyPatch):
        super().__init__(Target(-1, (252, 0), (), {}), "bcache", 4 * KIB)
        self.hit, self.busy_ratio, self.read_s = hit, busy_ratio, read_s
        self.now_s, self.completed, self.sent = 0.0, [0, 0], 0
        self.random = Random(1)
        patch.setattr("ebbgate.warm.reader.time.monotonic", lambda: self.now_s)

    def counts(self) -> Counts:
        return self.completed[0], self.completed[1]

    def read_at(self, offset_bytes: int, length_bytes: int) -> int:
        del offset_bytes
        self.sent += 1
        self.now_s += self.read_s
        self.completed[0] += 1
        self.completed[1] += (not self.hit) + (self.random.random() < self.busy_ratio)
        return length_bytes


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as made:
        yield made


def test_a_hit_beside_the_misses_of_others_is_known_as_one(patch: pytest.MonkeyPatch) -> None:
    disk = Disk(hit=True, busy_ratio=0.4, read_s=0.0003, patch=patch)
    assert sum(disk.is_hit(WHOLE) for _ in range(1000)) > 990


def test_a_miss_is_never_a_hit(patch: pytest.MonkeyPatch) -> None:
    for read_s in (0.0003, 0.008):
        disk = Disk(hit=False, busy_ratio=0.4, read_s=read_s, patch=patch)
        assert not any(disk.is_hit(WHOLE) for _ in range(100))


def test_a_hard_disk_is_not_asked_often_for_what_it_misses(patch: pytest.MonkeyPatch) -> None:
    disk = Disk(hit=False, busy_ratio=0.4, read_s=0.008, patch=patch)
    disk.is_hit(WHOLE)
    assert disk.sent == 2


def test_no_place_beyond_the_block_is_tried(patch: pytest.MonkeyPatch) -> None:
    disk = Disk(hit=False, busy_ratio=0, read_s=0.0003, patch=patch)
    disk.is_hit(Read(0, 12 * KIB))
    assert disk.sent == 3


@pytest.mark.parametrize(("text", "rest_s"), [("100\n", 0.4), ("0\n", 2), ("?\n", 2), (None, 2)])
def test_how_long_collections_take_is_read_from_the_kernel(
    patch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, rest_s: float
) -> None:
    disk = Disk(True, 0, 0.001, patch)
    disk.internal = tmp_path
    if text is not None:
        (tmp_path / LONGEST).write_text(text)
    assert disk.rest_s() == pytest.approx(rest_s)


@pytest.mark.parametrize("part", ["", "sda1"])
def test_a_backing_device_without_statistics_is_refused(
    patch: pytest.MonkeyPatch, tmp_path: Path, part: str
) -> None:
    """All reads would be hits: the kernel counts none of those that reach the device."""
    disk = tmp_path / "sda"
    for folder in (disk / "queue", disk / "sda1"):
        folder.mkdir(parents=True)
    for folder in (disk, disk / "sda1"):
        (folder / "stat").write_text("1 0 8\n")
    link = tmp_path / "8:0"
    link.symlink_to(disk / part)
    command = {"kind": "bcache", "unit": 4096, "block": 0, "burst": 0}
    command |= {"backing": str(link), "volume": str(disk)}
    reader = Disk(True, 0, 0.001, patch)
    (disk / "queue/iostats").write_text("0\n")
    with pytest.raises(Unavailable, match="hits cannot be told from misses") as caught:
        reader.start(command)
    assert caught.value.hint == f"echo 1 > {disk}/queue/iostats"
    (disk / "queue/iostats").write_text("1\n")
    reader.target.unit_bytes = 8192
    reader.start(command)
    assert reader.backing_reads() == 1
    assert reader.unit == 8192, "the file allows no smaller reads"
    reader.close()


def test_statistics_of_device_mapper_are_believed_only_if_a_read_is_counted(
    patch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Linux 6.1 counts its requests with iostats off, which it has there; others may not.

    The device's node and its reads are files here: each read of the node may be counted.
    """
    device = tmp_path / "ebbgate-test-dm"
    for folder in (device / "queue", device / "dm"):
        folder.mkdir(parents=True)
    (device / "queue/iostats").write_text("0\n")
    (device / "stat").write_text("7 0 56\n")
    counts, opened = False, list[str]()
    real_open, real_read = os.open, os.preadv

    def open_node(path: str | Path, flags: int) -> int:
        opened.append(str(path))
        return real_open(device / "stat", flags & ~os.O_DIRECT)

    def read_node(handle: int, buffers: list[mmap.mmap], offset: int) -> int:
        if counts:
            (device / "stat").write_text("8 0 64\n")
        return real_read(handle, buffers, offset)

    patch.setattr("ebbgate.warm.reader.os.open", open_node)
    patch.setattr("ebbgate.warm.reader.os.preadv", read_node)
    with pytest.raises(Unavailable, match="hits cannot be told from misses"):
        check_statistics(device)
    counts = True
    check_statistics(device)
    assert set(opened) == {f"/dev/{device.name}"}


def test_blocks_that_turn_from_misses_to_hits_are_counted(patch: pytest.MonkeyPatch) -> None:
    disk = Disk(hit=False, busy_ratio=0, read_s=0.008, patch=patch)
    hit_at = {0: 0, 1: 2, 2: 1, 3: 99}
    rounds = dict.fromkeys(hit_at, 0)
    pending = []

    def touch(read: Read, _: int) -> bool:
        pending.append(disk.pending)
        number = read.offset_bytes
        rounds[number] += 1
        return rounds[number] > hit_at[number]

    assert disk.in_turn([Read(number, 1) for number in hit_at], touch) == [Read(3, 1)]
    assert pending[:9] == [0, 0, 1, 2, 3, 3, 2, 2, 1]
    assert disk.block_reads() == {"touched": 1 + 3 + 2 + 8, "brought": 2, "pending": 1}
    assert disk.block_reads() == {"touched": 0, "brought": 0, "pending": 1}
    disk.in_turn([Read(0, 1)], touch)
    assert disk.block_reads() == {"touched": 1, "brought": 0, "pending": 0}
