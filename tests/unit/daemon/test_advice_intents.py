# SPDX-License-Identifier: GPL-2.0-only
"""Advice is applied whole or not at all, and only while it holds; a knob write can be undone."""

from __future__ import annotations

import errno
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.knobs.catalog import CONGESTED, CUTOFF
from ebbgate.model.decision import Action, Outcome, OutcomeKind
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Mode
from ebbgate.policy.limits import Bounds, Limits
from ebbgate.policy.overrides import OVERRIDE
from ebbgate.store.db import Store
from ebbgate.units import MIB
from tests.fake_sysfs import failing
from tests.intent_fixture import Answered, IntentHarness, answer

READ, WRITE = CONGESTED
CUTOFF_FILE = "/sys/block/bcache0/bcache/sequential_cutoff"


def apply(intents: IntentHarness, number: str) -> Answered:
    return intents.ask(IntentKind.APPLY, id=number)


def values(intents: IntentHarness, *knobs: str) -> list[str]:
    return [intents.volume.knob(knob) for knob in knobs]


# ---- apply --------------------------------------------------------------------------------------
def test_an_advice_sets_all_its_knobs_and_names_the_undo(intents: IntentHarness) -> None:
    ok, text = answer(apply(intents, "EBB-205"))
    assert ok is True
    assert str(text).splitlines() == [
        f"bcache0: {READ} = 0 s until it is released; strategies do not change it",
        f"bcache0: {WRITE} = 0 s until it is released; strategies do not change it",
        f"undo: ebbgate release bcache0 {READ}",
        f"undo: ebbgate release bcache0 {WRITE}",
    ]
    assert values(intents, READ, WRITE) == ["0", "0"]
    assert [each.who for each in intents.kept()] == ["jo", "jo"]
    for knob in (READ, WRITE):
        intents.ask(IntentKind.RELEASE, knob=knob)
        intents.poll()
    assert values(intents, READ, WRITE) == ["2000", "20000"]


def test_an_advice_that_does_not_apply_is_refused(intents: IntentHarness) -> None:
    ok, text = answer(apply(intents, "EBB-206"))
    assert ok is False
    assert "EBB-206 does not apply to bcache0" in str(text)
    assert "these apply now: EBB-205" in str(text)
    assert intents.kept() == ()


def test_what_an_override_has_set_already_is_not_advised_again(intents: IntentHarness) -> None:
    intents.volume.fake.write(CUTOFF_FILE, "0")
    intents.tick()
    assert apply(intents, "EBB-206").ok is True
    assert values(intents, CUTOFF) == [str(4 * MIB)]
    assert apply(intents, "EBB-206").ok is False


def test_an_advice_for_the_administrator_is_refused_with_its_command(
    intents: IntentHarness,
) -> None:
    intents.volume.fake.write("/sys/block/vda/queue/scheduler", "mq-deadline [none]")
    ok, text = answer(apply(intents, "EBB-101"))
    assert (ok, text) == (
        False,
        "ebbgate cannot apply EBB-101\n"
        "  by hand: echo mq-deadline | sudo tee /sys/block/vda/queue/scheduler",
    )
    assert "[none]" in intents.volume.fake.read("/sys/block/vda/queue/scheduler")


def test_in_enforce_a_knob_of_the_gate_is_ebbgates_own(enforced_intents: IntentHarness) -> None:
    intents = enforced_intents
    intents.volume.loop.set_mode(Mode.ADVISE, "a test")
    intents.volume.settle()
    intents.volume.fake.write("/sys/block/bcache0/bcache/writeback_percent", "39")
    intents.tick()
    intents.volume.loop.set_mode(Mode.ENFORCE, "a test")
    ok, text = answer(apply(intents, "EBB-209"))
    assert (ok, "ebbgate tunes writeback_percent already" in str(text)) == (False, True)


def test_one_knob_that_cannot_be_written_leaves_none(intents: IntentHarness) -> None:
    intents.volume.sysfs.before[WRITE] = failing(errno.EIO)
    ok, text = answer(apply(intents, "EBB-205"))
    assert ok is False
    assert f"{WRITE} could not be written" in str(text)
    intents.poll()
    assert values(intents, READ, WRITE) == ["2000", "20000"]
    assert intents.kept() == ()


def test_a_failed_advice_puts_the_former_override_back(intents: IntentHarness) -> None:
    assert intents.ask(IntentKind.SET, knob=READ, value="1500").ok
    intents.volume.sysfs.before[WRITE] = failing(errno.EIO)
    intents.volume.now_ms += 2000
    assert apply(intents, "EBB-205").ok is False
    intents.volume.now_ms += 2000
    intents.poll()
    intents.volume.now_ms += 2000
    intents.poll()
    assert [(each.knob, each.value) for each in intents.kept()] == [(READ, "1500")]
    assert values(intents, READ) == ["1500"]


def test_a_database_that_takes_one_override_only_leaves_none(intents: IntentHarness) -> None:
    assert intents.ask(IntentKind.SET, knob=READ, value="1500").ok
    with closing(sqlite3.connect(intents.path)) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON overrides WHEN NEW.knob = "
            f"'{WRITE}' BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
    ok, text = answer(apply(intents, "EBB-205"))
    assert (ok, "it cannot be saved in" in text, "disk is full" in text) == (False, True, True)
    assert [(w.knob, w.value) for w in intents.kept()] == [(READ, "1500")]
    assert values(intents, READ, WRITE) == ["1500", "20000"]
    with closing(sqlite3.connect(intents.path)) as connection:
        connection.execute("DROP TRIGGER full")
    intents.volume.now_ms += 2000
    assert apply(intents, "EBB-205").ok
    assert values(intents, READ, WRITE) == ["0", "0"]


