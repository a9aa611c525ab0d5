# SPDX-License-Identifier: GPL-2.0-only
"""The reads of a warm-up cover all that was asked for, and no kernel takes them for a stream."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ebbgate.units import KIB, MIB
from ebbgate.warm.plan import (
    READ_BYTES_MAX,
    RUN_BYTES_MAX,
    UNIT_BYTES,
    BcachePlan,
    Piece,
    Read,
    aligned,
    block_count,
    blocks,
    blocks_max,
    cut_at,
    run_bytes_max,
    spread,
)


def whole(length: int, device: int = 0) -> Piece:
    return Piece(0, device, length)


def drained(plan: BcachePlan, run_max: int) -> list[Read]:
    found = []
    while (read := plan.next(run_max)) is not None:
        found.append(read)
    return found


@st.composite
def fragmented(draw: st.DrawFn) -> tuple[Piece, ...]:
    """A file in extents of 4 KiB to 3 MiB, anywhere on the device, some of them adjacent."""
    device = offset = 0
    found = []
    for gap, length in draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(1, 700)), min_size=1, max_size=30)
    ):
        device += gap * UNIT_BYTES
        found.append(Piece(offset, device, length * UNIT_BYTES))
        device += length * UNIT_BYTES
        offset += length * UNIT_BYTES
    order = draw(st.permutations(range(len(found))))
    return tuple(
        Piece(found[i].offset_bytes, found[i].device_bytes, found[i].length_bytes) for i in order
    )


def streams(pieces: tuple[Piece, ...], reads: list[Read]) -> list[int]:
    """Lengths of the sequences that the kernel counts: it remembers the last 128 ends."""
    ends: dict[int, int] = {}
    lengths = []
    for read in reads:
        piece = next(
            p
            for p in pieces
            if p.offset_bytes <= read.offset_bytes < p.offset_bytes + p.length_bytes
        )
        start = piece.device_bytes + read.offset_bytes - piece.offset_bytes
        length = ends.pop(start, 0) + read.length_bytes
        ends[start + read.length_bytes] = length
        lengths.append(length)
    return lengths


@given(fragmented(), st.sampled_from((64 * KIB, 256 * KIB, 1020 * KIB, RUN_BYTES_MAX)))
def test_every_byte_is_read_once_and_no_read_is_part_of_a_stream(
    pieces: tuple[Piece, ...], run_max: int
) -> None:
    sorted_pieces, cut = aligned(pieces, UNIT_BYTES)
    assert cut == 0
    reads = drained(BcachePlan(sorted_pieces), run_max)
    covered = sorted((r.offset_bytes, r.offset_bytes + r.length_bytes) for r in reads)
    assert covered[0][0] == 0
    assert all(end == start for (_, end), (start, _) in pairwise(covered))
    assert covered[-1][1] == sum(piece.length_bytes for piece in pieces)
    assert all(read.length_bytes <= READ_BYTES_MAX for read in reads)
    # What was left out may continue a sequence, by itself and by its neighbour.
    assert max(streams(pieces, reads)) <= run_max + UNIT_BYTES


def test_pieces_are_read_in_their_order() -> None:
    pieces, _ = aligned([Piece(0, 8 * MIB, MIB), Piece(MIB, 0, MIB)], UNIT_BYTES)
    assert drained(BcachePlan(pieces), RUN_BYTES_MAX) == [Read(0, MIB), Read(MIB, MIB)]


def test_a_shorter_run_is_obeyed_from_the_next_read_on() -> None:
    plan = BcachePlan((whole(8 * MIB),))
    assert plan.next(RUN_BYTES_MAX) == Read(0, MIB)
    assert plan.next(256 * KIB) == Read(MIB + UNIT_BYTES, 256 * KIB)
    assert list(plan.left_out) == [(MIB, Read(MIB, UNIT_BYTES))]


def test_run_lengths_stay_below_the_cutoff_with_a_margin() -> None:
    assert run_bytes_max(0) == RUN_BYTES_MAX
    assert run_bytes_max(64 * MIB) == RUN_BYTES_MAX
    assert 230_000 < run_bytes_max(256 * KIB) < 256 * KIB
    assert run_bytes_max(64 * KIB) == 0
    assert run_bytes_max(1) == 0


def test_pieces_are_cut_to_whole_units_of_the_device() -> None:
    pieces, cut = aligned([Piece(0, 1024, 9 * KIB), Piece(9 * KIB, 64 * KIB, 1024)], UNIT_BYTES)
    assert pieces == (Piece(3 * KIB, UNIT_BYTES, UNIT_BYTES),)
    assert cut == 6 * KIB


def test_places_are_spread_over_all_pieces() -> None:
    pieces = (Piece(0, 0, 10), Piece(10, 100, 5), Piece(15, 200, 10))
    assert [each.offset_bytes for each in spread(pieces, 6, 2)] == [2, 8, 14, 20]
    assert list(spread(pieces, 100, 12)) == [Read(12, 3)]


def test_each_touched_block_is_found_once_with_its_first_part() -> None:
    block = 64 * KIB
    pieces = (Piece(0, 60 * KIB, 8 * KIB), Piece(8 * KIB, 4 * block, 3 * block))
    assert tuple(blocks(pieces, block)) == (
        Read(0, 4 * KIB),
        Read(4 * KIB, 4 * KIB),
        Read(8 * KIB, block),
        Read(8 * KIB + block, block),
        Read(8 * KIB + 2 * block, block),
    )


@given(fragmented(), st.sampled_from((32 * KIB, 96 * KIB, MIB)), st.integers(0, MIB // 512))
def test_blocks_are_counted_as_they_are_read(
    pieces: tuple[Piece, ...], block: int, sectors: int
) -> None:
    shifted = [
        Piece(each.offset_bytes, each.device_bytes + 512 * sectors, each.length_bytes)
        for each in pieces
    ]
    in_order = sorted(shifted, key=lambda piece: piece.device_bytes)
    count = block_count(shifted, block)
    assert count == sum(1 for _ in blocks(in_order, block))
    assert count <= blocks_max(sum(piece.length_bytes for piece in pieces), len(pieces), block)


def test_what_lies_behind_the_end_of_a_file_is_cut() -> None:
    pieces = (Piece(8 * KIB, 0, 8 * KIB), Piece(0, 64 * KIB, 8 * KIB), Piece(MIB, 2 * MIB, KIB))
    assert list(cut_at(pieces, 12 * KIB)) == [Piece(8 * KIB, 0, 4 * KIB), pieces[1]]
