# SPDX-License-Identifier: GPL-2.0-only
"""The process that reads sends events often enough to be told from one that hangs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbgate.daemon.warm_job import SILENT_S
from ebbgate.units import KIB, MIB, NS_PER_S
from ebbgate.warm import plan
from ebbgate.warm.plan import RUN_BYTES_MAX, Piece, Read
from ebbgate.warm.target import Target
from ebbgate.warm.worker import Worker

BLOCK = 64 * KIB
FILE_BYTES = 40_000 * BLOCK
STEP_EVERY_S = 10.0


class Clock:
    """Stands in for the module `time`; moves only when somebody waits or works."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.events_s: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def monotonic_ns(self) -> int:
        return int(self.now_s * NS_PER_S)

    def on_event(self, *_: Any, **__: Any) -> None:
        self.events_s.append(self.now_s)

    @property
    def silent_s(self) -> float:
        """The longest time without an event."""
        times = [1000.0, *self.events_s, self.now_s]
        return max(after - before for before, after in itertools.pairwise(times))


class Patient(Worker):
    """A worker beside users: ebbgated lets it read once in ten seconds."""

    clock: Clock
    waited_s = 0.0

    def listen(self, seconds: float) -> bool:
        Patient.clock.now_s += seconds
        Patient.waited_s += seconds
        if self.allowed == 0 and Patient.waited_s >= STEP_EVERY_S:
            self.allowed, Patient.waited_s = 1, 0.0
            return True
        return False


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """All reads take 10 ms."""
    made = Clock()
    Patient.clock = made

    def preadv(_: int, buffers: list[memoryview], __: int) -> int:
        made.now_s += 0.01
        return len(buffers[0])

    for module in ("worker", "reader"):
        monkeypatch.setattr(f"ebbgate.warm.{module}.time", made)
    monkeypatch.setattr("ebbgate.warm.worker.send_event", made.on_event)
    monkeypatch.setattr("ebbgate.warm.worker.os.preadv", preadv)
    # Without asynchronous I/O all reads are this function's.
    monkeypatch.setattr("ebbgate.warm.parallel_reads.platform.machine", lambda: "riscv64")
    return made


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Patient]:
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, FILE_BYTES)
    handle = os.open(path, os.O_RDONLY)
    target = Target(handle, (0, 0), (Piece(0, 0, 4 * MIB),), {}, str(path), FILE_BYTES)
    yield Patient(target, "bcache", 512, BLOCK, run=RUN_BYTES_MAX, allowed=None)
    os.close(handle)


@pytest.mark.parametrize("kind", ["bcache", "dm-cache"])
@pytest.mark.parametrize("allowed", [None, 0], ids=["users away", "beside users"])
def test_no_pass_rest_or_wait_is_silent_for_long(
    worker: Patient, clock: Clock, monkeypatch: pytest.MonkeyPatch, kind: str, allowed: int | None
) -> None:
    """The cache takes nothing, so that there is a second pass."""
    reads = itertools.count()
    monkeypatch.setattr(Patient, "backing_reads", lambda _: next(reads))
    worker.kind, worker.allowed = kind, allowed
    worker.run_to_end()
    assert clock.now_s - 1000.0 > 10, "it has settled, and let the kernel forget"
    assert clock.silent_s < SILENT_S / 4


def test_a_list_of_many_cache_blocks_is_not_silent(
    worker: Patient, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other programs keep the processors busy."""

    def slow(pieces: Iterable[Piece], block_bytes: int) -> Iterator[Read]:
        for read in plan.blocks(pieces, block_bytes):
            clock.now_s += 0.002
            yield read

    monkeypatch.setattr("ebbgate.warm.worker.blocks", slow)
    monkeypatch.setattr(Patient, "backing_reads", lambda _: 0)
    worker.kind = "dm-cache"
    worker.target.pieces = (Piece(0, 0, FILE_BYTES),)
    worker.run_to_end()
    assert clock.silent_s < SILENT_S / 4
