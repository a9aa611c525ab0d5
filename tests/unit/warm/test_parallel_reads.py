# SPDX-License-Identifier: GPL-2.0-only
"""Many reads at once: each is done, and a failure of one is seen."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.units import KIB
from ebbgate.warm.buffer_ring import BufferRing
from ebbgate.warm.parallel_reads import REQUESTS_MAX, ParallelReads
from ebbgate.warm.plan import Read

PIECE = 4 * KIB


class Opened:
    """A file in which each piece has its own byte, and a buffer."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(b"".join(bytes([number]) * PIECE for number in range(100)))
        self.handle = os.open(path, os.O_RDONLY)
        self.buffer = memoryview(mmap.mmap(-1, 128 * PIECE))
        self.reads = ParallelReads(self.handle, self.buffer)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    made = Opened(tmp_path / "file")
    yield made
    os.close(made.handle)


@pytest.mark.parametrize("calls", [True, False])
def test_every_read_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: bool) -> None:
    if not calls:
        monkeypatch.setattr("ebbgate.warm.parallel_reads.platform.machine", lambda: "riscv64")
    opened = Opened(tmp_path / "file")
    opened.reads.read([Read(number * PIECE, PIECE) for number in range(40)])
    found = set(bytes(opened.buffer))
    assert found >= (set(range(40)) if calls else {39})
    os.close(opened.handle)


def test_more_than_fit_are_sent_in_parts(opened: Opened) -> None:
    opened.reads.read([Read(0, PIECE)] * (REQUESTS_MAX + 3))
    assert opened.buffer[0] == 0


def test_some_may_stay_under_way(opened: Opened) -> None:
    opened.reads.send([Read(number * PIECE, PIECE) for number in range(4)])
    opened.reads.wait(4 * PIECE)
    opened.reads.send([Read(number * PIECE, PIECE) for number in range(4, 8)])
    opened.reads.wait()
    assert set(bytes(opened.buffer[: 4 * PIECE])) == {4, 5, 6, 7}


def test_a_read_has_its_part_of_the_buffer_until_it_has_ended(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BufferRing, "end", lambda *_: None)
    for first in range(0, 96, 32):
        opened.reads.send([Read(number * PIECE, PIECE) for number in range(first, first + 32)])
    opened.reads.wait()
    assert bytes(opened.buffer[::PIECE][:96]) == bytes(range(96))


def test_a_failed_call_leaves_the_whole_buffer_free(opened: Opened) -> None:
    kept = os.dup(opened.handle)
    os.close(opened.handle)
    for _ in range(3):
        with pytest.raises(OSError, match="Bad file descriptor"):
            opened.reads.read([Read(0, 100 * PIECE)])
    os.dup2(kept, opened.handle)
    os.close(kept)
    opened.reads.read([Read(7 * PIECE, PIECE)])
    assert opened.buffer[0] == 7


@pytest.mark.parametrize("calls", [True, False])
def test_nothing_to_read_is_told(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, calls: bool
) -> None:
    if not calls:
        monkeypatch.setattr("ebbgate.warm.parallel_reads.platform.machine", lambda: "riscv64")
    reads = ParallelReads(opened.handle, opened.buffer)
    with pytest.raises(EOFError):
        reads.read([Read(0, PIECE), Read(100 * PIECE, PIECE)])


def test_a_failure_is_not_taken_for_one_of_later_reads(opened: Opened) -> None:
    with pytest.raises(EOFError):
        opened.reads.read([Read(100 * PIECE, PIECE), Read(100 * PIECE, PIECE)])
    opened.reads.read([Read(0, PIECE)])


def test_a_failure_is_raised(opened: Opened) -> None:
    os.close(opened.handle)
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            opened.reads.read([Read(0, PIECE), Read(PIECE, PIECE)])
    finally:
        opened.handle = os.open(os.devnull, os.O_RDONLY)
