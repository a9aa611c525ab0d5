# SPDX-License-Identifier: GPL-2.0-only
"""Reads where the disk of a guest lies within its image. I/O: the image, qemu-img; reads only.

An image may come from somebody else. Its header is checked before qemu-img sees it: qemu-img opens
other files and network addresses that an image names.
"""

from __future__ import annotations

import json
import os
import resource
import stat
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Final, TypeGuard

from ebbgate.errors import Unavailable
from ebbgate.kernel.run import Completed, run
from ebbgate.layout.mapping import Below, Segment
from ebbgate.layout.path_handle import path_handle, reopened
from ebbgate.text import clean_text
from ebbgate.units import MIB

MAP_S: Final = 15.0
"""An image of 100 GiB on a cold disk has some 1600 tables to read."""
_MEMORY_BYTES_MAX: Final = 1024 * MIB
_ANSWER_BYTES_MAX: Final = 8 * MIB
"""Some 60,000 parts, which take about 60 MiB of memory here."""
_MAGIC: Final = b"QFI\xfb"
# magic, version, backing file (place, length), cluster bits, size, encryption, 8 fields not used
# here, incompatible features: docs/interop/qcow2.txt of QEMU.
_HEADER: Final = struct.Struct(">4sIQ4xIQI36xQ")
_OLD_BYTES: Final = 72
"""Of a header of version 2, which has no features."""
_VERSIONS: Final = (2, 3)
_CORRUPT: Final = 1 << 1
_EXTERNAL_DATA: Final = 1 << 2
_CHECK: Final = "check it: qemu-img check (Debian: qemu-utils)"
_BY_READING: Final = "warm the file itself, by reading it"


class ImageFormat(StrEnum):
    """A format of disk images. Nobody but the caller says which: a guest can write a header into
    a raw one.
    """

    RAW = "raw"
    QCOW2 = "qcow2"


@dataclass(frozen=True, slots=True)
class _Header:
    """Of a qcow2 image that can be used. `backed`: the rest is in another image."""

    size_bytes: int
    backed: bool


def looks_like(path: Path) -> ImageFormat:
    """Return the format by the first bytes of an image.

    A guest may have written them into a raw image, and then moves places within that image only.
    Raises Unavailable.
    """
    with ExitStack() as closing:
        handle = _opened(path, closing)
        qcow2 = os.pread(handle, len(_MAGIC), 0) == _MAGIC
    return ImageFormat.QCOW2 if qcow2 else ImageFormat.RAW


def qcow2_segments(path: Path, layer: str) -> tuple[int, tuple[Segment, ...]]:
    """Return the size of the disk in a qcow2 image, and where its parts lie in the image.

    `layer`: the image's own. Raises Unavailable for an image that is encrypted, keeps its data
    elsewhere or is damaged.
    """
    with ExitStack() as closing:
        handle = _opened(path, closing)
        header = _header(path, os.pread(handle, _HEADER.size, 0))
        rows = _map(path, handle, closing)
    if not isinstance(rows, list):
        raise _unreadable(path)
    try:
        segments = tuple(_segments(rows, layer, header))
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(path) from error
    if any(left.end_bytes > right.start_bytes for left, right in pairwise(segments)):
        raise _unreadable(path)
    return header.size_bytes, segments


def _opened(path: Path, closing: ExitStack) -> int:
    try:
        with path_handle(path) as place:
            if not stat.S_ISREG(os.fstat(place).st_mode):
                raise Unavailable(f"{path} is no regular file", "name the image itself")
            handle = reopened(place)
    except OSError as error:
        raise Unavailable(f"{path} cannot be opened: {error.strerror}") from error
    closing.callback(os.close, handle)
    return handle


def _header(path: Path, data: bytes) -> _Header:
    fields = _HEADER.unpack(data.ljust(_HEADER.size, b"\0"))
    magic, version, backing, _, size, encryption, features = fields
    if magic != _MAGIC or version not in _VERSIONS or len(data) < _OLD_BYTES:
        raise Unavailable(f"{path} is no qcow2 image", "a raw image is --image raw")
    if encryption:
        raise Unavailable(f"{path} is encrypted", _BY_READING)
    if version > _VERSIONS[0] and features & _EXTERNAL_DATA:
        raise Unavailable(
            f"{path} keeps its data in another file", "name that file, as a raw image"
        )
    if version > _VERSIONS[0] and features & _CORRUPT:
        raise Unavailable(f"{path} is marked as damaged", _CHECK)
    if not _is_size(size):
        raise _unreadable(path)
    return _Header(size, bool(backing))


def _segments(rows: list[dict[str, object]], layer: str, header: _Header) -> Iterator[Segment]:
    """Yield the parts with data; the others read as zeros."""
    for row in rows:
        start, length, offset = row["start"], row["length"], row.get("offset")
        if not (_is_size(start) and _is_size(length)) or row["depth"] != 0:
            raise ValueError("not a range")
        if not row["data"]:
            if header.backed and row.get("present") is False:
                yield Segment(start, length, why="in the backing file of the image")
        elif offset is None:
            yield Segment(start, length, why="compressed in the image")
        elif _is_size(offset):
            yield Segment(start, length, (Below(layer, offset),))
        else:
            raise ValueError("not an offset")


def _map(path: Path, handle: int, closing: ExitStack) -> object:
    """Ask qemu-img. Raises Unavailable.

    `-U`: a guest may be using the image. It is the file that was checked, whatever has its name by
    now, and its backing file is not opened.
    """
    file = {"driver": "file", "filename": f"/proc/self/fd/{handle}"}
    image = {"driver": ImageFormat.QCOW2, "backing": None, "file": file}
    answer = os.memfd_create("map")
    closing.callback(os.close, answer)
    words = [*_bounds(), "qemu-img", "map", "--output=json", "-U", f"json:{json.dumps(image)}"]
    try:
        done = run(words, timeout_s=MAP_S, check=False, stdout=answer, inherited=(handle,))
    except Unavailable as error:
        raise Unavailable(f"{path} cannot be mapped within {MAP_S:g} s", _CHECK) from error
    if os.fstat(answer).st_size >= _ANSWER_BYTES_MAX:
        raise Unavailable(f"{path} is in too many parts", "copy it: qemu-img convert")
    if done.exit_code:
        raise _refused(path, done)
    try:
        found: object = json.loads(os.pread(answer, _ANSWER_BYTES_MAX, 0))
    except (ValueError, RecursionError) as error:
        raise _unreadable(path) from error
    return found


def _bounds() -> tuple[str, ...]:
    """Return the words that bound memory, time of the CPU, and the length of an answer."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    memory = _MEMORY_BYTES_MAX
    if hard != resource.RLIM_INFINITY:
        memory = min(memory, hard)
    limits = (f"--as={memory}", f"--cpu={ceil(MAP_S)}", f"--fsize={_ANSWER_BYTES_MAX}", "--core=0")
    return ("prlimit", *limits, "--")


def _refused(path: Path, done: Completed) -> Unavailable:
    lines = done.stderr.strip().splitlines() or [f"exit code {done.exit_code}"]
    why = clean_text(lines[-1], 200)
    return Unavailable(f"{path} cannot be read as a disk image: {why}", _CHECK)


def _unreadable(path: Path) -> Unavailable:
    return Unavailable(f"what qemu-img says of {path} cannot be used", _CHECK)


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
