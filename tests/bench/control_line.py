# SPDX-License-Identifier: GPL-2.0-only
"""A bare client of the control socket: lines of JSON, and nothing that checks what it sends.

I/O: one unix socket.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_PIECE_BYTES = 65536


class ControlLine:
    """A connection; each wait is at most `timeout_s`. Raises OSError where it is cut off."""

    def __init__(self, path: Path, timeout_s: float = 5.0) -> None:
        self._wire = socket.socket(socket.AF_UNIX)
        self._wire.settimeout(timeout_s)
        self._read = b""
        try:
            self._wire.connect(str(path))
        except BaseException:
            self._wire.close()
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

    def ask(self, kind: str, volume: str, args: dict[str, Any]) -> dict[str, Any]:
        """One request; its final answer."""
        document = {"v": 1, "id": "honest", "kind": kind, "volume": volume, "args": args}
        self.send(json.dumps(document).encode() + b"\n")
        while (answer := self.receive()).get("state") == "accepted":
            pass
        return answer
