# SPDX-License-Identifier: GPL-2.0-only
"""A blocking client of the control socket, for the command line and the web. I/O: a unix socket.

Every call has a total time-out, which a slow server cannot extend. Messages of the server are
checked like any other input (`protocol`).
"""

from __future__ import annotations

import errno
import itertools
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ebbgate.errors import ActuationError, PermissionDenied, Unavailable, UsageError
from ebbgate.intents.protocol import (
    LINE_BYTES_MAX,
    Answer,
    Greeting,
    ProtocolError,
    Request,
    State,
    decode_message,
    decode_request,
    encode_request,
)

START: Final = "start it with: systemctl start ebbgated (`ebbgate restore` works without it)"
LOG: Final = "see its log: journalctl -u ebbgated"
_RETRY_S: Final = 0.02
"""Between two attempts to connect while the server's backlog is full."""
_PEER_CREDENTIALS: Final = struct.Struct("iII")


class NotRunning(Unavailable):
    """Nobody listens on the socket."""


class NotAnswering(Unavailable):
    """A daemon has the socket but does not answer in time. `pid`: None if unknown."""

    def __init__(self, message: str, hint: str, pid: int | None) -> None:
        super().__init__(message, hint)
        self.pid = pid


class Busy(Unavailable):
    """A limit of the daemon is reached; the same request may be accepted later."""


class Refused(ActuationError):
    """The daemon refused the request; nothing was changed."""


