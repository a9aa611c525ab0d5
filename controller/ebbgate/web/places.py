# SPDX-License-Identifier: GPL-2.0-only
"""Places and turns for requests that take long, so that no client keeps others from them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from ebbgate.web.errors import ApiError

_RETRY_S: Final = 2
_TURN_RETRY_S: Final = 30
_WAITING_MAX: Final = 16
"""More would wait longer than anybody does."""
_OF_A_CLIENT_MAX: Final = 2
"""The one that has its turn, and one that waits."""
_REMEMBERED_MAX: Final = 256


class Places:
    """`count` of them, an even number; a client has at most half of them. `busy`: what to tell
    those who get none; they do not wait, since a request that waits keeps a thread from others.
    """

    def __init__(self, count: int, busy: str) -> None:
        self._count = count
        self._busy = busy
        self._held: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def hold(self, client: str) -> Iterator[None]:
        """Hold a place. Raises ApiError if none is free for this client."""
        with self._lock:
            if self._held[client] >= self._count // 2 or self._held.total() >= self._count:
                raise ApiError(503, self._busy, "try again in a moment", retry_after_s=_RETRY_S)
            self._held[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[client] -= 1
                # No client is remembered that has gone.
                self._held += Counter()


@dataclass(eq=False, slots=True)
class _Waiting:
    """A request that waits. `turn`: is set when it has its turn, or the server ends."""

    client: str
    turn: asyncio.Event = field(default_factory=asyncio.Event)


class Turns:
    """Turns of one request at a time; the others wait, which takes no thread from anybody.

    The next turn is that of the client whose last one is the longest ago. `what`: the requests, in
    the plural. `wait_s`: how long one may wait. All calls are on the event loop.
    """

    def __init__(self, what: str, wait_s: float) -> None:
        self._what = what
        self._wait_s = wait_s
        self._running: str | None = None
        self._waiting: list[_Waiting] = []
        self._order: dict[str, int] = {}
        """The number of the last turn of each client, in order."""
        self._count = 0
        self._closed = False

    def close(self) -> None:
        """Refuse the requests that wait, and others from now on, as the server ends."""
        self._closed = True
        for each in self._waiting:
            each.turn.set()

    def _check_open(self) -> None:
        if self._closed:
            raise ApiError(503, "ebbgate-web ends", "try again once it runs", retry_after_s=5)

    @asynccontextmanager
    async def hold(self, client: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it. Raises ApiError if too many wait, or it does not come."""
        self._check_open()
        if self._running is None:
            self._begin(client)
        else:
            await self._wait(client)
        try:
            yield
        finally:
            self._end()

    async def _wait(self, client: str) -> None:
        self._check_room(client)
        own = _Waiting(client)
        self._waiting.append(own)
        try:
            async with asyncio.timeout(self._wait_s):
                await own.turn.wait()
            self._check_open()
        except BaseException as error:
            if own in self._waiting:
                self._waiting.remove(own)
            else:
                # Its turn has come at the same moment.
                self._end()
            if isinstance(error, TimeoutError):
                raise self._busy(f"others were first for {self._wait_s:g} s") from error
            raise

    def _check_room(self, client: str) -> None:
        held = [self._running, *(each.client for each in self._waiting)].count(client)
        if held >= _OF_A_CLIENT_MAX:
            text = f"{held} {self._what} of yours are not over yet"
            raise ApiError(429, text, "wait for the first one", retry_after_s=_TURN_RETRY_S)
        if len(self._waiting) >= _WAITING_MAX:
            raise self._busy(f"{_WAITING_MAX} {self._what} wait already")

    def _busy(self, text: str) -> ApiError:
        return ApiError(503, text, "try again in a minute", retry_after_s=_TURN_RETRY_S)

    def _begin(self, client: str) -> None:
        self._running = client
        self._count += 1
        self._order.pop(client, None)
        self._order[client] = self._count
        if len(self._order) > _REMEMBERED_MAX:
            del self._order[next(iter(self._order))]

    def _end(self) -> None:
        self._running = None
        if self._waiting:
            following = min(self._waiting, key=lambda each: self._order.get(each.client, 0))
            self._waiting.remove(following)
            self._begin(following.client)
            following.turn.set()
