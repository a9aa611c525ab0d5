# SPDX-License-Identifier: GPL-2.0-only
"""Starts the process that reads for a warm-up, and talks to it.

The installed daemon may not open files of users. systemd starts a worker for each connection to
the socket of ebbgate-warm.socket, with rights of its own.
I/O: a socket of systemd, or a child process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import ebbgate
from ebbgate.errors import Unavailable

_PACKAGE: Final = Path(ebbgate.__file__).resolve().parents[1]
_LINE_BYTES_MAX: Final = 1 << 16
OPEN_S: Final = 25.0
"""Within which the extents of a file are known, however many there are. It is over before the
request is (`intent_dispatcher.DEADLINE_S`), whose answer is then what hangs.
"""
_END_S: Final = 1.0
"""A read that hangs in the kernel cannot be ended: its process is left behind after this time."""


class WarmProcess:
    """One worker: commands in, events out. `process`: None where systemd has started it."""

    def __init__(
        self,
        events: asyncio.StreamReader,
        commands: asyncio.StreamWriter,
        process: Process | None = None,
    ) -> None:
        self._events = events
        self._commands = commands
        self._process = process

    @classmethod
    async def start(cls) -> WarmProcess:
        """Have systemd start a worker, or start one here. Raises Unavailable."""
        socket = os.environ.get("EBBGATE_WARM_SOCKET")
        try:
            if socket is not None:
                return cls(*await asyncio.open_unix_connection(socket, limit=_LINE_BYTES_MAX))
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "ebbgate.warm.worker"),
                stdin=PIPE,
                stdout=PIPE,
                limit=_LINE_BYTES_MAX,
                env={"PYTHONPATH": str(_PACKAGE), "PATH": os.environ.get("PATH", "/usr/bin:/bin")},
            )
        except OSError as error:
            raise Unavailable(
                f"the reading process cannot be started: {error.strerror}",
                "see systemctl status ebbgate-warm.socket",
            ) from error
        assert process.stdin is not None
        assert process.stdout is not None
        return cls(process.stdout, process.stdin, process)

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message; nothing happens if the worker has ended."""
        if not self._commands.is_closing():
            self._commands.write(json.dumps(message).encode() + b"\n")

    async def event(self) -> dict[str, Any]:
        """Return its next event. Raises Unavailable if it has ended."""
        try:
            line = await self._events.readline()
            found: dict[str, Any] = json.loads(line)
        except (ValueError, OSError, RecursionError) as error:
            raise Unavailable("the reading process has ended") from error
        return found

    async def end(self) -> None:
        """End it: it ends by itself once nobody listens, unless a read hangs in the kernel."""
        self._commands.close()
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _END_S)


async def answer(process: WarmProcess) -> dict[str, Any]:
    """Return what a worker says of what it was to open.

    Raises Unavailable if it has ended, or hangs in the kernel.
    """
    try:
        async with asyncio.timeout(OPEN_S):
            return await process.event()
    except TimeoutError as error:
        raise Unavailable(
            f"the reading process has not answered within {OPEN_S:g} s",
            "a device or a file system may hang: see dmesg",
        ) from error
