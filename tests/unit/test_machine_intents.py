# SPDX-License-Identifier: GPL-2.0-only
"""A whole daemon carries out what the web adds: policies, advice, undo."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.machine import Daemon
from ebbgate.model.volume import Mode
from ebbgate.model.wish import IntentKind
from ebbgate.store.intents import Intent, Intents
from tests.loop_bench import DEADLINE_S
from tests.unit.test_machine_volumes import Bench

CUTOFF = "sequential_cutoff"


class Machine(Bench):
    """The same with a folder of policies, and a person."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, Mode.ADVISE)
        config = replace(self.daemon.config, policy_dir=folder / "policies.d")
        self.daemon = Daemon(config, self.sysfs, self.recorder, self.journal, "this boot")
        self.intents = Intents.open(folder / "state/intents.db")

    async def ask(self, kind: IntentKind, volume: str | None, **args: Any) -> Intent:
        number = self.intents.add_intent(kind, volume, args, "jo", time.time_ns())
        deadline = time.monotonic() + DEADLINE_S
        while True:
            self.daemon.intake.poll()
            found = self.intents.get(number)
            assert found is not None
            if found.ok is not None:
                return found
            assert time.monotonic() < deadline, "no answer"
            await self.looks(1)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.stop()


def test_a_policy_that_is_saved_runs(machine: Machine) -> None:
    text = "version: 1\nname: mine\nwhy: A test.\nstrategies: []\n"

    async def scenario() -> None:
        await machine.looks(1)
        answered = await machine.ask(IntentKind.POLICY_SAVE, None, name="mine", text=text)
        assert answered.ok, answered.outcome
        assert "now under it: bcache0" in str(answered.outcome)
        assert machine.daemon.volumes["bcache0"].policy.name == "mine"
        removed = await machine.ask(IntentKind.POLICY_REMOVE, None, name="mine")
        assert "bcache0 is under adaptive now" in str(removed.outcome)
        assert machine.daemon.volumes["bcache0"].policy.name == "adaptive"

    machine.run(scenario)


def test_an_advice_is_applied_undone_and_released(machine: Machine) -> None:
    machine.fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "0")

    async def scenario() -> None:
        await machine.looks(2)
        applied = await machine.ask(IntentKind.APPLY, "bcache0", id="EBB-206")
        assert applied.ok, applied.outcome
        assert machine.knobs()[CUTOFF] == "4194304"
        await machine.ask(IntentKind.SET, "bcache0", knob=CUTOFF, value="1MiB")
        await asyncio.to_thread(machine.recorder.flush)
        undone = await machine.ask(IntentKind.UNDO, None, action_id=2)
        assert undone.ok, undone.outcome
        assert "it was 4 MiB before the write 2 of wish" in str(undone.outcome)
        assert machine.knobs()[CUTOFF] == "4194304"
        refused = await machine.ask(IntentKind.UNDO, None, action_id=1)
        assert not refused.ok, "0 is what it was, and no value for it"
        assert "0 is out of bounds" in str(refused.outcome)
        released = await machine.ask(IntentKind.RELEASE, "bcache0", knob=CUTOFF)
        assert released.ok
        await machine.looks(2)
        assert machine.knobs()[CUTOFF] == "0"

    machine.run(scenario)
