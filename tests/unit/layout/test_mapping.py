# SPDX-License-Identifier: GPL-2.0-only
"""A range is mapped through any layers as each of its bytes is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.errors import Unavailable
from ebbgate.layout.mapping import (
    HOLE,
    Below,
    Layer,
    LayerKind,
    Layers,
    Piece,
    Segment,
    place,
    still_holds,
)

MIB = 1 << 20
VOLUME = Layer(LayerKind.VOLUME, "bcache0", 64 * MIB)


def stack(*layers: Layer) -> dict[str, Layer]:
    return {layer.name: layer for layer in layers}


def linear(
    kind: LayerKind, name: str, size: int, below: str, start: int, segment_start: int = 0
) -> Layer:
    segment = Segment(segment_start, size, (Below(below, start),))
    return Layer(kind, name, segment_start + size, (segment,))


# ---- tables -------------------------------------------------------------------------------------
def test_a_partition_shifts_a_range() -> None:
    layers = stack(linear(LayerKind.PARTITION, "bcache0p1", 8 * MIB, "bcache0", MIB), VOLUME)
    assert place(layers, "bcache0p1", 4096, 8192) == [Piece(4096, 8192, "bcache0", MIB + 4096)]


def test_two_segments_side_by_side_become_one_piece() -> None:
    halves = (Segment(0, MIB, (Below("bcache0", 0),)), Segment(MIB, MIB, (Below("bcache0", MIB),)))
    layers = stack(Layer(LayerKind.DM, "dm-0", 2 * MIB, halves), VOLUME)
    assert place(layers, "dm-0") == [Piece(0, 2 * MIB, "bcache0", 0)]


def test_stripes_go_round_their_devices() -> None:
    other = Layer(LayerKind.VOLUME, "bcache1", 64 * MIB)
    stripes = (Below("bcache0", 0), Below("bcache1", MIB))
    layers = stack(
        Layer(LayerKind.DM, "dm-0", 4 * 65536, (Segment(0, 4 * 65536, stripes, 65536),)),
        VOLUME,
        other,
    )
    assert place(layers, "dm-0", 4096, 3 * 65536 - 4096) == [
        Piece(4096, 65536 - 4096, "bcache0", 4096),
        Piece(65536, 65536, "bcache1", MIB),
        Piece(2 * 65536, 65536, "bcache0", 65536),
    ]


def test_holes_of_a_file_are_left_out() -> None:
    extents = (Segment(4096, 4096, (Below("bcache0", 0),)), Segment(8192, 4096, why="unwritten"))
    layers = stack(Layer(LayerKind.FILE, "/f", 16384, extents), VOLUME)
    assert place(layers, "/f") == [
        Piece(0, 4096, "/f", 0, HOLE),
        Piece(4096, 4096, "bcache0", 0),
        Piece(8192, 4096, "/f", 8192, "unwritten"),
        Piece(12288, 4096, "/f", 12288, HOLE),
    ]


def test_what_is_behind_the_end_of_a_file_is_not_its_data() -> None:
    layers = stack(
        Layer(LayerKind.FILE, "/f", 100, (Segment(0, 4096, (Below("bcache0", 0),)),)), VOLUME
    )
    assert place(layers, "/f") == [Piece(0, 100, "bcache0", 0)]


@pytest.mark.parametrize("start", [64 * MIB - 4096, 64 * MIB, 128 * MIB])
def test_an_extent_behind_the_end_of_the_volume_is_fatal(start: int) -> None:
    layers = stack(linear(LayerKind.FILE, "/f", 8192, "bcache0", start), VOLUME)
    last = place(layers, "/f")[-1]
    assert (last.fatal, last.why) == (True, "behind the end of bcache0")


def test_an_extent_behind_the_end_of_a_partition_is_fatal() -> None:
    part = linear(LayerKind.PARTITION, "bcache0p1", 4096, "bcache0", MIB)
    layers = stack(linear(LayerKind.FILE, "/f", 8192, "bcache0p1", 0), part, VOLUME)
    assert place(layers, "/f")[-1].fatal


def test_a_stack_of_too_many_pieces_is_refused() -> None:
    stripes = (Below("bcache0", 0), Below("bcache0", MIB))
    layers = stack(Layer(LayerKind.DM, "dm-0", MIB, (Segment(0, MIB, stripes, 4096),)), VOLUME)
    with pytest.raises(Unavailable, match="dm-0 lies in more than 8 pieces"):
        place(layers, "dm-0", pieces_max=8)


# ---- against a model of single bytes ------------------------------------------------------------
SIZE = 48
"""Of each layer, in bytes: the arithmetic knows no sectors."""


@st.composite
def segment_lists(draw: st.DrawFn, below: list[str]) -> tuple[Segment, ...]:
    """Segments with gaps between them, of every form, onto any layer below."""
    found, at = [], draw(st.integers(0, 5))
    while at < SIZE:
        length = draw(st.integers(1, 20))
        places = st.builds(Below, st.sampled_from(below), st.integers(0, SIZE))
        form = draw(st.sampled_from(["linear", "striped", "unusable"]))
        if form == "linear":
            found.append(Segment(at, length, (draw(places),)))
        elif form == "striped":
            stripes = draw(st.lists(places, min_size=1, max_size=3))
            found.append(Segment(at, length, tuple(stripes), draw(st.integers(1, 6))))
        else:
            found.append(Segment(at, length, why="unusable"))
        at += length + draw(st.sampled_from([0, 0, 1, 4]))
    return tuple(found)


@st.composite
def stacks(draw: st.DrawFn) -> dict[str, Layer]:
    """A file on up to three levels of two devices each, on two volumes."""
    volumes = [Layer(LayerKind.VOLUME, f"v{n}", draw(st.integers(1, SIZE))) for n in range(2)]
    levels = [volumes]
    for level in range(draw(st.integers(0, 3))):
        below = [layer.name for layer in levels[-1]]
        levels.append(
            [
                Layer(LayerKind.DM, f"d{level}-{n}", SIZE, draw(segment_lists(below)))
                for n in range(2)
            ]
        )
    extents = draw(segment_lists([layer.name for layer in levels[-1]]))
    top = Layer(LayerKind.FILE, "/f", draw(st.integers(0, SIZE)), extents)
    return stack(top, *(layer for level in levels for layer in level))


def byte(layers: Layers, name: str, at: int) -> tuple[str, int] | str:
    """Return where one byte lies, or why it lies nowhere."""
    layer = layers[name]
    if layer.kind is LayerKind.VOLUME:
        return (name, at) if at < layer.size_bytes else f"behind the end of {name}"
    for segment in layer.segments:
        inside = at - segment.start_bytes
        if not 0 <= inside < segment.length_bytes:
            continue
        if not segment.below:
            return segment.why
        if not segment.chunk_bytes:
            return byte(layers, segment.below[0].layer, segment.below[0].start_bytes + inside)
        chunk, within = inside // segment.chunk_bytes, inside % segment.chunk_bytes
        below = segment.below[chunk % len(segment.below)]
        row = chunk // len(segment.below)
        return byte(layers, below.layer, below.start_bytes + row * segment.chunk_bytes + within)
    return HOLE if layer.kind is LayerKind.FILE else f"behind the end of {name}"


@given(layers=stacks(), start=st.integers(0, SIZE), length=st.integers(0, SIZE))
def test_a_range_is_mapped_as_its_bytes_are(
    layers: dict[str, Layer], start: int, length: int
) -> None:
    pieces = place(layers, "/f", start, length)
    found = {
        piece.offset_bytes + n: piece.why or (piece.layer, piece.layer_bytes + n)
        for piece in pieces
        for n in range(piece.length_bytes)
    }
    assert found == {at: byte(layers, "/f", at) for at in range(start, start + length)}
    assert sum(piece.length_bytes for piece in pieces) == length


# ---- what still holds ----------------------------------------------------------------------------
Blocks = list[int | None]
"""Where each block of a file lies; None: nowhere."""
BLOCKS = st.lists(st.sampled_from([None, 4, 5, 6, 7]), min_size=1, max_size=5)


def file_of(blocks: Blocks, cuts: set[int]) -> Layer:
    """A file of these blocks; contiguous ones are one segment, except at a cut."""
    segments: list[Segment] = []
    for number, at in enumerate(blocks):
        last = segments[-1] if segments else None
        below = () if at is None else (Below("bcache0", at),)
        follows = last and last.below and last.below[0].start_bytes + last.length_bytes == at
        if last and follows and number not in cuts:
            segments[-1] = Segment(last.start_bytes, last.length_bytes + 1, last.below)
        else:
            segments.append(Segment(number, 1, below))
    return Layer(LayerKind.FILE, "data", len(blocks), tuple(segments))


@given(BLOCKS, BLOCKS, st.sets(st.integers(1, 4)), st.sets(st.integers(1, 4)))
def test_a_file_still_holds_if_each_block_with_a_place_has_it(
    before: Blocks, now: Blocks, cuts: set[int], new_cuts: set[int]
) -> None:
    same = len(now) >= len(before) and all(
        old in (None, new) for old, new in zip(before, now, strict=False)
    )
    assert still_holds(file_of(before, cuts), file_of(now, new_cuts)) is same


def test_a_device_holds_only_if_it_is_equal() -> None:
    one = linear(LayerKind.PARTITION, "bcache0p1", 8 * MIB, "bcache0", MIB)
    larger = linear(LayerKind.PARTITION, "bcache0p1", 9 * MIB, "bcache0", MIB)
    assert still_holds(one, one)
    assert not still_holds(one, larger)
