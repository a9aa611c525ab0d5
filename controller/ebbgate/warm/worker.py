# SPDX-License-Identifier: GPL-2.0-only
"""The process that reads what is to be warmed, as ebbgated tells it to.

I/O: one file or volume, sysfs; JSON lines on stdin and stdout. A process of its own, since a read
may hang in the kernel, and at the lowest priority.

    in   {"path": ...} or {"device", "devno", "ranges"}: what to open; with "block_sizes": those of
         caches on which it may lie, in bytes
    out  {"event": "opened", "devno", "bytes", "pieces", "blocks", "left_out"}, or {"event":
         "failed", "text"}; `blocks`: how many it touches, by each of these sizes
    in   {"command": "start", "kind", "unit", "block", "backing", "burst"}
    in   {"command": "go", "run", "rate"} | {"command": "step", ...} | {"command": "hold"}
    out  {"event": "progress" | "burst" | "done", "phase", "read", "total", "checked", "hits",
         "elsewhere", "collects", "touched", "brought", "pending"}; `burst`: bcache is to collect
         garbage, and until that is over (`collects`) nothing is read; for the last three see
         `BlockReads`

A request with "layout" is another one: see `ebbgate.layout.survey`.
For chunks of a volume (`{"command": "serve"}` instead of `start`) see `mover`; for pages that
bring a disk's heads back (`{"heads": true}`) `head_reads`.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.layout.postgres_names import RelationNames
from ebbgate.layout.survey import SECONDS_MAX, survey
from ebbgate.units import MIB, NS_PER_S, format_bytes
from ebbgate.warm import head_reads, io_priority, touch
from ebbgate.warm.collection import POLL_NS
from ebbgate.warm.mover import Mover
from ebbgate.warm.parallel_reads import ParallelReads
from ebbgate.warm.plan import (
    PASSES_BYTES,
    READ_BYTES_MAX,
    UNIT_BYTES,
    WINDOW_BLOCKS,
    BcachePlan,
    Piece,
    Read,
    aligned,
    blocks,
    spread,
)
from ebbgate.warm.reader import TRIES_MIN, Reader, send_event
from ebbgate.warm.target import Target, open_file, open_ranges

_MEMORY_BYTES_MAX: Final = 256 * MIB
_REPORT_NS: Final = NS_PER_S // 4
_LOOK_NS: Final = NS_PER_S
_SAMPLES: Final = 256
_PASSES_MAX: Final = len(PASSES_BYTES)
BATCH_BYTES: Final = MIB // 2
"""Reads that are sent at once; as many bytes may be under way from before. A user who returns
unforeseen waits for all of them.
"""
_UNDER_WAY_BYTES: Final = 2 * (BATCH_BYTES + READ_BYTES_MAX)
"""A batch may end with a read of full length, and one from before is under way beside it."""
BATCH_READS: Final = 32
_BATCHES_PER_S: Final = 8
"""At least, of a bounded rate."""
_TRUNCATED: Final = "the file was truncated"
_MOVED: Final = "the file was moved on its loop device while it was warmed"
_ENOUGH: Final = {"bcache": 0.995, "dm-cache": 0.97}
"""Share of hits in a sample that ends the passes."""
_SETTLE_S: Final = 5.0
_FORGOTTEN_S: Final = 5.5
"""bcache joins a read with one that ended where it starts for 5 s (request.c, check_should_bypass):
a pass that follows sooner continues the sequences of the one before.
"""
_SETTLE_STEP_S: Final = 0.2
_BLOCKS_A_LOOK: Final = 4096
"""Cache blocks that are listed between two looks at the clock."""


@dataclass(slots=True)
class Worker(Reader):
    """Reads a target in passes until a sample of it is in the cache.

    `allowed`: reads that may still be sent before the next command; None: without end.
    """

    run: int = 0
    rate: int = 0
    allowed: int | None = 0
    phase: str = "read"
    read: int = 0
    total: int = 0
    checked: int = 0
    hits: int = 0
    _since_burst: int = 0
    _due_ns: int = 0
    _reported_ns: int = 0
    _looked_ns: int = 0

    def run_to_end(self) -> None:
        """Read and check until enough is in the cache, or no more goes in. Raises Unavailable."""
        pieces, cut = aligned(self.target.readable(self.unit), self.unit)
        if cut:
            send_event("unaligned", bytes=cut)
        if not pieces:
            raise Unavailable("there is nothing to warm", "it is empty, or all of it was left out")
        by_block = self.kind == "dm-cache"
        # The room for other jobs depends on it from the first report on.
        self.total = sum(piece.length_bytes for piece in pieces)
        if self.burst:
            self._collect()
        reads = ParallelReads(self.target.handle, memoryview(mmap.mmap(-1, _UNDER_WAY_BYTES)))
        share = -1.0
        for number in range(_PASSES_MAX):
            self.phase, self.read = "read", 0
            if number and not by_block:
                self.pause(_FORGOTTEN_S)
            self.total = sum(piece.length_bytes for piece in pieces)
            if by_block:
                self.total = sum(read.length_bytes for read in self._blocks(pieces))
                self._dm_cache_pass(self._blocks(pieces))
            else:
                self._bcache_pass(BcachePlan(pieces, PASSES_BYTES[number]), reads)
            self.phase = "check"
            self.check(self._sample(pieces, number))
            before, share = share, self.hits / max(1, self.checked)
            if share >= _ENOUGH[self.kind] or (number and share < before + 0.01):
                break
        if self.target.moved():
            raise Unavailable(_MOVED, "run it again")
        self._report("done")

    # ---- passes --------------------------------------------------------------------------------
    def _bcache_pass(self, plan: BcachePlan, reads: ParallelReads) -> None:
        """Keep reads under way, so that the disk always has a next one."""
        try:
            while batch := self.next_batch(plan):
                reads.send(batch)
                for read in batch:
                    self._count(read.length_bytes, read.length_bytes)
                    self.read += read.length_bytes
                reads.wait(BATCH_BYTES)
            reads.wait()
        except EOFError as error:
            raise Unavailable(_TRUNCATED) from error

    def next_batch(self, plan: BcachePlan) -> Sequence[Read]:
        """Return what may be sent next, once that is allowed; nothing at the end of the plan."""
        self.wait()
        most = min(BATCH_BYTES, self.rate // _BATCHES_PER_S) if self.rate else BATCH_BYTES
        found: list[Read] = []
        room = BATCH_READS if self.allowed is None else min(BATCH_READS, self.allowed)
        while len(found) < room and (read := plan.next(self.run)):
            found.append(read)
            most -= read.length_bytes
            if most <= 0:
                break
        return found

    def _blocks(self, pieces: Sequence[Piece]) -> Iterator[Read]:
        """Yield the first part in each cache block, and report.

        There may be millions of them, and users may leave this process little time.
        """
        for number, read in enumerate(blocks(pieces, self.block)):
            if number % _BLOCKS_A_LOOK == 0:
                self._report_when_due(time.monotonic_ns())
            yield read

    def _dm_cache_pass(self, reads: Iterator[Read]) -> None:
        """Read in each block of a few regions in turn, until it is a hit."""
        while window := list(islice(reads, WINDOW_BLOCKS)):
            missing = self.in_turn(window, self._touch)
            self.read += sum(read.length_bytes for read in missing)

    def _touch(self, read: Read, cost_bytes: int) -> bool:
        hit = self.touch(read, cost_bytes)
        self.read += read.length_bytes if hit else 0
        return hit

    def send(self, read: Read, cost_bytes: int) -> None:
        """Read; raises Unavailable behind the end of the file."""
        if self.read_at(read.offset_bytes, read.length_bytes) == 0:
            raise Unavailable(_TRUNCATED)
        self._count(read.length_bytes, cost_bytes)

    def _count(self, length_bytes: int, cost_bytes: int) -> None:
        """Count a read; see `send`."""
        self._since_burst += length_bytes
        if self.allowed is not None:
            self.allowed -= 1
        if self.burst and self._since_burst >= self.burst:
            self._collect()
        if self.rate:
            busy_ns = cost_bytes * NS_PER_S // self.rate
            self._due_ns = max(self._due_ns, time.monotonic_ns()) + busy_ns

    def _collect(self) -> None:
        """Have garbage collected before the kernel does so beside reads."""
        self._since_burst = 0
        self.collect()
        self._report("burst")

    # ---- the check -----------------------------------------------------------------------------
    def _sample(self, pieces: Sequence[Piece], number: int) -> Sequence[Read]:
        """Return places that no check before has read, since a read caches what it misses."""
        if self.kind == "dm-cache":
            count = sum(1 for _ in self._blocks(pieces))
            step = max(1, count // _SAMPLES)
            first = number * step // _PASSES_MAX
            return tuple(islice(self._blocks(pieces), first, None, step))
        step = max(self.unit * _PASSES_MAX * TRIES_MIN, self.total // _SAMPLES)
        own = step // _PASSES_MAX
        # Of a file that is smaller than that, a pass has read again what the check before missed.
        first = number * own % max(1, self.total)
        places = (each // self.unit * self.unit for each in (step, first))
        found = spread(pieces, *places)
        return tuple(Read(each.offset_bytes, min(each.length_bytes, own)) for each in found)

    def check(self, reads: Sequence[Read]) -> None:
        """Read a sample again: one that the backing device does not see was a hit."""
        self._settle()
        self.checked = self.hits = self.elsewhere = 0
        for read in reads:
            self.wait()
            hit = self.is_hit(read)
            self.checked += 1
            self.hits += hit
            if not hit:
                # Only this has kept the backing device from users.
                self._count(self.unit, UNIT_BYTES)

    def _settle(self) -> None:
        """Wait until the kernel copies nothing more into the cache."""
        end_s = time.monotonic() + _SETTLE_S
        before = -1
        while time.monotonic() < end_s and (now := self.backing_reads()) != before:
            before = now
            self.pause(_SETTLE_STEP_S)

    # ---- commands and reports ------------------------------------------------------------------
    def wait(self) -> None:
        """Return when the next read may be sent. Raises Unavailable if the file has changed."""
        while True:
            now_ns = time.monotonic_ns()
            if now_ns - self._looked_ns >= _LOOK_NS:
                self._looked_ns = now_ns
                if changed := self.target.changed():
                    raise Unavailable(changed)
            self._report_when_due(now_ns)
            stopped = self.allowed is not None and self.allowed <= 0
            collects = self.collects(now_ns)
            late_ns = POLL_NS if collects else self._due_ns - now_ns
            timeout = 1.0 if stopped else max(0.0, min(1.0, late_ns / NS_PER_S))
            waits = self.listen(timeout) or stopped or collects
            if not waits and self._due_ns <= time.monotonic_ns():
                return

    def on_command(self, command: dict[str, Any]) -> None:
        """Go on, read once, or stop."""
        name = command["command"]
        self.allowed = {"go": None, "step": 1, "hold": 0}[name]
        if name != "hold":
            self.run, self.rate = command["run"], command["rate"]

    def _report_when_due(self, now_ns: int) -> None:
        if now_ns - self._reported_ns >= _REPORT_NS:
            self._report("progress")

    def _report(self, event: str) -> None:
        self._reported_ns = time.monotonic_ns()
        send_event(
            event,
            phase=self.phase,
            read=self.read,
            total=self.total,
            checked=self.checked,
            hits=self.hits,
            elsewhere=self.elsewhere,
            collects=self.collection is not None,
            **self.block_reads(),
        )


def become_background() -> None:
    """Give this process the lowest priorities, and a bound of its memory."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.nice(19)
    io_priority.set_for_thread()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def _opened(request: dict[str, Any]) -> Target:
    if "path" in request:
        return open_file(request["path"])
    devno = (int(request["devno"][0]), int(request["devno"][1]))
    return open_ranges(request["device"], devno, request["ranges"])


