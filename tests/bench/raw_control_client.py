# SPDX-License-Identifier: GPL-2.0-only
"""A bare client of the control socket: lines of JSON, and nothing that checks what it sends.

I/O: one unix socket.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_PIECE_BYTES = 65536
_RETRY_S = 0.01


class RawControlClient:
    """A connection; each wait is at most `timeout_s`. Raises OSError where it is cut off."""

    def __init__(self, path: Path, timeout_s: float = 5.0) -> None:
        self._wire = socket.socket(socket.AF_UNIX)
        self._wire.settimeout(timeout_s)
        self._read = b""
        deadline_s = time.monotonic() + timeout_s
        try:
            while not self._connected(path, deadline_s):
                time.sleep(_RETRY_S)
        except BaseException:
            self._wire.close()
            raise

    def _connected(self, path: Path, deadline_s: float) -> bool:
        """False while the queue of connections is full, which a time-out does not wait for."""
        try:
            self._wire.connect(str(path))
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                raise
            return False
        return True

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
        """Hang up."""
        self._wire.close()

    def send(self, data: bytes) -> None:
        """All of it."""
        self._wire.sendall(data)

    def receive(self) -> dict[str, Any]:
        """The next message of the daemon."""
        while b"\n" not in self._read:
            piece = self._wire.recv(_PIECE_BYTES)
            if not piece:
                raise ConnectionResetError("the daemon hung up")
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def request(self, kind: str, volume: str, args: Mapping[str, str | int]) -> None:
        """Ask for something; its answers are received."""
        document = {"v": 1, "id": "honest", "kind": kind, "volume": volume, "args": dict(args)}
        self.send(json.dumps(document).encode() + b"\n")
