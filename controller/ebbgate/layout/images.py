# SPDX-License-Identifier: GPL-2.0-only
"""Reads where the disk of a guest lies within its image. I/O: qemu-img, reads only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeGuard

from ebbgate.errors import Unavailable
from ebbgate.kernel.run import run
from ebbgate.layout.mapping import PIECES_MAX, Below, Segment
from ebbgate.text import clean_text

_TIMEOUT_S: Final = 60.0
# An image may come from somebody else: bound what reading it can take.
_BOUNDED: Final = ("prlimit", "--as=1073741824", "--cpu=30", "--")
_CHECK: Final = "check it with qemu-img info (Debian: qemu-utils); a raw image is --image raw"


class ImageFormat(StrEnum):
    """A format of disk images. It is never guessed: a guest can write a header into a raw one."""

    RAW = "raw"
    QCOW2 = "qcow2"


def qcow2_segments(path: Path, layer: str) -> tuple[int, tuple[Segment, ...]]:
    """Return the size of the disk in a qcow2 image, and where its parts lie in the image.

    `layer`: the image's own. Raises Unavailable for an image that is encrypted, keeps its data
    elsewhere or is damaged.
    """
    about = _asked(path, "info")
    details = about.get("format-specific") if isinstance(about, Mapping) else None
    data = details.get("data") if isinstance(details, Mapping) else None
    if not isinstance(about, Mapping) or not isinstance(data, Mapping):
        raise _unreadable(path)
    if about.get("encrypted") or "encrypt" in data:
        raise Unavailable(f"{path} is encrypted", "warm the file itself, by reading it")
    if "data-file" in data:
        raise Unavailable(
            f"{path} keeps its data in another file", "name that file, as a raw image"
        )
    size = about.get("virtual-size")
    rows = _asked(path, "map")
    if not _is_size(size) or not isinstance(rows, list) or len(rows) > PIECES_MAX:
        raise _unreadable(path)
    try:
        segments = tuple(_segments(rows, layer))
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(path) from error
    if any(left.end_bytes > right.start_bytes for left, right in pairwise(segments)):
        raise _unreadable(path)
    return int(size), segments


def _segments(rows: list[dict[str, object]], layer: str) -> Iterator[Segment]:
    """Yield the parts with data; the others read as zeros."""
    for row in rows:
        start, length, depth = row["start"], row["length"], row["depth"]
        if not (_is_size(start) and _is_size(length) and _is_size(depth)):
            raise ValueError("not a range")
        if not row["data"]:
            continue
        offset = row.get("offset")
        if depth:
            yield Segment(start, length, why="in the backing file of the image")
        elif offset is None:
            yield Segment(start, length, why="compressed in the image")
        elif _is_size(offset):
            yield Segment(start, length, (Below(layer, offset),))
        else:
            raise ValueError("not an offset")


def _asked(path: Path, command: str) -> object:
    """Run qemu-img; `-U`: a guest may be using the image."""
    words = ["qemu-img", command, "--output=json", "-U", "-f", ImageFormat.QCOW2, str(path)]
    done = run([*_BOUNDED, *words], timeout_s=_TIMEOUT_S, check=False)
    if done.exit_code:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.exit_code}"]
        why = clean_text(lines[-1], 200)
        if "key-secret" in why:
            raise Unavailable(f"{path} is encrypted", "warm the file itself, by reading it")
        raise Unavailable(f"{path} cannot be read as a disk image: {why}", _CHECK)
    try:
        found: object = json.loads(done.stdout)
    except ValueError as error:
        raise _unreadable(path) from error
    return found


def _unreadable(path: Path) -> Unavailable:
    return Unavailable(f"what qemu-img says of {path} cannot be used", "check it: qemu-img check")


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
