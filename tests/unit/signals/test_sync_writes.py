# SPDX-License-Identifier: GPL-2.0-only
"""Synchronous writes, and the flushes of the page cache between them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ebbgate.model.records import Arrivals
from ebbgate.signals.sync_writes import SyncWrites, counted
from ebbgate.units import NS_PER_MS

TICK_NS = 250 * NS_PER_MS


def seen(*ticks: tuple[int, int]) -> list[bool]:
    """What is said after each tick; of each: all writes, and the synchronous ones."""
    state, said = SyncWrites(), []
    for ios, sync_ios in ticks:
        state = counted(state, Arrivals(ios, ios * 4096, sync_ios), TICK_NS)
        said.append(state.mostly)
    return said


def database(flush_ios: int, seconds: int = 300) -> list[tuple[int, int]]:
    """100 synchronous writes a second, and a flush of the page cache each 5 s."""
    return [(25 + (flush_ios if n % 20 == 19 else 0), 25) for n in range(4 * seconds)]


@pytest.mark.parametrize(("flush_ios", "mostly"), [(0, True), (15, True), (40, True), (200, False)])
def test_flushes_of_the_page_cache_change_nothing_back_and_forth(
    flush_ios: int, *, mostly: bool
) -> None:
    said = seen(*database(flush_ios))
    assert said[-1] is mostly
    # Each change opens or closes the gate.
    assert sum(a is not b for a, b in pairwise(said)) <= 1


def test_a_share_between_the_two_bounds_stays_what_it_was() -> None:
    between = [(100, 87)] * 400
    assert seen(*database(0, 30), *between)[-1] is True
    assert seen(*[(100, 0)] * 40, *between)[-1] is False


def test_a_copy_beside_a_database_is_noticed_within_seconds() -> None:
    said = seen(*database(0), *[(25 + 125, 25)] * 12)
    assert (said[-13], said[-1]) == (True, False)


def test_a_pause_in_writing_changes_nothing() -> None:
    assert seen((20, 20), *[(0, 0)] * 4000)[-1] is True
    assert seen((0, 0)) == [False]
