# SPDX-License-Identifier: GPL-2.0-only
"""Checks what ebbgate-agent says of a guest, and joins it to the image of its disk.

A guest may lie or hang: sizes, types, ranges and counts are bounded, each layer may name only
layers behind it, and whatever it says lies within its own image. I/O: reads the document.
"""

from __future__ import annotations

import json
import os
import select
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbgate.errors import Unavailable, UsageError
from ebbgate.layout.guest_agent import VERSION
from ebbgate.layout.mapping import Below, Layer, LayerKind, Layers, Segment
from ebbgate.text import clean_text
from ebbgate.units import SECTOR_BYTES

DOCUMENT_BYTES_MAX: Final = 64 << 20
READ_S: Final = 120.0
BESIDE: Final = ".guest.json"
"""Ends the name of a document beside a disk image: what the agent says in that guest."""
_BESIDE_BYTES_MAX: Final = 8 << 20
_FILES_MAX: Final = 10_000
_SEGMENTS_MAX: Final = 1 << 19
_STRIPES_MAX: Final = 128
_DEPTH_MAX: Final = 16
_NAME_CHARS_MAX: Final = 4096
_SIZE_MAX: Final = 1 << 60
_READ_BYTES: Final = 1 << 20
_PREFIX: Final = "guest:"
_KINDS: Final = (LayerKind.FILE, LayerKind.PARTITION, LayerKind.DM, LayerKind.DISK)
_AGAIN: Final = "run `ebbgate layout agent` of this version in the guest again"


class _Wrong(ValueError):
    """What is wrong with the document."""


@dataclass(frozen=True, slots=True)
class GuestLayout:
    """What a guest says: its layers by name, which of them are files, and what it could not map."""

    layers: Mapping[str, Layer]
    files: tuple[str, ...]
    errors: tuple[str, ...]

    def on_image(self, image: Layer, disk: str) -> dict[str, Layer]:
        """Return the layers with the guest's disk on top of the disk in an image.

        `disk`: its name in the guest; empty for the only one. Raises UsageError.
        """
        disks = [each for each in self.layers.values() if each.kind is LayerKind.DISK]
        names = [each.name.removeprefix(_PREFIX) for each in disks]
        chosen = [each for each in disks if disk in ("", each.name.removeprefix(_PREFIX))]
        if len(chosen) != 1:
            what = f"the guest has no disk {disk}" if disk else f"the guest has {len(disks)} disks"
            raise UsageError(what, f"name the one in the image: --disk {' or '.join(names)}")
        (own,) = chosen
        if own.size_bytes != image.size_bytes:
            raise UsageError(
                f"the guest's {own.name.removeprefix(_PREFIX)} has {own.size_bytes} bytes, "
                f"{image.name} {image.size_bytes}",
                "name its own image, or another disk with --disk",
            )
        segment = Segment(0, own.size_bytes, (Below(image.name, 0),))
        joined = Layer(LayerKind.GUEST_DISK, own.name, own.size_bytes, (segment,))
        return {**self.layers, own.name: joined}


def reachable(layers: Layers, top: str) -> dict[str, Layer]:
    """Return the layers below one, itself first."""
    found: dict[str, Layer] = {}
    waiting = [top]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = layers[name]
            below = {each.layer for segment in layers[name].segments for each in segment.below}
            waiting += sorted(below - found.keys())
    return found


