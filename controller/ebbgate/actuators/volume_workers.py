# SPDX-License-Identifier: GPL-2.0-only
"""Runs one process for each volume, with a deadline. I/O: processes.

Processes and not threads: a thread that hangs in the kernel cannot be ended and keeps its whole
process. A child that hangs is killed and left behind; it does nothing more after the call in which
it hangs.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ebbgate.actuators.restore import Done, Work
from ebbgate.knobs.catalog import TABLE
from ebbgate.model.decision import JournalEntry
from ebbgate.units import MINUTE_NS, NS_PER_S, format_ns

DEADLINE_NS: Final = 10 * NS_PER_S
"""For each volume. A write takes microseconds, but bcache may be busy with a registration."""
TABLE_DEADLINE_NS: Final = MINUTE_NS
"""For a volume whose table is loaded: the kernel first completes all I/O in flight."""
_LENGTH_BYTES: Final = 4
_READ_BYTES: Final = 65536
_CLOSE_FROM: Final = 3
_CLOSE_TO: Final = 4096


@dataclass(slots=True)
class _Child:
    """The worker of one volume; `received`: bytes that were not parsed yet."""

    entries: Sequence[JournalEntry]
    pid: int
    pipe: int
    due_ns: int
    done: int = 0
    received: bytes = b""


@dataclass(frozen=True, slots=True)
class VolumeWorkers:
    """`in_child`: called in each child before its work, after all inherited files were closed."""

    in_child: Callable[[], None]
    deadline_ns: int = DEADLINE_NS
    table_deadline_ns: int = TABLE_DEADLINE_NS

    def __call__(
        self, volumes: Mapping[str, Sequence[JournalEntry]], work: Work, /
    ) -> Iterator[Done]:
        """Work on all volumes in parallel; report a volume that does not answer in time."""
        children = [self._start(entries, work) for entries in volumes.values()]
        running = list(children)
        while running:
            wait_ns = min(child.due_ns for child in running) - time.monotonic_ns()
            pipes = [child.pipe for child in running]
            ready, _, _ = select.select(pipes, [], [], max(0.0, wait_ns / NS_PER_S))
            # The caller notes each answer on a disk, which may take longer than a deadline: what
            # other children have answered meanwhile is read by the next turn.
            now_ns = time.monotonic_ns()
            for child in list(running):
                ended, over = False, now_ns >= child.due_ns
                if child.pipe in ready:
                    ended, over = not _take(child), False
                    yield from _outcomes(child)
                if ended or over:
                    running.remove(child)
                    yield from self._end(child, in_time=ended)

    def _start(self, entries: Sequence[JournalEntry], work: Work) -> _Child:
        reading, writing = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            # Run no handler, buffer flush or exit function of the parent.
            code = 1
            try:
                self._be_child(entries, work, writing)
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        due_ns = time.monotonic_ns() + self._deadline_ns(entries)
        return _Child(entries, pid, reading, due_ns)

    def _be_child(self, entries: Sequence[JournalEntry], work: Work, writing: int) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        # Above all the lock: a child that hangs must not hold it.
        os.closerange(_CLOSE_FROM, writing)
        os.closerange(writing + 1, _CLOSE_TO)
        self.in_child()
        for entry in entries:
            answer = pickle.dumps(work(entry))
            message = len(answer).to_bytes(_LENGTH_BYTES, "big") + answer
            while message:
                message = message[os.write(writing, message) :]

    def _deadline_ns(self, entries: Sequence[JournalEntry]) -> int:
        loads = any(entry.knob == TABLE for entry in entries)
        return self.table_deadline_ns if loads else self.deadline_ns

    def _end(self, child: _Child, *, in_time: bool) -> Iterator[Done]:
        """Reap the worker, or kill and abandon it; yield the entries that it did not finish."""
        os.close(child.pipe)
        if in_time:
            os.waitpid(child.pid, 0)
        else:
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, os.WNOHANG)
        rest = child.entries[child.done :]
        if not rest:
            return
        within = format_ns(self._deadline_ns(child.entries))
        why = f"the kernel has not answered for {within}: {rest[0].volume} hangs at {rest[0].knob}"
        if in_time:
            why = "the process that was to restore it ended early"
        for entry in rest:
            yield entry, why


def _take(child: _Child) -> bool:
    """Read what the child has written; False once it has ended."""
    found = os.read(child.pipe, _READ_BYTES)
    child.received += found
    return bool(found)


def _outcomes(child: _Child) -> Iterator[Done]:
    while len(child.received) >= _LENGTH_BYTES:
        end = _LENGTH_BYTES + int.from_bytes(child.received[:_LENGTH_BYTES], "big")
        if len(child.received) < end:
            return
        # Safe: written by a child of this process, over a private pipe.
        answer = pickle.loads(child.received[_LENGTH_BYTES:end])
        child.received = child.received[end:]
        child.done += 1
        yield child.entries[child.done - 1], answer
