# SPDX-License-Identifier: GPL-2.0-only
"""Wishes reach the daemon once, get an answer, and cost nothing while nobody wishes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.model.volume import Mode
from ebbgate.model.wish import IntentKind, Wish, WishKind
from ebbgate.store.connection import open_writer
from ebbgate.store.intents import Intents
from ebbgate.store.schema import INTENTS


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Intents]:
    opened = Intents.open(tmp_path / "intents.db")
    yield opened
    opened.close()


@pytest.fixture
def daemon(tmp_path: Path, person: Intents) -> Iterator[Intents]:
    opened = Intents.open(tmp_path / "intents.db")
    yield opened
    opened.close()


def ask(person: Intents, volume: str | None = "bcache0") -> int:
    return person.add_intent(IntentKind.MODE, volume, {"mode": "enforce"}, "root", 1)


def test_a_wish_reaches_the_daemon_and_its_answer_the_person(
    person: Intents, daemon: Intents
) -> None:
    number = ask(person)
    (wish,) = daemon.pending()
    assert (wish.id, wish.kind, wish.volume) == (number, IntentKind.MODE, "bcache0")
    assert (wish.args, wish.who, wish.ok) == ({"mode": "enforce"}, "root", None)
    daemon.resolve(number, "bcache0: mode enforce", ok=True)
    assert daemon.pending() == ()
    answer = person.get(number)
    assert answer is not None
    assert (answer.ok, answer.outcome) == (True, "bcache0: mode enforce")


def test_a_refusal_is_an_answer_too(person: Intents, daemon: Intents) -> None:
    number = ask(person)
    daemon.resolve(number, "no such volume", ok=False)
    answer = person.get(number)
    assert answer is not None
    assert answer.ok is False


def test_wishes_come_in_order_and_for_all_volumes(person: Intents, daemon: Intents) -> None:
    numbers = [ask(person, "bcache1"), ask(person, None)]
    assert [(wish.id, wish.volume) for wish in daemon.pending()] == [
        (numbers[0], "bcache1"),
        (numbers[1], None),
    ]


def test_a_wish_stays_pending_until_it_is_answered(person: Intents, daemon: Intents) -> None:
    ask(person)
    assert daemon.pending() == daemon.pending()
    assert len(daemon.pending()) == 1


def test_no_table_is_read_while_nobody_wishes(person: Intents, daemon: Intents) -> None:
    ask(person)
    daemon.resolve(daemon.pending()[0].id, "done", ok=True)
    daemon.pending()
    statements: list[str] = []
    daemon._connection.set_trace_callback(statements.append)
    assert daemon.pending() == ()
    assert statements == ["PRAGMA data_version"]
    ask(person)
    assert len(daemon.pending()) == 1


def test_wishes_that_waited_for_the_daemon_are_found(tmp_path: Path, person: Intents) -> None:
    ask(person)
    assert len(Intents.open(tmp_path / "intents.db").pending()) == 1


def test_a_chosen_mode_outlives_everybody(tmp_path: Path, daemon: Intents) -> None:
    daemon.set_mode("bcache0", Mode.ENFORCE)
    daemon.set_mode("bcache0", Mode.OBSERVE)
    daemon.set_mode("bcache1", Mode.ADVISE)
    again = Intents.open(tmp_path / "intents.db")
    assert again.modes() == {"bcache0": "observe", "bcache1": "advise"}


def test_an_unknown_number_is_none(person: Intents) -> None:
    assert person.get(4711) is None


# ---- wishes that last ---------------------------------------------------------------------------
def a_wish(knob: str = "writeback_percent", value: str = "20") -> Wish:
    return Wish(WishKind.SET, "bcache0", "jo", 100, 700, knob, value)


def test_a_wish_lasts_until_it_is_ended(tmp_path: Path, daemon: Intents) -> None:
    kept = daemon.add_wish(a_wish())
    assert kept.for_ns == 600
    assert Intents.open(tmp_path / "intents.db").wishes() == (kept,)
    daemon.end_wish(kept.id, "its time is over", 5)
    assert daemon.wishes() == ()
    row = daemon._connection.execute("SELECT ended_unix_ns, outcome FROM wishes").fetchone()
    assert tuple(row) == (5, "its time is over")


def test_what_became_of_a_wish_is_not_written_over(daemon: Intents) -> None:
    kept = daemon.add_wish(a_wish())
    daemon.end_wish(kept.id, "jo released it")
    daemon.end_wish(kept.id, "its time is over")
    row = daemon._connection.execute("SELECT outcome FROM wishes").fetchone()
    assert row[0] == "jo released it"


def test_a_newer_wish_for_the_same_ends_the_older_and_no_other(daemon: Intents) -> None:
    daemon.add_wish(a_wish())
    other = daemon.add_wish(a_wish("sequential_cutoff", "1048576"))
    newer = daemon.add_wish(a_wish(value="30"))
    assert daemon.wishes() == (other, newer)


def test_a_file_of_the_first_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old = open_writer(path, INTENTS[:1])
    old.execute("INSERT INTO modes VALUES ('bcache0', 'enforce', 1)")
    old.execute(
        "INSERT INTO intents (kind, volume, args, who, at_unix_ns) "
        "VALUES ('hold', NULL, '{}', 'a', 1)"
    )
    old.close()
    opened = Intents.open(path)
    assert opened.modes() == {"bcache0": "enforce"}
    assert [intent.kind for intent in opened.pending()] == [IntentKind.HOLD]
    assert opened.wishes() == ()
    opened.close()


@pytest.mark.parametrize(("args", "read"), [("{", {}), ("[1]", {}), ('{"on": true}', {"on": True})])
def test_a_row_that_something_else_wrote_wrongly_is_still_read(
    daemon: Intents, args: str, read: dict[str, bool]
) -> None:
    daemon._connection.execute(
        "INSERT INTO intents (kind, volume, args, who, at_unix_ns) VALUES ('warm', 'v', ?, 'a', 1)",
        (args,),
    )
    (intent,) = daemon.pending()
    assert (intent.kind, intent.args) == ("warm", read)
