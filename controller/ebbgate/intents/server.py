# SPDX-License-Identifier: GPL-2.0-only
"""The control socket: accepts connections of other processes, within limits. I/O: a unix socket.

A misbehaving client costs the daemon little: connections are accepted one at a time, each line is
bounded in size and time, and a client that sends too much or too slowly, or does not read, is cut
off. The kernel tells which user the client is.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from ebbgate import __version__
from ebbgate.intents.connection import Connection, Submit, UserNames
from ebbgate.intents.limits import Quotas
from ebbgate.intents.protocol import Answer, Greeting, State, encode_answer, encode_greeting
from ebbgate.log_messages.service import (
    CHANGES_IMPOSSIBLE,
    CONNECTION_NOT_ACCEPTED,
    CONNECTION_NOT_SERVED,
    SOCKET_FOR_ROOT_ONLY,
    SOCKET_REMOVED,
)
from ebbgate.model.status import ControlStatus
from ebbgate.store.access import ROOT_MODE, group_id

_LOG = logging.getLogger(__name__)
_BACKLOG: Final = 64
_ACCEPT_S: Final = 0.002
"""Between two connections: at most 500 per second."""
_PEER: Final = struct.Struct("3i")
_GROUP_MODE: Final = 0o660
_ERRORS_S: Final = 1.0
"""Pause after `accept` has failed, for example without free file descriptors."""


class ControlServer:
    """Listens on the socket and serves connections. `problem`: why it does not listen, or empty."""

    def __init__(self, path: Path, submit: Submit) -> None:
        self.problem = ""
        self._path = path
        self._submit = submit
        self._quotas = Quotas()
        self._names = UserNames()
        self._socket: socket.socket | None = None
        self._made: tuple[int, int] | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def open_connections(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    def status(self) -> ControlStatus:
        """Return the state of the socket for the daemon's status."""
        return ControlStatus(str(self._path), self.problem, self.open_connections)

    def start(self) -> None:
        """Listen, on a running event loop; if that fails, `problem` says why."""
        try:
            self._socket = _listening(self._path)
            found = self._path.stat()
        except OSError as error:
            why = f"{self._path}: {error.strerror or error}"
            if why != self.problem:
                _LOG.error(CHANGES_IMPOSSIBLE, why)
            self.problem = why
            return
        self.problem = ""
        self._made = found.st_dev, found.st_ino
        self._accepting = asyncio.get_running_loop().create_task(self._accept(self._socket))

    def look(self) -> None:
        """Listen again if the socket's file was removed or replaced, or could not be created."""
        try:
            found = self._path.stat()
            if self._socket is not None and (found.st_dev, found.st_ino) == self._made:
                return
        except OSError:
            pass
        if self._socket is not None:
            _LOG.warning(SOCKET_REMOVED, self._path)
            self._stop_listening()
        self.start()

    async def stop(self) -> None:
        """End all connections and remove the socket."""
        accepting = self._accepting
        self._stop_listening()
        tasks = [*self._connections, *([accepting] if accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(OSError):
            found = self._path.stat()
            if (found.st_dev, found.st_ino) == self._made:
                self._path.unlink()

    def _stop_listening(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
        if self._socket is not None:
            self._socket.close()
        self._accepting = self._socket = None

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(listening)
            except OSError as error:
                _LOG.warning(CONNECTION_NOT_ACCEPTED, error)
                await asyncio.sleep(_ERRORS_S)
                continue
            try:
                self._begin(client)
            except Exception:
                _LOG.exception(CONNECTION_NOT_SERVED)
                client.close()
            await asyncio.sleep(_ACCEPT_S)

    def _begin(self, client: socket.socket) -> None:
        client.setblocking(False)
        try:
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        except OSError:
            client.close()
            return
        _pid, uid, _gid = _PEER.unpack(credentials)
        why_not = self._quotas.connection_refusal(uid, time.monotonic_ns())
        greeting = encode_greeting(Greeting(os.getpid(), __version__))
        if why_not:
            with suppress(OSError):
                client.send(greeting + encode_answer(Answer(State.ERROR, text=why_not, busy=True)))
            client.close()
            return
        # The first bytes of a new connection always fit into the socket's buffer.
        with suppress(OSError):
            client.send(greeting)
        connection = Connection(client, uid, self._quotas, self._names, self._submit)
        task = asyncio.get_running_loop().create_task(connection.serve())
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)


def _listening(path: Path) -> socket.socket:
    """Create a socket for root and the group of `ebbgate-web`, if any. Raises OSError."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        # Created under another name, so that others can connect at no moment.
        new = path.with_name(f".{path.name}.new")
        new.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            made.bind(str(new))
        finally:
            os.umask(before)
        new.chmod(_GROUP_MODE if _given_to_group(new) else ROOT_MODE)
        made.listen(_BACKLOG)
        new.replace(path)
    except BaseException:
        made.close()
        raise
    return made


def _given_to_group(path: Path) -> bool:
    """Give a file to the group of `ebbgate-web`; False if there is none, or on failure."""
    group = group_id()
    if group is None or os.geteuid() != 0:
        return False
    try:
        os.chown(path, -1, group)
    except OSError as error:
        _LOG.warning(SOCKET_FOR_ROOT_ONLY, error.strerror)
        return False
    return True
