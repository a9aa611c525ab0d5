# SPDX-License-Identifier: GPL-2.0-only
"""A process that reads into a cache, as far as the daemon sees it. Pure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

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
_TURN_S = 0.05
"""More than the daemon needs for what a test does; a thread of it may read meanwhile."""
_STEPS = 20
"""Of the event loop, which a busy machine may not have come to in that time."""


class FakeProcess(WarmProcess):
    """A worker that says what a test tells it. `first`: its first event; None: none yet."""

    made: list[FakeProcess]
    first: Mapping[str, Any] | None = OPENED

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.ended = False
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        if self.first is not None:
            self.events.put_nowait(dict(self.first))

    @classmethod
    async def start(cls) -> FakeProcess:
        cls.made.append(cls())
        return cls.made[-1]

    def send(self, message: Mapping[str, object]) -> None:
        self.sent.append(dict(message))

    async def event(self) -> dict[str, Any]:
        found = await self.events.get()
        if not found:
            raise Unavailable("the reading process has ended")
        return found

    async def end(self) -> None:
        self.ended = True

    @property
    def commands(self) -> list[str]:
        return [each["command"] for each in self.sent[1:]]


async def turn(act: Callable[[], object]) -> None:
    """Do it, and let the daemon handle what follows."""
    act()
    await asyncio.sleep(_TURN_S)
    for _ in range(_STEPS):
        await asyncio.sleep(0)
