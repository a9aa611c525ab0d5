# SPDX-License-Identifier: GPL-2.0-only
"""What people ask for is carried out or answered with the reason why not."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ebbgate.intake import Intake
from ebbgate.model.volume import Mode
from ebbgate.model.wish import IntentKind
from ebbgate.store.intents import Intent, Intents
from tests.asked_bench import Daemon, answer
from tests.loop_bench import LoopBench


class Person:
    """Asks through the database, as the command line does, and reads the answer."""

    def __init__(self, folder: Path, daemon: Daemon) -> None:
        self.intents = Intents.open(folder / "intents.db")
        self.intake = Intake(folder, daemon)

    def ask(self, kind: IntentKind, volume: str | None = "bcache0", **args: Any) -> Intent:
        number = self.intents.add_intent(kind, volume, args, "a person", time.time_ns())
        self.intake.poll()
        answered = self.intents.get(number)
        assert answered is not None
        return answered


@pytest.fixture
def daemon(tmp_path: Path, make_loop: Callable[[Mode], LoopBench]) -> Daemon:
    return Daemon(tmp_path, bcache0=make_loop(Mode.ADVISE).loop)


@pytest.fixture
def person(tmp_path: Path, daemon: Daemon) -> Person:
    return Person(tmp_path, daemon)


def held(daemon: Daemon) -> bool:
    return daemon.volumes["bcache0"].held


@pytest.mark.parametrize("mode", list(Mode))
def test_a_mode_is_set_and_survives_the_daemon(
    person: Person, daemon: Daemon, mode: Mode, tmp_path: Path
) -> None:
    assert person.intake.mode_of("bcache0") is None
    intent = person.ask(IntentKind.MODE, mode=str(mode))
    assert answer(intent) == (True, f"bcache0: mode {mode}")
    assert daemon.volumes["bcache0"].mode is mode
    assert Person(tmp_path, daemon).intake.mode_of("bcache0") is mode


@pytest.mark.parametrize("args", [{}, {"mode": "turbo"}, {"mode": None}, {"mode": ["enforce"]}])
def test_an_unknown_mode_changes_nothing(
    person: Person, daemon: Daemon, args: dict[str, Any]
) -> None:
    ok, text = answer(person.ask(IntentKind.MODE, **args))
    assert ok is False
    assert text is not None and ("is no mode" in text or "mode needs mode" in text)
    assert daemon.volumes["bcache0"].mode is Mode.ADVISE


def test_a_hold_and_its_end(person: Person, daemon: Daemon) -> None:
    assert answer(person.ask(IntentKind.HOLD, on=True)) == (True, "bcache0: held")
    assert held(daemon)
    assert answer(person.ask(IntentKind.HOLD, on=False)) == (True, "bcache0: goes on")
    assert not held(daemon)


def test_a_restore_goes_back_to_advise(person: Person, daemon: Daemon) -> None:
    person.ask(IntentKind.MODE, mode="enforce")
    assert answer(person.ask(IntentKind.RESTORE)) == (True, "bcache0: every knob is back")
    assert daemon.restored == ["bcache0"]
    assert person.intake.mode_of("bcache0") is Mode.ADVISE


def test_without_a_name_all_volumes_are_meant(person: Person, daemon: Daemon) -> None:
    daemon.volumes["bcache1"] = daemon.volumes["bcache0"]
    intent = person.ask(IntentKind.HOLD, None, on=True)
    assert answer(intent) == (True, "bcache0: held; bcache0: held"), "the same one twice"


def test_without_a_volume_there_is_nothing_to_do(person: Person, daemon: Daemon) -> None:
    daemon.volumes.clear()
    assert answer(person.ask(IntentKind.HOLD, None)) == (True, "no volume here")


def test_an_unknown_volume_is_named(person: Person) -> None:
    intent = person.ask(IntentKind.HOLD, "bcache9")
    assert answer(intent) == (False, "no such volume: bcache9")


def test_intents_are_carried_out_once_and_in_order(person: Person, daemon: Daemon) -> None:
    for on in (True, False):
        person.intents.add_intent(
            IntentKind.HOLD, "bcache0", {"on": on}, "a person", time.time_ns()
        )
    person.intake.poll()
    assert not held(daemon)
    daemon.volumes["bcache0"].hold(True)
    person.intake.poll()
    assert held(daemon), "the end of the hold was carried out twice"
    assert person.intents.pending() == ()


@pytest.mark.parametrize("args", [{}, {"within_ns": "soon"}, {"within_ns": -1}])
def test_a_clean_without_a_time_is_answered_and_not_tried_for_ever(
    person: Person, args: dict[str, Any]
) -> None:
    ok, text = answer(person.ask(IntentKind.CLEAN, **args))
    assert (ok, str(text).startswith("clean")) == (False, True)


def test_a_clean_that_cannot_be_is_answered_with_its_reason(person: Person) -> None:
    ok, text = answer(person.ask(IntentKind.CLEAN, within_ns=10**10))
    assert ok is False
    assert text == "bcache0: bcache drains by itself, under load too\n  see ebbgate status"
