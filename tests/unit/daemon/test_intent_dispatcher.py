# SPDX-License-Identifier: GPL-2.0-only
"""What people ask for is carried out or answered with the reason why not."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future
from typing import Any

import pytest

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.intent_dispatcher import ENDED, IntentOutcome
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Mode
from tests.intent_fixture import Daemon, IntentHarness, answer


@pytest.fixture
def daemon(intents: IntentHarness) -> Daemon:
    return intents.daemon


def held(daemon: Daemon) -> bool:
    return daemon.volumes["bcache0"].frozen


@pytest.mark.parametrize("mode", list(Mode))
def test_a_mode_is_set_and_survives_the_daemon(
    intents: IntentHarness, daemon: Daemon, mode: Mode
) -> None:
    assert intents.registry.modes.get("bcache0") is None
    intent = intents.ask(IntentKind.MODE, mode=str(mode))
    assert answer(intent) == (True, f"bcache0: mode {mode}")
    assert daemon.volumes["bcache0"].mode is mode
    intents.start()
    assert intents.registry.modes == {"bcache0": mode}


@pytest.mark.parametrize("args", [{}, {"mode": "turbo"}, {"mode": None}, {"mode": ["enforce"]}])
def test_an_unknown_mode_changes_nothing(
    intents: IntentHarness, daemon: Daemon, args: dict[str, Any]
) -> None:
    ok, text = answer(intents.ask(IntentKind.MODE, **args))
    assert ok is False
    assert "unknown mode" in text or "mode needs mode" in text
    assert daemon.volumes["bcache0"].mode is Mode.ADVISE


def test_a_hold_and_its_end(intents: IntentHarness, daemon: Daemon) -> None:
    assert answer(intents.ask(IntentKind.HOLD, on=True)) == (True, "bcache0: held")
    assert held(daemon)
    assert answer(intents.ask(IntentKind.HOLD, on=False)) == (True, "bcache0: hold ended")
    assert not held(daemon)
    assert answer(intents.ask(IntentKind.HOLD, on=False)) == (True, "bcache0: was not held")


def test_a_restore_goes_back_to_advise(intents: IntentHarness, daemon: Daemon) -> None:
    intents.ask(IntentKind.MODE, mode="enforce")
    assert answer(intents.ask(IntentKind.RESTORE)) == (True, "bcache0: every knob is back")
    assert daemon.restored == ["bcache0"]
    assert intents.registry.modes.get("bcache0") is Mode.ADVISE


def test_without_a_name_all_volumes_are_meant(intents: IntentHarness, daemon: Daemon) -> None:
    daemon.volumes["bcache1"] = daemon.volumes["bcache0"]
    intent = intents.ask(IntentKind.HOLD, None, on=True)
    assert answer(intent) == (True, "bcache0: held; bcache0: held"), "the same one twice"


def test_without_a_volume_there_is_nothing_to_do(intents: IntentHarness, daemon: Daemon) -> None:
    daemon.volumes.clear()
    assert answer(intents.ask(IntentKind.HOLD, None)) == (True, "no volumes here")


def test_an_unknown_volume_is_named(intents: IntentHarness) -> None:
    intent = intents.ask(IntentKind.HOLD, "bcache9")
    assert answer(intent) == (False, "no such volume: bcache9\n  see ebbgate status")


def test_an_accepted_request_and_its_outcome_are_recorded(intents: IntentHarness) -> None:
    intents.ask(IntentKind.MODE, mode="observe")
    intents.ask(IntentKind.MODE, mode="turbo")
    (row,) = intents.log.rows
    assert (row.id, row.kind, row.volume, row.who) == (1, "mode", "bcache0", "jo")
    assert intents.log.done == [(1, True, "bcache0: mode observe")]


def test_done_is_answered_once_the_new_state_is_sent(
    intents: IntentHarness, daemon: Daemon
) -> None:
    written = intents.log.written

    def check() -> Any:
        assert daemon.published == [["bcache0"]], "the state was not sent before the flush"
        assert intents.log.done, "the outcome is not part of the flush"
        return written()

    intents.log.written = check  # type: ignore[method-assign]
    assert intents.ask(IntentKind.MODE, mode="observe").ok


def test_a_failing_history_is_reported_and_delays_no_answer(intents: IntentHarness) -> None:
    intents.log.trouble = OSError("the disk is full")
    ok, text = answer(intents.ask(IntentKind.MODE, mode="observe"))
    assert ok
    assert text.endswith("it is not in the history yet: ebbgate status may be old")


def test_an_internal_error_of_a_request_is_answered_and_logged_once(
    intents: IntentHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(VolumeLoop, "set_mode", broken)
    ok, text = answer(intents.ask(IntentKind.MODE, mode="observe"))
    assert (ok, "internal error: ZeroDivisionError" in text) == (False, True)
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1
    monkeypatch.undo()
    assert intents.ask(IntentKind.MODE, mode="observe").ok


def test_a_bug_in_one_override_sets_it_aside_and_the_others_apply(
    intents: IntentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert intents.set()[0]
    set_overrides = VolumeLoop.set_overrides

    def picky(loop: VolumeLoop, overrides: Any) -> None:
        if any(each.override.knob == "sequential_cutoff" for each in overrides):
            raise ZeroDivisionError("a bug")
        set_overrides(loop, overrides)

    monkeypatch.setattr(VolumeLoop, "set_overrides", picky)
    intents.dispatcher.deadline_s = 0.2
    intents.ask(IntentKind.SET, knob="sequential_cutoff", value="1MiB")
    assert [each.knob for each in intents.kept()] == ["writeback_percent"]
    intents.start()
    intents.poll()
    assert intents.percent() == "20"


def test_the_end_of_the_daemon_ends_running_requests(intents: IntentHarness) -> None:
    async def scenario() -> None:
        args = {"knob": "writeback_percent", "value": "20"}
        _, outcome = intents.dispatcher.submit(IntentKind.SET, "bcache0", args, "jo")
        await asyncio.sleep(0.05)
        await intents.dispatcher.stop()
        assert (await outcome).text == ENDED

    intents.run(scenario())
    assert intents.log.done == [(1, False, ENDED)]
    assert intents.kept() == ()


@pytest.mark.parametrize("waits", ["for the status", "for the history"])
def test_the_end_of_the_daemon_answers_what_was_done(
    intents: IntentHarness, daemon: Daemon, waits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs(*_: object) -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        _, outcome = intents.dispatcher.submit(IntentKind.HOLD, "bcache0", {"on": False}, "jo")
        await asyncio.sleep(0.1)
        await intents.dispatcher.stop()
        assert await outcome == IntentOutcome(True, "bcache0: was not held")

    if waits == "for the status":
        monkeypatch.setattr(daemon, "publish", hangs)
    else:
        monkeypatch.setattr(intents.log, "written", Future)
    intents.run(scenario())
    assert intents.log.done == [(1, True, "bcache0: was not held")]


async def test_a_volume_that_vanishes_meanwhile_is_reported(
    intents: IntentHarness, daemon: Daemon
) -> None:
    args = {"knob": "writeback_percent", "value": "20"}
    _, outcome = intents.dispatcher.submit(IntentKind.SET, "bcache0", args, "jo")
    await asyncio.sleep(0.05)
    daemon.volumes.pop("bcache0").overrides.abandon("the volume is gone")
    found = await outcome
    assert (found.ok, "the volume is gone" in found.text) == (False, True)


@pytest.mark.parametrize("name", ["a\x1b[31mb", "b\u202ecache0", "b\nerror: x"])
def test_no_control_character_of_a_client_reaches_log_or_answer(
    intents: IntentHarness, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told = [
        intents.ask(IntentKind.HOLD, name).outcome,
        intents.ask(name).outcome,
        intents.ask(IntentKind.SET, knob=name, value="1").outcome,
        intents.ask(IntentKind.SET, knob="writeback_percent", value=name).outcome,
        intents.ask(IntentKind.MODE, mode=name).outcome,
        intents.ask(IntentKind.APPLY, id=name).outcome,
        intents.ask(IntentKind.MODE, **{name: "x"}).outcome,
    ]
    for text in (*told, *(record.getMessage() for record in caplog.records)):
        assert "\x1b" not in text and "\u202e" not in text
        assert "\nerror: x" not in text


@pytest.mark.parametrize("args", [{}, {"within_ns": "soon"}, {"within_ns": -1}])
def test_a_clean_without_a_time_is_answered_and_not_tried_for_ever(
    intents: IntentHarness, args: dict[str, Any]
) -> None:
    ok, text = answer(intents.ask(IntentKind.CLEAN, **args))
    assert (ok, str(text).startswith("clean")) == (False, True)


def test_a_clean_that_cannot_be_is_answered_with_its_reason(intents: IntentHarness) -> None:
    ok, text = answer(intents.ask(IntentKind.CLEAN, within_ns=10**10))
    assert ok is False
    assert text == "bcache0: bcache writes back by itself, also under load\n  see ebbgate status"
