# SPDX-License-Identifier: GPL-2.0-only
"""Tells systemd that the daemon is ready, alive and stopping (sd_notify). I/O: one datagram socket.

The protocol is a datagram to $NOTIFY_SOCKET (sd_notify(3)); without systemd nothing is sent.
"""

from __future__ import annotations

import contextlib
import os
import socket


class Watchdog:
    """Sends READY, WATCHDOG and STOPPING; systemd may restart a daemon that hangs."""

    def __init__(self, address: str | None = None) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        # An abstract address is written with an @ for its leading zero byte.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    def ready(self) -> None:
        """Report that start-up is done."""
        self._send("READY=1")

    def alive(self) -> None:
        """Report that the event loop turns."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """Report that knobs are being restored."""
        self._send("STOPPING=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(message.encode(), self._address)
