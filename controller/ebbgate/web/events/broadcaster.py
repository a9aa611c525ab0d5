# SPDX-License-Identifier: GPL-2.0-only
"""Hands events to readers, each as fast as it takes them; a slow one costs bounded memory.

I/O: none; one event loop only.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

from ebbgate.web.events.cursor import Cursor, Event

READERS_MAX: Final = 200
READERS_PER_CLIENT_MAX: Final = 100
"""A proxy is one client for all browsers behind it."""
NEWS_MAX: Final = 1000
"""Decisions, knob writes and wishes that wait for one reader; all readers share their bytes."""
RESET: Final = "reset"


class Reader:
    """One open stream of the client `owner`. A newer document replaces one that still waits."""

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self._newest: dict[str, Event] = {}
        self._news: deque[Event] = deque()
        self._there = asyncio.Event()
        self.closed = False

    def put(self, events: Iterable[Event]) -> None:
        """More to tell. Where the reader is too far behind, it is told to begin anew."""
        for event in events:
            if event.newest:
                self._newest[event.name] = event
            else:
                self._news.append(event)
        if len(self._news) > NEWS_MAX:
            at = Cursor()
            for event in self._news:
                at = at.beyond(event.at)
            self._news = deque([Event(RESET, b"{}", at)])
        self._there.set()

    def close(self) -> None:
        """There will be no more."""
        self.closed = True
        self._there.set()

    async def next(self, timeout_s: float) -> Event | None:
        """The next event; None when there was none for so long, or the stream is closed."""
        if not (self._news or self._newest or self.closed):
            self._there.clear()
            try:
                # Not wait_for: of 3.11 it may forget that its task was cancelled.
                async with asyncio.timeout(timeout_s):
                    await self._there.wait()
            except TimeoutError:
                return None
        if self._news:
            return self._news.popleft()
        if self._newest:
            return self._newest.pop(next(iter(self._newest)))
        return None


class Hub:
    """All open streams."""

    def __init__(self) -> None:
        # In the order in which they joined.
        self._readers: dict[Reader, None] = {}
        self.closing = False

    def __len__(self) -> int:
        return len(self._readers)

    def join(self, owner: str = "") -> Reader | None:
        """A new reader; None where the client or all have too many, or the server ends.

        Where all together have too many, a client with at least two fewer than the greediest one
        takes the place of the greediest one's oldest reader.
        """
        counts = Counter(each.owner for each in self._readers)
        if self.closing or counts[owner] >= READERS_PER_CLIENT_MAX:
            return None
        if len(self._readers) >= READERS_MAX:
            greediest, count = counts.most_common(1)[0]
            if count <= counts[owner] + 1:
                return None
            oldest = next(each for each in self._readers if each.owner == greediest)
            oldest.close()
            self.leave(oldest)
        reader = Reader(owner)
        self._readers[reader] = None
        return reader

    def leave(self, reader: Reader) -> None:
        """The stream is over."""
        self._readers.pop(reader, None)

    def publish(self, events: list[Event]) -> None:
        """Tell everybody."""
        for reader in self._readers:
            reader.put(events)

    def close(self) -> None:
        """End all streams: the server ends."""
        self.closing = True
        for reader in self._readers:
            reader.close()
