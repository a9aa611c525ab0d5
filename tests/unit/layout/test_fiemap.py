# SPDX-License-Identifier: GPL-2.0-only
"""Extents are read as the file system has them, and a change while they are read is noticed."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ebbgate.errors import Unavailable
from ebbgate.layout import fiemap
from ebbgate.layout.fiemap import OBSTACLES, Extent, ExtentFlag, read_layout

BLOCK = 4096


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[int]:
    """An open file on the machine's own file system."""
    opened = os.open(tmp_path / "data", os.O_RDWR | os.O_CREAT)
    try:
        os.pwrite(opened, b"x", 0)
        os.fsync(opened)
        read_layout(opened, "data")
        yield opened
    except Unavailable as error:
        pytest.skip(error.message)
    finally:
        os.close(opened)


def write(handle: int, block: int) -> None:
    os.pwrite(handle, bytes(BLOCK), block * BLOCK)
    os.fsync(handle)


def test_more_extents_than_fit_one_call_are_all_read(handle: int) -> None:
    for block in range(0, 1200, 2):
        os.pwrite(handle, bytes(BLOCK), block * BLOCK)
    os.fsync(handle)
    found = read_layout(handle, "data")
    assert found.size_bytes == 1199 * BLOCK
    assert {extent.offset_bytes // BLOCK for extent in found.extents} == set(range(0, 1200, 2))
    assert {extent.length_bytes for extent in found.extents} == {BLOCK}


def test_an_empty_file_has_no_extents(handle: int) -> None:
    os.ftruncate(handle, 0)
    assert read_layout(handle, "data").extents == ()


def test_space_that_was_never_written_is_not_used(handle: int) -> None:
    os.posix_fallocate(handle, 0, 1 << 20)
    os.fsync(handle)
    last = read_layout(handle, "data").extents[-1]
    assert last.flags & ExtentFlag.UNWRITTEN
    assert last.obstacle == "allocated but never written"


@pytest.fixture
def after_reading(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Calls a function each time that the extents have been read."""
    real = fcntl.ioctl

    def install(change: Callable[[], object]) -> None:
        def ioctl(handle: int, request: int, buffer: bytearray) -> int:
            result: int = real(handle, request, buffer)
            if len(buffer) > BLOCK:
                change()
            return result

        monkeypatch.setattr(fcntl, "ioctl", ioctl)

    return install


After = Callable[[Callable[[], object]], None]


def test_a_change_between_the_readings_is_read_again(handle: int, after_reading: After) -> None:
    blocks = iter([100])

    def change() -> None:
        for block in blocks:
            write(handle, block)

    after_reading(change)
    found = read_layout(handle, "data")
    assert [extent.offset_bytes for extent in found.extents] == [0, 100 * BLOCK]


@pytest.mark.parametrize("grows", [True, False])
def test_a_file_that_gets_more_data_at_each_try_is_read_as_it_was(
    handle: int, after_reading: After, grows: bool
) -> None:
    """Such as an image that a file system is in: beyond its end, or in its holes."""
    if not grows:
        os.ftruncate(handle, 1000 * BLOCK)
    write(handle, 50)
    size = os.fstat(handle).st_size
    blocks = iter(range(100, 1000, 2))
    after_reading(lambda: write(handle, next(blocks)))
    found = read_layout(handle, "data")
    # Two tries of two readings, and more is there after each of them.
    there = [0, 50, 100, 102, 104, 106]
    assert [extent.offset_bytes // BLOCK for extent in found.extents] == there
    assert found.size_bytes == max(size, 107 * BLOCK)


@pytest.mark.parametrize("filled", [True, False], ids=["data", "a hole"])
def test_a_file_that_becomes_shorter_at_each_try_is_an_error(
    handle: int, after_reading: After, filled: bool
) -> None:
    os.ftruncate(handle, 100 * BLOCK)
    for block in range(2, 100, 2) if filled else ():
        write(handle, block)
    ends = iter(range(98, 0, -2))
    after_reading(lambda: os.ftruncate(handle, next(ends) * BLOCK))
    with pytest.raises(Unavailable, match="the layout of data changes while it is read"):
        read_layout(handle, "data")


def test_a_file_whose_data_moves_at_each_try_is_an_error(
    handle: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = iter(range(100))

    def ioctl(_: int, request: int, buffer: bytearray) -> int:
        if len(buffer) > BLOCK:
            last = (0, next(places) * BLOCK, BLOCK, ExtentFlag.LAST)
            struct.pack_into("=20xI8xQQQ16xI12x", buffer, 0, 1, *last)
        return 0

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    with pytest.raises(Unavailable, match="the layout of data changes while it is read"):
        read_layout(handle, "data")


def test_a_write_that_moves_nothing_is_no_change(handle: int, after_reading: After) -> None:
    before = read_layout(handle, "data")
    after_reading(lambda: write(handle, 0))
    assert read_layout(handle, "data").extents == before.extents


@pytest.mark.parametrize("flag", OBSTACLES)
def test_every_flag_that_forbids_use_is_an_obstacle(flag: ExtentFlag) -> None:
    assert Extent(0, 0, BLOCK, flag | ExtentFlag.SHARED).obstacle


def test_an_unknown_flag_is_an_obstacle() -> None:
    assert Extent(0, 0, BLOCK, 0x40000).obstacle.endswith("(flags 0x40000)")


@pytest.mark.parametrize("flag", [0, ExtentFlag.SHARED, ExtentFlag.MERGED, ExtentFlag.LAST])
def test_shared_and_merged_extents_may_be_used(flag: int) -> None:
    assert Extent(0, 0, BLOCK, flag).obstacle == ""


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EOPNOTSUPP, "the file system of data does not tell where files lie"),
        (errno.EIO, "the extents of data cannot be read: Input/output error"),
    ],
)
def test_a_refusal_of_the_kernel_is_one_line(
    handle: int, number: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "ioctl", fail)
    with pytest.raises(Unavailable, match=message):
        read_layout(handle, "data")


def test_a_file_of_too_many_extents_is_refused(handle: int) -> None:
    write(handle, 100)
    with pytest.raises(Unavailable, match="data has more than 1 extents"):
        read_layout(handle, "data", extents_max=1)


def test_an_ordinary_file_is_not_in_a_realtime_section(handle: int) -> None:
    assert not fiemap.is_realtime(handle)
