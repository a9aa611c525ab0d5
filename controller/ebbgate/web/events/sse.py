# SPDX-License-Identifier: GPL-2.0-only
"""The event stream of one browser. I/O: HTTP.

A reader that takes nothing for a while is dropped: its socket's buffers are not the server's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from starlette.responses import Response

from ebbgate.web.events import changes
from ebbgate.web.events.broadcaster import RESET, Hub, Reader
from ebbgate.web.events.cursor import COMMENT, Cursor, Event, after, encode, is_news, parse
from ebbgate.web.events.poller import health_event, volumes_event
from ebbgate.web.security import ABORT, Receive, Scope, Send
from ebbgate.web.snapshot import Databases

COMMENT_S: Final = 15.0
STUCK_S: Final = 30.0
_LOOK_AGE_S: Final = 0.4
_HEAD: Final = b"retry: 2000\n\n"


class EventStream(Response):
    """Sends events until the browser goes away, the server ends or the reader is stuck."""

    media_type = "text/event-stream"

    def __init__(
        self,
        hub: Hub,
        reader: Reader,
        databases: Databases,
        last_id: str | None,
        began: Any,
        left: Any,
    ) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._hub = hub
        self._reader = reader
        self._databases = databases
        self._last_id = last_id
        self._began: Callable[[], None] = began
        self._left: Callable[[], None] = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_gone(receive))
        telling = asyncio.ensure_future(self._tell(send))
        try:
            await asyncio.wait({gone, telling}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(self._reader)
            self._reader.close()
            self._left()
            for task in (gone, telling):
                task.cancel()
            results = await asyncio.gather(gone, telling, return_exceptions=True)
        if isinstance(results[1], TimeoutError):
            _abort(scope)

    async def _tell(self, send: Send) -> None:
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for chunk in self._chunks():
            message = {"type": "http.response.body", "body": chunk, "more_body": True}
            async with asyncio.timeout(STUCK_S):
                await send(message)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield _HEAD
        cursor, missed = await asyncio.to_thread(self._begin)
        told: dict[str, object] = {}
        for event in missed:
            cursor = _tell(cursor, told, event)
            yield encode(event, cursor)
        missed.clear()
        while not self._reader.closed:
            next_event = await self._reader.next(COMMENT_S)
            if next_event is None:
                yield COMMENT
            elif is_news(cursor, told, next_event):
                cursor = _tell(cursor, told, next_event)
                yield encode(next_event, cursor)

    def _begin(self) -> tuple[Cursor, list[Event]]:
        """Where the reader stands, what it missed, and how everything is now."""
        self._began()
        look = self._databases.look(_LOOK_AGE_S)
        present = [volumes_event(look), health_event(look)]
        now = changes.newest(self._databases)
        if self._last_id is None:
            return now or Cursor(), present
        known = parse(self._last_id)
        missed = None if known is None else changes.since(self._databases, known)
        if known is None or missed is None:
            # Not to be told now: whatever it was, it is read anew.
            return Cursor(), [Event(RESET, b"{}", now or Cursor(), restart=True), *present]
        return known, [*missed, *present]


def _tell(cursor: Cursor, told: dict[str, object], event: Event) -> Cursor:
    """Where the reader is once it was told an event, which is noted."""
    if event.newest:
        told[event.name] = event.says
    return after(cursor, event)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _abort(scope: Scope) -> None:
    """Close the connection with all that waits in it: an orderly end would wait for the reader."""
    abort = scope.get(ABORT)
    if abort is not None:
        abort()
