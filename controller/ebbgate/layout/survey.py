# SPDX-License-Identifier: GPL-2.0-only
"""Reads which files own which chunks of a volume, for ebbgated. I/O: see `chain`; the clock.

It runs in a process of its own (`warm/worker.py`), which may open every file. ebbgated sends

    {"layout": PATTERNS, "volume": KERNEL_NAME, "tables": {DM_NAME: [TARGET]}}

with the tables of device-mapper, which this process may not read: [START, LENGTH, KIND, PARAMS],
in sectors. The answer is in lines of bounded length: `groups` (the next names), `runs` (the next
[FIRST, END, GROUP]), `inodes` (the next [DEVICE, INODE, GROUP]), then `surveyed`.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ebbgate.errors import EbbgateError, NotFound, Unavailable
from ebbgate.kernel.device_mapper import Target
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.layout import guest
from ebbgate.layout.chain import ChainReader, TableOf, disk_name
from ebbgate.layout.chunk_owners import ChunkOwners
from ebbgate.layout.images import looks_like
from ebbgate.layout.locate import expand
from ebbgate.layout.mapping import HOLE, Layers, Piece, place
from ebbgate.layout.mounts import Mounts
from ebbgate.layout.survey_answer import (
    FILES_MAX,
    NAME_CHARS_MAX,
    REASONS_MAX,
    TEXT_CHARS_MAX,
)
from ebbgate.model.attribution import FileId
from ebbgate.model.heat import CHUNK_BYTES
from ebbgate.text import clean_text
from ebbgate.units import format_bytes

SECONDS_MAX: Final = 60
_NAMES_A_LINE: Final = 20
_RUNS_A_LINE: Final = 250
_NOT_MAPPED: Final = "cannot be mapped"
_NO_FILE: Final = "no file matches"
_NOT_MATCHED: Final = "a pattern leads to too much"
_OTHERWISE: Final = "for other reasons"
_REASONS_OF_FILES: Final = REASONS_MAX - 3
"""The rest: `_OTHERWISE`, and the two bounds that `has_room` counts."""
_GUEST_SHARE: Final = 8
_GUEST_FILES_MAX: Final = FILES_MAX // _GUEST_SHARE
"""So that a guest leaves room for others; the same share of pieces is for one."""
_PIECES_MAX: Final = 1 << 17
"""Of one file. It takes about 100 MiB of memory then."""

Event = tuple[str, dict[str, object]]
_Top = tuple[str, Layers, str, FileId | None]
"""The name of a group, the layers below its file, the file's own, and its inode on this machine."""


@dataclass(slots=True)
class _Found:
    """What is known so far.

    - `looked_at`: files, known or not. `left_out`: files by reason.
    - `deadline_s`: on CLOCK_MONOTONIC.
    - `error`: the first file or pattern of which nothing is known, and why.
    """

    deadline_s: float
    groups: dict[str, int] = field(default_factory=dict)
    owners: ChunkOwners = field(default_factory=ChunkOwners)
    inodes: dict[FileId, int] = field(default_factory=dict)
    looked_at: int = 0
    files: int = 0
    known_bytes: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    error: str = ""

    def has_room(self) -> bool:
        """Return whether one more file may be read; count it if not."""
        if self.looked_at >= FILES_MAX:
            self.left_out[f"beyond the first {FILES_MAX} files"] += 1
        elif time.monotonic() > self.deadline_s:
            self.looked_at += 1
            self.leave_late(1)
        else:
            return True
        return False

    def leave_late(self, count: int) -> None:
        """Count files for which there was no time."""
        self.left_out[f"not read within {SECONDS_MAX} s"] += count

    def leave_out(self, why: str, error: str = "") -> None:
        """Count a file that is not known."""
        self.looked_at += 1
        self.count(why, 1)
        self.error = self.error or clean_text(error, TEXT_CHARS_MAX)

    def count(self, why: str, files: int) -> None:
        """Count so many that are left out for a reason."""
        why = clean_text(why, TEXT_CHARS_MAX)
        if why not in self.left_out and len(self.left_out) >= _REASONS_OF_FILES:
            why = _OTHERWISE
        self.left_out[why] += files


def survey(
    request: Mapping[str, Any],
    name_of: Callable[[Path], str] = str,
    sysfs: Sysfs | None = None,
    mounts: Mounts | None = None,
) -> Iterator[Event]:
    """Yield the answer to a request. `name_of`: the group of a file. Raises EbbgateError."""
    volume = str(request["volume"])
    reader = ChainReader(
        sysfs or Sysfs(),
        mounts or Mounts(),
        {volume: volume},
        _tables(request["tables"]),
        _PIECES_MAX,
    )
    found = _Found(time.monotonic() + SECONDS_MAX)
    images = []
    for path in expand(request["layout"], found.deadline_s):
        if isinstance(path, EbbgateError):
            missing = isinstance(path, NotFound)
            found.leave_out(_NO_FILE if missing else _NOT_MATCHED, path.message)
        elif guest.has_beside(path):
            images.append(path)
        elif found.has_room():
            _add_all(found, volume, _file(reader, path, name_of))
    # Last: what an image or a guest says may take long, which is to delay no other file.
    for number, path in enumerate(images):
        if found.has_room():
            now_s = time.monotonic()
            until_s = now_s + (found.deadline_s - now_s) / (len(images) - number)
            _add_all(found, volume, _of_guest(found, reader, path, until_s))
    yield from _answer(found, changed=reader.changed())


