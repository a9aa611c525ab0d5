# SPDX-License-Identifier: GPL-2.0-only
"""Hot ranges as text, and what no range may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.hot_set import (
    CHUNKS_MAX,
    TEXT_MAX,
    ChunkRange,
    check_ranges,
    fitting,
    ranges_from_text,
    ranges_to_text,
)
from ebbgate.units import INT64_MAX, MIB

RANGES = st.lists(
    st.builds(ChunkRange, st.integers(0, 1 << 40), st.integers(1, 1 << 20)), min_size=1, max_size=50
)


@given(RANGES)
def test_text_has_all_ranges_in_their_order(ranges: list[ChunkRange]) -> None:
    assert ranges_from_text(ranges_to_text(ranges)) == tuple(ranges)


def test_text_is_short() -> None:
    ranges = [ChunkRange(8, 2), ChunkRange(12), ChunkRange(0, 1)]
    assert ranges_to_text(ranges) == "8+1,2,-d"


def test_the_coldest_are_cut_from_a_text_that_is_too_long() -> None:
    ranges = [ChunkRange(number << 24) for number in range(CHUNKS_MAX)]
    text = ranges_to_text(ranges)
    assert TEXT_MAX - 20 < len(text) <= TEXT_MAX
    kept = ranges_from_text(text)
    assert kept == tuple(ranges[: len(kept)])


@pytest.mark.parametrize(
    "text", ["", "0x1", "1_0", "+1", "1+", "1,,2", " 1", "1\n", "g", "f" * 16, "-", "1+-1", "٣"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no list of ranges"):
        ranges_from_text(text)


def test_endless_text_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 60000 characters"):
        ranges_from_text("0," * TEXT_MAX)


def test_text_of_too_many_ranges_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(ValueError, match=f"more than {CHUNKS_MAX} chunks"):
        ranges_from_text("0," * 29_999 + "x")
    assert len(ranges_from_text(",".join(["0"] * CHUNKS_MAX))) == CHUNKS_MAX


@pytest.mark.parametrize(
    ("ranges", "chunk", "why"),
    [
        ([], MIB, "no range"),
        ([ChunkRange(0)], MIB + 1, "power of two"),
        ([ChunkRange(0)], MIB // 2, "power of two"),
        ([ChunkRange(0)], 0, "power of two"),
        ([ChunkRange(-1)], MIB, "outside"),
        ([ChunkRange(0, 0)], MIB, "outside"),
        ([ChunkRange(INT64_MAX // MIB, 2)], MIB, "outside"),
        ([ChunkRange(4, 2), ChunkRange(0, 5)], MIB, "overlap"),
        ([ChunkRange(1), ChunkRange(1)], MIB, "overlap"),
        ([ChunkRange(0, CHUNKS_MAX + 1)], MIB, "more than"),
    ],
)
def test_ranges_that_cannot_be_are_refused(ranges: list[ChunkRange], chunk: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_ranges(ranges, chunk)


def test_the_hottest_fit() -> None:
    ranges = [ChunkRange(8, 2), ChunkRange(0, 5), ChunkRange(20)]
    assert fitting(ranges, 4) == (ChunkRange(8, 2), ChunkRange(0, 2))
    assert fitting(ranges, 0) == ()
    assert fitting(ranges, 99) == tuple(ranges)
