# SPDX-License-Identifier: GPL-2.0-only
"""The miss-ratio curve: exact if all is seen, near the exact one from a sample."""

from __future__ import annotations

import random
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.signals.miss_ratio import BLOCK_BYTES, HALF_LIFE_NS, MissRatioCurve
from tests.bench.mrc import Sampling, sampled_curve
from tests.bench.stack_distance import Reference, exact_curve

SIZES_BYTES = [blocks * BLOCK_BYTES for blocks in range(65)]
REFERENCES = st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=200)


def zipf(reads: int, blocks: int, exponent: float) -> list[Reference]:
    """Reads of blocks in random places, of which few are read often."""
    source = random.Random(1)
    places = source.sample(range(blocks * 16), blocks)
    weights = list(accumulate((1 / (rank + 1)) ** exponent for rank in range(blocks)))
    return [(place, True) for place in source.choices(places, cum_weights=weights, k=reads)]


@given(REFERENCES)
def test_the_curve_is_exact_if_every_block_is_sampled(references: list[Reference]) -> None:
    found = sampled_curve(references, Sampling(sampled_of=1)).miss_ratios(SIZES_BYTES)
    exact = exact_curve(references)
    if exact.reads:
        assert found == pytest.approx(exact.miss_ratios(range(65)))
    else:
        assert found == (1.0,) * 65


@given(REFERENCES, st.integers(1, 8), st.integers(1, 16), st.integers(0, 1000))
def test_the_curve_falls_and_is_a_share(
    references: list[Reference], sampled_of: int, blocks_max: int, all_reads: int
) -> None:
    curve = sampled_curve(references, Sampling(sampled_of, blocks_max))
    curve.count_reads(all_reads)
    found = curve.miss_ratios(SIZES_BYTES)
    assert all(0 <= ratio <= 1 for ratio in found)
    assert all(small >= large for small, large in pairwise(found))


@pytest.mark.parametrize("exponent", [0.6, 0.8, 1.0])
def test_the_curve_of_a_sample_in_a_small_table_is_near_the_exact_one(exponent: float) -> None:
    references = zipf(40_000, 20_000, exponent)
    exact = exact_curve(references)
    sizes = [exact.blocks * part // 20 for part in range(1, 20)]
    curve = sampled_curve(references, Sampling(sampled_of=4, blocks_max=1000))
    found = curve.miss_ratios([size * BLOCK_BYTES for size in sizes])
    errors = [abs(a - b) for a, b in zip(found, exact.miss_ratios(sizes), strict=True)]
    assert sum(errors) / len(errors) <= 0.02


def test_a_hot_block_that_was_not_sampled_counts_as_hits() -> None:
    curve = MissRatioCurve(sampled_of=2)
    for block in range(100):
        for _ in range(block % 10 + 1):
            curve.refer(block, read=True)
    before = curve.miss_ratios([0, BLOCK_BYTES])
    assert before == pytest.approx((1.0, 100 / 550))
    # As many reads again, of blocks that were not sampled; 60 of them are more than chance allows.
    curve.count_reads(2 * 550 + 60)
    above = curve.miss_ratios([BLOCK_BYTES])
    assert 100 / 580 < above[0] < 100 / 550


def test_a_load_without_reuse_is_not_corrected() -> None:
    curve = MissRatioCurve()
    for block in range(50):
        curve.refer(block, read=True)
    curve.count_reads(70 * 256)
    assert curve.miss_ratios([BLOCK_BYTES, 1000 * BLOCK_BYTES]) == pytest.approx((1.0, 1.0))


def test_old_reads_count_half_after_a_day() -> None:
    curve = MissRatioCurve(sampled_of=1)
    curve.advance(0)
    for _ in range(8):
        curve.refer(1, read=True)
    curve.advance(HALF_LIFE_NS - 1)
    assert curve.reads == 8
    curve.advance(HALF_LIFE_NS)
    assert curve.reads == 4
    assert curve.miss_ratios([BLOCK_BYTES]) == (0.125,)
    for block in range(10, 18):
        curve.refer(block, read=True)
    assert curve.miss_ratios([BLOCK_BYTES]) == pytest.approx((8.5 / 12,))
    curve.advance(4 * HALF_LIFE_NS)
    assert curve.reads == 1.5


def test_a_load_that_moves_to_other_blocks_after_weeks_leaves_a_curve() -> None:
    for seed in range(8):
        source, curve = random.Random(seed), MissRatioCurve(blocks_max=64)
        for day in range(30):
            for _ in range(source.randrange(300, 2000)):
                curve.refer(source.randrange(5), read=True)
            curve.count_reads(300_000)
            curve.advance(1 + day * HALF_LIFE_NS)
        # They fill the table, so that none of the blocks that were read is followed any more.
        for block in range(100, 4100):
            curve.refer(block, read=False)
        assert all(0 <= ratio <= 1 for ratio in curve.miss_ratios(SIZES_BYTES))


def test_without_reads_everything_would_be_missed() -> None:
    curve = MissRatioCurve()
    curve.refer(1, read=False)
    assert curve.reads == 0
    assert curve.miss_ratios([BLOCK_BYTES, 1 << 40]) == (1.0, 1.0)
