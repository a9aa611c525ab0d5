# SPDX-License-Identifier: GPL-2.0-only
"""The miss-ratio curve of a volume, from the probe's records."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from ebbgate.model.records import Arrivals, Direction, ReuseSamples, Tick
from ebbgate.model.status import MissRatioStatus
from ebbgate.signals.miss_ratio import BLOCK_BYTES, SAMPLED_OF
from ebbgate.signals.volume_curve import READS_MIN, REFRESH_NS, VolumeCurve
from ebbgate.units import MIB, NS_PER_S
from tests.builders import tick

CACHE_BYTES = 64 * MIB
LOOP = 128
"""Sampled blocks of a loop over 128 MiB: it fits twice the cache, but not the cache."""


def samples(*blocks: int, write: bool = False) -> ReuseSamples:
    """References to sampled blocks."""
    return ReuseSamples("bcache0", 0, tuple(2 * block + write for block in blocks))


def tick_at(second: int, *, ios: int = 0, read_bytes: int = 0, lost: int = 0) -> Tick:
    """A tick with so many reads since the probe follows the volume."""
    arrivals = {Direction.READ: Arrivals(ios, read_bytes), Direction.WRITE: Arrivals()}
    base = tick(ns=second * NS_PER_S)
    return replace(base, arrivals=arrivals, lost={"reuse": lost})


def looped(rounds: int) -> VolumeCurve:
    """A curve that saw a loop over 128 MiB several times."""
    curve = VolumeCurve()
    curve.on_tracked()
    curve.on_tick(tick_at(0))
    for number in range(1, rounds + 1):
        curve.on_samples(samples(*(block * SAMPLED_OF for block in range(LOOP))))
        reads = number * LOOP * SAMPLED_OF
        curve.on_tick(tick_at(number, ios=reads // 16, read_bytes=reads * BLOCK_BYTES))
    return curve


def test_the_curve_tells_what_other_sizes_would_bring() -> None:
    found = looped(10).status(CACHE_BYTES, 11 * NS_PER_S)
    assert found.observed_ns == 11 * NS_PER_S
    assert found.sampled_reads == 10 * LOOP
    assert found.sizes_bytes[0] == CACHE_BYTES // 16
    assert found.sizes_bytes[-1] == CACHE_BYTES * 16
    assert found.sizes_bytes[len(found.sizes_bytes) // 2] == CACHE_BYTES
    assert all(small >= large for small, large in pairwise(found.miss_ratios))
    assert found.hit_ratio(-1) == found.hit_ratio(0) == 0
    assert found.hit_ratio(1) == found.hit_ratio(2) == pytest.approx(0.9)


def test_a_few_reads_show_no_curve() -> None:
    found = looped(1).status(CACHE_BYTES, NS_PER_S)
    assert found == MissRatioStatus(NS_PER_S, LOOP, READS_MIN)
    assert found.hit_ratio(0) is None


def test_a_cache_of_unknown_size_has_no_curve() -> None:
    found = looped(10).status(None, NS_PER_S)
    assert (found.sampled_reads, found.sizes_bytes) == (10 * LOOP, ())


def test_nothing_is_known_before_the_first_record() -> None:
    assert VolumeCurve().status(CACHE_BYTES, 5) == MissRatioStatus(0, 0, READS_MIN)


def test_a_probe_that_counts_anew_leaves_the_curve() -> None:
    curve = looped(10)
    before = curve.status(CACHE_BYTES, REFRESH_NS)
    curve.on_tracked()
    curve.on_tick(tick_at(11))
    after = curve.status(CACHE_BYTES, 2 * REFRESH_NS)
    assert replace(after, observed_ns=before.observed_ns) == before


def test_the_curve_is_computed_every_ten_seconds() -> None:
    curve = looped(10)
    before = curve.status(CACHE_BYTES, 0)
    curve.on_samples(samples(1, 2, 3))
    assert curve.status(CACHE_BYTES, REFRESH_NS - 1) is before
    assert curve.status(CACHE_BYTES, REFRESH_NS).sampled_reads == before.sampled_reads + 3


def test_reads_that_were_not_sampled_lower_the_misses_unless_samples_were_lost() -> None:
    def misses(lost: int) -> float:
        curve = VolumeCurve()
        for number in range(1, 101):
            # One block in ten is read ten times as often.
            hot = [0] * (number % 10) * (number < 60)
            curve.on_samples(samples(*hot, number * SAMPLED_OF, 0, 0))
        reads = 900 * SAMPLED_OF
        curve.on_tick(tick_at(1, read_bytes=reads * BLOCK_BYTES, lost=lost))
        return curve.status(CACHE_BYTES, 0).miss_ratios[0]

    assert misses(lost=0) < misses(lost=1)


def test_written_blocks_are_cached_but_no_reads() -> None:
    curve = VolumeCurve()
    curve.on_samples(samples(*range(READS_MIN), write=True))
    assert curve.status(CACHE_BYTES, 0).sampled_reads == 0
    curve.on_samples(samples(*range(READS_MIN)))
    assert curve.status(CACHE_BYTES * 16, REFRESH_NS).hit_ratio(4) == 1
