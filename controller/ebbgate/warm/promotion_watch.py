# SPDX-License-Identifier: GPL-2.0-only
"""Counts what users' misses bring into a dm-cache, and stops our reads where that grows. Pure.

smq takes how often regions were read of late as a sign of what to promote, and our reads count,
too: beside them it may promote what users miss once. Its counter does not tell whose a promotion
is. So each is matched with a block that a reading process has found to be brought in; what remains
is users'.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ebbgate.model.frame import Frame
from ebbgate.units import NS_PER_S, format_ns
from ebbgate.warm.plan import WINDOW_BLOCKS

LAG_NS: Final = 2 * NS_PER_S
"""Between a promotion, its look at the counter and the report of the block, in either order; so
long after our reads users' misses may still be promoted for them.
"""
GROWTH: Final = 2.0
MARGIN: Final = WINDOW_BLOCKS
"""Our reads stop at more than `GROWTH` times as many as in rests, and this many: the blocks that
are read in turn are those of which it is not known yet whose they are.
"""
BEFORE_NS: Final = 5 * NS_PER_S
"""Of rest that is needed to compare with."""
_BEFORE_MAX_NS: Final = 120 * NS_PER_S
"""Of rest that counts in full."""
CLEAN_NS: Final = 30 * NS_PER_S
"""Of reads without growth, after which an earlier growth is forgotten."""
HOLD_NS: Final = 10 * NS_PER_S
HOLD_MAX_NS: Final = 600 * NS_PER_S
_GAP_MAX_NS: Final = 5 * NS_PER_S
"""Between two looks: after more than this nothing is known of the time between."""
_COUNTER: Final = 1 << 32
"""The kernel's counter is an unsigned int."""


@dataclass(frozen=True, slots=True)
class BlockReads:
    """What a process that reads has done since its last report.

    `touched`: reads of cache blocks. `brought`: blocks that missed first and were hits later.
    `pending`: blocks that have missed and were not found to be hits yet, as of now.
    """

    touched: int = 0
    brought: int = 0
    pending: int = 0

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> BlockReads:
        """Return what an event of the process says.

        Raises KeyError or ValueError for one that cannot be right.
        """
        touched, brought, pending = (event[name] for name in ("touched", "brought", "pending"))
        if not all(type(each) is int for each in (touched, brought, pending)):
            raise ValueError("a count of blocks is no whole number")
        if not 0 <= brought <= touched or pending < 0:
            raise ValueError("a count of blocks is out of its range")
        return cls(touched, brought, pending)


@dataclass(slots=True)
class _Blocks:
    """Blocks that are not matched yet.

    `beside`: promoted beside our reads. `users`: users had requests then.
    """

    at_ns: int
    count: int
    beside: bool = False
    users: bool = True


@dataclass(slots=True)
class _Rate:
    """Promotions over some time."""

    count: float = 0.0
    ns: float = 0.0

    def add(self, count: int, ns: int) -> None:
        self.count += count
        self.ns += ns

    def fade(self) -> None:
        if self.ns > _BEFORE_MAX_NS:
            self.count, self.ns = self.count / 2, self.ns / 2


