# SPDX-License-Identifier: GPL-2.0-only
"""People who pin files, and a worker that finds what a test says. I/O: `overrides.db`."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from ebbgate.model.override import IntentKind
from ebbgate.model.pin import PinState, PinStatus
from ebbgate.units import MIB
from tests.intent_fixture import Answered, IntentHarness
from tests.waiting import until
from tests.warm_fixture import NO_BLOCKS, RecordingProcess

PATH = "/srv/a"
OPENED: dict[str, Any] = {
    "event": "opened",
    "devno": [252, 0],
    "mount": "/srv",
    "inode": 5,
    "generation": 7,
    "bytes": 8 * MIB,
    "pieces": 1,
    "layout": 1,
    "left_out": {},
}
OTHER = "/srv/b"
BOTH: dict[str, dict[str, Any]] = {PATH: OPENED, OTHER: {**OPENED, "inode": 6}}
HANGS: dict[str, Any] = {"event": "none"}
DONE: dict[str, Any] = {
    "event": "done",
    "phase": "check",
    "read": 8 * MIB,
    "total": 8 * MIB,
    "checked": 100,
    "hits": 100,
    "elsewhere": 0,
    "collects": False,
    **NO_BLOCKS,
}


class FakeProcess(RecordingProcess):
    """A worker of which a test says what it finds. `touched`: hits of so many `reads`.

    `elsewhere`: of these, on another device.
    """

    made: list[FakeProcess]
    found: Mapping[str, Mapping[str, Any]]
    touched: int
    reads: int
    elsewhere: int = 0

    def send(self, message: Mapping[str, object]) -> None:
        super().send(message)
        path = message.get("touch") or message.get("path")
        if path:
            self.events.put_nowait(self.found.get(str(path), BOTH.get(str(path), OPENED)))
        elif message.get("command") == "touch":
            counts = {"reads": self.reads, "hits": self.touched, "elsewhere": self.elsewhere}
            self.events.put_nowait({"event": "touched", **counts})

    async def event(self) -> dict[str, Any]:
        found = await super().event()
        if found == HANGS:
            await asyncio.Event().wait()
        return found


class People:
    """Requests, and what people see of the pins."""

    def __init__(self, intents: IntentHarness) -> None:
        self.intents = intents

    def pin(self, path: str = PATH) -> Answered:
        return self.intents.ask(IntentKind.PIN, None, path=path)

    def unpin(self, **args: Any) -> Answered:
        return self.intents.ask(IntentKind.UNPIN, None, **args)

    @property
    def pins(self) -> tuple[PinStatus, ...]:
        return self.intents.volume.loop.pins

    def state(self) -> PinState:
        (found,) = self.pins
        return found.state

    @property
    def touches(self) -> list[dict[str, Any]]:
        sent = [each for process in FakeProcess.made for each in process.sent]
        return [each for each in sent if each.get("command") == "touch"]

    def passes(self, duration_ns: int = 0) -> None:
        """Let time pass, and the daemon look after its pins."""
        self.intents.clocks.passes(duration_ns)
        pins = self.intents.dispatcher.pins

        async def work() -> None:
            for _ in range(3):
                pins.poll()
                await pins.settled()
            pins.poll()

        self.intents.run(work())

    def job_ends(self, **event: Any) -> None:
        """The warm-up that is under way is over."""
        process = next(each for each in reversed(FakeProcess.made) if "path" in each.sent[0])

        async def work() -> None:
            process.events.put_nowait({**DONE, **event})
            await asyncio.sleep(0.02)

        self.intents.run(work())
        until(lambda: process.ended, "the warm-up to end")

    def restart(self) -> None:
        self.intents.run(self.intents.dispatcher.pins.stop())
        self.intents.run(self.intents.dispatcher.warm.stop())
        self.intents.start()

    def rows(self) -> list[tuple[Any, ...]]:
        self.intents.flush()
        with closing(sqlite3.connect(self.intents.path)) as connection:
            query = "SELECT path, inode, generation, outcome FROM pins ORDER BY id"
            return connection.execute(query).fetchall()
