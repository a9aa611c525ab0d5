# SPDX-License-Identifier: GPL-2.0-only
"""Latencies of the past: summed without loss, on a grid whose holes are holes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.frame import PathLatency
from ebbgate.model.records import Direction
from ebbgate.signals.histogram import COARSE_BUCKETS, coarse_latency
from ebbgate.store.latency import frame_latency, merge_latency, pack, unpack
from ebbgate.store.queries import History
from ebbgate.store.queries_latency import EDGES_S, SPANS_S, LatencyGrid
from ebbgate.store.rollup import SECOND_NS
from ebbgate.units import HOUR_NS, MINUTE_NS, NS_PER_S
from tests.builders import frame
from tests.unit.store.store_fixture import T0_NS, StoreHarness

COUNTS = st.lists(st.integers(min_value=0, max_value=1 << 40), max_size=108)
PATHS = st.dictionaries(
    st.tuples(st.sampled_from(list(Direction)), st.sampled_from(["hit", "miss", "bypass"])), COUNTS
)


def felt(
    counts: list[int], op: Direction = Direction.READ, path: str = "hit"
) -> dict[tuple[Direction, str], PathLatency]:
    """What users felt on one path."""
    return {(op, path): PathLatency(sum(counts), 0, None, None, tuple(counts))}


def grid(harness: StoreHarness, since_s: int, until_s: int, points: int = 300) -> LatencyGrid:
    """Of reads; times since the beginning."""
    with closing(History.open(harness.path)) as history:
        return history.latency_grid(
            "bcache0",
            Direction.READ,
            T0_NS + since_s * NS_PER_S,
            T0_NS + until_s * NS_PER_S,
            points,
        )


def sums(found: LatencyGrid) -> list[int | None]:
    return [None if counts is None else sum(counts) for counts in found.counts]


@given(PATHS)
def test_a_frames_latencies_are_those_of_all_its_paths(
    paths: dict[tuple[Direction, str], list[int]],
) -> None:
    parts = {key: part for way, counts in paths.items() for key, part in felt(counts, *way).items()}
    found = frame_latency(frame(paths=parts))
    if not paths:
        assert found is None
        return
    for op in Direction:
        counts = [counts for (way, _), counts in paths.items() if way is op]
        whole = coarse_latency([sum(column) for column in _columns(counts)])
        assert unpack((found or {}).get(op, []))[: len(whole)] == whole


def _columns(rows: list[list[int]]) -> list[tuple[int, ...]]:
    longest = max(map(len, rows), default=0)
    return list(zip(*(row + [0] * (longest - len(row)) for row in rows), strict=True))


@given(st.lists(st.none() | st.dictionaries(st.sampled_from(["read", "write"]), COUNTS)))
def test_merged_latencies_are_the_sums_of_what_was_known(
    parts: list[dict[str, list[int]] | None],
) -> None:
    coarse = [
        None if part is None else {op: pack(coarse_latency(c)) for op, c in part.items()}
        for part in parts
    ]
    found = merge_latency(coarse)
    known = [part for part in parts if part is not None]
    assert (found is None) == (not known)
    for op in ("read", "write"):
        total = sum(sum(part.get(op, [])) for part in known)
        assert sum(unpack((found or {}).get(op, []))) == total


def test_seconds_minutes_and_hours_hold_the_same_requests(harness: StoreHarness) -> None:
    harness.seconds(90, paths=felt([0, 3, 1]))
    harness.seconds(30, paths={})
    harness.go_on(2 * HOUR_NS)
    harness.maintain()
    for span_ns in (SECOND_NS, MINUTE_NS, HOUR_NS):
        texts = harness.query(
            "SELECT latency FROM samples WHERE span_ns = ? AND latency IS NOT NULL", [span_ns]
        )
        found = merge_latency([{"read": _numbers(row["latency"])} for row in texts])
        assert found == {"read": [1, 270, 2, 90]}


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.removeprefix('{"read":[').removesuffix("]}").split(",")]


def test_a_minute_without_known_values_has_no_latencies(harness: StoreHarness) -> None:
    harness.seconds(60, paths={})
    harness.go_on(MINUTE_NS)
    harness.maintain()
    (row,) = harness.query("SELECT latency FROM samples WHERE span_ns = ?", [MINUTE_NS])
    assert row["latency"] is None


def test_invalid_latencies_cost_only_their_minute(harness: StoreHarness) -> None:
    harness.seconds(120, paths=felt([1]))
    with closing(sqlite3.connect(harness.path)) as connection:
        connection.execute(
            "UPDATE samples SET latency = ? WHERE at_unix_ns = ?", ('{"read":[99,1]}', T0_NS)
        )
        connection.commit()
    harness.go_on(MINUTE_NS)
    harness.maintain()
    assert [row["at_unix_ns"] for row in harness.rows(MINUTE_NS)] == [T0_NS + MINUTE_NS]
    assert harness.count("rollup_due") == 1


def test_samples_are_read_without_latencies_unless_they_are_asked_for(
    harness: StoreHarness,
) -> None:
    harness.seconds(1, paths=felt([1]))
    (row,) = harness.rows(SECOND_NS)
    assert "latency" not in row


def test_a_grid_is_regular_and_its_holes_are_none(harness: StoreHarness) -> None:
    harness.seconds(10, paths=felt([0, 0, 0, 5]))
    harness.go_on(10 * NS_PER_S)
    harness.seconds(10, paths=felt([2]))
    found = grid(harness, 0, 30)
    assert found.span_s == 2
    assert [
        later - at for at, later in zip(found.at_unix_s, found.at_unix_s[1:], strict=False)
    ] == [2] * 14
    assert sums(found) == [10] * 5 + [None] * 5 + [4] * 5
    assert found.counts[0] == (0, 0, 0, 10, *[0] * (COARSE_BUCKETS - 4))
    assert len(found.edges_s) == COARSE_BUCKETS
    assert found.edges_s[3] == 4e-6


def test_a_time_without_requests_is_zeros_and_no_hole(harness: StoreHarness) -> None:
    harness.seconds(4, paths=felt([1], Direction.WRITE))
    assert sums(grid(harness, 0, 4)) == [0, 0]


def test_samples_a_second_and_a_quarter_apart_leave_no_hole(harness: StoreHarness) -> None:
    for number in range(80):
        at_ns = T0_NS + number * 5 * NS_PER_S // 4
        harness.sample(frame(paths=felt([1])), at_ns=at_ns)
    assert None not in sums(grid(harness, 0, 100))


@pytest.mark.parametrize(
    ("tick_s", "span_s"), [(1.25, 2), (2, 5), (3, 5), (5, 10), (7.5, 10), (10, 30)]
)
def test_a_slow_tick_leaves_no_hole(harness: StoreHarness, tick_s: float, span_s: int) -> None:
    for number in range(int(600 / tick_s)):
        at_ns = T0_NS + round(number * tick_s * NS_PER_S)
        harness.sample(frame(paths=felt([1])), at_ns=at_ns)
    found = grid(harness, 0, 600)
    assert found.span_s == span_s
    assert None not in found.counts
    assert sum(map(sum, filter(None, found.counts))) == int(600 / tick_s)


def test_a_pause_is_no_slow_tick(harness: StoreHarness) -> None:
    for at_s in (0, 290):
        harness.sample(frame(paths=felt([1])), at_ns=T0_NS + at_s * NS_PER_S)
    found = grid(harness, 0, 300)
    assert found.span_s == 60
    assert sums(found) == [1, None, None, None, 1]


@pytest.mark.parametrize(
    ("length_s", "points", "span_s"),
    [(300, 300, 2), (3600, 300, 30), (86400, 300, 300), (86400 * 30, 300, 21600), (10, 1, 10)],
)
def test_the_span_is_the_shortest_that_gives_no_more_than_the_wanted_points(
    harness: StoreHarness, length_s: int, points: int, span_s: int
) -> None:
    found = grid(harness, 0, length_s, points)
    assert found.span_s == span_s
    assert len(found.at_unix_s) <= points + 1
    assert set(found.counts) == {None}


def test_where_seconds_were_deleted_minutes_are_shown(harness: StoreHarness) -> None:
    harness.seconds(300, paths=felt([1]))
    harness.go_on(12 * HOUR_NS)
    harness.seconds(60, paths=felt([1]))
    harness.go_on(MINUTE_NS)
    harness.maintain()
    found = grid(harness, 0, 300)
    assert found.span_s == 60
    assert sums(found) == [60] * 5


def test_long_times_are_read_in_the_longest_span_and_each_request_once(
    harness: StoreHarness,
) -> None:
    harness.seconds(2 * 3600 + 90, paths=felt([1]))
    harness.maintain()
    assert len(harness.rows(HOUR_NS)) == 2
    assert sums(grid(harness, 0, 3 * 3600, 3)) == [3600, 3600, 90]
    found = grid(harness, 0, 3 * 86400, 1)
    assert found.span_s == 3 * SPANS_S[-1]
    assert sum(each for each in sums(found) if each is not None) == 7290


def test_a_volume_that_is_not_known_is_a_grid_of_holes(harness: StoreHarness) -> None:
    with closing(History.open(harness.path)) as history:
        found = history.latency_grid("nobody", Direction.WRITE, T0_NS, T0_NS + NS_PER_S, 10)
    assert found.counts == (None,)
    assert found.edges_s == EDGES_S
