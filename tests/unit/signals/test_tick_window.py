# SPDX-License-Identifier: GPL-2.0-only
"""The windows of recorded frames lie side by side, whatever the distance of ticks."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ebbgate.model.records import Tick
from ebbgate.signals.tick_window import follows, gap_destage, last_window
from ebbgate.units import NS_PER_MS, NS_PER_S
from tests.builders import tick

TICKS_MS = (50, 100, 250, 300, 400, 500, 600, 700, 900, 1000, 1500, 10_000)
JITTER_MS = (0, 2, 1, 4, 3)
"""How late ticks come."""


def windows(tick_ms: int, length_ms: int) -> list[tuple[int, int]]:
    """Begin and end (ms) of the window of each recorded frame."""
    found: list[tuple[int, int]] = []
    ticks: tuple[Tick, ...] = ()
    for number in range(length_ms // tick_ms):
        late_ms = JITTER_MS[number % len(JITTER_MS)]
        ticks = (*ticks, tick(ns=(number * tick_ms + late_ms) * NS_PER_MS))
        if number:
            ticks = last_window(ticks)
        begin_ns, end_ns = ticks[0].at_ns, ticks[-1].at_ns
        last_ns = found[-1][1] * NS_PER_MS if found else None
        if last_ns is None or follows(end_ns, end_ns - begin_ns, last_ns):
            found.append((begin_ns // NS_PER_MS, end_ns // NS_PER_MS))
    return found


@pytest.mark.parametrize("tick_ms", TICKS_MS)
def test_each_window_begins_where_the_last_one_ended(tick_ms: int) -> None:
    found = windows(tick_ms, 30_000)
    assert len(found) > 2
    assert [later[0] for _, later in pairwise(found)] == [each[1] for each, _ in pairwise(found)]


@pytest.mark.parametrize("tick_ms", [each for each in TICKS_MS if each <= 1000])
def test_a_window_is_about_a_second_and_shorter_than_two(tick_ms: int) -> None:
    for begin_ms, end_ms in windows(tick_ms, 30_000)[1:]:
        assert 950 <= end_ms - begin_ms < 2000


def test_after_a_pause_the_window_is_of_the_time_since() -> None:
    ticks = tuple(tick(ns=at * NS_PER_MS) for at in (0, 250, 8000, 8250))
    assert [each.at_ns // NS_PER_MS for each in last_window(ticks)] == [8000, 8250]
    assert last_window(ticks[:3]) == ticks[1:3]


def test_a_short_first_window_is_not_recorded_again_and_again() -> None:
    assert not follows(NS_PER_S // 4, NS_PER_S // 4, 0)
    assert follows(NS_PER_S, NS_PER_S, 0)


@pytest.mark.parametrize(
    ("states", "counted"),
    [(("busy", "busy"), 0), (("busy", "idle"), 7), (("idle", "idle"), 7), (("idle", "busy"), 7)],
)
def test_what_is_written_back_beside_a_gap_is_of_the_gap(
    states: tuple[str, str], counted: int
) -> None:
    last, now = (
        tick(ns=at, state=state, destage={"done_ios": at, "done_bytes": 7 * at})
        for at, state in enumerate(states, 1)
    )
    assert gap_destage((0, 5), last, now) == (0, 5, 5 + counted)
