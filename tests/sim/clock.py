# SPDX-License-Identifier: GPL-2.0-only
"""Simulated time: runs events in order of time, equal times in order of scheduling. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

Event = Callable[[], None]


class Clock:
    """A clock that does not advance while an event runs."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._order = count()
        self._events: list[tuple[int, int, Event]] = []

    def at(self, when_ns: int, event: Event) -> None:
        """Run `event` at `when_ns`, or next if that is past."""
        heapq.heappush(self._events, (max(when_ns, self.now_ns), next(self._order), event))

    def after(self, delay_ns: int, event: Event) -> None:
        """Run `event` in `delay_ns`."""
        self.at(self.now_ns + delay_ns, event)

    def every(self, period_ns: int, event: Event) -> None:
        """Run `event` at each whole period from now on."""

        def again() -> None:
            event()
            self.after(period_ns, again)

        self.after(period_ns, again)

    def run_until(self, deadline_ns: int) -> None:
        """Advance the clock."""
        while self._events and self._events[0][0] <= deadline_ns:
            self._step()
        self.now_ns = max(self.now_ns, deadline_ns)

    def run_while(self, condition: Callable[[], bool], deadline_ns: int) -> None:
        """Advance the clock while `condition` holds. Raises TimeoutError at the deadline."""
        while condition():
            if not self._events or self._events[0][0] > deadline_ns:
                raise TimeoutError(f"still so after {deadline_ns} ns of simulated time")
            self._step()

    def _step(self) -> None:
        self.now_ns, _, event = heapq.heappop(self._events)
        event()
