# SPDX-License-Identifier: GPL-2.0-only
"""Samples on a regular grid: nothing is made up, nothing that was measured is lost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.store.queries_web import WebHistory
from ebbgate.store.rollup import COLUMNS, SECOND_NS, Row
from ebbgate.units import HOUR_NS, MINUTE_NS, NS_PER_S
from ebbgate.web.routes.history import grid_of
from ebbgate.web.time_series import Grid, covered_ns, grid, place, samples
from tests.unit.store.store_fixture import T0_NS, StoreHarness

S = NS_PER_S
DAY_NS = 24 * HOUR_NS


def row(at_s: float, **known: Any) -> Row:
    made: Row = dict.fromkeys(COLUMNS)
    return made | {"at_unix_ns": round(at_s * S), "paths": {}, "missing": {}} | known


def marks(placed: list[Row | None]) -> str:
    return "".join("." if each is None else "x" for each in placed)


@pytest.mark.parametrize(
    ("length_ns", "points", "span_ns"),
    [
        (600 * S, 600, SECOND_NS),
        (601 * S, 600, MINUTE_NS),
        (600 * MINUTE_NS, 600, MINUTE_NS),
        (601 * MINUTE_NS, 600, HOUR_NS),
        (600 * HOUR_NS, 600, HOUR_NS),
        (601 * HOUR_NS, 600, None),
        (1, 1, SECOND_NS),
    ],
)
def test_the_grid_is_the_finest_that_fits(length_ns: int, points: int, span_ns: int | None) -> None:
    found = grid(T0_NS, T0_NS + length_ns, points)
    assert (found and found.span_ns) == span_ns


@given(st.integers(0, 10**18), st.integers(1, 400 * DAY_NS), st.integers(1, 5000))
def test_grid_covers_the_requested_time_exactly(since_ns: int, length_ns: int, points: int) -> None:
    found = grid(since_ns, since_ns + length_ns, points)
    if found is None:
        assert length_ns > (points - 2) * HOUR_NS
        return
    assert found.count <= points
    assert found.since_ns % found.span_ns == 0
    assert found.since_ns <= since_ns < found.since_ns + found.span_ns
    assert found.until_ns - found.span_ns < since_ns + length_ns <= found.until_ns


@pytest.mark.parametrize(
    ("at_s", "seen"),
    [
        ([], "........"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "xxxxxxxx"),
        ([0.9, 1.9, 2.95, 4.0, 5.0, 6.05, 7.1], "xxxxxxxx"),
        ([0, 1.25, 2.5, 3.75, 5, 6.25, 7.5], "xxxxxxxx"),
        ([0, 1, 5, 6, 7], "xxx..xxx"),
        ([0, 1, 2], "xxxx...."),
        ([5], ".....xx."),
        ([0, 2, 4, 6], "xxxxxxxx"),
    ],
)
def test_long_pause_is_a_hole(at_s: list[float], seen: str) -> None:
    assert marks(place([row(each) for each in at_s], Grid(0, SECOND_NS, 8))) == seen


def test_slow_tick_is_no_hole() -> None:
    rows = [row(each) for each in (0, 10, 20, 80, 90)]
    assert covered_ns(rows) == 15 * S
    placed = marks(place(rows, Grid(0, SECOND_NS, 100)))
    assert placed == "x" * 35 + "." * 45 + "x" * 20


@pytest.mark.parametrize(("apart_s", "each"), [(1, 100), (2, 50), (10, 10)])
def test_counts_of_a_slow_tick_are_spread_over_its_points(apart_s: int, each: int) -> None:
    paths = {"read hit": [100, 4096_00, 10, 20, 30]}
    rows = [row(at, paths=paths, bypass_bytes=100) for at in range(0, 100, apart_s)]
    found = samples("bcache0", rows, Grid(0, SECOND_NS, 100))
    assert found.paths["read hit"].ios == [each] * 100
    assert found.paths["read hit"].bytes == [4096 * each] * 100
    assert found.paths["read hit"].p50_s == [10 / S] * 100
    assert found.columns.bypass_bytes == [each] * 100


@pytest.mark.parametrize(("apart_s", "count"), [(2, 1), (5, 2), (10, 3), (10, 104)])
def test_no_request_of_a_slow_tick_is_lost(apart_s: int, count: int) -> None:
    paths = {"read hit": [count, 4096 * count, 10, 20, 30]}
    rows = [row(at, paths=paths, bypass_bytes=count) for at in range(0, 100, apart_s)]
    found = samples("bcache0", rows, Grid(0, SECOND_NS, 100))
    total = count * 100 // apart_s
    columns = found.paths["read hit"].ios, found.paths["read hit"].bytes, found.columns.bypass_bytes
    sums = [sum(count or 0 for count in each) for each in columns]
    assert sums == [total, 4096 * total, total]
    assert set(columns[0]) == {count // apart_s, -(-count // apart_s)}


def test_no_request_of_samples_far_apart_is_lost() -> None:
    """Such as before and after a pause of ebbgated."""
    paths = {"read hit": [104, 4096 * 104, 10, 20, 30]}
    rows = [row(at, paths=paths) for at in (0, 60)]
    found = samples("bcache0", rows, Grid(0, SECOND_NS, 100))
    assert sum(count or 0 for count in found.paths["read hit"].ios) == 2 * 104


def test_sample_covers_at_most_half_a_minute() -> None:
    assert covered_ns([row(0), row(600), row(1200)]) == 30 * S


@given(st.lists(st.integers(0, 200 * 1000), min_size=1, max_size=60, unique=True))
def test_every_point_shows_a_sample_that_was_measured_just_before(at_ms: list[int]) -> None:
    rows = [row(each / 1000, read_iops=each) for each in sorted(at_ms)]
    found = Grid(0, SECOND_NS, 200)
    for number, each in enumerate(place(rows, found)):
        if each is not None:
            end_ns = found.at_ns(number) + SECOND_NS
            assert each["at_unix_ns"] < end_ns
            assert end_ns - SECOND_NS - each["at_unix_ns"] < covered_ns(rows)
            later = [r for r in rows if each["at_unix_ns"] < r["at_unix_ns"] < end_ns]
            assert later == []


def test_columns_are_as_long_as_their_times_and_holes_go_through_all() -> None:
    rows = [
        row(0, read_iops=1.5, dirty_bytes=0, idle=True, paths={"read hit": [2, 8192, 1000, None]}),
        row(180, read_iops=2.5, time_to_full_s=math.inf, paths={}),
    ]
    said = samples("bcache0", rows, Grid(0, MINUTE_NS, 4))
    assert said.at_unix_s == [0, 60, 120, 180]
    assert said.columns.read_iops == [1.5, None, None, 2.5]
    assert said.columns.dirty_bytes == [0, None, None, None]
    assert said.columns.time_to_full_s == [None] * 4
    path = said.paths["read hit"]
    assert (path.ios, path.p50_s) == ([2, None, None, None], [1e-6, None, None, None])
    assert path.p99_s == [None] * 4


# ---- from the store ----------------------------------------------------------------------------
def test_the_present_minute_and_hour_are_there_before_they_are_rolled_up(tmp_path: Path) -> None:
    harness = StoreHarness(tmp_path)
    harness.seconds(3 * 3600 + 150, dirty_bytes=4096)
    harness.maintain()
    history = WebHistory.open(harness.path)
    until_ns = harness.wall_ns
    minutes = history.rows("bcache0", T0_NS, until_ns, MINUTE_NS)
    assert [r["at_unix_ns"] for r in minutes] == [T0_NS + n * MINUTE_NS for n in range(183)]
    assert sum(r["samples"] for r in minutes) == 3 * 3600 + 150
    hours = history.rows("bcache0", T0_NS, until_ns, HOUR_NS)
    assert [r["samples"] for r in hours] == [3600, 3600, 3600, 150]
    assert {r["dirty_bytes"] for r in (*minutes, *hours)} == {4096}
    history.close()


def test_minutes_are_shown_where_seconds_are_gone(tmp_path: Path) -> None:
    harness = StoreHarness(tmp_path)
    harness.seconds(600)
    harness.maintain()
    history = WebHistory.open(harness.path)
    old = (T0_NS, T0_NS + 300 * S)
    assert grid_of(history, "bcache0", old, 600).span_ns == SECOND_NS
    harness.go_on(7 * HOUR_NS)
    harness.seconds(120)
    harness.maintain()
    assert grid_of(history, "bcache0", old, 600).span_ns == MINUTE_NS
    new = (harness.wall_ns - 50 * S, harness.wall_ns)
    assert grid_of(history, "bcache0", new, 600).span_ns == SECOND_NS
    history.close()
