# SPDX-License-Identifier: GPL-2.0-only
"""A process that reads into a cache, as far as the daemon sees it. Pure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

from ebbgate.daemon.warm_process import WarmProcess
from ebbgate.errors import Unavailable
from ebbgate.units import MIB

OPENED = {
    "event": "opened",
    "devno": [252, 0],
    "bytes": 8 * MIB,
    "pieces": 3,
    "left_out": {"compressed or otherwise encoded": 4096},
}
NO_BLOCKS = {"touched": 0, "brought": 0, "pending": 0}
"""What a worker says of cache blocks where it has read none."""
_TURN_S = 0.05
"""More than the daemon needs for what a test does; a thread of it may read meanwhile."""
_STEPS = 20
"""Of the event loop, which a busy machine may not have come to in that time."""


class RecordingProcess(WarmProcess):
    """A worker that keeps what it was sent; `made`: all of its class, which a test sets."""

    made: list[Any]

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.ended = False
        self.events: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()

    @classmethod
    async def start(cls) -> Self:
        process = cls()
        cls.made.append(process)
        return process

    def send(self, message: Mapping[str, object]) -> None:
        self.sent.append(dict(message))

    async def event(self) -> dict[str, Any]:
        found = await self.events.get()
        if not found:
            raise Unavailable("the reading process has ended")
        return dict(found)

    async def end(self) -> None:
        self.ended = True


class FakeProcess(RecordingProcess):
    """A worker that says what a test tells it. `first`: its first event; None: none yet."""

    made: list[FakeProcess]
    first: Mapping[str, Any] | None = OPENED

    def __init__(self) -> None:
        super().__init__()
        if self.first is not None:
            self.events.put_nowait(self.first)

    @property
    def commands(self) -> list[str]:
        return [each["command"] for each in self.sent[1:]]


async def turn(act: Callable[[], object]) -> None:
    """Do it, and let the daemon handle what follows."""
    act()
    await asyncio.sleep(_TURN_S)
    for _ in range(_STEPS):
        await asyncio.sleep(0)
