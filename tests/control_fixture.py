# SPDX-License-Identifier: GPL-2.0-only
"""The daemon's end of the control socket, on an event loop of its own, and plain clients.

I/O: a real unix socket, a thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ebbgate.daemon.loop_silence import LoopSilence, measured_loop
from ebbgate.errors import UsageError
from ebbgate.intents.server import ControlServer
from ebbgate.units import NS_PER_MS, NS_PER_S
from tests.control_harness import end, on_loop
from tests.lab.host import thread_scheduled_ns

DEADLINE_S = 10.0
SILENCE_NS_MAX = 500 * NS_PER_MS
"""The scenario hostile-client holds the daemon to 100 ms; a test shares its machine with others."""


class Served:
    """What a request came to."""

    def __init__(self, ok: bool, text: str) -> None:
        self.ok = ok
        self.text = text
        self.data: Mapping[str, str | int] = {}


class ControlHarness:
    """A server whose requests are carried out as the test says: `hold` keeps them pending."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "c.sock"
        self.asked: list[tuple[str, str | None, Mapping[str, Any], str]] = []
        self.silence = LoopSilence(self.own_ns)
        self.hold = False
        self.held: list[asyncio.Future[Served]] = []
        self.control = ControlServer(self.path, self._submit)
        self._main = threading.get_native_id()
        self._loop = measured_loop(self.silence)
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        self.call(self.control.start)
        self.call(self.silence.begin)

    def _submit(
        self, kind: str, volume: str | None, args: Mapping[str, Any], who: str
    ) -> tuple[int, asyncio.Future[Served]]:
        if kind == "bug":
            raise ZeroDivisionError("a bug")
        if kind != "mode":
            raise UsageError(f"unknown request: {kind}", "known: mode")
        self.asked.append((kind, volume, args, who))
        future: asyncio.Future[Served] = self._loop.create_future()
        if self.hold:
            self.held.append(future)
        else:
            future.set_result(Served(True, f"{volume}: mode {args['mode']}"))
        return len(self.asked), future

    def own_ns(self) -> int:
        """The time without what the loop, or the test whose turn it waits for, had no core: other
        programs of a machine make no silence of the loop.
        """
        # Of these two alone: other tests have left hundreds of threads, and this runs at each turn.
        threads = (self._main, self._thread.native_id or self._main)
        waited = [thread_scheduled_ns(os.getpid(), each)[1] for each in threads]
        return time.monotonic_ns() - sum(waited)

    def call(self, work: Callable[[], Any]) -> Any:
        """On the event loop's thread."""
        return on_loop(self._loop, work)

    def finish(self) -> None:
        """What is pending is done."""

        def done() -> None:
            for future in self.held:
                if not future.done():
                    future.set_result(Served(True, "done"))

        self.call(done)

    def stop(self) -> None:
        """A request that stays pending would be reported in whatever test collects it."""
        self.finish()
        end(self._loop, self._thread, self.control)


class Client:
    """A plain socket."""

    def __init__(self, path: Path, *, greeted: bool = True) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(str(path))
        self._buffer = b""
        if greeted:
            self.greeting = self.read()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, **changed: Any) -> None:
        good = {"v": 1, "id": "a", "kind": "mode", "volume": "b", "args": {"mode": "advise"}}
        self.send(json.dumps({**good, **changed}).encode() + b"\n")

    def read(self) -> dict[str, Any]:
        """The next message. Raises EOFError at the end."""
        while b"\n" not in self._buffer:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        assert found.pop("v") == 1
        return found

    def close(self) -> None:
        self.socket.close()


def cut_off(client: Client) -> str:
    """The reason with which the connection was ended."""
    found = client.read()
    assert found["state"] == "error", found
    with pytest.raises((EOFError, ConnectionResetError)):
        client.read()
    return str(found["text"])


def answers(harness: ControlHarness) -> None:
    """An honest client is answered within a second."""
    begun_ns = harness.own_ns()
    with closing(Client(harness.path)) as honest:
        honest.ask(id="honest")
        assert honest.read()["state"] == "accepted"
        assert honest.read()["state"] == "done"
    assert harness.own_ns() - begun_ns < NS_PER_S


def be_hostile(path: Path, seconds: float) -> None:
    """Connect over and over, each time to send something that no honest client would."""
    lines = (
        b"[" * 60_000 + b"\n",
        b'{"v":1,"id":"a","kind":"mode","args":{"n":' + b"9" * 4000 + b"}}\n",
        b'{"v":1,"id":"a","kind":"x","args":{"a":[' + b"1," * 30_000 + b"1]}}\n",
        b'{"v":1,"id":"a","kind":"mode","volume":"' + b"x" * 60_000 + b'"}\n',
        b"x" * 70_000,
        b'{"v":1',
        b"",
    )
    os.nice(10)
    until_s, number = time.monotonic() + seconds, os.getpid()
    while time.monotonic() < until_s:
        number += 1
        with suppress(OSError, EOFError), closing(Client(path, greeted=number % 3 == 0)) as client:
            client.socket.settimeout(0.1)
            client.send(lines[number % len(lines)])
            client.read()


if __name__ == "__main__":
    be_hostile(Path(sys.argv[1]), float(sys.argv[2]))
