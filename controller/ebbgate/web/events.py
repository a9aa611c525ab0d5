# SPDX-License-Identifier: GPL-2.0-only
"""Server-sent events: one poller reads the databases, a broadcaster hands its events to readers,
each as fast as it takes them; a slow one costs bounded memory. I/O: SQLite in a thread, HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from threading import Event as Flag
from threading import Lock, Thread
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ebbgate.log_messages.service import WEB_POLL_FAILED
from ebbgate.web import changes
from ebbgate.web.changes import NEWS_MAX, RESET, Cursor, Event, after, encode, is_news, parse
from ebbgate.web.errors import ApiError
from ebbgate.web.security import ABORT, TokenRecheck
from ebbgate.web.snapshot import Databases, Snapshot

_LOG = logging.getLogger(__name__)
READERS_MAX: Final = 200
READERS_PER_CLIENT_MAX: Final = 100
"""A proxy is one client for all browsers behind it."""
COMMENT_S: Final = 15.0
STUCK_S: Final = 30.0
"""A reader that reads nothing for this time is dropped: its buffers are this process's memory."""
_POLL_S: Final = 0.5
_HEALTH_S: Final = 5.0
"""How often the health is sent although only times in it have changed."""
_SNAPSHOT_AGE_S: Final = 0.4
_HEAD: Final = b"retry: 2000\n\n"
_COMMENT: Final = b": alive\n\n"


class Reader:
    """One open stream of the client `owner`. A newer document replaces one that still waits."""

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self.closed = False
        self._newest: dict[str, Event] = {}
        self._news: deque[Event] = deque()
        self._available = asyncio.Event()

    def put(self, events: Iterable[Event]) -> None:
        """Queue events. A reader that is too far behind gets a reset instead."""
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
        self._available.set()

    def close(self) -> None:
        """End the stream."""
        self.closed = True
        self._available.set()

    async def next(self, timeout_s: float) -> Event | None:
        """Return the next event; None if there was none in time, or the stream is closed."""
        if not (self._news or self._newest or self.closed):
            self._available.clear()
            try:
                # Not wait_for: that of Python 3.11 may lose a cancellation.
                async with asyncio.timeout(timeout_s):
                    await self._available.wait()
            except TimeoutError:
                return None
        if self._news:
            return self._news.popleft()
        if self._newest:
            return self._newest.pop(next(iter(self._newest)))
        return None


class Broadcaster:
    """All open streams. One event loop only."""

    def __init__(self) -> None:
        # In the order in which they joined.
        self._readers: dict[Reader, None] = {}
        self.closing = False

    def __len__(self) -> int:
        return len(self._readers)

    def join(self, owner: str = "") -> Reader | None:
        """Return a new reader; None where the client or all have too many, or the server ends.

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
        """Remove a stream that is over."""
        self._readers.pop(reader, None)

    def publish(self, events: list[Event]) -> None:
        """Queue events for every reader."""
        for reader in self._readers:
            reader.put(events)

    def close(self) -> None:
        """End all streams, as the server ends."""
        self.closing = True
        for reader in self._readers:
            reader.close()


class Poller:
    """Reads the databases twice a second while there is a reader, in a thread: a locked database
    answers only after a while, and the event loop must not wait. `publish`: is called there.
    """

    def __init__(self, databases: Databases, publish: Callable[[list[Event]], None]) -> None:
        self.databases = databases
        self._publish = publish
        self._wanted = Flag()
        self._stop = Flag()
        self._thread = Thread(target=self._run, name="poller", daemon=True)
        self._beginning = Lock()
        self._cursor: Cursor | None = None
        self._volumes_key: object = None
        self._health_key: object = None
        self._health_s = 0.0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, after the poll that is under way."""
        self._stop.set()
        self._wanted.set()
        self._thread.join(10.0)

    def want(self, on: bool) -> None:
        """Poll only while there is a reader."""
        if on:
            self._wanted.set()
        else:
            self._wanted.clear()

    def begin(self) -> None:
        """Miss nothing from now on. Each new reader calls it from any thread, after `want` and
        before it reads its own first cursor.
        """
        with self._beginning:
            if self._cursor is None:
                self._cursor = changes.newest(self.databases)

    def poll(self) -> list[Event]:
        """Return what is new since the last poll."""
        documents = self._documents(self.databases.snapshot())
        self.begin()
        if self._cursor is None:
            return documents
        news = changes.since(self.databases, self._cursor) or []
        for event in news:
            self._cursor = after(self._cursor, event)
        return [*news, *documents]

    def _run(self) -> None:
        while not self._stop.is_set():
            if not self._wanted.is_set():
                self._forget()
                self._wanted.wait()
                continue
            try:
                events = self.poll()
            except Exception:
                # The streams live on: the next poll may succeed.
                _LOG.exception(WEB_POLL_FAILED)
                events = []
            if events:
                self._publish(events)
            self._stop.wait(_POLL_S)

    def _forget(self) -> None:
        """Leave what comes until the next reader to that reader, which catches up itself."""
        with self._beginning:
            if not self._wanted.is_set():
                self._cursor = self._volumes_key = self._health_key = None

    def _documents(self, snapshot: Snapshot) -> list[Event]:
        found = []
        if snapshot.content_key != self._volumes_key:
            self._volumes_key = snapshot.content_key
            found.append(volumes_event(snapshot))
        health = health_event(snapshot)
        now_s = time.monotonic()
        if health.content_key != self._health_key:
            self._health_key, self._health_s = health.content_key, now_s
            found.append(health)
        elif now_s - self._health_s >= _HEALTH_S:
            self._health_s = now_s
            found.append(replace(health, content_key=None))
        return found


