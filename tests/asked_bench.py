# SPDX-License-Identifier: GPL-2.0-only
"""A person who asks, the intents database, and a daemon that a test may start anew. I/O: files."""

from __future__ import annotations

import sqlite3
import time
from functools import cached_property
from pathlib import Path
from typing import Any

from ebbgate.intake import Intake
from ebbgate.loop import VolumeLoop
from ebbgate.model.wish import IntentKind
from ebbgate.policy_book import PolicyBook
from ebbgate.store.intents import Intent, Intents
from ebbgate.units import NS_PER_S
from tests.loop_bench import DEADLINE_S, LoopBench

HOUR_NS = 3600 * NS_PER_S
MINUTE_NS = 60 * NS_PER_S


class Daemon:
    """The target: the loops by name, and a folder of policies; a restore is counted."""

    def __init__(self, folder: Path, **volumes: VolumeLoop) -> None:
        self.volumes = dict(volumes)
        self.sysfs = next(iter(volumes.values())).hand.sysfs
        self.folder = folder
        self.restored: list[str] = []

    @cached_property
    def policies(self) -> PolicyBook:
        return PolicyBook(self.folder / "policies.d")

    def follow_policies(self) -> None:
        self.policies.look()
        for loop in self.volumes.values():
            loop.set_policy(self.policies.policy_of(loop.volume))

    def restore_volume(self, name: str) -> str:
        self.restored.append(name)
        return f"{name}: every knob is back"


def answer(intent: Intent) -> tuple[bool | None, str | None]:
    return intent.ok, intent.outcome


class Clocks:
    """The wall clock and the monotonic one, each moved by a test."""

    def __init__(self) -> None:
        self.wall_ns = 1_700_000_000 * NS_PER_S
        self.mono_ns = 500 * NS_PER_S

    def passes(self, duration_ns: int) -> None:
        self.wall_ns += duration_ns
        self.mono_ns += duration_ns


class Asked:
    """A person, the intents database, and a daemon that may be started anew."""

    def __init__(self, folder: Path, bench: LoopBench) -> None:
        self.folder = folder
        self.bench = bench
        self.clocks = Clocks()
        self.intents = Intents.open(folder / "intents.db")
        self.daemon = Daemon(folder, bcache0=bench.loop)
        self.start()

    def start(self) -> None:
        """As a daemon that was started just now sees it."""
        self.intake = Intake(self.folder, self.daemon)
        self.intake.keeper.wall_ns = lambda: self.clocks.wall_ns
        self.intake.keeper.now_ns = lambda: self.clocks.mono_ns
        self.intake.keeper.standing.clear()
        self.intake.keeper.use(self.intake.keeper.intents)

    def ask(self, kind: IntentKind, volume: str | None = "bcache0", **args: Any) -> Intent:
        number = self.intents.add_intent(kind, volume, args, "jo", self.clocks.wall_ns)
        deadline = time.monotonic() + DEADLINE_S
        while True:
            self.intake.poll()
            answered = self.intents.get(number)
            assert answered is not None
            if answered.ok is not None:
                return answered
            assert time.monotonic() < deadline, "no answer"
            self.bench.settle()
            if self.intake._wishes.under_way(answered):
                self.bench.tick()

    def set(self, value: str = "20%", **args: Any) -> tuple[bool | None, str | None]:
        return answer(self.ask(IntentKind.SET, knob="writeback_percent", value=value, **args))

    def ended(self) -> list[str]:
        rows = sqlite3.connect(self.folder / "intents.db").execute(
            "SELECT outcome FROM wishes WHERE ended_unix_ns IS NOT NULL ORDER BY id"
        )
        return [row[0] for row in rows]

    def poll(self) -> None:
        self.intake.poll()
        self.bench.settle()
        self.bench.tick()

    def held(self) -> bool:
        return self.bench.loop.held

    def percent(self) -> str:
        return self.bench.knob("writeback_percent")
