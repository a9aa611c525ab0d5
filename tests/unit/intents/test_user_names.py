# SPDX-License-Identifier: GPL-2.0-only
"""Who asks: a lookup of a user's name is made once and delays a request for a moment only."""

from __future__ import annotations

import asyncio
import pwd
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from ebbgate.background import BackgroundWorker
from ebbgate.errors import Unavailable
from ebbgate.intents import connection as module
from ebbgate.intents.connection import UserNames


class Users:
    """The machine's users: those from 1000 on exist. `asked`: who was looked up."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.answers = threading.Event()
        self.answers.set()

    def getpwuid(self, uid: int) -> SimpleNamespace:
        self.asked.append(uid)
        assert self.answers.wait(10)
        if uid < 1000:
            raise KeyError(uid)
        return SimpleNamespace(pw_name=f"user{uid}")


@pytest.fixture
def users(monkeypatch: pytest.MonkeyPatch) -> Iterator[Users]:
    made = Users()
    monkeypatch.setattr(pwd, "getpwuid", made.getpwuid)
    yield made
    made.answers.set()


def names_of(names: UserNames, *uids: int) -> list[str]:
    async def ask() -> list[str]:
        return [await names.name_of(uid) for uid in uids]

    return asyncio.run(ask())


def test_each_user_is_looked_up_once_and_root_never(users: Users) -> None:
    names = UserNames()
    assert names_of(names, 0, 1000, 1000, 1001) == ["root", "user1000", "user1000", "user1001"]
    assert users.asked == [1000, 1001]


def test_a_user_without_a_name_is_named_by_number(users: Users) -> None:
    names = UserNames()
    assert names_of(names, 7, 7) == ["uid 7", "uid 7"]
    assert users.asked == [7, 7], "it may get a name"


def test_a_lookup_that_hangs_delays_a_request_for_a_moment_only(
    users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory service may not answer for minutes."""
    names = UserNames()
    users.answers.clear()
    with monkeypatch.context() as patch:
        patch.setattr(module, "_WAIT_S", 0.01)
        assert names_of(names, 1000) == ["uid 1000"]
    users.answers.set()
    assert names_of(names, 1000) == ["user1000"]


def test_a_lookup_that_cannot_begin_leaves_the_number(
    users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise Unavailable("64 jobs are waiting already (users)")

    monkeypatch.setattr(BackgroundWorker, "submit", refuse)
    assert names_of(UserNames(), 1000) == ["uid 1000"]


@pytest.mark.parametrize(("others", "again"), [(2, []), (3, [1000])])
def test_a_limited_number_of_names_is_kept(
    users: Users, monkeypatch: pytest.MonkeyPatch, others: int, again: list[int]
) -> None:
    monkeypatch.setattr(module, "_KEPT", 4)
    names = UserNames()
    uids = range(1000, 1001 + others)
    names_of(names, *uids)
    assert names_of(names, 0, 1000) == ["root", "user1000"]
    assert users.asked == [*uids, *again]