def read_document(handle: int, seconds: float = READ_S) -> GuestLayout:
    """Read and check a document. Raises Unavailable for one that is wrong, too long or too late."""
    deadline = time.monotonic() + seconds
    data = bytearray()
    while True:
        ready, _, _ = select.select([handle], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise Unavailable(f"the guest did not answer within {seconds:g} s", "is it hanging?")
        chunk = os.read(handle, _READ_BYTES)
        if not chunk:
            return parse(bytes(data))
        data += chunk
        if len(data) > DOCUMENT_BYTES_MAX:
            raise Unavailable(
                f"the guest says more than {DOCUMENT_BYTES_MAX >> 20} MiB", "name fewer files"
            )


def has_beside(image: Path) -> bool:
    """Return whether a document is beside a file, so that it is a disk image."""
    return os.path.lexists(_beside(image))


def read_beside(image: Path) -> GuestLayout | None:
    """Read the document beside a disk image; None without one. Raises Unavailable, OSError."""
    path = _beside(image)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _BESIDE_BYTES_MAX:
            raise Unavailable(f"{path} is no file of at most {_BESIDE_BYTES_MAX >> 20} MiB")
        return parse(os.read(handle, _BESIDE_BYTES_MAX))
    finally:
        os.close(handle)


def _beside(image: Path) -> Path:
    return image.with_name(image.name + BESIDE)


def parse(data: bytes) -> GuestLayout:
    """Check a document. Raises Unavailable."""
    try:
        document = json.loads(data)
        return _checked(document)
    except _Wrong as error:
        raise Unavailable(f"what the guest says cannot be used: {error}", _AGAIN) from error
    except MemoryError as error:
        raise Unavailable(
            "what the guest says takes too much memory", "name fewer files"
        ) from error
    except (ValueError, RecursionError) as error:
        raise Unavailable("what the guest says is no JSON document", _AGAIN) from error


def _checked(document: object) -> GuestLayout:
    if not isinstance(document, dict) or document.get("ebbgate_agent") != VERSION:
        raise _Wrong(f"it is not from an agent of version {VERSION}")
    rows = _list(document.get("layers"), "layers", _FILES_MAX * 2)
    layers: dict[str, Layer] = {}
    depths: dict[str, int] = {}
    room = _SEGMENTS_MAX
    # From the end: each layer may name only those behind it, so that none contains itself.
    for row in reversed(rows):
        layer = _layer(row, layers, room)
        room -= len(layer.segments)
        if layer.name in layers:
            raise _Wrong("two layers have one name")
        below = {each.layer for segment in layer.segments for each in segment.below}
        depths[layer.name] = 1 + max((depths[each] for each in below), default=0)
        if depths[layer.name] > _DEPTH_MAX:
            raise _Wrong("too many layers lie on each other")
        layers[layer.name] = layer
    files = tuple(_name(each) for each in _list(document.get("files"), "files", _FILES_MAX))
    if any(name not in layers or layers[name].kind is not LayerKind.FILE for name in files):
        raise _Wrong("a file is no layer")
    return GuestLayout(layers, files, tuple(_errors(document.get("errors"))))


def _errors(rows: object) -> Iterator[str]:
    for row in _list(rows, "errors", _FILES_MAX):
        if not isinstance(row, dict):
            raise _Wrong("an error is no object")
        path, why = (clean_text(str(row.get(key)), 300) for key in ("path", "why"))
        yield f"{_PREFIX}{path}: {why}"


def _layer(row: object, behind: Layers, room: int) -> Layer:
    if not isinstance(row, dict) or row.get("kind") not in _KINDS:
        raise _Wrong("a layer is of no known kind")
    segments = tuple(
        _segment(each, behind) for each in _list(row.get("segments"), "segments", room)
    )
    ends = [0, *(segment.end_bytes for segment in segments)]
    starts = [segment.start_bytes for segment in segments]
    if any(start < end for start, end in zip(starts, ends, strict=False)):
        raise _Wrong("segments overlap")
    about = clean_text(str(row.get("about", "")), 100)
    kind, name, size = LayerKind(row["kind"]), _name(row.get("name")), _size(row.get("size_bytes"))
    if kind is LayerKind.DISK and segments:
        raise _Wrong("a disk lies on something")
    return Layer(kind, name, size, segments, about)


def _segment(row: object, behind: Layers) -> Segment:
    if not isinstance(row, dict):
        raise _Wrong("a segment is no object")
    below = tuple(_below(each, behind) for each in _list(row.get("below"), "places", _STRIPES_MAX))
    chunk, why = _size(row.get("chunk_bytes")), row.get("why")
    if chunk % SECTOR_BYTES or (len(below) > 1 and not chunk):
        raise _Wrong("stripes without chunks of sectors")
    if not isinstance(why, str) or bool(below) is bool(why):
        raise _Wrong("a segment needs either a place or a reason")
    start, length = _size(row.get("start_bytes")), _size(row.get("length_bytes"))
    if not length:
        # Without a piece of anything it would escape the bound of pieces.
        raise _Wrong("a segment is empty")
    return Segment(start, length, below, chunk, clean_text(why, 100))


def _below(row: object, behind: Layers) -> Below:
    if not isinstance(row, dict):
        raise _Wrong("a place is no object")
    name = _name(row.get("layer"))
    if name not in behind:
        raise _Wrong("a layer lies on none behind it")
    return Below(name, _size(row.get("start_bytes")))


def _list(value: object, what: str, count_max: int) -> Sequence[object]:
    if not isinstance(value, list):
        raise _Wrong(f"it has no list of {what}")
    if len(value) > count_max:
        raise _Wrong(f"it has too many {what}")
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _NAME_CHARS_MAX:
        raise _Wrong("a name is missing or too long")
    if value != clean_text(value):
        raise _Wrong("a name has control characters")
    return _PREFIX + value


def _size(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _SIZE_MAX:
        raise _Wrong("a size or place is no number of bytes")
    return value