def _file(reader: ChainReader, path: Path, name_of: Callable[[Path], str]) -> Iterator[_Top]:
    """Yield a file. Raises EbbgateError, OSError."""
    layers = reader.read_next(path)
    yield name_of(path), layers, str(path), file_id(path)


def _of_guest(found: _Found, reader: ChainReader, path: Path, until_s: float) -> Iterator[_Top]:
    """Yield the files of the guest whose disk is in an image. Raises EbbgateError, OSError.

    `until_s`: on CLOCK_MONOTONIC.
    """
    said = guest.read_beside(path)
    if said is None:
        raise NotFound(f"{path}: the document beside it is gone")
    below = reader.read_next_image(path, looks_like(path))
    layers = {**said.on_image(below[disk_name(path)], ""), **below}
    found.owners.bound(_GUEST_SHARE)
    for error in said.errors[:_GUEST_FILES_MAX]:
        found.leave_out("not known to its guest", error)
    files = said.files[: max(0, _GUEST_FILES_MAX - len(said.errors))]
    over = len(said.errors) + len(said.files) - _GUEST_FILES_MAX
    if over > 0:
        found.count(f"beyond the first {_GUEST_FILES_MAX} files of a guest", over)
    for number, file in enumerate(files):
        if time.monotonic() > until_s:
            found.leave_late(len(files) - number)
            return
        yield f"{path}, {file}", guest.reachable(layers, file), file, None


def _add_all(found: _Found, volume: str, tops: Iterable[_Top]) -> None:
    """Add each; one that cannot be mapped does not hide the others."""
    try:
        for top in tops:
            if found.has_room():
                _add(found, volume, *top)
    except EbbgateError as error:
        found.leave_out(_NOT_MAPPED, error.message)
    except MemoryError:
        found.leave_out(_NOT_MAPPED, "what is known of a file takes too much memory")
    except (OSError, ValueError) as error:
        # Guests and the owners of files choose what is parsed here.
        found.leave_out(_NOT_MAPPED, str(error))


def file_id(path: Path) -> FileId:
    """Return a file's inode, as the probe numbers it. Raises OSError."""
    known = path.stat()
    return FileId(os.major(known.st_dev) << 20 | os.minor(known.st_dev), known.st_ino)


def _add(
    found: _Found, volume: str, name: str, layers: Layers, top: str, inode: FileId | None
) -> None:
    try:
        here, why = _pieces(volume, layers, top)
        if why:
            found.leave_out(why)
            return
        group = found.groups.setdefault(clean_text(name, NAME_CHARS_MAX), len(found.groups))
        for piece in here:
            found.owners.add(group, piece.layer_bytes, piece.length_bytes)
            found.known_bytes += piece.length_bytes
        if inode:
            found.inodes[inode] = group
        found.files += 1
        found.looked_at += 1
    except EbbgateError as error:
        found.leave_out(_NOT_MAPPED, error.message)


def _pieces(volume: str, layers: Layers, top: str) -> tuple[list[Piece], str]:
    """Return the pieces on the volume, or why there are none. Raises Unavailable."""
    pieces = place(layers, top, pieces_max=_PIECES_MAX)
    if fatal := next((piece.why for piece in pieces if piece.fatal), ""):
        raise Unavailable(f"{top}: {fatal}")
    here = [piece for piece in pieces if piece.layer == volume and not piece.why]
    if here:
        return here, ""
    if any(not piece.why for piece in pieces):
        return [], "on another device"
    whys = (piece.why for piece in pieces if piece.why != HOLE)
    return [], next(whys, "without data on a device")


def _answer(found: _Found, changed: bool) -> Iterator[Event]:
    names = list(found.groups)
    for start in range(0, len(names), _NAMES_A_LINE):
        yield "groups", {"names": names[start : start + _NAMES_A_LINE]}
    runs, chunks_left_out = found.owners.runs()
    for start in range(0, len(runs), _RUNS_A_LINE):
        part = runs[start : start + _RUNS_A_LINE]
        yield "runs", {"runs": [(run.first, run.end, run.group) for run in part]}
    inodes = list(found.inodes.items())
    for start in range(0, len(inodes), _RUNS_A_LINE):
        yield (
            "inodes",
            {"inodes": [(*id_, group) for id_, group in inodes[start : start + _RUNS_A_LINE]]},
        )
    if chunks_left_out:
        size = format_bytes(chunks_left_out * CHUNK_BYTES)
        found.error = found.error or f"{size} of the files are in too many pieces"
    yield (
        "surveyed",
        {
            "files": found.files,
            "bytes": found.known_bytes,
            "left_out": dict(found.left_out),
            "error": found.error,
            "changed": changed,
        },
    )


def _tables(given: Mapping[str, Iterable[tuple[int, int, str, str]]]) -> TableOf:
    tables = {name: tuple(Target(*row) for row in rows) for name, rows in given.items()}

    def table(name: str) -> tuple[Target, ...]:
        if name not in tables:
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
        return tables[name]

    return table
