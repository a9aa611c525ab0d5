# SPDX-License-Identifier: GPL-2.0-only
"""One client of the control socket: reads its lines, answers each. I/O: a unix socket."""

from __future__ import annotations

import asyncio
import logging
import pwd
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from ebbgate.background import BackgroundWorker
from ebbgate.errors import EbbgateError
from ebbgate.intents.limits import Quotas
from ebbgate.intents.protocol import (
    IDLE_TIMEOUT_NS,
    LABEL_LENGTH_MAX,
    LINE_BYTES_MAX,
    LINE_TIMEOUT_NS,
    UNSENT_BYTES_MAX,
    UNSENT_TIMEOUT_NS,
    Answer,
    ProtocolError,
    Request,
    State,
    decode_request,
    encode_answer,
)
from ebbgate.log_messages.service import CONNECTION_FAILED, REQUEST_NOT_HANDLED
from ebbgate.text import clean_text
from ebbgate.units import NS_PER_S

_LOG = logging.getLogger(__name__)
_TRY_AGAIN: Final = "try again in a moment"
_READ_BYTES: Final = 16 * 1024
_PAUSE_S: Final = 0.5
"""Reading pauses for this time after a request beyond the limits."""
_REFUSALS_MAX: Final = 20
"""After this many requests beyond the limits the connection is closed."""


class Outcome(Protocol):
    """The outcome of a request."""

    @property
    def ok(self) -> bool:
        """Whether it was carried out."""

    @property
    def text(self) -> str:
        """What was done, or why not."""

    @property
    def data(self) -> Mapping[str, str | int]:
        """What was asked for."""


Submit = Callable[[str, str | None, Mapping[str, Any], str], tuple[int, Awaitable[Outcome]]]
"""Starts a request (kind, volume, arguments, user); returns its number and its future outcome.

Raises EbbgateError if it is refused.
"""


class _CutOff(Exception):
    """Ends the connection, with the reason for the client. `busy`: a limit is reached."""

    def __init__(self, why: str, *, busy: bool = False) -> None:
        super().__init__(why)
        self.busy = busy