class ControlClient:
    """One connection to the daemon. One thread at a time."""

    def __init__(self, connection: socket.socket, timeout_s: float) -> None:
        """Reads the greeting. Raises NotAnswering, Busy and Unavailable."""
        self._socket = connection
        self._buffer = b""
        self._ids = itertools.count(1)
        self._id = ""
        self._pid = _peer_pid(connection)
        message = self._read(time.monotonic() + timeout_s)
        if not isinstance(message, Greeting):
            raise _unexpected()
        self.greeting = message

    @classmethod
    def connect(cls, path: Path, timeout_s: float) -> Self:
        """Connect and read the greeting.

        Raises NotRunning, NotAnswering, Busy, PermissionDenied and Unavailable.
        """
        deadline_s = time.monotonic() + timeout_s
        connection = _connected(path, deadline_s)
        try:
            return cls(connection, max(0.0, deadline_s - time.monotonic()))
        except BaseException:
            connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Accepted requests are still carried out."""
        self._socket.close()

    def send(
        self, kind: str, volume: str | None, args: Mapping[str, Any], label: str, timeout_s: float
    ) -> int:
        """Send a request; return its number once the daemon has accepted it.

        Raises UsageError for an invalid request, which is not sent; Refused, Busy, NotAnswering and
        Unavailable.
        """
        deadline_s = time.monotonic() + timeout_s
        self._id = str(next(self._ids))
        self._write(_checked(Request(self._id, str(kind), volume, args, label)), deadline_s)
        answer = self._answer(deadline_s)
        if answer.state is State.REFUSED and answer.busy:
            raise Busy(answer.text, answer.hint or LOG)
        if answer.state is State.REFUSED:
            raise Refused(answer.text or "refused; the daemon gave no reason", answer.hint)
        if answer.state is not State.ACCEPTED or answer.request is None:
            raise _unexpected()
        return answer.request

    def outcome(self, timeout_s: float) -> Answer:
        """Return the outcome of the request that was accepted last: `done` or `failed`.

        Raises NotAnswering when the time is over; it may be called again then. Raises Unavailable
        if the daemon ended.
        """
        answer = self._answer(time.monotonic() + timeout_s)
        if answer.state not in (State.DONE, State.FAILED):
            raise _unexpected()
        return answer

    def _write(self, line: bytes, deadline_s: float) -> None:
        try:
            self._socket.settimeout(_left_s(deadline_s))
            self._socket.sendall(line)
        except TimeoutError as error:
            raise self._not_answering() from error
        except OSError:
            # The daemon has closed the connection; its last message has the reason.
            self._read(deadline_s)
            raise _unexpected() from None

    def _answer(self, deadline_s: float) -> Answer:
        message = self._read(deadline_s)
        if not isinstance(message, Answer) or message.id != self._id:
            raise _unexpected()
        return message

    def _read(self, deadline_s: float) -> Greeting | Answer:
        try:
            message = decode_message(self._line(deadline_s))
        except ProtocolError as error:
            raise Unavailable(
                f"ebbgated sent an invalid message: {error.message}", error.hint or LOG
            ) from error
        if isinstance(message, Answer) and message.state is State.ERROR:
            kind = Busy if message.busy else Unavailable
            raise kind(message.text or "ebbgated closed the connection", message.hint or LOG)
        return message

    def _line(self, deadline_s: float) -> bytes:
        """Read a line; the rest of what was received is kept for the next call."""
        while b"\n" not in self._buffer:
            if len(self._buffer) >= LINE_BYTES_MAX:
                raise ProtocolError(f"a line is longer than {LINE_BYTES_MAX} bytes")
            try:
                self._socket.settimeout(_left_s(deadline_s))
                part = self._socket.recv(LINE_BYTES_MAX)
            except TimeoutError as error:
                raise self._not_answering() from error
            except OSError as error:
                raise _closed() from error
            if not part:
                raise _closed()
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line + b"\n"

    def _not_answering(self) -> NotAnswering:
        who = f"ebbgated (pid {self._pid})" if self._pid else "ebbgated"
        return NotAnswering(f"{who} does not answer", LOG, self._pid)


def _checked(request: Request) -> bytes:
    """Encode a request. Raises UsageError for one that the server would not read."""
    line = encode_request(request)
    try:
        decode_request(line)
    except ProtocolError as error:
        raise UsageError(error.message, error.hint) from error
    return line


def greet(path: Path, timeout_s: float) -> Greeting:
    """Connect and return the greeting only. Raises what `ControlClient.connect` raises."""
    with ControlClient.connect(path, timeout_s) as client:
        return client.greeting


def _connected(path: Path, deadline_s: float) -> socket.socket:
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_left_s(deadline_s))
            connection.connect(str(path))
        except OSError as error:
            connection.close()
            # EAGAIN: the backlog is full, as it is if the daemon hangs.
            if not isinstance(error, BlockingIOError | TimeoutError):
                raise _explained(path, error) from error
            if time.monotonic() + _RETRY_S >= deadline_s:
                raise NotAnswering("ebbgated does not answer", LOG, None) from error
            time.sleep(_RETRY_S)
        except BaseException:
            connection.close()
            raise
        else:
            return connection


def _explained(path: Path, error: OSError) -> Unavailable | PermissionDenied:
    if isinstance(error, PermissionError):
        hint = "run this as root or as a member of the group ebbgate"
        return PermissionDenied(f"no access to {path}", hint)
    if error.errno in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR):
        return NotRunning("ebbgated is not running", START)
    return Unavailable(f"{path}: {error.strerror or error}", "check runtime_dir in the settings")


def _closed() -> Unavailable:
    return Unavailable("ebbgated closed the connection before it answered", LOG)


def _unexpected() -> Unavailable:
    return Unavailable(
        "ebbgated sent an answer that does not belong to the request",
        "use command line and daemon of the same release",
    )


def _peer_pid(connection: socket.socket) -> int | None:
    """Return the process that listens, from the kernel; None if unknown."""
    try:
        size = _PEER_CREDENTIALS.size
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    except OSError:
        return None
    pid: int = _PEER_CREDENTIALS.unpack(found)[0]
    return pid or None


def _left_s(deadline_s: float) -> float:
    """Return the time left. Raises TimeoutError if there is none: 0 would mean not to block."""
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