@dataclass(slots=True)
class PromotionWatch:
    """What is known of one volume.

    `others`: promotions of users' misses since the volume is followed; None where the kernel counts
    none. `holds`: how often our reads were stopped for them.
    """

    others: int | None = None
    holds: int = 0
    _counter: int = 0
    _at_ns: int = 0
    _read_ns: int | None = None
    _pending: int = 0
    _promoted: deque[_Blocks] = field(default_factory=deque)
    _brought: deque[_Blocks] = field(default_factory=deque)
    _resting: _Rate = field(default_factory=_Rate)
    _reading: _Rate = field(default_factory=_Rate)
    _until_ns: int = 0
    _backoff_ns: int = HOLD_NS
    _why: str = ""

    # ---- what comes in -------------------------------------------------------------------------
    def on_reads(self, at_ns: int, reads: BlockReads) -> None:
        """Take the report of a process that reads."""
        if reads.touched:
            self._read_ns = at_ns
        self._pending = reads.pending
        left = _take(self._promoted, reads.brought)
        if left and self.others is not None:
            self._brought.append(_Blocks(at_ns, left))

    def on_ended(self, at_ns: int) -> None:
        """The process has ended: what it has missed last may have been promoted."""
        self.on_reads(at_ns, BlockReads(0, self._pending, 0))

    def on_frame(self, frame: Frame) -> None:
        """Take a look at the kernel's counter."""
        at_ns, counter = frame.at_ns, frame.promotions
        passed_ns, self._at_ns = at_ns - self._at_ns, at_ns
        if counter is None:
            self.others = None
            return
        grown, self._counter = (counter - self._counter) % _COUNTER, counter
        if self.others is None or passed_ns > _GAP_MAX_NS or grown >= _COUNTER // 2:
            # A first look, one after a gap, or a table that was loaded again.
            self.others = self.others or 0
            self._promoted.clear()
            self._brought.clear()
            return
        beside = self._read_ns is not None and at_ns - self._read_ns <= LAG_NS
        if left := _take(self._brought, grown):
            self._promoted.append(_Blocks(at_ns, left, beside, _has_users(frame)))
        (self._reading if beside else self._resting).add(0, passed_ns)
        self._settle(at_ns)
        self._judge(at_ns)

    # ---- what goes out -------------------------------------------------------------------------
    def why(self, now_ns: int) -> str:
        """Return why nothing may be read now; empty if it may."""
        return self._why if now_ns < self._until_ns else ""

    # ---- details -------------------------------------------------------------------------------
    def _settle(self, now_ns: int) -> None:
        """Count what no report can claim any more."""
        while self._brought and now_ns - self._brought[0].at_ns > LAG_NS:
            self._brought.popleft()
        spare = sum(each.count for each in self._promoted) - self._pending
        while self._promoted and spare > 0 and now_ns - self._promoted[0].at_ns > LAG_NS:
            oldest = self._promoted[0]
            count = min(spare, oldest.count)
            _take(self._promoted, count)
            spare -= count
            if oldest.users:
                self.others = (self.others or 0) + count
                (self._reading if oldest.beside else self._resting).add(count, 0)

    def _judge(self, now_ns: int) -> None:
        """Stop our reads where users' misses are promoted more often beside them."""
        reading, resting = self._reading, self._resting
        resting.fade()
        if now_ns < self._until_ns:
            # What follows the last reads tells neither of them nor of rests.
            self._reading = _Rate()
            return
        if resting.ns < BEFORE_NS or reading.count <= self._limit():
            if reading.ns >= CLEAN_NS:
                self._reading = _Rate()
                self._backoff_ns = HOLD_NS
            return
        usual = resting.count / resting.ns * reading.ns
        self._why = (
            f"beside its reads users' misses brought {reading.count:.0f} blocks into the cache in"
            f" {format_ns(int(reading.ns))}, about {usual:.0f} in as much time without them: it"
            f" waits for {format_ns(self._backoff_ns)}"
        )
        self._until_ns = now_ns + self._backoff_ns
        self._backoff_ns = min(2 * self._backoff_ns, HOLD_MAX_NS)
        self.holds += 1
        self._reading, self._resting = _Rate(), _Rate()

    def _limit(self) -> float:
        """Return how many there may be in the time of our reads."""
        return GROWTH * self._resting.count / self._resting.ns * self._reading.ns + MARGIN


def _take(blocks: deque[_Blocks], count: int) -> int:
    """Take so many from the oldest ones; return how many there were too few."""
    while count and blocks:
        taken = min(count, blocks[0].count)
        blocks[0].count -= taken
        count -= taken
        if not blocks[0].count:
            blocks.popleft()
    return count


def _has_users(frame: Frame) -> bool:
    """Return whether users may have had requests in the frame's window.

    Where they had none, a promotion is one of ours that was not reported in time.
    """
    return frame.foreground is None or any(each.ios for each in frame.paths.values())
