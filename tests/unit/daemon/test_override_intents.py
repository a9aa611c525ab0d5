# SPDX-License-Identifier: GPL-2.0-only
"""A knob that is set is answered in a sentence, ends in time, and is never half done."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ebbgate.model.override import IntentKind
from ebbgate.units import NS_PER_S
from tests.fake_sysfs import failing
from tests.intent_fixture import HOUR_NS, MINUTE_NS, Answered, IntentHarness, answer


# ---- set ----------------------------------------------------------------------------------------
def test_a_set_is_answered_once_the_knob_is_written(intents: IntentHarness) -> None:
    assert intents.set(for_ns=10 * MINUTE_NS) == (
        True,
        "bcache0: writeback_percent = 20% for 10 min; strategies do not change it",
    )
    assert intents.percent() == "20"


def test_a_timed_set_ends_by_itself(intents: IntentHarness) -> None:
    intents.set(for_ns=10 * MINUTE_NS)
    intents.clocks.passes(10 * MINUTE_NS - 1)
    intents.poll()
    assert intents.percent() == "20"
    intents.clocks.passes(1)
    intents.poll()
    assert intents.percent() == "10"
    assert intents.ended() == ["its time is over"]


def test_without_a_time_it_lasts_until_it_is_released(intents: IntentHarness) -> None:
    assert intents.set()[1] == (
        "bcache0: writeback_percent = 20% until it is released; strategies do not change it"
    )
    intents.clocks.passes(1000 * HOUR_NS)
    intents.poll()
    assert intents.percent() == "20"
    released = intents.ask(IntentKind.RELEASE, knob="writeback_percent")
    assert answer(released) == (True, "bcache0: jo's writeback_percent setting removed")
    intents.volume.settle()
    intents.tick()
    assert intents.percent() == "10"
    assert intents.ended() == ["jo released it"]


async def test_a_set_that_expires_before_its_write_is_reported(
    intents: IntentHarness,
) -> None:
    args = {"knob": "writeback_percent", "value": "20", "for_ns": NS_PER_S}
    _, outcome = intents.dispatcher.submit(IntentKind.SET, "bcache0", args, "jo")
    while not intents.registry.active:
        await asyncio.sleep(0.001)
    intents.clocks.passes(NS_PER_S)
    intents.registry.poll()
    found = await outcome
    assert (found.ok, found.text) == (
        False,
        "bcache0: writeback_percent could not be written: the override ended first:"
        " its time is over",
    )
    assert intents.percent() == "10"


def test_a_newer_set_takes_the_place_of_the_older(intents: IntentHarness) -> None:
    intents.set(for_ns=MINUTE_NS)
    intents.set("30", for_ns=HOUR_NS)
    intents.clocks.passes(2 * MINUTE_NS)
    intents.poll()
    assert intents.percent() == "30"
    assert intents.ended() == ["replaced by a newer request of jo"]
    intents.clocks.passes(HOUR_NS)
    intents.poll()
    assert intents.percent() == "10"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"knob": "writeback_percent", "value": "90"}, "90 is out of bounds"),
        ({"knob": "io_disable", "value": "1"}, "ebbgate never writes io_disable"),
        ({"knob": "writeback_percent"}, "set needs value"),
        ({"knob": 7, "value": "1"}, "set: knob: must be a text"),
        ({"knob": "writeback_percent", "value": "20", "for_ns": -1}, "must be a time"),
        ({"knob": "writeback_percent", "value": "20", "for_ns": 1 << 60}, "longer than 30 days"),
        ({"knob": "writeback_percent", "value": "20", "for_ns": True}, "must be a time"),
    ],
)
def test_an_invalid_request_is_answered_and_changes_nothing(
    intents: IntentHarness, args: dict[str, Any], text: str
) -> None:
    ok, said = answer(intents.ask(IntentKind.SET, **args))
    assert ok is False
    assert text in said
    intents.tick()
    assert intents.volume.knobs() == intents.volume.before
    assert intents.kept() == ()


def test_a_set_names_one_volume(intents: IntentHarness) -> None:
    intent = intents.ask(IntentKind.SET, None, knob="writeback_percent", value="20")
    assert answer(intent) == (False, "set needs a volume\n  name one")


def test_an_unknown_kind_is_refused(intents: IntentHarness) -> None:
    ok, text = answer(intents.ask("heat"))
    assert (ok, text.startswith("unknown request: heat\n  known: mode")) == (False, True)


def test_what_the_kernel_refuses_is_the_answer_and_no_override_is_left(
    intents: IntentHarness,
) -> None:
    intents.volume.sysfs.before["writeback_percent"] = failing(errno.EBUSY)
    ok, text = intents.set()
    assert ok is False
    assert "writeback_percent could not be written" in text
    assert intents.kept() == ()


def test_a_trigger_leaves_nothing_behind(intents: IntentHarness) -> None:
    intent = intents.ask(IntentKind.SET, knob="trigger_gc", value="1")
    assert answer(intent) == (True, "bcache0: trigger_gc was written; it leaves no value behind")
    intents.volume.settle()
    assert intents.volume.sysfs.log == [("trigger_gc", "1")]
    assert intents.kept() == ()


def test_what_is_not_written_in_time_leaves_nothing_behind(intents: IntentHarness) -> None:
    intents.dispatcher.deadline_s = 0.05

    async def ask() -> Answered:
        args = {"knob": "writeback_percent", "value": "20"}
        _, outcome = intents.dispatcher.submit(IntentKind.SET, "bcache0", args, "jo")
        found = await outcome
        return Answered(found.ok, found.text)

    ok, said = answer(intents.run(ask()))
    assert (ok, "not finished within 0.05 s" in said) == (False, True)
    intents.poll()
    assert intents.volume.knobs() == intents.volume.before
    assert intents.ended() == ["it timed out"]


def test_somebody_elses_write_ends_the_override(intents: IntentHarness) -> None:
    intents.set()
    intents.volume.someone_writes("writeback_percent", "30")
    intents.tick()
    intents.poll()
    assert intents.ended() == ["somebody else has written writeback_percent since"]
    assert intents.percent() == "30"


@pytest.mark.parametrize("words", [{"kind": IntentKind.RESTORE}, {"kind": IntentKind.MODE}])
def test_a_restore_and_a_mode_that_touches_nothing_end_every_override(
    intents: IntentHarness, words: dict[str, Any]
) -> None:
    intents.set(for_ns=HOUR_NS)
    intents.ask(words["kind"], **({"mode": "advise"} if words["kind"] == IntentKind.MODE else {}))
    intents.volume.settle()
    intents.tick()
    assert intents.percent() == "10"
    assert intents.kept() == ()


# ---- restarts and clocks ------------------------------------------------------------------------
def test_an_override_outlives_the_daemon_and_ends_in_time(intents: IntentHarness) -> None:
    intents.set(for_ns=10 * MINUTE_NS)
    intents.volume.loop.release("ebbgated stops")
    intents.volume.loop.set_overrides(())
    intents.volume.settle()
    intents.clocks.passes(4 * MINUTE_NS)
    intents.start()
    intents.poll()
    assert intents.percent() == "20"
    intents.clocks.passes(6 * MINUTE_NS)
    intents.poll()
    assert intents.percent() == "10"


def test_an_override_whose_time_ended_while_no_daemon_ran_is_not_taken_up(
    intents: IntentHarness,
) -> None:
    intents.set(for_ns=10 * MINUTE_NS)
    intents.volume.loop.set_overrides(())
    intents.volume.settle()
    intents.tick()
    intents.clocks.passes(11 * MINUTE_NS)
    intents.start()
    intents.poll()
    assert intents.percent() == "10"
    assert intents.kept() == ()


def test_an_override_for_a_volume_that_is_away_ends_in_time(intents: IntentHarness) -> None:
    intents.set(for_ns=10 * MINUTE_NS)
    intents.daemon.volumes.clear()
    intents.clocks.passes(11 * MINUTE_NS)
    intents.look()
    assert intents.ended() == ["it expired while the volume was absent"]


@pytest.mark.parametrize("step_ns", [-HOUR_NS, -1000 * HOUR_NS])
def test_a_clock_that_is_set_back_does_not_prolong_an_override(
    intents: IntentHarness, step_ns: int
) -> None:
    intents.set(for_ns=10 * MINUTE_NS)
    intents.clocks.wall_ns += step_ns
    intents.clocks.passes(10 * MINUTE_NS)
    intents.poll()
    assert intents.percent() == "10"


def test_a_clock_that_is_set_back_over_a_restart_prolongs_by_what_was_asked_at_most(
    intents: IntentHarness,
) -> None:
    intents.set(for_ns=10 * MINUTE_NS)
    intents.clocks.wall_ns -= 1000 * HOUR_NS
    intents.start()
    intents.clocks.passes(10 * MINUTE_NS)
    intents.poll()
    assert intents.percent() == "10"


def test_a_clock_that_is_set_forward_ends_an_override_early(intents: IntentHarness) -> None:
    intents.set(for_ns=10 * MINUTE_NS)
    intents.clocks.wall_ns += HOUR_NS
    intents.poll()
    assert intents.percent() == "10"


def test_a_database_that_cannot_be_written_keeps_no_knob(intents: IntentHarness) -> None:
    intents.set(for_ns=10 * MINUTE_NS)
    with locked(intents.path):
        intents.clocks.passes(11 * MINUTE_NS)
        intents.poll()
        assert intents.percent() == "10"
    assert intents.ended() == ["its time is over"]


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        (IntentKind.SET, {"knob": "writeback_percent", "value": "20"}),
        (IntentKind.HOLD, {"on": True}),
        (IntentKind.MODE, {"mode": "enforce"}),
    ],
)
def test_an_override_stored_too_late_by_a_hung_disk_is_ended(
    intents: IntentHarness, kind: IntentKind, args: dict[str, str]
) -> None:
    intents.dispatcher.deadline_s = 0.2
    with locked(intents.path):
        found = intents.ask(kind, **args)
        assert (found.ok, "not finished within 0.2 s" in found.outcome) == (False, True)
        assert intents.percent() == "10"
    # What was kept too late, and then what takes it back.
    intents.flush()
    intents.flush()
    intents.start()
    intents.poll()
    assert (intents.registry.active, intents.registry.modes) == ({}, {})
    assert intents.percent() == "10"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """The database is being written by somebody else for ever."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_a_release_of_nothing_is_reported(intents: IntentHarness) -> None:
    assert answer(intents.ask(IntentKind.RELEASE)) == (True, "bcache0: nothing to release")
    ok, text = answer(intents.ask(IntentKind.RELEASE, knob="writeback_precent"))
    assert (ok, "did you mean writeback_percent?" in str(text)) == (False, True)


def test_a_drain_needs_enforce(intents: IntentHarness) -> None:
    ok, text = answer(intents.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, "first: ebbgate enforce bcache0" in str(text)) == (False, True)


def test_an_override_outlives_a_long_absence_of_the_daemon(intents: IntentHarness) -> None:
    intents.set(for_ns=HOUR_NS)
    intents.clocks.passes(HOUR_NS // 2)
    intents.start()
    intents.poll()
    assert intents.percent() == "20"
