# SPDX-License-Identifier: GPL-2.0-only
"""Reuse distances of sampled blocks, checked by a list in the order of the last reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.signals.reuse import Reference, ReuseTable

BLOCKS = st.lists(st.integers(min_value=0, max_value=40), max_size=200)


def exact_distances(blocks: Sequence[int]) -> list[int | None]:
    """The distances by definition."""
    stack: list[int] = []
    found: list[int | None] = []
    for block in blocks:
        found.append(stack.index(block) if block in stack else None)
        stack = [block, *(each for each in stack if each != block)]
    return found


@given(BLOCKS)
def test_distances_are_exact_while_the_table_has_room(blocks: list[int]) -> None:
    table = ReuseTable()
    found = [table.refer(block) for block in blocks]
    assert found == [Reference(distance, 1.0) for distance in exact_distances(blocks)]
    counts = Counter(blocks).values()
    assert table.skew == (len(blocks), sum(count**2 for count in counts))


@given(BLOCKS, st.integers(min_value=1, max_value=8))
def test_the_table_is_bounded_and_its_distances_are_those_of_the_followed_blocks(
    blocks: list[int], blocks_max: int
) -> None:
    table = ReuseTable(blocks_max)
    found = [(block, table.refer(block)) for block in blocks]
    assert len(table) <= blocks_max
    weights = [each.weight for _, each in found if each is not None]
    assert weights == sorted(weights)
    # Those that are followed at the end were followed all the time.
    kept = [(block, each) for block, each in found if table.refer(block) is not None]
    distances = exact_distances([block for block, _ in kept])
    for (_, reference), exact in zip(kept, distances, strict=True):
        assert reference is not None
        if exact is None:
            assert reference.distance is None
        else:
            # Blocks that were dropped since came between.
            assert reference.distance is not None
            assert reference.distance >= exact * reference.weight


def test_a_full_table_follows_a_smaller_share_of_the_blocks() -> None:
    table = ReuseTable(blocks_max=100)
    for block in range(10_000):
        table.refer(block)
    assert len(table) == 100
    assert table.weight == pytest.approx(100, rel=0.3)
    again = [found for block in range(10_000) if (found := table.refer(block)) is not None]
    assert sum(each.weight for each in again) == pytest.approx(10_000, rel=0.3)
    assert all(each.distance == pytest.approx(10_000, rel=0.3) for each in again[1:])


def test_writes_keep_a_block_in_the_cache_but_are_not_counted() -> None:
    table = ReuseTable()
    table.refer(1)
    table.refer(2, counted=False)
    assert table.refer(1, counted=False) == Reference(1.0, 1.0)
    assert table.refer(1) == Reference(0.0, 1.0)
    assert table.skew == (2, 4)


def test_halving_lets_old_references_count_less() -> None:
    table = ReuseTable()
    for block in (1, 1, 1, 1, 2):
        table.refer(block)
    table.halve()
    assert table.skew == (2.5, 4.25)
