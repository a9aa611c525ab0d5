# SPDX-License-Identifier: GPL-2.0-only
"""Maps ranges of a file or device through the layers below it, down to cached volumes. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from ebbgate.errors import Unavailable
from ebbgate.layout.coverage import still_there

PIECES_MAX: Final = 1 << 20
"""More pieces than any use needs: about 200 MiB of memory."""
HOLE: Final = "a hole"


class LayerKind(StrEnum):
    """What a layer is. A `disk` is the lowest device of a stack that is not cached; a `guest disk`
    is what a guest sees of an image.
    """

    FILE = "file"
    GUEST_DISK = "guest disk"
    IMAGE = "image"
    LOOP = "loop"
    PARTITION = "partition"
    DM = "dm"
    VOLUME = "volume"
    DISK = "disk"


_LOWEST: Final = (LayerKind.VOLUME, LayerKind.DISK)
_SPARSE: Final = (LayerKind.FILE, LayerKind.IMAGE)


@dataclass(frozen=True, slots=True)
class Below:
    """A place in the layer of this name."""

    layer: str
    start_bytes: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a layer, and where it lies below.

    - `below`: one place, or one per stripe; empty where it cannot be used.
    - `chunk_bytes`: of a striped segment, else 0.
    - `why`: why it cannot be used; `fatal`: nothing of the layout may be used then.
    """

    start_bytes: int
    length_bytes: int
    below: tuple[Below, ...] = ()
    chunk_bytes: int = 0
    why: str = ""
    fatal: bool = False

    @property
    def end_bytes(self) -> int:
        """The offset in the layer behind it."""
        return self.start_bytes + self.length_bytes


@dataclass(frozen=True, slots=True)
class Layer:
    """A file or device; its segments are sorted and do not overlap.

    - `name`: kernel name of a device, path of a file.
    - `about`: name for people, or the file system.
    - `identity`: changes when another file or device has the name.
    """

    kind: LayerKind
    name: str
    size_bytes: int
    segments: tuple[Segment, ...] = ()
    about: str = ""
    identity: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of the top layer, and where it lies; `why`: why it lies nowhere that can be used."""

    offset_bytes: int
    length_bytes: int
    layer: str
    layer_bytes: int
    why: str = ""
    fatal: bool = False


Layers = Mapping[str, Layer]


def still_holds(before: Layer, now: Layer) -> bool:
    """Return whether what is known of a layer holds for it as it is now.

    A file may have got more data since: what has a place must still have it. Others must be equal.
    """
    if before.kind is not LayerKind.FILE:
        return before == now
    known = replace(before, size_bytes=now.size_bytes, segments=now.segments)
    if known != now or now.size_bytes < before.size_bytes:
        return False
    return still_there(_parts_below(before), _parts_below(now))


def _parts_below(file: Layer) -> Iterator[tuple[int, int, Below]]:
    """Yield the parts of a file that have a place."""
    for segment in file.segments:
        for below in segment.below:
            shift = below.start_bytes - segment.start_bytes
            yield segment.start_bytes, segment.end_bytes, Below(below.layer, shift)


def place(
    layers: Layers,
    top: str,
    start_bytes: int = 0,
    length_bytes: int = -1,
    pieces_max: int = PIECES_MAX,
) -> list[Piece]:
    """Return where a range of the layer `top` (all of it by default) lies, in order, merged.

    Raises Unavailable where there are too many pieces.
    """
    length = layers[top].size_bytes - start_bytes if length_bytes < 0 else length_bytes
    found: list[Piece] = []
    for count, piece in enumerate(_walk(layers, top, Piece(start_bytes, length, top, start_bytes))):
        if count == pieces_max:
            raise Unavailable(
                f"{top} lies in more than {pieces_max} pieces",
                "its place cannot be used; warm it by reading it",
            )
        if found and _adjacent(found[-1], piece):
            merged = found[-1].length_bytes + piece.length_bytes
            found[-1] = replace(found[-1], length_bytes=merged)
        else:
            found.append(piece)
    return found


def _adjacent(left: Piece, right: Piece) -> bool:
    if left.offset_bytes + left.length_bytes != right.offset_bytes:
        return False
    if (left.layer, left.why, left.fatal) != (right.layer, right.why, right.fatal):
        return False
    return bool(left.why) or left.layer_bytes + left.length_bytes == right.layer_bytes


def _walk(layers: Layers, name: str, piece: Piece) -> Iterator[Piece]:
    """Yield where a piece that lies in the layer `name` really lies."""
    layer = layers[name]
    if layer.kind in _LOWEST:
        yield from _within(layer, piece)
        return
    for part in _parts(layer, piece):
        if part.why:
            yield part
        else:
            yield from _walk(layers, part.layer, part)


def _within(layer: Layer, piece: Piece) -> Iterator[Piece]:
    """Cut a piece at the end of a device."""
    fits = max(0, min(piece.length_bytes, layer.size_bytes - piece.layer_bytes))
    if fits:
        yield replace(piece, length_bytes=fits)
    if fits < piece.length_bytes:
        rest = Piece(
            piece.offset_bytes + fits, piece.length_bytes - fits, layer.name, piece.layer_bytes
        )
        yield _behind(layer, rest)


def _behind(layer: Layer, piece: Piece) -> Piece:
    if layer.kind in _SPARSE:
        return replace(piece, why=HOLE)
    return replace(piece, why=f"behind the end of {layer.name}", fatal=True)


def _parts(layer: Layer, piece: Piece) -> Iterator[Piece]:
    """Yield a piece of the layer as pieces of the layers below."""
    at, end = piece.layer_bytes, piece.layer_bytes + piece.length_bytes
    shift = piece.offset_bytes - piece.layer_bytes
    first = bisect_right(layer.segments, at, key=lambda segment: segment.start_bytes) - 1
    for number in range(max(first, 0), len(layer.segments)):
        segment = layer.segments[number]
        if segment.start_bytes >= end:
            break
        if segment.end_bytes <= at:
            continue
        if segment.start_bytes > at:
            gap = segment.start_bytes - at
            yield _behind(layer, Piece(at + shift, gap, layer.name, at))
            at += gap
        stop = min(segment.end_bytes, end)
        yield from _through(layer, segment, Piece(at + shift, stop - at, layer.name, at))
        at = stop
    if at < end:
        yield _behind(layer, Piece(at + shift, end - at, layer.name, at))


def _through(layer: Layer, segment: Segment, piece: Piece) -> Iterator[Piece]:
    """Yield a piece that lies within one segment as pieces of the layers below."""
    inside = piece.layer_bytes - segment.start_bytes
    if not segment.below:
        yield replace(piece, layer=layer.name, why=segment.why, fatal=segment.fatal)
    elif not segment.chunk_bytes:
        (below,) = segment.below
        yield replace(piece, layer=below.layer, layer_bytes=below.start_bytes + inside)
    else:
        yield from _striped(segment, piece, inside)


def _striped(segment: Segment, piece: Piece, inside: int) -> Iterator[Piece]:
    """As stripe_map_sector in drivers/md/dm-stripe.c: chunks go round the stripes."""
    offset, left, chunk = piece.offset_bytes, piece.length_bytes, segment.chunk_bytes
    while left:
        number, within = divmod(inside, chunk)
        row, stripe = divmod(number, len(segment.below))
        length = min(left, chunk - within)
        below = segment.below[stripe]
        yield Piece(offset, length, below.layer, below.start_bytes + row * chunk + within)
        offset, inside, left = offset + length, inside + length, left - length
