# SPDX-License-Identifier: GPL-2.0-only
"""uvicorn's HTTP/1.1 connection with timeouts and limits. I/O: sockets, by asyncio.

uvicorn itself waits forever for the first bytes of a request, and answers 503 to everybody once
there are too many connections, whoever has them. The methods that are replaced here exist from
Debian 12's uvicorn (0.17) to current versions; the tests run on both.
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import Any, Final

import h11
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ebbgate.web.connections import (
    HEAD_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    STUCK_TIMEOUT_S,
    TAKEN_BYTES_MIN,
    UNSENT_BYTES_MAX,
    client_name,
    make_room,
)
from ebbgate.web.errors import ApiError
from ebbgate.web.peer import loopback_uid
from ebbgate.web.responses import refusal
from ebbgate.web.security import ABORT, CLIENT, HEADERS

_TOO_MANY: Final = ApiError(
    503, "too many open connections", "close some, or try again in a moment", retry_after_s=10
)
_NOT_HTTP: Final = ApiError(400, "this is not a valid HTTP/1.1 request")


class LimitedConnection(H11Protocol):  # type: ignore[misc]
    """One connection. `connections`: the open ones of this server, oldest first."""

    app: Any

    def __init__(
        self, *args: Any, connections: dict[LimitedConnection, None], **named: Any
    ) -> None:
        super().__init__(*args, **named)
        self._open = connections
        self._application = self.app
        self.app = self._with_client
        self._deadline: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._unsent_bytes = 0
        self._silent_since_s = time.monotonic()
        self.owner = ""

    @property
    def silent_since_s(self) -> float | None:
        """Since when the client owes the next bytes; None while the server works."""
        cycle = self.cycle
        at_work = cycle is not None and not cycle.response_complete and not cycle.more_body
        return None if at_work else self._silent_since_s

    # ---- the hooks of asyncio and uvicorn --------------------------------------------------------
    def connection_made(self, transport: asyncio.Transport) -> None:
        """Accept or refuse the connection."""
        super().connection_made(transport)
        remote, local = (transport.get_extra_info(each) for each in ("peername", "sockname"))
        self.owner = client_name(str(remote[0]) if remote else "", loopback_uid(remote, local))
        room = make_room(tuple(self._open), self.owner)
        if room.close is not None:
            room.close.transport.abort()
            # `connection_lost` comes later; until then it would count, and be chosen again.
            self._open.pop(room.close, None)
        if room.granted:
            self._open[self] = None
            self._wait_for_request(HEAD_TIMEOUT_S)
        else:
            self._answer_and_close(_TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._open.pop(self, None)
        for timer in (self._deadline, self._stuck):
            if timer is not None:
                timer.cancel()
        self._deadline = self._stuck = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request; those of a connection that is being closed are dropped."""
        if not self.transport.is_closing():
            super().data_received(data)

    def handle_events(self) -> None:
        """Parse what arrived. A complete head ends the wait for it."""
        before = self.cycle
        try:
            super().handle_events()
        except ValueError:
            # Numbers of thousands of digits, on which int() gives up: older h11 lets it through.
            self.send_400_response("")
        if self.cycle is not before and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def on_response_complete(self) -> None:
        """The answer is handed over: now the client must read it, or send the next request."""
        self._wait_for_request(IDLE_TIMEOUT_S)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with an error of this API's shape; in the middle of an answer, close
        the connection.
        """
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._answer_and_close(_NOT_HTTP)
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """The client reads an answer slowly, or not at all."""
        super().pause_writing()
        self._watch_unsent()
        waiting = {each: each.transport.get_write_buffer_size() for each in self._open}
        if sum(waiting.values()) > UNSENT_BYTES_MAX:
            max(waiting, key=lambda each: waiting[each]).transport.abort()

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    # ---- time ------------------------------------------------------------------------------------
    def _wait_for_request(self, timeout_s: float) -> None:
        self._silent_since_s = time.monotonic()
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(timeout_s, self._no_request)

    def _no_request(self) -> None:
        self._deadline = None
        if self.transport.get_write_buffer_size():
            # The answer before is still on its way to a slow client.
            if self._stuck is None:
                self._watch_unsent()
        else:
            self.transport.abort()

    def _watch_unsent(self) -> None:
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._stuck = self.loop.call_later(STUCK_TIMEOUT_S, self._look_at_unsent)

    def _look_at_unsent(self) -> None:
        """Close the connection of a client that read nothing of what waits for it."""
        self._stuck = None
        unsent = self.transport.get_write_buffer_size()
        if unsent and self._unsent_bytes - unsent < TAKEN_BYTES_MIN:
            self.transport.abort()
        elif unsent:
            self._watch_unsent()
        elif self.silent_since_s is not None:
            self._wait_for_request(IDLE_TIMEOUT_S)

    # ---- answers without the application ---------------------------------------------------------
    def _answer_and_close(self, error: ApiError) -> None:
        answer: Response = refusal(error)
        answer.headers.update({**HEADERS, "connection": "close"})
        status, reason = answer.status_code, HTTPStatus(answer.status_code).phrase.encode()
        response = h11.Response(status_code=status, headers=answer.raw_headers, reason=reason)
        for event in (response, h11.Data(data=answer.body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event))
        self.transport.close()

    async def _with_client(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application with the client of this connection, and how to close it."""
        scope[CLIENT], scope[ABORT] = self.owner, self.transport.abort
        await self._application(scope, receive, send)
