# SPDX-License-Identifier: GPL-2.0-only
"""Misses by place in the last minutes: old ones fade, few chunks are kept, and none is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.heat import ChunkMisses, HeatPeriod
from ebbgate.signals.recent_misses import (
    HALF_LIFE_NS,
    RecentMisses,
    add_period,
    bin_chunks,
    binned,
    middle_chunk,
)
from ebbgate.units import NS_PER_S


def period(start_s: int, *chunks: ChunkMisses, left_out: int = 0, dropped: int = 0) -> HeatPeriod:
    return HeatPeriod(start_s * NS_PER_S, (start_s + 10) * NS_PER_S, chunks, left_out, dropped)


def test_misses_of_all_kinds_count_alike() -> None:
    found = add_period(RecentMisses(), period(5, ChunkMisses(3, 4, 2, 1), left_out=5, dropped=2))
    assert found == RecentMisses({3: 7}, 7, 10 * NS_PER_S, 15 * NS_PER_S)


def test_misses_of_a_half_life_ago_count_half() -> None:
    found = add_period(RecentMisses(), period(0, ChunkMisses(3, 8), left_out=6))
    later_s = HALF_LIFE_NS // NS_PER_S
    found = add_period(found, period(later_s, ChunkMisses(9, 1)))
    assert found.chunks == {3: pytest.approx(4), 9: 1}
    assert found.unlisted == pytest.approx(3)
    assert found.observed_ns == pytest.approx(15 * NS_PER_S)


def test_only_the_hottest_chunks_are_kept_and_the_others_counted() -> None:
    many = period(0, *(ChunkMisses(chunk, 1 + chunk // 4096) for chunk in range(8192)))
    found = add_period(RecentMisses(), many)
    assert min(found.chunks) == 4096
    assert found.unlisted == 4096


@pytest.mark.parametrize(
    ("chunk_count", "expected"), [(0, 1), (1, 1), (256, 1), (257, 2), (512, 2), (1 << 20, 4096)]
)
def test_parts_are_as_small_as_their_number_allows(chunk_count: int, expected: int) -> None:
    assert bin_chunks(chunk_count, 256) == expected


def test_what_is_beyond_the_end_is_in_no_part() -> None:
    values = [(0, 1.4), (1, 1.4), (4, 2), (5, 7)]
    assert binned(values, 5, 2) == (3, 0, 2)


@given(st.dictionaries(st.integers(0, 999), st.integers(0, 50)), st.integers(1, 300))
def test_parts_have_all_misses(misses: dict[int, int], bins_max: int) -> None:
    found = binned(misses.items(), 1000, bin_chunks(1000, bins_max))
    assert sum(found) == sum(misses.values())
    assert len(found) <= bins_max


@given(st.dictionaries(st.integers(0, 1 << 20), st.floats(0.5, 1e6), min_size=1, max_size=50))
def test_from_the_middle_chunk_the_way_to_the_misses_is_shortest(
    chunks: dict[int, float],
) -> None:
    def way(place: int) -> float:
        return sum(misses * abs(chunk - place) for chunk, misses in chunks.items())

    found = middle_chunk(RecentMisses(chunks))
    assert found in chunks
    assert way(found) <= min(map(way, chunks)) * (1 + 1e-9)


def test_without_misses_there_is_no_middle() -> None:
    assert middle_chunk(RecentMisses()) is None
