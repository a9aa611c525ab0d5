# SPDX-License-Identifier: GPL-2.0-only
"""Moves chunks of a volume (`model.heat`) into the cache: reads them as ebbgated names them.

I/O: one volume, sysfs; JSON lines on stdin and stdout.

    in   {"command": "serve", "kind", "unit", "block", "backing", "burst"}
    in   {"command": "move", "chunks", "share", "run"} | {"command": "hold"}
         {"command": "pause", "seconds"}: nothing for a moment
    out  {"event": "moved", "moved", "failed", "busy_ns", "collect", "touched", "brought",
         "pending"}: since the last one, and as a sign of life; see `BlockReads`. `collect`: bcache
         is to collect garbage now: nothing is read until that is over
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ebbgate.model.heat import CHUNK_BYTES
from ebbgate.units import NS_PER_S
from ebbgate.warm.collection import POLL_NS
from ebbgate.warm.duty_cycle import DutyCycle
from ebbgate.warm.parallel_reads import ParallelReads
from ebbgate.warm.plan import PIECE_BYTES, WINDOW_BLOCKS, BcachePlan, Piece, Read, blocks
from ebbgate.warm.reader import TRIES_MAX, Reader, send_event

SAMPLE: Final = 16
"""The first of at most so many chunks is looked for in the cache after they were read (bcache)."""
_PLACES: Final = 4
_FOUND_MIN: Final = 0.75
"""A chunk with this share of its sampled places or blocks in the cache counts as moved."""
_SETTLED_NS: Final = NS_PER_S
"""Until the kernel has written to the cache what it has read."""
_REPORT_NS: Final = NS_PER_S // 2
_ALIVE_NS: Final = 5 * NS_PER_S


@dataclass(slots=True)
class Sample:
    """Chunks that were read; at `due_ns` the first one is looked for, which tells of all of them.

    What keeps the kernel from caching reads lasts for longer than it takes to read a few chunks.
    """

    due_ns: int
    chunks: list[int]


@dataclass(slots=True)
class Mover(Reader):
    """`queue`: chunks to read. `under_way`: being read. `checks`: chunks to look for, in order.

    `rests_until_ns`: no read before that. `ended`: see `BcachePlan`.
    """

    run: int = 0
    held: bool = True
    duty: DutyCycle = field(default_factory=DutyCycle)
    queue: deque[int] = field(default_factory=deque)
    under_way: tuple[int, ...] = ()
    checks: deque[Sample] = field(default_factory=deque)
    rests_until_ns: int = 0
    ended: dict[int, int] = field(default_factory=dict)
    _moved: list[int] = field(default_factory=list)
    _failed: list[int] = field(default_factory=list)
    _busy_ns: int = 0
    _since_burst: int = 0
    _reported_ns: int = 0
    _reads: ParallelReads | None = None

    def run_to_end(self) -> None:
        """Read until the daemon has no more use for it, which ends the process."""
        self._reads = ParallelReads(self.target.handle, self._buffer)
        while True:
            self.wait()
            if self._check_due(time.monotonic_ns()):
                self._check(self.checks.popleft())
            elif self.kind == "dm-cache":
                self._move_window()
            elif self.queue:
                self._move_chunk(self.queue.popleft())

    # ---- reads ---------------------------------------------------------------------------------
    def _move_chunk(self, chunk: int) -> None:
        """Read a chunk so that bcache caches it."""
        piece = self._piece(chunk)
        plan = BcachePlan((piece,) if piece.length_bytes else (), PIECE_BYTES, ended=self.ended)
        reads = []
        while read := plan.next(self.run):
            reads.append(read)
        begin_ns = time.monotonic_ns()
        done = self._read_all(reads)
        self._spend(begin_ns)
        if done:
            self._add_to_sample(chunk)
        else:
            self._failed.append(chunk)
        self._since_burst += piece.length_bytes
        if self.burst and self._since_burst >= self.burst:
            self._since_burst = 0
            self.collect()
            self._report(time.monotonic_ns(), collect=True)

    def _add_to_sample(self, chunk: int) -> None:
        if not self.checks or len(self.checks[-1].chunks) == SAMPLE:
            self.checks.append(Sample(time.monotonic_ns() + _SETTLED_NS, []))
        self.checks[-1].chunks.append(chunk)

    def _read_all(self, reads: Sequence[Read]) -> bool:
        assert self._reads is not None
        try:
            self._reads.read(reads)
        except (OSError, EOFError):
            return False
        return bool(reads)

    def _move_window(self) -> None:
        """Read in the blocks of a few chunks until dm-cache has promoted them."""
        count = max(1, WINDOW_BLOCKS * self.block // CHUNK_BYTES)
        self.under_way = tuple(self.queue.popleft() for _ in range(min(count, len(self.queue))))
        pieces = {chunk: self._piece(chunk) for chunk in self.under_way}
        missing = self.in_turn(tuple(blocks(pieces.values(), self.block)), self._touch)
        missed = {each.offset_bytes // self.block for each in missing}
        for chunk, piece in pieces.items():
            own = {each.offset_bytes // self.block for each in blocks((piece,), self.block)}
            self._add([chunk], len(own - missed), len(own))
        self.under_way = ()

    def _touch(self, read: Read, cost_bytes: int) -> bool:
        try:
            return self.touch(read, cost_bytes)
        except OSError:
            return False

    def send(self, read: Read, cost_bytes: int) -> None:
        """Read; raises OSError."""
        del cost_bytes
        begin_ns = time.monotonic_ns()
        try:
            self.read_at(read.offset_bytes, read.length_bytes)
        finally:
            self._spend(begin_ns)

    def _check(self, sample: Sample) -> None:
        """Look for the first chunk of a sample in the cache."""
        piece = self._piece(sample.chunks[0])
        step = piece.length_bytes // _PLACES // self.unit * self.unit
        first = piece.offset_bytes + step // 2 // self.unit * self.unit
        begin_ns = time.monotonic_ns()
        found = sum(
            self.is_hit(Read(first + number * step, TRIES_MAX * self.unit))
            for number in range(_PLACES)
        )
        self._spend(begin_ns)
        self._add(sample.chunks, found, _PLACES)

    def _add(self, chunks: list[int], found: int, places: int) -> None:
        taken = found >= max(1, _FOUND_MIN * places)
        (self._moved if taken else self._failed).extend(chunks)

    def _spend(self, begin_ns: int) -> None:
        busy_ns = time.monotonic_ns() - begin_ns
        self._busy_ns += busy_ns
        self.duty.spend(busy_ns)

    def _piece(self, chunk: int) -> Piece:
        """Return where the chunk lies; it is empty behind the end of the volume."""
        start, (volume,) = chunk * CHUNK_BYTES, self.target.pieces
        length = max(0, min(CHUNK_BYTES, volume.length_bytes - start))
        return Piece(start, start, length // self.unit * self.unit)

    # ---- commands and reports ------------------------------------------------------------------
    def wait(self) -> None:
        """Return when the next read may be sent."""
        while True:
            now_ns = time.monotonic_ns()
            self._report_when_due(now_ns)
            wait_ns = self._wait_ns(now_ns)
            if not self.listen(wait_ns / NS_PER_S) and wait_ns == 0:
                return

    def _wait_ns(self, now_ns: int) -> int:
        longest = self._report_period_ns
        if self.held or not (self.queue or self.under_way or self.checks):
            return longest
        due_ns = self.rests_until_ns - now_ns
        if self.collects(now_ns):
            due_ns = max(due_ns, POLL_NS)
        if not (self.queue or self.under_way):
            due_ns = max(due_ns, self.checks[0].due_ns - now_ns)
        return max(0, min(longest, max(due_ns, self.duty.wait_ns(now_ns))))

    def _check_due(self, now_ns: int) -> bool:
        return bool(self.checks) and self.checks[0].due_ns <= now_ns

    def on_command(self, command: dict[str, Any]) -> None:
        """Take other chunks, stop, or pause."""
        name = command["command"]
        if name == "pause":
            until_ns = time.monotonic_ns() + int(command["seconds"] * NS_PER_S)
            self.rests_until_ns = max(self.rests_until_ns, until_ns)
            return
        self.held = name == "hold"
        if not self.held:
            self.run = command["run"]
            self.duty.set_share(command["share"])
            checked = (chunk for sample in self.checks for chunk in sample.chunks)
            known = {*self.under_way, *checked, *self._moved, *self._failed}
            chunks = [each for each in command["chunks"] if each not in known]
            self.queue = deque(chunks)

    @property
    def _report_period_ns(self) -> int:
        return _REPORT_NS if self._moved or self._failed or self._busy_ns else _ALIVE_NS

    def _report_when_due(self, now_ns: int) -> None:
        if now_ns - self._reported_ns >= self._report_period_ns:
            self._report(now_ns)

    def _report(self, now_ns: int, *, collect: bool = False) -> None:
        self._reported_ns = now_ns
        found = {"moved": self._moved, "failed": self._failed, "busy_ns": self._busy_ns}
        send_event("moved", **found, collect=collect, **self.block_reads())
        self._moved, self._failed, self._busy_ns = [], [], 0