def test_a_trigger_leaves_nothing_to_undo(intents: IntentHarness) -> None:
    uuid = intents.volume.loop.volume.set_uuid
    intents.volume.fake.write(f"/sys/fs/bcache/{uuid}/cache_available_percent", "2")
    ok, text = answer(apply(intents, "EBB-204"))
    assert ok is True
    assert str(text).splitlines() == [
        "bcache0: trigger_gc was written; it leaves no value behind",
        "there is nothing to undo",
    ]
    intents.volume.settle()
    assert ("trigger_gc", "1") in intents.volume.sysfs.log


# ---- undo ---------------------------------------------------------------------------------------
@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def record(
    history: Path,
    knob: str = CUTOFF,
    old: str | None = str(2 * MIB),
    *,
    kind: OutcomeKind = OutcomeKind.CHANGED,
    strategy: str = "stream_bypass",
    volume: str = "bcache0",
    at: int | None = None,
) -> int:
    action = Action(volume, knob, old, "4096", strategy, "a stream")
    at = time.time_ns() if at is None else at
    with closing(Store.open(history)) as store:
        store.add_outcomes([Outcome(action, kind, at)], None, at)
    with closing(sqlite3.connect(history)) as connection:
        number: int = connection.execute("SELECT max(id) FROM actions").fetchone()[0]
    return number


def undo(intents: IntentHarness, number: int, volume: str | None = None) -> tuple[bool | None, str]:
    ok, text = answer(intents.ask(IntentKind.UNDO, volume, action_id=number))
    return ok, str(text)


def test_an_undo_puts_back_what_was_there_before_that_write(
    intents: IntentHarness, history: Path
) -> None:
    number = record(history)
    ok, text = undo(intents, number)
    assert ok is True
    assert text.splitlines() == [
        "bcache0: sequential_cutoff = 2 MiB until it is released; strategies do not change it",
        f"it was 2 MiB before the write {number} of stream_bypass",
        "undo: ebbgate release bcache0 sequential_cutoff",
    ]
    assert values(intents, CUTOFF) == [str(2 * MIB)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"knob": "writeback_rate", "old": "8"}, "writeback_rate is a part of the gate"),
        ({"knob": "trigger_gc", "old": "0"}, "leaves no value behind"),
        ({"knob": "cache_mode", "old": "writeback"}, "ebbgate never writes cache_mode"),
        ({"knob": CUTOFF, "old": "0"}, "0 is out of bounds for sequential_cutoff"),
        ({"knob": CUTOFF, "old": None}, "is no longer known"),
        ({"knob": CUTOFF, "kind": OutcomeKind.FAILED}, "changed nothing (failed)"),
        ({"knob": CUTOFF, "volume": "bcache7"}, "bcache7 is not present"),
        ({"knob": CUTOFF, "at": 1000}, "bcache0 may have been another volume then"),
    ],
)
def test_what_cannot_be_undone_is_refused_with_the_reason(
    intents: IntentHarness, history: Path, given: dict[str, str | int | None], said: str
) -> None:
    before = intents.volume.knobs()
    ok, text = undo(intents, record(history, **given))  # type: ignore[arg-type]
    assert (ok, said in text) == (False, True)
    assert intents.volume.knobs() == before
    assert intents.kept() == ()


def test_a_persons_own_write_of_the_gate_can_be_undone(
    intents: IntentHarness, history: Path
) -> None:
    assert undo(intents, record(history, "writeback_percent", "20", strategy=OVERRIDE))[0] is True
    assert intents.percent() == "20"


def test_an_unknown_number_is_refused(intents: IntentHarness, history: Path) -> None:
    record(history)
    ok, text = undo(intents, 4711)
    assert (ok, "no knob write has the number 4711" in text) == (False, True)


def test_a_write_to_another_volume_is_not_undone(intents: IntentHarness, history: Path) -> None:
    number = record(history, volume="bcache7")
    ok, _ = undo(intents, number, "bcache0")
    assert ok is False


def test_without_a_history_there_is_nothing_to_undo(intents: IntentHarness) -> None:
    ok, text = undo(intents, 1)
    assert (ok, "nothing was recorded yet" in text) == (False, True)


# ---- limits of the policy -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            "2MiB",
            "; this is above the 1 MiB limit of policy adaptive for strategies",
        ),
        (
            "128KiB",
            "; this is under the 256 KiB limit of policy adaptive for strategies",
        ),
        ("512KiB", "strategies do not change it"),
    ],
)
def test_a_users_value_may_exceed_the_policys_limits_with_a_note(
    enforced_intents: IntentHarness, value: str, said: str
) -> None:
    intents, harness = enforced_intents, enforced_intents.volume
    limits = Limits(sequential_cutoff=Bounds(256 * 1024, MIB))
    harness.loop.set_policy(replace(harness.loop.policy, limits=limits))
    harness.tick()
    ok, text = answer(intents.ask(IntentKind.SET, knob=CUTOFF, value=value))
    assert (ok, str(text).endswith(said)) == (True, True)
    for _ in range(8):
        harness.tick()
    wanted = {"2MiB": 2 * MIB, "128KiB": MIB // 8, "512KiB": MIB // 2}[value]
    assert values(intents, CUTOFF) == [str(wanted)]
