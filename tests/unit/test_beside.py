# SPDX-License-Identifier: GPL-2.0-only
"""What takes long is done beside the loop: one at a time, answered once, or forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, get_ident

import pytest

from ebbgate.beside import Beside
from ebbgate.errors import NotFound, Unavailable

DEADLINE_S = 5.0


def until(call: Callable[[], object]) -> object:
    deadline = time.monotonic() + DEADLINE_S
    while (found := call()) is None:
        assert time.monotonic() < deadline, "no answer"
        time.sleep(0.001)
    return found


def raises(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


def test_it_is_begun_at_once_and_answered_later_from_another_thread() -> None:
    beside = Beside()
    assert beside.ask(1, get_ident) is None
    assert until(lambda: beside.ask(1, get_ident)) != get_ident()


def test_a_second_one_waits_for_its_turn() -> None:
    beside, free, begun = Beside(), Event(), Event()

    def second() -> int:
        begun.set()
        return 2

    beside.ask(1, lambda: free.wait(DEADLINE_S))
    assert beside.ask(2, second) is None
    assert not begun.is_set()
    free.set()
    assert until(lambda: beside.ask(1, lambda: False)) is True
    assert until(lambda: beside.ask(2, second)) == 2


@pytest.mark.parametrize(
    ("error", "raised"),
    [(NotFound("gone"), NotFound), (OSError(5, "Input/output error"), Unavailable)],
)
def test_what_it_raises_is_raised_to_whoever_asked(
    error: Exception, raised: type[Exception]
) -> None:
    beside = Beside()
    with pytest.raises(raised):
        until(lambda: beside.ask(1, raises(error)))


def test_what_nobody_waits_for_is_forgotten_once_it_is_done() -> None:
    beside = Beside()
    beside.ask(1, lambda: "the first")

    def second() -> str | None:
        beside.forget_all_but({2})
        return beside.ask(2, lambda: "the second")

    assert until(second) == "the second"
    beside.ask(1, lambda: "anew")
    assert until(lambda: beside.ask(1, lambda: "anew")) == "anew"