def _survey(request: dict[str, Any]) -> None:
    # Nobody listens any more then; a search of folders cannot be asked to end.
    signal.alarm(2 * SECONDS_MAX)
    for event, fields in survey(request, RelationNames().name_of):
        send_event(event, **fields)


def _warm(request: dict[str, Any], commands: FileIO) -> None:
    """Open a target and read it, once the daemon has said what to do with it."""
    target = _opened(request)
    send_event(
        "opened",
        devno=target.devno,
        bytes=sum(piece.length_bytes for piece in target.pieces),
        pieces=len(target.pieces),
        blocks=target.block_counts(request),
        left_out=dict(target.left_out),
    )
    line = commands.readline()
    if line:
        command = json.loads(line)
        reader = Mover(target) if command["command"] == "serve" else Worker(target)
        reader.start(command)
        reader.run_to_end()


def main() -> int:
    """Serve one daemon; return the exit code."""
    become_background()
    # Unbuffered: what follows a line is read later, when it can be waited for.
    commands = FileIO(0, closefd=False)
    try:
        request = json.loads(commands.readline())
        if "layout" in request:
            _survey(request)
        elif "touch" in request:
            touch.serve(request, commands)
        elif "heads" in request:
            head_reads.serve(commands)
        else:
            _warm(request, commands)
    except EbbgateError as error:
        send_event("failed", text=error.message, hint=error.hint)
    except MemoryError:
        send_event("failed", text=f"it needs more than {format_bytes(_MEMORY_BYTES_MAX)} of memory")
    except (BrokenPipeError, ConnectionResetError):
        # The daemon has ended the job.
        return 0
    except OSError as error:
        send_event("failed", text=f"it could not be read: {error.strerror}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
