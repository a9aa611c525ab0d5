# SPDX-License-Identifier: GPL-2.0-only
"""A person, `overrides.db`, and a daemon that a test may restart. I/O: files."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.absent_volumes import Presence
from ebbgate.daemon.intent_dispatcher import IntentDispatcher
from ebbgate.daemon.override_registry import OverrideRegistry
from ebbgate.errors import EbbgateError
from ebbgate.intents.database import OverrideDatabase
from ebbgate.intents.override_writer import OverrideWriter
from ebbgate.model.override import IntentKind, Override
from ebbgate.policy_files.active import ActivePolicies
from ebbgate.probes.volume_state import read_knobs
from ebbgate.store.intent_rows import IntentRow
from ebbgate.units import NS_PER_S
from tests.volume_loop_fixture import DEADLINE_S, LoopHarness

T = TypeVar("T")
HOUR_NS = 3600 * NS_PER_S
MINUTE_NS = 60 * NS_PER_S


class Daemon:
    """The target: the loops by name, and a folder of policies; what it is asked for is counted."""

    def __init__(self, folder: Path, **volumes: VolumeLoop) -> None:
        self.volumes = dict(volumes)
        self.sysfs = next(iter(volumes.values())).writer.sysfs
        self.folder = folder
        self.restored: list[str] = []
        self.published: list[list[str]] = []
        self.found: Presence | None = Presence()

    @cached_property
    def policies(self) -> ActivePolicies:
        return ActivePolicies(self.folder / "policies.d")

    async def follow_policies(self) -> None:
        self.policies.look()
        for loop in self.volumes.values():
            loop.set_policy(self.policies.policy_of(loop.volume))

    async def publish(self, names: Collection[str]) -> None:
        self.published.append(list(names))

    def presence(self) -> Presence | None:
        return self.found

    def restore_volume(self, name: str) -> str:
        self.restored.append(name)
        return f"{name}: every knob is back"


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a person. `number`: None for a request that was refused at once."""

    ok: bool
    outcome: str
    number: int | None = None


def answer(found: Answered) -> tuple[bool, str]:
    return found.ok, found.outcome


class Log:
    """The recorder's part. `trouble`: nothing can be written."""

    def __init__(self) -> None:
        self.rows: list[IntentRow] = []
        self.done: list[tuple[int, bool, str]] = []
        self.trouble: OSError | None = None

    def intent(self, intent: IntentRow) -> None:
        self.rows.append(intent)

    def intent_done(self, number: int, ok: bool, outcome: str) -> None:
        self.done.append((number, ok, outcome))

    def written(self) -> Future[None]:
        found: Future[None] = Future()
        if self.trouble:
            found.set_exception(self.trouble)
        else:
            found.set_result(None)
        return found


class Clocks:
    """The wall clock and the monotonic one, each moved by a test."""

    def __init__(self) -> None:
        self.wall_ns = 1_700_000_000 * NS_PER_S
        self.mono_ns = 500 * NS_PER_S

    def passes(self, duration_ns: int) -> None:
        self.wall_ns += duration_ns
        self.mono_ns += duration_ns


class IntentHarness:
    """A person, and a daemon that may be restarted."""

    def __init__(self, folder: Path, volume: LoopHarness) -> None:
        self.folder = folder
        self.path = folder / "overrides.db"
        self.volume = volume
        self.clocks = Clocks()
        self.daemon = Daemon(folder, bcache0=volume.loop)
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the event loop of the daemon."""
        return self._runner.run(work)

    def close(self) -> None:
        """End the event loop of the daemon."""
        self._runner.close()

    def start(self) -> None:
        """As a daemon that was started just now sees it."""
        if hasattr(self, "writer"):
            self.stop()
        self.close()
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.log = Log()
        self.writer = OverrideWriter(self.path)
        self.registry = OverrideRegistry(
            self.writer,
            self.daemon.volumes,
            lambda: self.clocks.wall_ns,
            lambda: self.clocks.mono_ns,
        )
        loop = self.volume.loop
        if loop.last_seen is not None:
            knobs = read_knobs(loop.writer.sysfs, loop.volume)
            loop.signals.last_seen = replace(loop.last_seen, knobs=knobs)
        self.run(self.registry.load())
        self.dispatcher = IntentDispatcher(
            self.daemon, self.registry, self.log, self.folder / "history.db", 1
        )

    def stop(self) -> None:
        """Write what is left to write, and close the database."""
        with suppress(EbbgateError):
            self.flush()
            self.writer.submit(OverrideDatabase.close).result(DEADLINE_S)

    def ask(self, kind: str, volume: str | None = "bcache0", **args: Any) -> Answered:
        return self.run(self.ask_async(kind, volume, **args))

    async def ask_async(self, kind: str, volume: str | None = "bcache0", **args: Any) -> Answered:
        """The same for a test that does something meanwhile."""
        try:
            number, awaited = self.dispatcher.submit(kind, volume, args, "jo")
        except EbbgateError as error:
            return Answered(False, str(error))
        outcome = asyncio.ensure_future(awaited)
        deadline = time.monotonic() + DEADLINE_S
        while not outcome.done():
            assert time.monotonic() < deadline, "no answer"
            self.volume.settle()
            if any(each.override.knob for each in self.registry.active.values()):
                self.volume.tick()
            await asyncio.sleep(0.0005)
        return Answered(outcome.result().ok, outcome.result().text, number)

    def set(self, value: str = "20%", **args: Any) -> tuple[bool, str]:
        return answer(self.ask(IntentKind.SET, knob="writeback_percent", value=value, **args))

    def flush(self) -> None:
        """All that was to be written is."""
        self.run(self.registry.saved())
        self.writer.submit(lambda database: None).result(DEADLINE_S)

    def kept(self) -> tuple[Override, ...]:
        """What is in force in the file."""
        self.flush()
        return self.writer.submit(lambda database: database.load()).result(DEADLINE_S).overrides

    def ended(self) -> list[str]:
        """Why those that are over in the file are."""
        self.flush()
        with closing(sqlite3.connect(self.path)) as connection:
            rows = connection.execute(
                "SELECT outcome FROM overrides WHERE ended_unix_ns IS NOT NULL ORDER BY id"
            ).fetchall()
        return [row[0] for row in rows]

    def poll(self) -> None:
        self.look()
        self.volume.settle()
        self.tick()

    def look(self) -> None:
        """Let the registry look for what is over."""

        self._call(self.registry.poll)

    def tick(self, **seen: Any) -> None:
        """Tick the volume on the daemon's event loop."""

        self._call(lambda: self.volume.tick(**seen))

    def _call(self, work: Callable[[], object]) -> None:
        async def call() -> None:
            work()

        self.run(call())

    def frozen(self) -> bool:
        return self.volume.loop.frozen

    def percent(self) -> str:
        return self.volume.knob("writeback_percent")
