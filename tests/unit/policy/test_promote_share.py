# SPDX-License-Identifier: GPL-2.0-only
"""The share of time in which promote_hot may move, by what users' reads take meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.frame import Frame, PathLatency
from ebbgate.model.records import Direction
from ebbgate.policy.strategies import promote_share
from ebbgate.policy.strategies.promote_share import (
    FELT_FACTOR_MAX,
    FELT_FACTOR_MIN,
    SHARE_MIN,
    ReadKind,
    TimeShare,
    felt_factor,
    return_ratio,
)
from ebbgate.units import NS_PER_S
from tests.builders import busy_frame

HIT, MISS, SLOW_MISS = 24, 48, 52
"""Buckets of latencies."""


def reads(at_s: int, hits: int = 0, misses: int = 0, miss_bucket: int = MISS) -> Frame:
    paths = {
        (Direction.READ, "hit"): path(hits, HIT),
        (Direction.READ, "miss"): path(misses, miss_bucket),
    }
    return busy_frame(at_s * 1000, window_ns=NS_PER_S, paths=paths)


def path(ios: int, bucket: int) -> PathLatency:
    return PathLatency(ios, ios * 4096, None, None, (*[0] * bucket, ios))


def seconds(share: TimeShare, frames: Iterable[Frame], *, moves: bool) -> TimeShare:
    for frame in frames:
        share = replace(share, busy_ns=NS_PER_S if moves else 0)
        share = promote_share.sample(share, frame)
    return share


def period(
    share: TimeShare,
    *,
    slower: bool,
    most: float = 0.5,
    ratio: float = 0.25,
    rest_ios: int = 100,
) -> TimeShare:
    """A period in which the mover reads every other five seconds. `rest_ios`: users' reads in each
    other second.
    """
    bucket = SLOW_MISS if slower else MISS
    for start_s in range(0, 30, 10):
        rest = [reads(start_s + second, misses=rest_ios) for second in range(5)]
        moves = [reads(start_s + 5 + n, misses=100, miss_bucket=bucket) for n in range(5)]
        share = seconds(seconds(share, rest, moves=False), moves, moves=True)
    return promote_share.close_period(share, most, ratio, moved=True)


def test_the_share_grows_slowly_and_is_halved_when_users_feel_the_mover() -> None:
    share = period(TimeShare(), slower=False)
    assert share.share == pytest.approx(0.45)
    felt = period(share, slower=True)
    assert felt.share == pytest.approx(0.225)
    assert felt.last is not None and felt.last.kind is ReadKind.DISK
    assert felt.last.moving_ns > 1.5 * felt.last.resting_ns


def test_what_moves_have_put_into_the_cache_does_not_count_as_a_rest() -> None:
    cold = seconds(TimeShare(), [reads(n, misses=100) for n in range(5)], moves=False)
    moved = seconds(cold, [reads(5 + n, misses=100) for n in range(5)], moves=True)
    # A quick read of the disk, since no client waits for it beside others.
    quick = [reads(10 + n, hits=900, misses=20, miss_bucket=40) for n in range(20)]
    rested = seconds(moved, quick, moves=False)
    share = promote_share.close_period(rested, 0.8, 0.25, moved=True)
    assert share.share == pytest.approx(0.45)
    assert share.last is not None and share.last.moving_ns == share.last.resting_ns


def test_hits_are_compared_with_hits_and_misses_with_misses() -> None:
    cold = seconds(TimeShare(), [reads(n, hits=900, misses=20) for n in range(5)], moves=False)
    moved = seconds(cold, [reads(5 + n, hits=100, misses=80) for n in range(5)], moves=True)
    assert promote_share.close_period(moved, 0.8, 0.25, moved=True).share == pytest.approx(0.45)
    slow = [reads(5 + n, hits=900, misses=20, miss_bucket=SLOW_MISS) for n in range(5)]
    felt = seconds(cold, slow, moves=True)
    assert promote_share.close_period(felt, 0.8, 0.25, moved=True).share == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("gain_ns", "cost_ns", "factor", "grown"),
    [
        (None, None, 2.0, 0.05),
        (5.0, 10.0, 1.5, 0.05),
        (-5.0, 10.0, FELT_FACTOR_MIN, 0.05),
        (30.0, 10.0, FELT_FACTOR_MAX, 0.15),
        (90.0, 10.0, FELT_FACTOR_MAX, 0.2),
    ],
)
def test_moves_that_bring_more_may_be_felt_more_and_grow_faster(
    gain_ns: float | None, cost_ns: float | None, factor: float, grown: float
) -> None:
    ratio = return_ratio(gain_ns, cost_ns)
    assert felt_factor(ratio) == pytest.approx(factor)
    share = period(TimeShare(), slower=False, most=0.8, ratio=ratio)
    assert share.share == pytest.approx(TimeShare().share + grown)


def test_rests_with_few_reads_are_counted_on_over_periods() -> None:
    share = TimeShare()
    for _ in range(4):
        # Each has fewer than fifteen seconds that count as rest.
        share = period(share, slower=True, rest_ios=1)
        assert share.share == TimeShare().share
    assert period(share, slower=True, rest_ios=1).share == pytest.approx(TimeShare().share / 2)


@given(st.lists(st.booleans(), max_size=40), st.floats(SHARE_MIN, 0.8))
def test_the_share_keeps_its_bounds(felt: list[bool], most: float) -> None:
    share = TimeShare()
    for slower in felt:
        share = period(share, slower=slower, most=most)
        assert SHARE_MIN <= share.share <= most
