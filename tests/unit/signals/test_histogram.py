# SPDX-License-Identifier: GPL-2.0-only
"""Histograms with their trailing zeros missing: difference, fading, percentiles."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.signals.histogram import (
    decay_add,
    latency_bucket_us,
    latency_percentile_ns,
    subtract,
)

COUNTS = st.lists(st.integers(min_value=0, max_value=1 << 40), max_size=40)


@pytest.mark.parametrize(
    ("now", "before", "difference"),
    [
        ((), (), ()),
        ((1, 2, 3), (), (1, 2, 3)),
        ((1, 2, 3), (1, 1), (0, 1, 3)),
        ((5,), (1, 2), (4, 0)),
    ],
)
def test_the_difference_of_two_cumulative_histograms(
    now: tuple[int, ...], before: tuple[int, ...], difference: tuple[int, ...]
) -> None:
    assert subtract(now, before) == difference


@given(COUNTS, COUNTS)
def test_a_difference_is_never_negative(now: list[int], before: list[int]) -> None:
    assert all(count >= 0 for count in subtract(now, before))


@given(COUNTS, COUNTS)
def test_what_was_added_is_the_difference(before: list[int], added: list[int]) -> None:
    both = subtract([*added, *[0] * 40][:40], ())
    now = tuple(a + b for a, b in zip(both, [*before, *[0] * 40], strict=False))
    assert sum(subtract(now, before)) == sum(added)


def test_old_counts_fade_and_new_ones_come_on_top() -> None:
    assert decay_add((4.0, 8.0), (1,), 0.5) == (3.0, 4.0)
    assert decay_add((), (1, 2), 0.5) == (1, 2)
    assert decay_add((2.0,), (0, 0, 1), 1.0) == (2.0, 0.0, 1.0)


def test_latency_buckets_leave_no_hole_and_do_not_overlap() -> None:
    edges = [latency_bucket_us(bucket) for bucket in range(108)]
    assert edges[0] == (0.0, 1.0)
    for (_, high), (low, _) in pairwise(edges):
        assert high == low
    assert edges[-1][1] == 2.0**28


@pytest.mark.parametrize(
    ("bucket", "edges_us"),
    [(3, (3, 4)), (4, (4, 5)), (7, (7, 8)), (8, (8, 10)), (11, (14, 16)), (12, (16, 20))],
)
def test_latency_buckets_are_those_of_the_probe(bucket: int, edges_us: tuple[float, float]) -> None:
    assert latency_bucket_us(bucket) == edges_us


@pytest.mark.parametrize(
    ("counts", "quantile", "latency_ns"),
    [
        ((), 0.5, None),
        ((0, 0), 0.5, None),
        ((10,), 0.5, 500),
        ((0, 1), 1.0, 2000),
        ((99, 0, 0, 1), 0.99, 1000),
        ((99, 0, 0, 1), 1.0, 4000),
    ],
)
def test_a_percentile_is_interpolated_inside_its_bucket(
    counts: tuple[int, ...], quantile: float, latency_ns: int | None
) -> None:
    assert latency_percentile_ns(counts, quantile) == latency_ns


@given(COUNTS, st.floats(min_value=0, max_value=1), st.floats(min_value=0, max_value=1))
def test_percentiles_grow_with_the_quantile(counts: list[int], one: float, other: float) -> None:
    low = latency_percentile_ns(counts, min(one, other))
    high = latency_percentile_ns(counts, max(one, other))
    if low is None or high is None:
        assert sum(counts) == 0
    else:
        assert low <= high
