# SPDX-License-Identifier: GPL-2.0-only
"""The host's end of the wire to a guest's agent: many requests at once over one socket.

I/O: one unix socket and a thread that hands each reply to the caller who waits for it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.errors import CommandFailed, LostGuest, SilentGuest

Message = dict[str, Any]

# The emulated guest on a busy machine may take seconds for what takes it milliseconds.
GRACE_S = 60.0


class Channel:
    """Requests and replies; safe for use by many threads."""

    def __init__(
        self,
        wire: socket.socket,
        reason: Callable[[], str],
        silence: Callable[[], str] | None = None,
    ) -> None:
        """Over a connected socket.

        reason: why the other end hung up. silence: why it does not answer, if it is for this end
        to find out; that may cost the guest its life.
        """
        self._wire = wire
        self._reason = reason
        self._silence = silence or reason
        self._numbers = itertools.count(1)
        self._waiting: dict[str, queue.SimpleQueue[Message | None]] = {"hello": queue.SimpleQueue()}
        self._lock = threading.Lock()
        # Apart from the lock of the replies: a full wire must not keep replies from being taken.
        self._sending = threading.Lock()
        self._lost = False
        self._relay: Callable[[Message | None], None] = lambda _: None
        self._receiver = threading.Thread(target=self._receive, daemon=True)
        self._receiver.start()

    @classmethod
    def connect(
        cls,
        path: Path,
        alive: Callable[[], bool],
        reason: Callable[[], str],
        silence: Callable[[], str] | None = None,
    ) -> Channel:
        """Connect to a socket that may not be there yet, as long as `alive` says it may come."""
        wire = socket.socket(socket.AF_UNIX)
        while True:
            try:
                wire.connect(str(path))
                return cls(wire, reason, silence)
            except (FileNotFoundError, ConnectionRefusedError) as error:
                if not alive():
                    wire.close()
                    raise LostGuest(f"no guest at {path}: {reason()}") from error
                time.sleep(0.02)

    def hello(self, timeout_s: float) -> Message:
        """Wait for the agent's first word."""
        return self._next(self._waiting["hello"], timeout_s, "hello")

    def call(self, op: str, *, timeout_s: float = 0, **fields: object) -> Message:
        """One request, one reply.

        `timeout_s` is how long the request itself may take; the wire has GRACE_S on top, and
        LostGuest is raised past that or when the guest ends. An OSError in the guest is raised
        here as the same OSError, any other failure as CommandFailed.
        """
        name = self.send(op, **fields)
        what = f"{op} {fields.get('argv', '')}".strip()
        try:
            return checked(op, self._next(self._waiting[name], timeout_s + GRACE_S, what))
        finally:
            self.forget(name)

    def send(self, op: str, **fields: object) -> str:
        """Send a request whose replies are taken with `receive`; returns its id."""
        name = str(next(self._numbers))
        with self._lock:
            self._waiting[name] = queue.SimpleQueue()
        self.forward({"id": name, "op": op, **fields})
        return name

    def forward(self, request: Message) -> None:
        """Send a request as it is, under an id that is not one of this channel's own numbers."""
        line = json.dumps(request).encode() + b"\n"
        with self._sending:
            if self._lost:
                raise LostGuest(self._reason())
            try:
                self._wire.sendall(line)
            except OSError as error:
                raise LostGuest(self._reason()) from error

    def relay(self, handler: Callable[[Message | None], None]) -> None:
        """Pass on every reply without a waiting caller, and None at the end."""
        self._relay = handler

    def receive(self, name: str, timeout_s: float | None = None) -> Message:
        """The next reply to a request of `send`."""
        return self._next(self._waiting[name], timeout_s, name)

    def forget(self, name: str) -> None:
        """Take no more replies to a request."""
        with self._lock:
            self._waiting.pop(name, None)

    def close(self) -> None:
        """Hang up."""
        # A close alone would leave the receiving thread asleep in recv.
        with contextlib.suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)
        self._wire.close()
        # It holds the socket open until it has seen the end; it may also be the one that hangs up.
        if threading.current_thread() is not self._receiver:
            self._receiver.join(GRACE_S)

    def _next(
        self, replies: queue.SimpleQueue[Message | None], timeout_s: float | None, op: str
    ) -> Message:
        try:
            reply = replies.get(timeout=timeout_s)
        except queue.Empty as error:
            raise SilentGuest(
                f"no answer to {op!r} in {timeout_s:.0f} s: {self._silence()}"
            ) from error
        if reply is None:
            raise LostGuest(self._reason())
        return reply

    def _receive(self) -> None:
        try:
            with self._wire.makefile("rb") as lines:
                for line in lines:
                    self._deliver(json.loads(line))
        except (OSError, ValueError):
            pass  # a torn last line: the guest is gone, as below
        with self._lock:
            self._lost = True
            for replies in self._waiting.values():
                replies.put(None)
        self._relay(None)

    def _deliver(self, reply: Message) -> None:
        with self._lock:
            replies = self._waiting.get(reply["id"])
        if replies is not None:
            replies.put(reply)
        else:
            self._relay(reply)


def checked(op: str, reply: Message) -> Message:
    """The reply, unless it says that the request failed."""
    if "errno" in reply:
        raise OSError(reply["errno"], f"{op} in the guest: {reply['error']}")
    if "error" in reply:
        raise CommandFailed(f"{op} in the guest: {reply['error']}")
    return reply
