# SPDX-License-Identifier: GPL-2.0-only
"""Tells systemd that the daemon is ready, alive and stopping (sd_notify). I/O: one datagram socket.

The protocol is a datagram to $NOTIFY_SOCKET (sd_notify(3)); without systemd nothing is sent.
"""

from __future__ import annotations

import contextlib
import os
import socket


class Watchdog:
    """Says READY, WATCHDOG and STOPPING; a systemd that asked for it restarts a daemon that
    hangs.
    """

    def __init__(self, address: str | None = None) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        # An abstract address is written with an @ for its leading zero byte.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    def ready(self) -> None:
        """Start-up is over."""
        self._send("READY=1")

    def alive(self) -> None:
        """The event loop turns."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """Knobs are being put back."""
        self._send("STOPPING=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(message.encode(), self._address)
