# SPDX-License-Identifier: GPL-2.0-only
"""Many samples as one: what is not known has no part in it, and nothing else is left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.store.rollup import COLUMNS, MEANS, SECOND_NS, Row, bucket_ns, merge, weight
from ebbgate.units import HOUR_NS, MINUTE_NS

VALUES = st.none() | st.floats(min_value=0, max_value=1e12)
SHARES = st.none() | st.sampled_from([0, 1])
COUNTS = st.none() | st.integers(min_value=0, max_value=1 << 44)
NAMES = ["read hit", "read miss", "read bypass", "write writeback"]
NS = st.none() | st.integers(min_value=1, max_value=10**9)
FIGURES = st.tuples(
    st.integers(min_value=0, max_value=1000), st.integers(min_value=0, max_value=1 << 30), NS, NS
)
MEASURED = st.fixed_dictionaries(
    {
        **{column: VALUES for column in MEANS if column != "clean_ratio"},
        "idle": SHARES,
        "dirty_bytes": COUNTS,
        "bypass_bytes": COUNTS,
        "time_to_full_s": VALUES,
        "time_to_clean_s": VALUES,
        "regime": st.sampled_from(["unknown", "gap", "burst"]),
        "mode": st.sampled_from([None, "advise", "enforce"]),
        "paths": st.dictionaries(st.sampled_from(NAMES), FIGURES),
    }
)
# Minutes of unequal weight, and more than two of each: every further one costs time only.
MINUTES = st.lists(st.lists(MEASURED, min_size=1, max_size=4), min_size=1, max_size=3)


def second(number: int = 0, **parts: Any) -> Row:
    """A sample in which only the given is known."""
    row: Row = dict.fromkeys(COLUMNS)
    row |= {
        "volume": "bcache0",
        "span_ns": SECOND_NS,
        "at_unix_ns": number * SECOND_NS,
        "regime": "unknown",
        "paths": {},
        "missing": {},
        "known": {},
        "samples": 1,
        "covered_ns": SECOND_NS,
    }
    return row | parts


def minute(*samples: dict[str, Any], number: int = 0) -> Row:
    """These samples, one a second, as a minute."""
    rows = [second(number * 60 + at, **parts) for at, parts in enumerate(samples)]
    return merge(rows, number * MINUTE_NS, MINUTE_NS)


def hour(minutes: list[list[dict[str, Any]]]) -> Row:
    rows = [minute(*samples, number=number) for number, samples in enumerate(minutes)]
    return merge(rows, 0, HOUR_NS)


def known(minutes: list[list[dict[str, Any]]], column: str) -> list[float]:
    samples = (sample for samples in minutes for sample in samples)
    if column == "clean_ratio":
        return [s["dirty_bytes"] == 0 for s in samples if s["dirty_bytes"] is not None]
    return [sample[column] for sample in samples if sample[column] is not None]


@given(MINUTES)
def test_a_rolled_up_mean_is_the_mean_of_what_was_known(
    minutes: list[list[dict[str, Any]]],
) -> None:
    found = hour(minutes)
    for column in MEANS:
        values = known(minutes, column)
        assert weight(found, column) == len(values)
        if not values:
            assert found[column] is None, column
        else:
            # Bytes are rounded once by the minute and once by the hour.
            mean = sum(values) / len(values)
            assert found[column] == pytest.approx(mean, rel=1e-9, abs=1.01), column


@given(MINUTES)
def test_extremes_and_sums_are_those_of_what_was_known(minutes: list[list[dict[str, Any]]]) -> None:
    found = hour(minutes)
    assert found["dirty_bytes_max"] == max(known(minutes, "dirty_bytes"), default=None)
    assert found["time_to_full_s"] == min(known(minutes, "time_to_full_s"), default=None)
    assert found["time_to_clean_s"] == max(known(minutes, "time_to_clean_s"), default=None)
    bypassed = known(minutes, "bypass_bytes")
    assert found["bypass_bytes"] == (sum(bypassed) if bypassed else None)
    assert found["samples"] == sum(len(samples) for samples in minutes)


@given(MINUTES)
def test_paths_add_up_and_percentiles_stay_between_the_extremes(
    minutes: list[list[dict[str, Any]]],
) -> None:
    samples = [sample for samples in minutes for sample in samples]
    for name, (ios, count_bytes, _, p99_ns, worst_ns) in hour(minutes)["paths"].items():
        of_it = [sample["paths"][name] for sample in samples if name in sample["paths"]]
        assert ios == sum(figures[0] for figures in of_it)
        assert count_bytes == sum(figures[1] for figures in of_it)
        known_ns = [figures[3] for figures in of_it if figures[3] is not None]
        assert worst_ns == max(known_ns, default=None)
        seen_ns = [figures[3] for figures in of_it if figures[3] is not None and figures[0]]
        if seen_ns:
            assert min(seen_ns) - 2 <= p99_ns <= max(seen_ns) + 2
        else:
            assert p99_ns is None


def test_a_value_known_once_in_a_minute_weighs_as_one_sample_in_the_hour() -> None:
    found = hour([[{"read_iops": 100.0}] * 9, [{"read_iops": 0.0}, {}, {}, {}]])
    assert found["read_iops"] == 90.0
    assert found["known"]["read_iops"] == 10


def test_the_hit_ratio_is_that_of_the_requests_not_of_the_seconds() -> None:
    busy = {"read hit": [90, 0, 1, 1], "read miss": [10, 0, 1, 1], "write writeback": [7, 0, 1, 1]}
    quiet = {"read miss": [100, 0, 1, 1]}
    assert minute({"paths": busy}, {"paths": quiet})["hit_ratio"] == 0.45
    assert minute({"paths": {}})["hit_ratio"] is None


def test_time_without_dirty_data_is_a_share_of_the_time_in_which_it_was_known() -> None:
    found = minute({"dirty_bytes": 0}, {"dirty_bytes": 5}, {"dirty_bytes": None})
    assert found["clean_ratio"] == 0.5


def test_write_back_in_gaps_is_counted_separately() -> None:
    found = minute(
        {"destage_bytes_per_s": 100.0, "idle": True},
        {"destage_bytes_per_s": 10.0, "idle": False},
        {"destage_bytes_per_s": 7.0, "idle": None},
    )
    assert found["gap_destage_bytes"] == 100
    assert found["destage_bytes_per_s"] == 39.0


def test_write_back_of_a_gap_that_ended_meanwhile_is_counted_as_that_of_a_gap() -> None:
    found = minute(
        {"destage_bytes_per_s": 100.0, "idle": False, "gap_destage_bytes": 80},
        {"destage_bytes_per_s": 10.0, "idle": True, "gap_destage_bytes": 0},
        {"destage_bytes_per_s": None, "idle": True},
    )
    assert found["gap_destage_bytes"] == 80


def test_a_sample_covers_the_time_to_the_next_except_across_a_hole() -> None:
    slow = [second(at, bypass_bytes=10) for at in (0, 10, 20, 30, 40, 50)]
    found = merge(slow, 0, MINUTE_NS)
    # Each counts all bytes since the one before it.
    assert (found["covered_ns"], found["bypass_bytes"]) == (MINUTE_NS, 60)
    torn = [second(at) for at in (0, 1, 2, 50, 51)]
    assert merge(torn, 0, MINUTE_NS)["covered_ns"] == 5 * SECOND_NS


def test_the_regime_is_the_one_that_held_longest_and_unknown_only_where_it_always_was() -> None:
    found = minute({"regime": "unknown"}, {"regime": "unknown"}, {"regime": "gap"})
    assert found["regime"] == "gap"
    assert minute({"regime": "unknown"})["regime"] == "unknown"


def test_a_mode_that_changed_is_unknown() -> None:
    assert minute({"mode": "enforce"}, {"mode": None})["mode"] == "enforce"
    assert minute({"mode": "enforce"}, {"mode": "advise"})["mode"] is None


def test_a_signal_that_was_missing_once_is_named_with_its_last_reason() -> None:
    found = minute({"missing": {"foreground": "none yet"}}, {"missing": {"foreground": "stale"}})
    assert found["missing"] == {"foreground": "stale"}


@given(st.integers(min_value=0, max_value=1 << 62), st.sampled_from([MINUTE_NS, HOUR_NS]))
def test_a_time_is_in_one_bucket(at_ns: int, span_ns: int) -> None:
    begin = bucket_ns(at_ns, span_ns)
    assert begin <= at_ns < begin + span_ns
    assert begin % span_ns == 0