class Connection:
    """Serves one client. Accepted requests are carried out even if the client leaves."""

    def __init__(
        self, client: socket.socket, uid: int, quotas: Quotas, names: UserNames, submit: Submit
    ) -> None:
        self._socket = client
        self._uid = uid
        self._quotas = quotas
        self._names = names
        self._submit = submit
        self._quota = quotas.of(uid, time.monotonic_ns())
        self._quota.connections += 1
        self._pending: set[str] = set()
        self._answering: set[asyncio.Task[None]] = set()
        self._refusals = 0
        self._writer: asyncio.StreamWriter | None = None
        self._unsent: asyncio.TimerHandle | None = None

    async def serve(self) -> None:
        """Serve until the client leaves or is cut off."""
        try:
            reader, writer = await asyncio.open_unix_connection(
                sock=self._socket, limit=LINE_BYTES_MAX
            )
            self._writer = writer
            await self._read(reader)
        except _CutOff as cut:
            self._send(Answer(State.ERROR, text=str(cut), busy=cut.busy))
        except (OSError, asyncio.CancelledError):
            pass
        except Exception:
            _LOG.exception(CONNECTION_FAILED)
        finally:
            self._quota.connections -= 1
            self._close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Read line by line; other tasks of the event loop run between lines."""
        buffer = bytearray()
        begun_ns = 0
        while True:
            end = buffer.find(b"\n")
            if end >= 0:
                line = bytes(buffer[: end + 1])
                del buffer[: end + 1]
                begun_ns = time.monotonic_ns()
                await self._take(line)
                await asyncio.sleep(0)
                continue
            if len(buffer) >= LINE_BYTES_MAX:
                raise _CutOff(f"a line is longer than {LINE_BYTES_MAX} bytes")
            data = await self._some(reader, begun_ns if buffer else None)
            if not data:
                # It may have closed only its own direction and still wait for outcomes.
                await asyncio.gather(*self._answering)
                return
            if not buffer:
                begun_ns = time.monotonic_ns()
            buffer += data

    async def _some(self, reader: asyncio.StreamReader, begun_ns: int | None) -> bytes:
        """Return the next bytes, empty if the client has left. Raises _CutOff if it is too slow.

        `begun_ns`: when the unfinished line began; None between two lines.
        """
        while True:
            if begun_ns is None:
                left_ns = IDLE_TIMEOUT_NS
            else:
                left_ns = begun_ns + LINE_TIMEOUT_NS - time.monotonic_ns()
            try:
                async with asyncio.timeout(max(0, left_ns) / NS_PER_S):
                    return await reader.read(_READ_BYTES)
            except TimeoutError:
                if begun_ns is not None:
                    seconds = LINE_TIMEOUT_NS // NS_PER_S
                    raise _CutOff(f"a message was not complete within {seconds} s") from None
                if not self._pending:
                    seconds = IDLE_TIMEOUT_NS // NS_PER_S
                    raise _CutOff(f"no request was sent for {seconds} s") from None

    # ---- one line ------------------------------------------------------------------------------
    async def _take(self, line: bytes) -> None:
        """Raises _CutOff for a line that is no message."""
        over = self._quotas.request_refusal(self._uid, time.monotonic_ns(), len(line))
        try:
            request = decode_request(line)
        except ProtocolError as error:
            if not error.id:
                raise _CutOff(error.message) from error
            if over:
                self._refuse(error.id, over, _TRY_AGAIN, busy=True)
            else:
                self._refuse(error.id, error.message, error.hint)
        else:
            if over:
                self._refuse(request.id, over, _TRY_AGAIN, busy=True)
            else:
                await self._begin(request)
        if not over:
            self._refusals = 0
        else:
            self._refusals += 1
            if self._refusals >= _REFUSALS_MAX:
                raise _CutOff(over, busy=True)
            await asyncio.sleep(_PAUSE_S)

    async def _begin(self, request: Request) -> None:
        if request.id in self._pending:
            self._refuse(
                request.id, "id: a request with this id has no outcome yet", "use another id"
            )
            return
        label = clean_text(request.label, LABEL_LENGTH_MAX)
        name = await self._names.name_of(self._uid)
        who = f"{name} ({label})" if label else name
        try:
            number, outcome = self._submit(request.kind, request.volume, request.args, who)
        except EbbgateError as error:
            self._refuse(request.id, error.message, error.hint)
            return
        except Exception as error:
            _LOG.exception(REQUEST_NOT_HANDLED, clean_text(request.kind, 40))
            self._refuse(request.id, f"internal error: {type(error).__name__}", "please report it")
            return
        self._send(Answer(State.ACCEPTED, request.id, number))
        self._pending.add(request.id)
        self._quota.pending += 1
        task = asyncio.get_running_loop().create_task(self._answer(request.id, number, outcome))
        # It outlives the connection: an accepted request counts until it is done.
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, name: str, number: int, awaited: Awaitable[Outcome]) -> None:
        try:
            outcome = await awaited
            state = State.DONE if outcome.ok else State.FAILED
            self._send(Answer(state, name, number, outcome.text, data=outcome.data))
        finally:
            self._quota.pending -= 1
            self._pending.discard(name)

    def _refuse(self, name: str, text: str, hint: str, *, busy: bool = False) -> None:
        clean = ["\n".join(clean_text(line) for line in each.split("\n")) for each in (text, hint)]
        self._send(Answer(State.REFUSED, name, text=clean[0], hint=clean[1], busy=busy))

    # ---- answers -------------------------------------------------------------------------------
    def _send(self, answer: Answer) -> None:
        """Send without waiting; a client that does not read is cut off."""
        writer = self._writer
        if writer is None or writer.transport.is_closing():
            return
        with suppress(OSError, RuntimeError):
            writer.write(encode_answer(answer))
        unsent = writer.transport.get_write_buffer_size()
        if unsent > UNSENT_BYTES_MAX:
            writer.transport.abort()
        elif unsent and self._unsent is None:
            loop = asyncio.get_running_loop()
            self._unsent = loop.call_later(UNSENT_TIMEOUT_NS / NS_PER_S, self._check_unsent)

    def _check_unsent(self) -> None:
        self._unsent = None
        if self._writer is not None and self._writer.transport.get_write_buffer_size():
            self._writer.transport.abort()

    def _close(self) -> None:
        """Close after sending what is in the buffer."""
        if self._writer is None:
            self._socket.close()
            return
        with suppress(OSError, RuntimeError):
            self._writer.close()


_WAIT_S: Final = 1.0
_KEPT: Final = 256
_NAME_MAX: Final = 64


class UserNames:
    """Looks up each user once."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {0: "root"}
        self._worker = BackgroundWorker("users")

    async def name_of(self, uid: int) -> str:
        """Return the name of a user; `uid N` if there is none or the lookup takes too long."""
        known = self._names.get(uid)
        if known is not None:
            return known
        unknown = f"uid {uid}"
        try:
            async with asyncio.timeout(_WAIT_S):
                name = await self._worker.run(lambda: pwd.getpwuid(uid).pw_name)
        except (KeyError, TimeoutError, EbbgateError):
            return unknown
        if len(self._names) >= _KEPT:
            self._names = {0: "root"}
        self._names[uid] = clean_text(name, _NAME_MAX)
        return self._names[uid]
