# SPDX-License-Identifier: GPL-2.0-only
"""Measures how long the event loop was busy in one turn or woken late. I/O: the loop's selector.

It measures where the loop asks the kernel for events, so it costs no wake-up of its own.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any

from ebbgate.model.status import LoopSilenceStatus
from ebbgate.units import NS_PER_S


class LoopSilence:
    """The longest silences, in ns. `last_ns`: since the last `report`; `max_ns`: since `begin`, at
    `max_unix_ns`.
    """

    def __init__(
        self,
        now_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.last_ns = 0
        self.max_ns = 0
        self.max_unix_ns = 0
        self._now_ns = now_ns
        self._wall_ns = wall_ns
        self._awake_ns: int | None = None
        self._asleep_ns = 0

    def begin(self) -> None:
        """Begin to measure anew, without the start of the program."""
        self.last_ns = self.max_ns = self.max_unix_ns = 0
        self._awake_ns = None

    def sleeps(self) -> None:
        """Note that the loop asks for events: it has been busy since it was woken."""
        self._asleep_ns = self._now_ns()
        if self._awake_ns is not None:
            self._count(self._asleep_ns - self._awake_ns)

    def wakes(self, timeout_s: float | None, events: bool) -> None:
        """Note that the loop has its answer. `timeout_s`: when it was to be woken at the latest;
        without `events` any later time is a silence.
        """
        self._awake_ns = self._now_ns()
        if not events and timeout_s is not None and timeout_s > 0:
            self._count(self._awake_ns - self._asleep_ns - round(timeout_s * NS_PER_S))

    def report(self) -> LoopSilenceStatus:
        """Return the figures for the daemon's status; the next `last_ns` begins now."""
        found = LoopSilenceStatus(self.last_ns, self.max_ns, self.max_unix_ns)
        self.last_ns = 0
        return found

    def _count(self, silence_ns: int) -> None:
        self.last_ns = max(self.last_ns, silence_ns)
        if silence_ns > self.max_ns:
            self.max_ns, self.max_unix_ns = silence_ns, self._wall_ns()


class MeasuredSelector(selectors.DefaultSelector):
    """Selects events and measures the silences in between."""

    def __init__(self, silence: LoopSilence) -> None:
        super().__init__()
        self._silence = silence

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, Any]]:
        """Wait for events."""
        self._silence.sleeps()
        found: list[tuple[selectors.SelectorKey, Any]] = super().select(timeout)
        self._silence.wakes(timeout, bool(found))
        return found


def measured_loop(silence: LoopSilence) -> asyncio.AbstractEventLoop:
    """Return a new event loop whose silences are measured."""
    return asyncio.SelectorEventLoop(MeasuredSelector(silence))
