# SPDX-License-Identifier: GPL-2.0-only
"""Pieces of files become runs of chunks by owner."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.errors import Unavailable
from ebbgate.layout import chunk_owners
from ebbgate.layout.chunk_owners import ChunkOwners
from ebbgate.model.heat import CHUNK_BYTES, ChunkRun
from ebbgate.units import KIB, MIB

Pieces = list[tuple[int, int, int]]


def runs(pieces: Pieces) -> list[tuple[int, int, int]]:
    owners = ChunkOwners()
    for piece in pieces:
        owners.add(*piece)
    found, left_out = owners.runs()
    assert left_out == 0
    return [(run.first, run.end, run.group) for run in found]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], []),
        ([(0, 0, 3 * MIB)], [(0, 3, 0)]),
        ([(0, 4 * KIB, 4 * KIB)], [(0, 1, 0)]),
        ([(0, MIB - 4 * KIB, 4 * KIB)], [(0, 1, 0)]),
        ([(0, MIB // 2, 2 * MIB)], [(0, 3, 0)]),
        # The chunk in the middle has two owners.
        ([(0, 0, 1400 * KIB), (1, 1400 * KIB, 1672 * KIB)], [(0, 1, 0), (1, 3, 1)]),
        # Several pieces of one owner count together.
        ([(0, 0, 400 * KIB), (1, 400 * KIB, 300 * KIB), (1, 700 * KIB, 300 * KIB)], [(0, 1, 1)]),
        ([(1, 5 * MIB, MIB), (0, 0, MIB), (0, MIB, MIB)], [(0, 2, 0), (5, 6, 1)]),
        # Shared extents belong to the first.
        ([(0, 0, 4 * MIB), (1, MIB, MIB), (2, 3 * MIB, 4 * MIB)], [(0, 4, 0), (4, 7, 2)]),
    ],
)
def test_each_chunk_goes_to_the_one_that_owns_most_of_it(
    pieces: Pieces, expected: list[tuple[int, int, int]]
) -> None:
    assert runs(pieces) == expected


EXTENTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 700), st.integers(1, 900)), max_size=30
)


@given(EXTENTS)
def test_runs_agree_with_an_owner_found_chunk_by_chunk(extents: list[tuple[int, int, int]]) -> None:
    """Extents in KiB: group, gap before it, length."""
    owners, owned, at = ChunkOwners(), dict[int, Counter[int]](), 0
    for group, gap, length in extents:
        start, at = at + gap, at + gap + length
        owners.add(group, start * KIB, length * KIB)
        for place in range(start, at):
            owned.setdefault(place * KIB // CHUNK_BYTES, Counter())[group] += 1
    found, _ = owners.runs()
    by_chunk = {chunk: run.group for run in found for chunk in range(run.first, run.end)}
    assert by_chunk.keys() == owned.keys()
    assert all(
        owned[chunk][group] == max(owned[chunk].values()) for chunk, group in by_chunk.items()
    )
    assert all(left.end <= right.first for left, right in pairwise(found))


def test_the_longest_runs_are_kept_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunk_owners, "RUNS_MAX", 2)
    owners = ChunkOwners()
    for group, chunk, count in ((0, 9, 3), (1, 0, 1), (2, 4, 2)):
        owners.add(group, chunk * MIB, count * MIB)
    assert owners.runs() == ((ChunkRun(4, 6, 2), ChunkRun(9, 12, 0)), 1)


def test_too_many_pieces_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_owners, "PARTS_MAX", 3)
    owners = ChunkOwners()
    with pytest.raises(Unavailable, match="more than 3 pieces"):
        for number in range(5):
            owners.add(0, number * 2 * MIB, 4 * KIB)
