# SPDX-License-Identifier: GPL-2.0-only
"""Interactive terminals of the guest's agent.

I/O: pseudo-terminals. A request to open one is answered by {"terminal": number}, then by any
number of {"output": base64}, then by {"rc": status}.
"""

from __future__ import annotations

import base64
import fcntl
import itertools
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Callable
from typing import Any


class Terminals:
    """The open terminals by number."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._numbers = itertools.count(1)
        self._masters: dict[int, int] = {}

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a command on a new terminal; returns when it ends, having sent its output."""
        master, slave = pty.openpty()
        number = next(self._numbers)
        self._masters[number] = master
        self.resize({**request, "terminal": number})
        self._send({"id": request["id"], "terminal": number})
        # setsid -c makes the terminal the controlling one: job control and Ctrl-C work.
        process = subprocess.Popen(
            ["setsid", "-c", "-w", *request["argv"]],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, **request["env"]},
        )
        os.close(slave)
        pump = threading.Thread(target=self._pump, args=(request["id"], master), daemon=True)
        pump.start()
        status = process.wait()
        # What a background job still writes after the shell's end is not waited for.
        pump.join(timeout=1)
        self._masters.pop(number)
        return {"rc": status}

    def _pump(self, request_id: str, master: int) -> None:
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:  # EIO: the last process has left the terminal
                break
            self._send({"id": request_id, "output": base64.b64encode(data).decode()})
        os.close(master)

    def feed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Type bytes."""
        os.write(self._masters[request["terminal"]], base64.b64decode(request["data"]))
        return {}

    def resize(self, request: dict[str, Any]) -> dict[str, Any]:
        """Tell the terminal its size in characters."""
        size = struct.pack("HHHH", request["rows"], request["columns"], 0, 0)
        fcntl.ioctl(self._masters[request["terminal"]], termios.TIOCSWINSZ, size)
        return {}
