# SPDX-License-Identifier: GPL-2.0-only
"""Simulates bcache's writeback thread and its rate limit. Pure: simulated time.

After drivers/md/bcache/writeback.c (read_dirty, writeback_delay) and util.c (bch_next_delay) of
Linux 6.1: dirty pieces in the order of their address, each read from the cache device and then
written to the backing device, at most 64 under way; after each a delay in whole jiffies, bounded to
2.5 s ahead of and 2 s behind the clock; no delay at all while writeback_percent is 0.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from ebbgate.units import NS_PER_MS, NS_PER_S, NS_PER_US, SECTOR_BYTES
from tests.sim.clock import Clock
from tests.sim.disk import Disk, Request

JIFFY_NS = 4 * NS_PER_MS
"""HZ is 250 on Debian."""
IN_FLIGHT_MAX = 64
KEY_BUFFER = 500
"""Pieces that the thread takes from the index at once (bcache.h, KEYBUF_NR)."""
MARK_BYTES = 4096
"""Of the superblock of the backing device, which says whether the cache has dirty data."""
AHEAD_NS_MAX = 5 * NS_PER_S // 2
BEHIND_NS_MAX = 2 * NS_PER_S

Piece = tuple[int, int]
"""Address and length of a dirty extent, in bytes."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The speed of the thread and the cache device; the defaults are those of an emulated guest."""

    pass_ns: int = 250 * NS_PER_US
    cache_read_ns: int = 500 * NS_PER_US


EMULATED = Machine()
NATIVE = Machine(pass_ns=20 * NS_PER_US, cache_read_ns=100 * NS_PER_US)


class _Thread(Enum):
    RUNNING = auto()
    SLEEPING = auto()
    BLOCKED = auto()
    """The limit of pieces under way is reached."""
    CLEAN = auto()
    HELD = auto()
    """writeback_running is 0, and the key buffer is empty."""


class Writeback:
    """The thread, the dirty data, and the knobs that control it.

    `marks`: count and write the superblock whenever the cache becomes dirty or clean.
    """

    def __init__(
        self,
        clock: Clock,
        disk: Disk,
        pieces: Iterable[Piece],
        machine: Machine = EMULATED,
        *,
        marks: bool = False,
    ) -> None:
        self._clock = clock
        self._disk = disk
        self._machine = machine
        # From the highest address down, so that the next piece is taken off the end.
        self._dirty = sorted(pieces, reverse=True)
        self.dirty_bytes = sum(length for _, length in self._dirty)
        self.percent = 10
        self.rate_sectors_per_s = 8
        self.reading_ios = 0
        self.writing_ios = 0
        self.writing_bytes = 0
        self.done_ios = 0
        self.done_bytes = 0
        self.marked_ios = 0
        self.on_written: Callable[[Piece], None] = lambda _: None
        self._marks = marks
        self._marked_dirty = bool(self._dirty)
        self._running = True
        self._buffered = 0
        self._next_ns = 0
        self._nap = 0
        self._thread = _Thread.RUNNING
        clock.after(0, self._pass)

    @property
    def in_flight_ios(self) -> int:
        """Pieces being read or written."""
        return self.reading_ios + self.writing_ios

    def wake(self) -> None:
        """Make the thread compute its delay again, as a write to writeback_running does."""
        if self._thread is _Thread.SLEEPING:
            self._rest(self._delay_ns(0))

    def run(self, on: bool) -> None:
        """Set writeback_running; 0 lets the key buffer go out first."""
        if self._running and not on:
            self._buffered = min(KEY_BUFFER, len(self._dirty))
        self._running = on
        if on and self._thread is _Thread.HELD:
            self._rest(0)
        self.wake()

    def add(self, piece: Piece) -> None:
        """Handle a user's write that the cache took."""
        insort(self._dirty, piece, key=lambda dirty: -dirty[0])
        self.dirty_bytes += piece[1]
        self._mark(dirty=True)
        if self._thread is _Thread.CLEAN:
            self._thread = _Thread.RUNNING
            self._clock.after(self._machine.pass_ns, self._pass)

    def _delay_ns(self, done_bytes: int) -> int:
        if self.percent == 0:
            return 0
        now_ns = self._clock.now_ns
        self._next_ns += done_bytes // SECTOR_BYTES * NS_PER_S // self.rate_sectors_per_s
        self._next_ns = min(self._next_ns, now_ns + AHEAD_NS_MAX)
        self._next_ns = max(self._next_ns, now_ns - BEHIND_NS_MAX)
        return max(0, self._next_ns - now_ns) // JIFFY_NS * JIFFY_NS

    def _rest(self, delay_ns: int) -> None:
        """Sleep; an earlier wake-up makes the timer stale."""
        self._nap += 1
        if delay_ns == 0:
            self._thread = _Thread.RUNNING
            self._clock.after(self._machine.pass_ns, self._pass)
            return
        self._thread = _Thread.SLEEPING
        nap = self._nap
        self._clock.after(delay_ns, lambda: self.wake() if nap == self._nap else None)

    def _mark(self, *, dirty: bool) -> None:
        if self._marks and dirty != self._marked_dirty:
            self._marked_dirty = dirty
            self.marked_ios += 1
            self._disk.submit(Request(0, MARK_BYTES, destage=False, done=lambda: None))

    def _pass(self) -> None:
        if not (self._running or self._buffered):
            self._thread = _Thread.HELD
            return
        if not self._dirty:
            self._thread = _Thread.CLEAN
            self._mark(dirty=False)
            return
        if self.in_flight_ios >= IN_FLIGHT_MAX:
            self._thread = _Thread.BLOCKED
            return
        piece = self._dirty.pop()
        self._buffered = max(0, self._buffered - 1)
        self.reading_ios += 1
        self._clock.after(self._machine.cache_read_ns, lambda: self._write(piece))
        self._rest(self._delay_ns(piece[1]))

    def _write(self, piece: Piece) -> None:
        self.reading_ios -= 1
        self.writing_ios += 1
        self.writing_bytes += piece[1]
        self._disk.submit(
            Request(*piece, destage=True, done=lambda: self._written(piece), write=True)
        )

    def _written(self, piece: Piece) -> None:
        self.writing_ios -= 1
        self.writing_bytes -= piece[1]
        self.done_ios += 1
        self.done_bytes += piece[1]
        self.dirty_bytes -= piece[1]
        self.on_written(piece)
        if self._thread is _Thread.BLOCKED:
            self._thread = _Thread.RUNNING
            self._pass()