def volumes_event(snapshot: Snapshot) -> Event:
    """Return the event with what `GET /api/v1/volumes` answers."""
    return Event("volumes", snapshot.volumes_json, newest=True, content_key=snapshot.content_key)


def health_event(snapshot: Snapshot) -> Event:
    """Return the event with what `GET /api/v1/health` answers."""
    health = snapshot.health()
    daemon = {**vars(health.daemon), "at_unix_s": None, "age_s": None}
    content_key = {**vars(health), "now_unix_s": None, "daemon": daemon}
    return Event("health", snapshot.health_json, newest=True, content_key=content_key)


class EventStream(Response):
    """Sends events until the browser goes away, the server ends, the reader is stuck, or the token
    that reading needs is no longer valid. `recheck`: of that token; None where reading is open.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        broadcaster: Broadcaster,
        reader: Reader,
        poller: Poller,
        last_id: str | None,
        recheck: TokenRecheck | None = None,
    ) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._broadcaster = broadcaster
        self._reader = reader
        self._poller = poller
        self._last_id = last_id
        self._recheck = recheck
        self._checked_s = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_gone(receive))
        sending = asyncio.ensure_future(self._send(send))
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._broadcaster.leave(self._reader)
            self._reader.close()
            self._poller.want(bool(len(self._broadcaster)))
            for task in (gone, sending):
                task.cancel()
            results = await asyncio.gather(gone, sending, return_exceptions=True)
        abort = scope.get(ABORT)
        if abort is not None and isinstance(results[1], TimeoutError):
            # An orderly end would wait for the reader.
            abort()

    async def _send(self, send: Send) -> None:
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for chunk in self._chunks():
            message = {"type": "http.response.body", "body": chunk, "more_body": True}
            async with asyncio.timeout(STUCK_S):
                await send(message)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield _HEAD
        last_sent: dict[str, object] = {}
        cursor, missed = await asyncio.to_thread(self._begin)
        for event in missed:
            cursor = _note(cursor, last_sent, event)
            yield encode(event, cursor)
        missed.clear()
        while not self._reader.closed:
            next_event = await self._reader.next(COMMENT_S)
            if not await self._admitted():
                return
            if next_event is None:
                yield _COMMENT
            elif is_news(cursor, last_sent, next_event):
                cursor = _note(cursor, last_sent, next_event)
                yield encode(next_event, cursor)

    async def _admitted(self) -> bool:
        """Return whether the reader may go on. By time, since events may leave no comment due."""
        now_s = time.monotonic()
        if self._recheck is None or now_s - self._checked_s < COMMENT_S:
            return True
        self._checked_s = now_s
        try:
            return await self._recheck()
        except ApiError:
            # The next request tells the reader why.
            return False

    def _begin(self) -> tuple[Cursor, list[Event]]:
        """Return the reader's cursor, and what it missed with how everything is now."""
        databases = self._poller.databases
        self._poller.begin()
        snapshot = databases.snapshot(_SNAPSHOT_AGE_S)
        present = [volumes_event(snapshot), health_event(snapshot)]
        now = changes.newest(databases)
        if self._last_id is None:
            return now or Cursor(), present
        known = parse(self._last_id)
        missed = None if known is None else changes.since(databases, known)
        if known is None or missed is None:
            return Cursor(), [Event(RESET, b"{}", now or Cursor(), restart=True), *present]
        return known, [*missed, *present]


def _note(cursor: Cursor, last_sent: dict[str, object], event: Event) -> Cursor:
    """Note what a reader gets; return its cursor after that."""
    if event.newest:
        last_sent[event.name] = event.content_key
    return after(cursor, event)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
