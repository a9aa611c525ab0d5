# SPDX-License-Identifier: GPL-2.0-only
"""The wait that is learned from idle gaps: short where gaps last, long where they do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.signals.gaps import WaitParams, bucket_edges_ns, learn_wait, reaching
from ebbgate.units import NS_PER_MS, NS_PER_S, NS_PER_US

PARAMS = WaitParams()
GAPS = st.lists(st.floats(min_value=0, max_value=1e6), max_size=32)
WAITS = st.integers(min_value=1, max_value=60 * NS_PER_S)


def gaps_of(lengths_ms: Mapping[float, float]) -> tuple[float, ...]:
    """A histogram from gap lengths in milliseconds and their counts."""
    counts = [0.0] * 32
    for length_ms, count in lengths_ms.items():
        counts[int(length_ms * 1000).bit_length() - 1] += count
    return tuple(counts)


@pytest.mark.parametrize(
    ("name", "gaps", "low_ms", "high_ms"),
    [
        # A read each second resets any wait of a second; the gaps themselves are worth it at once.
        ("periodic trickle", {1000: 60}, 30, 30),
        ("slow trickle", {30_000: 10}, 30, 30),
        # Pauses within a burst, and gaps of seconds between bursts: wait out the pauses.
        ("bimodal", {5: 2000, 2500: 10}, 30, 60),
        ("longer pauses", {100: 1000, 2500: 10}, 120, 300),
        # Pauses of 200 ms are not worth a disturbed return each.
        ("only short gaps", {200: 500}, 250, 320),
        ("short gaps and long ones", {200: 500, 60_000: 3}, 250, 320),
        ("no gap is worth a return", {400: 5, 200: 5000}, 524, 630),
    ],
)
def test_the_wait_that_is_learned(
    name: str, gaps: Mapping[float, float], low_ms: float, high_ms: float
) -> None:
    wait = learn_wait(gaps_of(gaps), PARAMS)
    assert wait.learned, name
    assert low_ms * NS_PER_MS <= wait.wait_ns <= high_ms * NS_PER_MS, name


@pytest.mark.parametrize(
    "gaps", [{}, {2500: 2}, {1: 10_000, 10: 10_000}], ids=["unknown", "too few", "all too short"]
)
def test_with_too_few_gaps_the_wait_is_the_default(gaps: Mapping[float, float]) -> None:
    wait = learn_wait(gaps_of(gaps), PARAMS)
    assert (wait.wait_ns, wait.learned) == (PARAMS.default_ns, False)


def test_a_dearer_return_makes_the_wait_longer() -> None:
    gaps = gaps_of({100: 200, 400: 50, 3000: 10})
    cheap = learn_wait(gaps, WaitParams(disturbance_cost_ns=20 * NS_PER_MS))
    dear = learn_wait(gaps, WaitParams(disturbance_cost_ns=1000 * NS_PER_MS))
    assert cheap.wait_ns < dear.wait_ns


@given(GAPS)
def test_the_wait_is_always_within_its_bounds(counts: list[float]) -> None:
    wait = learn_wait(counts, PARAMS)
    assert PARAMS.min_ns <= wait.wait_ns <= PARAMS.max_ns


def rest_sum_ns(counts: Sequence[float], wait_ns: int) -> float:
    """Return the time that is left of all gaps after `wait_ns` of each; linear in a bucket."""
    total = 0.0
    for bucket, count in enumerate(counts):
        low, high = bucket_edges_ns(bucket)
        if wait_ns <= low:
            total += count * ((low + high) / 2 - wait_ns)
        elif wait_ns < high:
            total += count * (high - wait_ns) ** 2 / (2 * (high - low))
    return total


@given(GAPS)
def test_the_learned_wait_has_the_highest_utility_on_the_way(counts: list[float]) -> None:
    def utility(wait_ns: int) -> float:
        return rest_sum_ns(counts, wait_ns) - PARAMS.disturbance_cost_ns * reaching(counts, wait_ns)

    wait = learn_wait(counts, PARAMS)
    if wait.learned:
        slack = 1e-5 * PARAMS.disturbance_cost_ns * (1 + sum(counts))
        for step in range(8):
            assert utility(wait.wait_ns) >= utility(PARAMS.min_ns << step) - slack


@given(GAPS, WAITS, WAITS)
def test_fewer_gaps_reach_a_longer_wait(counts: list[float], one: int, other: int) -> None:
    short, long = min(one, other), max(one, other)
    slack = 1e-9 * (1 + sum(counts))
    assert reaching(counts, long) <= reaching(counts, short) + slack


def test_inside_a_bucket_gaps_are_spread_evenly() -> None:
    counts = (*[0.0] * 20, 4.0)
    low_ns, high_ns = bucket_edges_ns(20)
    quarter_ns = low_ns + (high_ns - low_ns) // 4
    assert reaching(counts, quarter_ns) == pytest.approx(3)
    assert reaching(counts, high_ns) == 0


@given(GAPS)
def test_every_gap_reaches_no_wait(counts: list[float]) -> None:
    assert reaching(counts, NS_PER_US) == pytest.approx(sum(counts))
