# SPDX-License-Identifier: GPL-2.0-only
"""Wishes reach the daemon once, get an answer, and cost nothing while nobody wishes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.model.volume import Mode
from ebbgate.store.intents import IntentKind, Intents


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
