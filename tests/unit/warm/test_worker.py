# SPDX-License-Identifier: GPL-2.0-only
"""The process that reads: passes until a sample is in the cache, and no more than it may."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import Unavailable
from ebbgate.units import KIB, MIB
from ebbgate.warm.collection import LONGEST
from ebbgate.warm.plan import PIECE_BYTES, RUN_BYTES_MAX, BcachePlan, Piece, Read
from ebbgate.warm.target import Target
from ebbgate.warm.worker import BATCH_BYTES, BATCH_READS, Worker

BLOCK = 64 * KIB


class Batches:
    """Notes which reads are sent together, and how many bytes may stay under way."""

    def __init__(self) -> None:
        self.sent: list[list[Read]] = []
        self.left: list[int] = []

    def send(self, reads: Sequence[Read]) -> None:
        self.sent.append(list(reads))

    def wait(self, left_bytes: int = 0) -> None:
        self.left.append(left_bytes)


class Machine:
    """A file that is read, and a backing device that counts reads."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        path.write_bytes(bytes(2 * MIB))
        self.path = path
        self.sent: list[tuple[int, int]] = []
        self.cached = False
        self.backing_reads = itertools.count()
        patch.setattr("ebbgate.warm.reader.select.select", lambda *_: ([], [], []))
        patch.setattr(Worker, "_settle", lambda _: None)
        patch.setattr(Worker, "pause", lambda *_: None)
        patch.setattr(Worker, "backing_reads", lambda _: self.count())
        # Without asynchronous I/O all reads are this function's.
        patch.setattr("ebbgate.warm.parallel_reads.platform.machine", lambda: "riscv64")
        patch.setattr("ebbgate.warm.worker.os.preadv", self.preadv)
        self.handle = os.open(path, os.O_RDONLY)

    def count(self) -> int:
        return 0 if self.cached else next(self.backing_reads)

    def preadv(self, _: int, buffers: list[memoryview], offset: int) -> int:
        self.sent.append((offset, len(buffers[0])))
        return len(buffers[0])

    def worker(self, kind: str) -> Worker:
        pieces = (Piece(0, MIB, MIB), Piece(MIB, 8 * MIB, MIB))
        target = Target(self.handle, (0, 0), pieces, {}, str(self.path), 2 * MIB)
        return Worker(target, kind, 512, BLOCK, run=RUN_BYTES_MAX, allowed=None)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine(tmp_path / "file", monkeypatch)
    yield made
    os.close(made.handle)


