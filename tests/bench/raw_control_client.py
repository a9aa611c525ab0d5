# SPDX-License-Identifier: GPL-2.0-only
"""A client of the control socket that sends unchecked lines, for tests with invalid requests.

I/O: one unix socket.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

_PIECE_BYTES = 65536
_RETRY_S = 0.01


class RawControlClient:
    """A connection; each wait is at most `timeout_s`. Raises OSError when it is closed."""

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
        """Try to connect; return False while the queue of connections is full."""
        try:
            self._wire.connect(str(path))
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                raise
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def send(self, data: bytes) -> None:
        """Send all bytes."""
        self._wire.sendall(data)

    def receive(self) -> dict[str, Any]:
        """Return the next message of the daemon."""
        while b"\n" not in self._read:
            piece = self._wire.recv(_PIECE_BYTES)
            if not piece:
                raise ConnectionResetError("the daemon hung up")
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def request(self, kind: str, volume: str, args: Mapping[str, str | int]) -> None:
        """Send a request; `receive` returns its answers."""
        document = {"v": 1, "id": "honest", "kind": kind, "volume": volume, "args": dict(args)}
        self.send(json.dumps(document).encode() + b"\n")
