# SPDX-License-Identifier: GPL-2.0-only
"""Tells systemd that the daemon is ready, alive and stopping (sd_notify). I/O: one datagram socket.

The protocol is a datagram to $NOTIFY_SOCKET (sd_notify(3)); without systemd nothing is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import Final

from ebbgate.units import NS_PER_S

_EVERY_S: Final = 2.0
"""The unit has WatchdogSec=10s; a tick may be as long."""
_LATE_NS: Final = 2 * NS_PER_S
"""A tick task that is later than this hangs, though the event loop turns."""


class Watchdog:
    """Sends READY, WATCHDOG and STOPPING; systemd may restart a daemon that hangs.

    `tick_ns`: the longest time between two ticks. `now_ns`: CLOCK_MONOTONIC.
    """

    def __init__(
        self,
        address: str | None = None,
        tick_ns: int = 0,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        # An abstract address is written with an @ for its leading zero byte.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._tick_ns = tick_ns
        self._now_ns = now_ns
        self._ticked_ns = now_ns()

    def ready(self) -> None:
        """Report that start-up is done."""
        self._send("READY=1")

    def alive(self) -> None:
        """Report that the event loop turns."""
        # The loop closes gates, so it does not wait while systemd hangs. The next report is soon.
        self._send("WATCHDOG=1", socket.MSG_DONTWAIT)

    def ticked(self) -> None:
        """Note that a tick is done."""
        self._ticked_ns = self._now_ns()

    async def run(self) -> None:
        """Report every 2 s that the event loop turns, as long as ticks come in time."""
        self.ticked()
        while True:
            if self._now_ns() - self._ticked_ns <= self._tick_ns + _LATE_NS:
                self.alive()
            await asyncio.sleep(_EVERY_S)

    def stopping(self) -> None:
        """Report that knobs are being restored."""
        self._send("STOPPING=1", socket.MSG_DONTWAIT)

    def _send(self, message: str, flags: int = 0) -> None:
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(message.encode(), flags, self._address)
