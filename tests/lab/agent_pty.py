# SPDX-License-Identifier: GPL-2.0-only
"""Interactive terminals of the guest's agent.

I/O: pseudo-terminals; output is sent as frames {"id": terminal, "output": base64} and ends with
{"id": terminal, "rc": status}.
"""

from __future__ import annotations

import base64
import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Callable
from typing import Any


class Terminals:
    """The open terminals by the id of the request that opened them."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._masters: dict[str, int] = {}

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a command on a new terminal; returns when it ends, having sent its output."""
        master, slave = pty.openpty()
        name = request["id"]
        self._masters[name] = master
        self.resize({"terminal": name, "rows": request["rows"], "columns": request["columns"]})
        # setsid -c makes the terminal the controlling one: job control and Ctrl-C work.
        process = subprocess.Popen(
            ["setsid", "-c", "-w", *request["argv"]],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, **request["env"]},
        )
        os.close(slave)
        pump = threading.Thread(target=self._pump, args=(name, master), daemon=True)
        pump.start()
        status = process.wait()
        # What a background job still writes after the shell's end is not waited for.
        pump.join(timeout=1)
        self._masters.pop(name)
        return {"rc": status}

    def _pump(self, name: str, master: int) -> None:
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:  # EIO: the last process has left the terminal
                break
            self._send({"id": name, "output": base64.b64encode(data).decode()})
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
