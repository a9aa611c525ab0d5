# SPDX-License-Identifier: GPL-2.0-only
"""The process that moves chunks: which reads it sends, what it reports, and when it stops."""

from __future__ import annotations

import errno
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.units import KIB, MIB, NS_PER_MS, NS_PER_S
from ebbgate.warm import worker
from ebbgate.warm.collection import LONGEST
from ebbgate.warm.duty_cycle import PERIOD_NS
from ebbgate.warm.mover import Mover
from ebbgate.warm.parallel_reads import ParallelReads
from ebbgate.warm.plan import PIECE_BYTES, RUN_BYTES_MAX, UNIT_BYTES, BcachePlan, Piece, Read
from ebbgate.warm.target import Target

CHUNKS = 64
BLOCK = 64 * KIB
READ_NS = 10 * NS_PER_MS
BEGIN_NS = 1000 * NS_PER_S


class Over(Exception):
    """The test has seen enough."""


@dataclass
class Machine:
    """A volume, a backing device that counts reads, and a daemon that sends commands by the clock.

    `commands`: when each is sent, in ns. `cached`: all of the volume is in the cache, at once or
    after `uncached_until_ns`. `broken`: these chunks cannot be read. `collection_ns`: how long a
    collection of garbage takes; `collected_ns`: when the last one was over.
    """

    cached: bool = False
    uncached_until_ns: int = 0
    broken: set[int] = field(default_factory=set)
    commands: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    until_ns: int = BEGIN_NS + 60 * NS_PER_S
    now_ns: int = BEGIN_NS
    sent: list[tuple[int, Read]] = field(default_factory=list)
    backing: Iterator[int] = field(default_factory=itertools.count)
    mover: Mover | None = None
    internal: Path = Path()
    collection_ns: int = 0
    collected_ns: int = BEGIN_NS - 60 * NS_PER_S

    def count(self) -> int:
        cached = self.cached or 0 < self.uncached_until_ns <= self.now_ns
        return 0 if cached else next(self.backing)

    def listen(self, seconds: float) -> bool:
        if self.now_ns >= self.until_ns:
            raise Over
        self.collect()
        due = [each for each in self.commands if each[0] <= self.now_ns]
        if not due:
            later = min((at for at, _ in self.commands), default=self.until_ns)
            wait_ns = min(int(seconds * NS_PER_S), later - self.now_ns)
            self.now_ns += max(wait_ns, 1 if seconds else 0)
            return False
        assert self.mover
        for each in due:
            self.commands.remove(each)
            self.mover.on_command(each[1])
        return True

    def collect(self) -> None:
        assert self.mover
        asked = self.mover.collection
        if asked and self.collection_ns and asked.begun_ns + self.collection_ns <= self.now_ns:
            self.collected_ns = asked.begun_ns + self.collection_ns
        if self.collection_ns:
            last_sec = self.internal / "btree_gc_last_sec"
            last_sec.write_text(f"{(self.now_ns - self.collected_ns) // NS_PER_S}\n")

    def read(self, reads: Sequence[Read]) -> None:
        self.sent += [(self.now_ns, read) for read in reads]
        self.now_ns += READ_NS
        if any(read.offset_bytes // MIB in self.broken for read in reads):
            raise OSError(errno.EIO, "Input/output error")

    def read_at(self, offset: int, length: int) -> int:
        self.read([Read(offset, length)])
        return length

    def runs(self, kind: str, *commands: tuple[float, dict[str, Any]], burst: int = 0) -> None:
        """Run a worker that gets these commands after these seconds."""
        self.commands = [(BEGIN_NS + int(at * NS_PER_S), command) for at, command in commands]
        volume = Target(-1, (0, 0), (Piece(0, 0, CHUNKS * MIB - 256 * KIB),), {})
        self.mover = Mover(volume, kind, 512, BLOCK, burst)
        self.mover.internal = self.internal
        with pytest.raises(Over):
            self.mover.run_to_end()

    def read_chunks(self) -> list[int]:
        """The chunks in the order in which they were first read, without the checks."""
        found = [each.offset_bytes // MIB for _, each in self.sent if each.length_bytes > 512]
        return list(dict.fromkeys(found))

    def busy_ns(self, begin_s: float, end_s: float) -> int:
        times = {(at - BEGIN_NS) / NS_PER_S for at, _ in self.sent}
        return sum(begin_s <= at < end_s for at in times) * READ_NS


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr("ebbgate.warm.mover.time.monotonic_ns", lambda: made.now_ns)
    monkeypatch.setattr(Mover, "listen", lambda _, seconds: made.listen(seconds))
    monkeypatch.setattr(Mover, "backing_reads", lambda _: made.count())
    monkeypatch.setattr(Mover, "read_at", lambda _, *where: made.read_at(*where))
    monkeypatch.setattr(ParallelReads, "read", lambda _, reads: made.read(reads))
    return made


def move(*chunks: int, share: float = 0.5, run: int = RUN_BYTES_MAX) -> dict[str, Any]:
    return {"command": "move", "chunks": list(chunks), "share": share, "run": run}


def reported(capsys: pytest.CaptureFixture[str]) -> tuple[set[int], set[int], int]:
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {each["event"] for each in events} == {"moved"}
    moved = [chunk for each in events for chunk in each["moved"]]
    failed = [chunk for each in events for chunk in each["failed"]]
    assert len(moved + failed) == len(set(moved + failed)), "a chunk is reported twice"
    return set(moved), set(failed), sum(each["busy_ns"] for each in events)


def test_chunks_of_bcache_are_read_in_small_pieces_at_once_and_reported(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.cached = True
    machine.runs("bcache", (0, move(9, 3, 20)))
    assert machine.read_chunks() == [9, 3, 20]
    first = [each for at, each in machine.sent if at == machine.sent[0][0]]
    assert sum(each.length_bytes for each in first) == MIB
    assert max(each.length_bytes for each in first) == PIECE_BYTES
    moved, failed, busy_ns = reported(capsys)
    assert (moved, failed) == ({3, 9, 20}, set())
    assert busy_ns == len({at for at, _ in machine.sent}) * READ_NS


def first_hole(units: Sequence[int], cached: set[int]) -> set[int]:
    """Return what bcache caches of a read: the first part of it that it does not have."""
    missing = dropwhile(cached.__contains__, units)
    return set(takewhile(lambda unit: unit not in cached, missing))


@given(st.sets(st.integers(0, MIB // UNIT_BYTES - 1)), st.sampled_from([1, 2, 4]))
def test_nothing_that_users_have_cached_keeps_the_rest_of_a_chunk_out(
    first_units: set[int], page_units: int
) -> None:
    """Pages may begin anywhere."""
    cached = {first + number for first in first_units for number in range(page_units)}
    plan = BcachePlan((Piece(0, 0, MIB),), PIECE_BYTES)
    while read := plan.next(RUN_BYTES_MAX):
        end = read.offset_bytes + read.length_bytes
        units = range(read.offset_bytes // UNIT_BYTES, end // UNIT_BYTES)
        hole = first_hole(units, cached)
        assert set(units) <= cached | hole
        cached |= hole
    assert cached >= set(range(MIB // UNIT_BYTES))


def test_adjacent_chunks_are_never_a_sequence_that_the_kernel_bypasses(machine: Machine) -> None:
    commands = [(number * 2.0, move(number, share=0.8)) for number in range(20)]
    machine.runs("bcache", *commands)
    ends: dict[int, int] = {}
    assert machine.read_chunks() == list(range(20))
    for _, read in machine.sent:
        if read.length_bytes > 512:
            start, end = read.offset_bytes, read.offset_bytes + read.length_bytes
            ends[end] = ends.pop(start, 0) + read.length_bytes
            assert ends[end] <= RUN_BYTES_MAX + 4 * KIB


def test_chunks_of_which_a_sample_is_not_found_have_failed(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.uncached_until_ns = BEGIN_NS + 8 * NS_PER_S
    machine.runs("bcache", (0, move(*range(20))), (8, move(*range(30, 60))))
    looked_for = {each.offset_bytes // MIB for _, each in machine.sent if each.length_bytes == 512}
    assert looked_for == {0, 16, 30, 46}
    assert reported(capsys)[:2] == (set(range(30, 60)), set(range(20)))


def test_chunks_that_were_read_are_looked_for_when_nothing_else_is_to_be_moved(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.cached = True
    machine.runs("bcache", (0, move(*range(16))), (0.045, move()))
    assert machine.read_chunks() == [0, 1, 2, 3, 4]
    assert reported(capsys)[0] == {0, 1, 2, 3, 4}


def test_chunks_that_were_read_before_a_hold_are_looked_for_after_it(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.cached = True
    machine.runs("bcache", (0, move(*range(16))), (0.045, {"command": "hold"}), (20, move(0, 50)))
    assert machine.read_chunks() == [0, 1, 2, 3, 4, 50]
    assert reported(capsys)[0] == {0, 1, 2, 3, 4, 50}


def test_chunks_of_dm_cache_are_moved_once_their_blocks_are_hits(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.cached = True
    machine.runs("dm-cache", (0, move(5, 7)))
    assert len(machine.sent) == 2 * MIB // BLOCK
    assert reported(capsys)[:2] == ({5, 7}, set())


def test_blocks_of_dm_cache_that_it_has_brought_in_are_reported(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    count = 2 * MIB // BLOCK
    machine.uncached_until_ns = BEGIN_NS + 2 * count * READ_NS
    machine.runs("dm-cache", (0, move(5, 7, share=0.95)))
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(each["touched"] for each in events) == len(machine.sent) > count
    assert sum(each["brought"] for each in events) == count
    assert events[-1]["pending"] == 0 < max(each["pending"] for each in events)


def test_chunks_of_dm_cache_that_are_not_promoted_have_failed(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.runs("dm-cache", (0, move(5)))
    assert len(machine.sent) == 8 * MIB // BLOCK
    assert reported(capsys)[:2] == (set(), {5})


@pytest.mark.parametrize("kind", ["bcache", "dm-cache"])
def test_chunks_that_cannot_be_read_or_lie_behind_the_end_have_failed(
    machine: Machine, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    machine.cached, machine.broken = True, {2}
    machine.runs(kind, (0, move(1, 2, CHUNKS - 1, CHUNKS + 5)))
    assert reported(capsys)[:2] == ({1, CHUNKS - 1}, {2, CHUNKS + 5})


@pytest.mark.parametrize("kind", ["bcache", "dm-cache"])
def test_reads_take_their_share_of_the_time(machine: Machine, kind: str) -> None:
    period_s = PERIOD_NS // NS_PER_S
    machine.until_ns = BEGIN_NS + PERIOD_NS
    machine.runs(kind, (0, move(*range(CHUNKS), share=0.04)))
    assert 0.035 * PERIOD_NS < machine.busy_ns(0, period_s) <= 0.041 * PERIOD_NS


def test_hold_stops_and_pause_delays(machine: Machine) -> None:
    machine.runs(
        "bcache",
        (0, move(*range(CHUNKS), share=0.8)),
        (0.1, {"command": "pause", "seconds": 0.3}),
        (0.5, {"command": "hold"}),
        (20, move(40, share=0.8)),
    )
    assert machine.busy_ns(0.12, 0.4) == 0
    assert machine.busy_ns(0.4, 0.5) > 0
    assert machine.busy_ns(0.52, 20) == 0
    assert machine.read_chunks()[-1] == 40
    assert len(machine.read_chunks()) < CHUNKS


def test_another_list_replaces_the_queue_and_repeats_nothing(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.cached = True
    machine.runs("bcache", (0, move(*range(16))), (0.045, move(0, 1, 50)))
    assert machine.read_chunks() == [0, 1, 2, 3, 4, 50]
    assert reported(capsys)[0] == {0, 1, 2, 3, 4, 50}


def test_after_a_part_of_the_cache_it_rests_for_garbage_collection(machine: Machine) -> None:
    machine.runs("bcache", (0, move(*range(8), share=0.8)), burst=4 * MIB)
    times = sorted({at for at, read in machine.sent if read.length_bytes > 512})
    assert times[4] - times[3] >= 2 * NS_PER_S


def test_it_rests_for_less_where_collections_are_short(machine: Machine, tmp_path: Path) -> None:
    machine.internal = tmp_path
    (tmp_path / LONGEST).write_text("100\n")
    machine.runs("bcache", (0, move(*range(8), share=0.8)), burst=4 * MIB)
    times = sorted({at for at, read in machine.sent if read.length_bytes > 512})
    assert 0.4 * NS_PER_S <= times[4] - times[3] < NS_PER_S


def test_it_goes_on_when_the_collection_that_it_asked_for_is_over(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.internal = tmp_path
    (tmp_path / LONGEST).write_text("900\n")
    machine.collection_ns = 400 * NS_PER_MS
    machine.cached = True
    machine.runs("bcache", (0, move(*range(12), share=0.8)), burst=4 * MIB)
    times = sorted({at for at, read in machine.sent if read.length_bytes > 512})
    for last in (3, 7):
        assert 0.4 * NS_PER_S <= times[last + 1] - times[last] < 1.5 * NS_PER_S
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["collect"] for each in events].count(True) == 3


def test_an_idle_worker_shows_that_it_lives(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.runs("bcache")
    events = capsys.readouterr().out.splitlines()
    assert 10 <= len(events) <= 14
    assert json.loads(events[-1])["busy_ns"] == 0


def test_the_worker_serves_chunks_where_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    target = Target(-1, (252, 0), (Piece(0, 0, MIB),), {})
    monkeypatch.setattr(worker, "become_background", lambda: None)
    monkeypatch.setattr(worker, "_opened", lambda _: target)
    monkeypatch.setattr(Mover, "start", lambda _, command: made.append(command["command"]))
    monkeypatch.setattr(Mover, "run_to_end", lambda _: made.append("runs"))
    read, write = os.pipe()
    os.write(write, b'{"device": "x"}\n{"command": "serve"}\n')
    before = os.dup(0)
    os.dup2(read, 0)
    try:
        assert worker.main() == 0
    finally:
        os.dup2(before, 0)
    assert made == ["serve", "runs"]
