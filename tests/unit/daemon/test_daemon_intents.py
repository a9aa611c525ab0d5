# SPDX-License-Identifier: GPL-2.0-only
"""A whole daemon carries out what the web adds: policies, advice, undo."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.daemon.daemon import Daemon
from ebbgate.daemon.intent_dispatcher import ENDED, IntentOutcome
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Mode
from ebbgate.store.intent_rows import IntentRow
from ebbgate.store.queries import History
from ebbgate.store.queries_intents import IntentHistory
from tests.unit.daemon.test_volume_set import VolumeSetHarness
from tests.volume_loop_fixture import DEADLINE_S

CUTOFF = "sequential_cutoff"


class DaemonIntentHarness(VolumeSetHarness):
    """The same with a folder of policies, and a person at the control socket's other end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, Mode.ADVISE)
        config = replace(self.daemon.config, policy_dir=folder / "policies.d")
        self.daemon = Daemon(config, self.sysfs, self.recorder, self.journal, "this boot")

    async def ask(self, kind: IntentKind, volume: str | None, **args: Any) -> IntentOutcome:
        _, awaited = self.daemon.intents.submit(kind, volume, args, "jo")
        outcome = asyncio.ensure_future(awaited)
        deadline = time.monotonic() + DEADLINE_S
        while not outcome.done():
            assert time.monotonic() < deadline, "no answer"
            await self.looks(1)
        return outcome.result()


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[DaemonIntentHarness]:
    made = DaemonIntentHarness(tmp_path)
    yield made
    made.stop()


async def test_a_policy_that_is_saved_runs(harness: DaemonIntentHarness) -> None:
    text = "version: 1\nname: mine\nwhy: A test.\nstrategies: []\n"
    await harness.looks(1)
    answered = await harness.ask(IntentKind.POLICY_SAVE, None, name="mine", text=text)
    assert answered.ok, answered.text
    assert "used by: bcache0" in str(answered.text)
    assert harness.daemon.volumes["bcache0"].policy.name == "mine"
    removed = await harness.ask(IntentKind.POLICY_REMOVE, None, name="mine")
    assert "bcache0 now uses adaptive" in str(removed.text)
    assert harness.daemon.volumes["bcache0"].policy.name == "adaptive"


async def test_a_mode_is_in_the_history_when_it_is_answered(harness: DaemonIntentHarness) -> None:
    await harness.looks(2)
    answered = await harness.ask(IntentKind.MODE, "bcache0", mode="observe")
    assert answered.ok, answered.text
    with closing(History.open(harness.folder / "state/history.db")) as history:
        assert history.statuses().volumes["bcache0"].status.mode is Mode.OBSERVE
    with closing(IntentHistory.open(harness.folder / "state/history.db")) as intents:
        (row,) = intents.newest(9)
    assert (row.who, row.ok, row.outcome) == ("jo", True, "bcache0: mode observe")


async def test_a_restore_is_answered_when_the_knobs_are_back(harness: DaemonIntentHarness) -> None:
    before = harness.knobs()
    await harness.looks(2)
    assert (await harness.ask(IntentKind.MODE, "bcache0", mode="enforce")).ok
    await harness.looks(2)
    await harness.ask(IntentKind.SET, "bcache0", knob=CUTOFF, value="1MiB")
    assert harness.knobs() != before
    restored = await harness.ask(IntentKind.RESTORE, None)
    assert (restored.ok, harness.knobs()) == (True, before), restored.text
    assert harness.daemon.overrides.active == {}


async def test_the_requests_of_a_daemon_that_was_killed_are_closed_and_counted_on(
    harness: DaemonIntentHarness,
) -> None:
    harness.recorder.intent(IntentRow(41, "hold", None, {}, "jo", 7))
    harness.recorder.flush()
    Daemon(harness.daemon.config, harness.sysfs, harness.recorder, harness.journal, "this boot")
    harness.recorder.flush()
    with closing(IntentHistory.open(harness.folder / "state/history.db")) as intents:
        (row,) = intents.newest(9)
        assert (row.ok, row.outcome) == (False, ENDED)
    daemon = Daemon(
        harness.daemon.config, harness.sysfs, harness.recorder, harness.journal, "this boot"
    )
    number, outcome = daemon.intents.submit(IntentKind.HOLD, None, {}, "jo")
    assert (number, (await outcome).ok) == (42, True)


async def test_an_advice_is_applied_undone_and_released(harness: DaemonIntentHarness) -> None:
    harness.fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "0")
    await harness.looks(2)
    applied = await harness.ask(IntentKind.APPLY, "bcache0", id="EBB-206")
    assert applied.ok, applied.text
    assert harness.knobs()[CUTOFF] == "4194304"
    await harness.ask(IntentKind.SET, "bcache0", knob=CUTOFF, value="1MiB")
    await asyncio.to_thread(harness.recorder.flush)
    undone = await harness.ask(IntentKind.UNDO, None, action_id=2)
    assert undone.ok, undone.text
    assert "it was 4 MiB before the write 2 of override" in str(undone.text)
    assert harness.knobs()[CUTOFF] == "4194304"
    refused = await harness.ask(IntentKind.UNDO, None, action_id=1)
    assert not refused.ok, "0 is what it was, and no value for it"
    assert "0 is out of bounds" in str(refused.text)
    released = await harness.ask(IntentKind.RELEASE, "bcache0", knob=CUTOFF)
    assert released.ok
    await harness.looks(2)
    assert harness.knobs()[CUTOFF] == "0"
