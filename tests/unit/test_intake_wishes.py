# SPDX-License-Identifier: GPL-2.0-only
"""Wishes that last: answered in a sentence, ended in time, kept over restarts, never half done."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ebbgate.intake import Intake
from ebbgate.model.decision import GateKind
from ebbgate.model.volume import Mode
from ebbgate.model.wish import WishKind
from ebbgate.store.intents import Intent, IntentKind, Intents
from ebbgate.units import MIB, NS_PER_S
from tests.loop_bench import LoopBench
from tests.unit.test_intake import Daemon, answer
from tests.unit.test_loop_knobs import busy

HOUR_NS = 3600 * NS_PER_S
MINUTE_NS = 60 * NS_PER_S


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
        self.daemon = Daemon(bcache0=bench.loop)
        self.start()

    def start(self) -> None:
        """As a daemon that was started just now sees it."""
        self.intake = Intake(self.folder, self.daemon)
        self.intake.keeper.wall_ns = lambda: self.clocks.wall_ns
        self.intake.keeper.now_ns = lambda: self.clocks.mono_ns
        self.intake.keeper.standing.clear()
        self.intake.keeper.__post_init__()
        for name in self.daemon.volumes:
            self.intake.keeper.adopt(name)

    def ask(self, kind: IntentKind, volume: str | None = "bcache0", **args: Any) -> Intent:
        number = self.intents.add_intent(kind, volume, args, "jo", 1)
        for _ in range(3):
            self.intake.poll()
            answered = self.intents.get(number)
            assert answered is not None
            if answered.ok is not None:
                return answered
            self.bench.settle()
            self.bench.tick()
        raise AssertionError("no answer")

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


@pytest.fixture
def asked(tmp_path: Path, make_loop: Callable[[Mode], LoopBench]) -> Asked:
    bench = make_loop(Mode.ADVISE)
    bench.tick()
    return Asked(tmp_path, bench)


@pytest.fixture
def enforced_asked(tmp_path: Path, enforced: LoopBench) -> Asked:
    return Asked(tmp_path, enforced)


# ---- set ----------------------------------------------------------------------------------------
def test_a_set_is_answered_once_the_knob_is_written(asked: Asked) -> None:
    assert asked.set(for_ns=10 * MINUTE_NS) == (
        True,
        "bcache0: writeback_percent = 20% for 10 min; no strategy gets it meanwhile",
    )
    assert asked.percent() == "20"


def test_a_timed_set_ends_by_itself(asked: Asked) -> None:
    asked.set(for_ns=10 * MINUTE_NS)
    asked.clocks.passes(10 * MINUTE_NS - 1)
    asked.poll()
    assert asked.percent() == "20"
    asked.clocks.passes(1)
    asked.poll()
    assert asked.percent() == "10"
    assert asked.ended() == ["its time is over"]


def test_without_a_time_it_lasts_until_it_is_released(asked: Asked) -> None:
    assert asked.set()[1] == (
        "bcache0: writeback_percent = 20% until it is released; no strategy gets it meanwhile"
    )
    asked.clocks.passes(1000 * HOUR_NS)
    asked.poll()
    assert asked.percent() == "20"
    released = asked.ask(IntentKind.RELEASE, knob="writeback_percent")
    assert answer(released) == (True, "bcache0: writeback_percent of jo is over")
    asked.bench.settle()
    asked.bench.tick()
    assert asked.percent() == "10"
    assert asked.ended() == ["jo released it"]


def test_a_newer_set_takes_the_place_of_the_older(asked: Asked) -> None:
    asked.set(for_ns=MINUTE_NS)
    asked.set("30", for_ns=HOUR_NS)
    asked.clocks.passes(2 * MINUTE_NS)
    asked.poll()
    assert asked.percent() == "30"
    assert asked.ended() == ["replaced by a newer wish of jo"]
    asked.clocks.passes(HOUR_NS)
    asked.poll()
    assert asked.percent() == "10"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"knob": "writeback_percent", "value": "90"}, "90 is out of bounds"),
        ({"knob": "io_disable", "value": "1"}, "ebbgate never writes io_disable"),
        ({"knob": "writeback_percent"}, "unknown intent: set"),
        ({"knob": 7, "value": "1"}, "unknown intent: set"),
        ({"knob": "writeback_percent", "value": "20", "for_ns": -1}, "unknown intent: set"),
        ({"knob": "writeback_percent", "value": "20", "for_ns": 1 << 60}, "longer than 30 days"),
        ({"knob": "writeback_percent", "value": "20", "for_ns": True}, "unknown intent: set"),
    ],
)
def test_a_row_that_makes_no_sense_is_answered_and_changes_nothing(
    asked: Asked, args: dict[str, Any], text: str
) -> None:
    ok, said = answer(asked.ask(IntentKind.SET, **args))
    assert ok is False
    assert said is not None and text in said
    asked.bench.tick()
    assert asked.bench.knobs() == asked.bench.before
    assert asked.intents.wishes() == ()


def test_a_set_names_one_volume(asked: Asked) -> None:
    intent = asked.ask(IntentKind.SET, None, knob="writeback_percent", value="20")
    assert answer(intent) == (False, "a knob is set on one volume\n  name it")


def test_a_kind_of_a_newer_ebbgate_is_answered(asked: Asked) -> None:
    with sqlite3.connect(asked.folder / "intents.db") as database:
        database.execute(
            "INSERT INTO intents (kind, volume, args, who, at_unix_ns) "
            "VALUES ('warm', 'bcache0', 'not json', 'jo', 1)"
        )
    asked.poll()
    answered = asked.intents.get(1)
    assert answered is not None
    assert answer(answered) == (False, "unknown intent: warm {}")


def test_what_the_kernel_refuses_is_the_answer_and_no_wish_is_left(asked: Asked) -> None:
    asked.bench.sysfs.before["writeback_percent"] = busy
    ok, text = asked.set()
    assert ok is False
    assert text is not None and "writeback_percent could not be written" in text
    assert asked.intents.wishes() == ()


def test_a_trigger_leaves_nothing_behind(asked: Asked) -> None:
    intent = asked.ask(IntentKind.SET, knob="trigger_gc", value="1")
    assert answer(intent) == (True, "bcache0: trigger_gc was written; it leaves no value behind")
    asked.bench.settle()
    assert asked.bench.sysfs.log == [("trigger_gc", "1")]
    assert asked.intents.wishes() == ()


def test_a_person_who_did_not_wait_gets_nothing_later(asked: Asked) -> None:
    args = {"knob": "writeback_percent", "value": "20"}
    number = asked.intents.add_intent(IntentKind.SET, "bcache0", args, "jo", 1)
    asked.intake.poll()
    asked.intents.resolve(number, "given up by the person who asked", ok=False)
    asked.intake.poll()
    asked.poll()
    assert asked.bench.knobs() == asked.bench.before
    assert asked.ended() == ["given up by the person who asked"]


def test_somebody_elses_write_ends_the_wish(asked: Asked) -> None:
    asked.set()
    asked.bench.someone_writes("writeback_percent", "30")
    asked.bench.tick()
    asked.poll()
    assert asked.ended() == ["somebody else has written writeback_percent since"]
    assert asked.percent() == "30"


@pytest.mark.parametrize("words", [{"kind": IntentKind.RESTORE}, {"kind": IntentKind.MODE}])
def test_a_restore_and_a_mode_that_touches_nothing_end_every_wish(
    asked: Asked, words: dict[str, Any]
) -> None:
    asked.set(for_ns=HOUR_NS)
    asked.ask(words["kind"], **({"mode": "advise"} if words["kind"] == IntentKind.MODE else {}))
    asked.bench.settle()
    asked.bench.tick()
    assert asked.percent() == "10"
    assert asked.intents.wishes() == ()


# ---- restarts and clocks ------------------------------------------------------------------------
def test_a_wish_outlives_the_daemon_and_ends_in_time(asked: Asked) -> None:
    asked.set(for_ns=10 * MINUTE_NS)
    asked.bench.loop.release("ebbgated stops")
    asked.bench.loop.wish(())
    asked.bench.settle()
    asked.clocks.passes(4 * MINUTE_NS)
    asked.start()
    asked.poll()
    assert asked.percent() == "20"
    asked.clocks.passes(6 * MINUTE_NS)
    asked.poll()
    assert asked.percent() == "10"


def test_a_wish_whose_time_ended_while_no_daemon_ran_is_not_taken_up(asked: Asked) -> None:
    asked.set(for_ns=10 * MINUTE_NS)
    asked.bench.loop.wish(())
    asked.bench.settle()
    asked.bench.tick()
    asked.clocks.passes(11 * MINUTE_NS)
    asked.start()
    asked.poll()
    assert asked.percent() == "10"
    assert asked.intents.wishes() == ()


def test_a_wish_for_a_volume_that_is_away_ends_in_time(asked: Asked) -> None:
    asked.set(for_ns=10 * MINUTE_NS)
    asked.daemon.volumes.clear()
    asked.clocks.passes(11 * MINUTE_NS)
    asked.intake.poll()
    assert asked.ended() == ["its time was over while the volume was away"]


@pytest.mark.parametrize("step_ns", [-HOUR_NS, -1000 * HOUR_NS])
def test_a_clock_that_is_set_back_does_not_prolong_a_wish(asked: Asked, step_ns: int) -> None:
    asked.set(for_ns=10 * MINUTE_NS)
    asked.clocks.wall_ns += step_ns
    asked.clocks.passes(10 * MINUTE_NS)
    asked.poll()
    assert asked.percent() == "10"


def test_a_clock_that_is_set_back_over_a_restart_prolongs_by_what_was_asked_at_most(
    asked: Asked,
) -> None:
    asked.set(for_ns=10 * MINUTE_NS)
    asked.clocks.wall_ns -= 1000 * HOUR_NS
    asked.start()
    asked.clocks.passes(10 * MINUTE_NS)
    asked.poll()
    assert asked.percent() == "10"


def test_a_clock_that_is_set_forward_ends_a_wish_early(asked: Asked) -> None:
    asked.set(for_ns=10 * MINUTE_NS)
    asked.clocks.wall_ns += HOUR_NS
    asked.poll()
    assert asked.percent() == "10"


def test_a_database_that_cannot_be_written_keeps_no_knob(asked: Asked) -> None:
    asked.set(for_ns=10 * MINUTE_NS)
    asked.intake._intents._connection.execute("PRAGMA query_only = ON")
    asked.clocks.passes(11 * MINUTE_NS)
    asked.poll()
    assert asked.percent() == "10"
    assert asked.ended() == []
    asked.intake._intents._connection.execute("PRAGMA query_only = OFF")
    asked.poll()
    assert asked.ended() == ["its time is over"]


def test_an_answer_that_cannot_be_written_is_written_later_and_nothing_done_twice(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    connection = asked.intake._intents._connection
    args = {"knob": "trigger_gc", "value": "1"}
    number = asked.intents.add_intent(IntentKind.SET, "bcache0", args, "jo", 1)
    connection.execute("PRAGMA query_only = ON")
    for _ in range(3):
        asked.poll()
    assert asked.bench.sysfs.log == [("trigger_gc", "1")]
    connection.execute("PRAGMA query_only = OFF")
    asked.poll()
    answered = asked.intents.get(number)
    assert answered is not None
    assert answered.ok
    assert asked.bench.sysfs.log == [("trigger_gc", "1")]
    said = [each for each in caplog.records if "cannot be read or answered" in each.message]
    assert len(said) == 1


# ---- hold ---------------------------------------------------------------------------------------
def test_a_hold_outlives_the_daemon(enforced_asked: Asked) -> None:
    asked = enforced_asked
    assert answer(asked.ask(IntentKind.HOLD, on=True)) == (True, "bcache0: held")
    asked.bench.loop.hold(False)
    asked.start()
    assert asked.held()
    assert answer(asked.ask(IntentKind.HOLD, on=False)) == (True, "bcache0: goes on")
    assert not asked.held()
    assert asked.intents.wishes() == ()


def test_a_timed_hold_ends_by_itself(enforced_asked: Asked) -> None:
    asked = enforced_asked
    assert asked.ask(IntentKind.HOLD, on=True, for_ns=MINUTE_NS).outcome == "bcache0: held for 60 s"
    asked.clocks.passes(MINUTE_NS)
    asked.poll()
    assert not asked.held()


@pytest.mark.parametrize("kind", [IntentKind.RELEASE, IntentKind.MODE])
def test_a_hold_ends_with_a_release_and_with_a_mode(
    enforced_asked: Asked, kind: IntentKind
) -> None:
    asked = enforced_asked
    asked.ask(IntentKind.HOLD, on=True)
    asked.ask(kind, **({"mode": "enforce"} if kind is IntentKind.MODE else {}))
    assert not asked.held()
    assert asked.intents.wishes() == ()


# ---- release ------------------------------------------------------------------------------------
def test_a_release_gives_a_manual_knob_back(enforced_asked: Asked) -> None:
    asked = enforced_asked
    asked.bench.someone_writes("writeback_percent", "30")
    asked.bench.tick()
    assert asked.bench.gate() is GateKind.RELEASED
    released = asked.ask(IntentKind.RELEASE)
    assert answer(released) == (True, "bcache0: writeback_percent is ebbgate's again")
    asked.bench.settle()
    asked.bench.tick()
    assert asked.bench.gate() is GateKind.CLOSED


def test_a_release_of_nothing_says_so(asked: Asked) -> None:
    assert answer(asked.ask(IntentKind.RELEASE)) == (True, "bcache0: nothing to release")
    ok, text = answer(asked.ask(IntentKind.RELEASE, knob="writeback_precent"))
    assert (ok, "did you mean writeback_percent?" in str(text)) == (False, True)


# ---- drain --------------------------------------------------------------------------------------
def test_a_drain_says_what_it_takes(enforced_asked: Asked) -> None:
    asked = enforced_asked
    for _ in range(5):
        asked.bench.tick()
    ok, text = answer(asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, text) == (
        True,
        "bcache0: drains within 100 s; 420 MiB dirty, needs 6 MiB/s; no pace yet",
    )
    (wish,) = asked.intents.wishes()
    assert (wish.kind, wish.for_ns) == (WishKind.DRAIN, 100 * NS_PER_S)


def test_a_drain_whose_time_is_over_says_what_is_left(enforced_asked: Asked) -> None:
    asked = enforced_asked
    asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S)
    asked.bench.tick(dirty_bytes=7 * MIB)
    asked.clocks.passes(100 * NS_PER_S)
    asked.poll()
    assert asked.ended() == ["its time is over with 7 MiB dirty"]


def test_a_drain_that_is_done_says_so(enforced_asked: Asked) -> None:
    asked = enforced_asked
    asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S)
    asked.bench.tick(dirty_bytes=0)
    asked.intake.poll()
    (outcome,) = asked.ended()
    assert outcome.startswith("clean, ")


def test_a_drain_needs_enforce(asked: Asked) -> None:
    ok, text = answer(asked.ask(IntentKind.DRAIN, for_ns=100 * NS_PER_S))
    assert (ok, "first: ebbgate enforce bcache0" in str(text)) == (False, True)


def test_a_clean_volume_is_not_drained(enforced_asked: Asked) -> None:
    asked = enforced_asked
    asked.bench.tick(dirty_bytes=0)
    assert answer(asked.ask(IntentKind.DRAIN, for_ns=NS_PER_S)) == (
        False,
        "bcache0: it is clean\n  see ebbgate status",
    )
