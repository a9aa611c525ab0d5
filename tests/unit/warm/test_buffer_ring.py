# SPDX-License-Identifier: GPL-2.0-only
"""Reads under way have parts of a buffer of their own, in whatever order they end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.warm.buffer_ring import BufferRing

SIZE = 64


def test_parts_follow_each_other_and_begin_anew_once_all_are_free() -> None:
    ring = BufferRing(SIZE)
    first, second = ring.take(16), ring.take(32)
    assert (first, second, ring.take(32)) == ((1, 0), (2, 16), None)
    ring.end(1)
    assert ring.take(16) == (3, 48)
    assert ring.take(16) == (4, 0)
    assert ring.take(1) is None
    for number in (2, 3, 4):
        ring.end(number)
    assert ring.take(SIZE) == (5, 0)


@pytest.mark.parametrize("length", [0, -1, SIZE + 1])
def test_what_never_fits_is_an_error(length: int) -> None:
    with pytest.raises(ValueError, match="a read of"):
        BufferRing(SIZE).take(length)


@given(st.lists(st.tuples(st.integers(1, SIZE), st.integers(0, 9)), max_size=60))
def test_no_two_parts_overlap(steps: list[tuple[int, int]]) -> None:
    ring, held = BufferRing(SIZE), dict[int, range]()
    for length, ended in steps:
        if (part := ring.take(length)) is not None:
            number, start = part
            mine = range(start, start + length)
            assert mine.stop <= SIZE
            assert all(mine.start >= each.stop or each.start >= mine.stop for each in held.values())
            held[number] = mine
        if ended < len(held):
            number = list(held)[ended]
            ring.end(number)
            del held[number]
    for number in list(held):
        ring.end(number)
    assert ring.take(SIZE) is not None