def last_event(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


@pytest.mark.parametrize("kind", ["bcache", "dm-cache"])
def test_one_pass_is_enough_where_all_are_hits(
    machine: Machine, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    machine.cached = True
    machine.worker(kind).run_to_end()
    event = last_event(capsys)
    assert (event["event"], event["read"]) == ("done", 2 * MIB)
    assert event["hits"] == event["checked"] > 30
    whole = [length for _, length in machine.sent if length > 512]
    assert len(whole) == (2 if kind == "bcache" else 32)


def test_nothing_is_read_while_garbage_is_collected(
    machine: Machine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Before the first read, and after each burst."""
    machine.cached = True
    worker = machine.worker("bcache")
    worker.burst, worker.internal = MIB, tmp_path
    (tmp_path / LONGEST).write_text("150\n")
    worker.run_to_end()
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    bursts = [number for number, event in enumerate(events) if event["event"] == "burst"]
    assert len(bursts) == 3
    assert {event["total"] for event in events} == {2 * MIB}
    for begin, end in pairwise(bursts):
        waits = events[begin:end]
        assert len(waits) == 3, "0.6 s, of which it says something each quarter second"
        # The event of a burst comes before its last read is counted.
        assert len({event["read"] for event in waits[1:]}) == 1
        assert all(event["collects"] for event in waits)


def test_a_file_that_has_moved_on_its_loop_device_is_not_called_warm(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.cached = True
    monkeypatch.setattr(Target, "moved", lambda _: True)
    with pytest.raises(Unavailable, match="moved on its loop device"):
        machine.worker("bcache").run_to_end()
    assert last_event(capsys)["event"] != "done"


def test_a_cache_that_takes_nothing_is_given_up(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.worker("bcache").run_to_end()
    event = last_event(capsys)
    assert (event["event"], event["hits"]) == ("done", 0)
    lengths = {length for _, length in machine.sent}
    assert lengths == {MIB, PIECE_BYTES, 512}, "the second pass has shorter requests"


def test_holes_between_pages_that_users_have_read_are_filled(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bcache caches the first hole that a request finds, and no other."""
    cached = bytearray(2 * MIB // 512)
    for page in range(0, 2 * MIB, BLOCK):
        cached[page // 512 : (page + 4 * KIB) // 512] = bytes([1]) * 8
    misses = itertools.count(1)
    seen = [0]

    def preadv(_: int, buffers: list[memoryview], offset: int) -> int:
        first, count = offset // 512, len(buffers[0]) // 512
        part = bytes(cached[first : first + count])
        if (hole := part.find(0)) >= 0:
            end = part.find(1, hole)
            end = count if end < 0 else end
            cached[first + hole : first + end] = bytes([1]) * (end - hole)
            seen[0] = next(misses)
        return len(buffers[0])

    monkeypatch.setattr("ebbgate.warm.worker.os.preadv", preadv)
    monkeypatch.setattr(Worker, "backing_reads", lambda _: seen[0])
    machine.worker("bcache").run_to_end()
    # Of so small a file checks have read a part of every other page, each a hole more.
    assert cached.count(1) >= 0.95 * len(cached)


def test_no_check_reads_what_an_earlier_one_has_read(machine: Machine) -> None:
    machine.worker("bcache").run_to_end()
    sampled = [offset for offset, length in machine.sent if length == 512]
    assert len(sampled) == len(set(sampled)) > 100


@pytest.mark.parametrize("cached", [True, False])
def test_a_step_beside_users_looks_for_places_until_one_is_a_miss(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    machine.cached = cached
    worker, steps = machine.worker("bcache"), []

    def listen(worker: Worker, _seconds: float) -> bool:
        if worker.allowed:
            return False
        steps.append(worker.checked)
        worker.allowed = 1
        return True

    monkeypatch.setattr(Worker, "listen", listen)
    worker.allowed = 1
    worker.check([Read(place * 64 * KIB, 4 * KIB) for place in range(6)])
    assert steps == ([] if cached else [1, 2, 3, 4, 5])


def test_a_block_that_is_no_hit_is_read_again_a_few_times(machine: Machine) -> None:
    machine.worker("dm-cache").run_to_end()
    touches = [offset for offset, length in machine.sent if length == 4 * KIB and offset == 0]
    assert 2 <= len(touches) <= 24


def test_reads_of_blocks_are_reported(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.worker("dm-cache").run_to_end()
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    touches = sum(length == 4 * KIB for _, length in machine.sent)
    assert sum(each["touched"] for each in events) == touches > 0
    assert {each["brought"] for each in events} == {0}
    assert max(each["pending"] for each in events) > 0


@pytest.mark.parametrize("size", [100, 700, 5000, 12345])
@pytest.mark.parametrize("cached", [True, False])
def test_no_check_reads_behind_the_end_of_a_small_file(
    machine: Machine, capsys: pytest.CaptureFixture[str], size: int, cached: bool
) -> None:
    """A read there finds nothing and reaches no device, which looks like a miss."""
    os.truncate(machine.path, size)
    machine.cached = cached
    worker = machine.worker("bcache")
    worker.target.size_bytes = size
    worker.target.pieces = (Piece(0, MIB, -(-size // (4 * KIB)) * 4 * KIB),)
    worker.run_to_end()
    event = last_event(capsys)
    assert event["checked"] > 0
    assert event["hits"] == (event["checked"] if cached else 0)
    assert all(offset < size for offset, _ in machine.sent)


def test_nothing_to_read_is_an_error(machine: Machine) -> None:
    found = machine.worker("bcache")
    found.target.pieces = ()
    with pytest.raises(Unavailable, match="nothing to warm"):
        found.run_to_end()


def test_a_change_of_the_file_ends_it(machine: Machine) -> None:
    machine.path.unlink()
    with pytest.raises(Unavailable, match="the file was deleted"):
        machine.worker("bcache").run_to_end()


@pytest.fixture
def batches(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Batches:
    made = Batches()
    machine.cached = True
    monkeypatch.setattr("ebbgate.warm.worker.ParallelReads", lambda *_: made)
    return made


def scattered(length_bytes: int) -> tuple[Piece, ...]:
    """2 MiB in extents of this length, with as much between them."""
    starts = range(0, 2 * MIB, length_bytes)
    return tuple(Piece(start, 2 * start, length_bytes) for start in starts)


@pytest.mark.parametrize(
    ("extent", "together"), [(64 * KIB, BATCH_BYTES // (64 * KIB)), (4 * KIB, BATCH_READS)]
)
def test_extents_are_read_together_while_users_are_away(
    machine: Machine, batches: Batches, extent: int, together: int
) -> None:
    found = machine.worker("bcache")
    found.target.pieces = scattered(extent)
    found.run_to_end()
    assert {len(batch) for batch in batches.sent} == {together}
    assert set(batches.left) == {BATCH_BYTES, 0}
    assert batches.left[-1] == 0, "a pass ends when all its reads have"


def test_under_a_bound_of_the_rate_fewer_are_read_together(machine: Machine) -> None:
    found = machine.worker("bcache")
    found.rate = MIB
    batch = found.next_batch(BcachePlan(scattered(16 * KIB)))
    assert len(batch) == 8, "an eighth of a second"


def test_beside_users_one_is_read_at_a_time(machine: Machine) -> None:
    found = machine.worker("bcache")
    found.allowed = 1
    assert len(found.next_batch(BcachePlan(scattered(4 * KIB)))) == 1
