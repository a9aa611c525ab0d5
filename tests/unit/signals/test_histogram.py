# SPDX-License-Identifier: GPL-2.0-only
"""Histograms with their trailing zeros missing: difference, fading, percentiles."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.signals.histogram import (
    bytes_beyond,
    cutoff_for,
    decay_add,
    latency_bucket_us,
    latency_percentile_ns,
    share_beyond,
    subtract,
    without_slowest,
)
from ebbgate.units import KIB, MIB

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
def test_the_difference_counts_what_was_added(before: list[int], added: list[int]) -> None:
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


# ---- bytes by run length ------------------------------------------------------------------------
RUNS = st.lists(st.integers(min_value=0, max_value=1 << 40), max_size=32)
CUTOFFS = st.integers(min_value=1, max_value=1 << 41)


def runs_of(**by_kib: int) -> tuple[int, ...]:
    """Bytes by run length: `k512=7` are 7 bytes in the bucket that starts at 512 KiB."""
    runs = [0] * 32
    for name, count in by_kib.items():
        runs[(int(name[1:]) * KIB // 512).bit_length() - 1] = count
    return tuple(runs)


@pytest.mark.parametrize(
    ("cutoff_bytes", "beyond"),
    [(1, 300), (4 * KIB, 300), (6 * KIB, 250), (8 * KIB, 200), (MIB, 200), (3 * MIB // 2, 100)],
)
def test_bytes_beyond_a_cutoff_are_linear_inside_a_bucket(cutoff_bytes: int, beyond: int) -> None:
    runs = runs_of(k4=100, k1024=200)
    assert bytes_beyond(runs, cutoff_bytes) == beyond
    assert share_beyond(runs, cutoff_bytes) == pytest.approx(beyond / 300)


def test_without_bytes_there_is_no_share() -> None:
    assert share_beyond((), 1) is None
    assert share_beyond((0, 0), 1) is None


@given(RUNS, CUTOFFS, CUTOFFS)
def test_a_higher_cutoff_never_bypasses_more(runs: list[int], one: int, other: int) -> None:
    assert bytes_beyond(runs, max(one, other)) <= bytes_beyond(runs, min(one, other)) * (1 + 1e-12)


@given(RUNS, CUTOFFS)
def test_a_share_is_between_nothing_and_all(runs: list[int], cutoff_bytes: int) -> None:
    share = share_beyond(runs, cutoff_bytes)
    assert share is None or 0 <= share <= 1


@pytest.mark.parametrize(
    ("name", "runs", "cutoff_bytes"),
    [
        ("nothing measured", (), 256 * KIB),
        ("only random", runs_of(k4=10 * MIB), 256 * KIB),
        ("one endless stream spares all that is shorter", runs_of(k65536=100 * MIB), 4 * MIB),
        ("streams of about 1 MiB", runs_of(k1024=100 * MIB), MIB),
        (
            "files of 300 KiB beside an endless stream: most bytes count",
            runs_of(k256=MIB, k65536=100 * MIB),
            4 * MIB,
        ),
    ],
)
def test_the_cutoff_is_as_high_as_the_curve_is_flat(
    name: str, runs: tuple[int, ...], cutoff_bytes: int
) -> None:
    assert cutoff_for(runs, 256 * KIB, 4 * MIB) == cutoff_bytes, name


@given(RUNS)
def test_the_cutoff_stays_within_its_bounds_and_bypasses_nearly_all(runs: list[int]) -> None:
    cutoff = cutoff_for(runs, 256 * KIB, 4 * MIB)
    assert 256 * KIB <= cutoff <= 4 * MIB
    assert bytes_beyond(runs, cutoff) >= 0.95 * bytes_beyond(runs, 256 * KIB) - 1e-6


@pytest.mark.parametrize(
    ("slowest", "kept"),
    [(0, [1, 0, 3, 2]), (1, [1, 0, 3, 1]), (4, [1, 0, 1, 0]), (6, [0] * 4), (9, [0] * 4)],
)
def test_the_slowest_requests_are_taken_out(slowest: int, kept: list[int]) -> None:
    assert without_slowest((1, 0, 3, 2), slowest) == kept
