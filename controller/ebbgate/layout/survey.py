# SPDX-License-Identifier: GPL-2.0-only
"""Reads which files own which chunks of a volume, for ebbgated. I/O: see `chain`; the clock.

It runs in a process of its own (`warm/worker.py`), which may open every file. ebbgated sends

    {"layout": PATTERNS, "volume": KERNEL_NAME, "tables": {DM_NAME: [TARGET]}}

with the tables of device-mapper, which this process may not read: [START, LENGTH, KIND, PARAMS],
in sectors. The answer is in lines of bounded
length: `groups` (the next names), `runs` (the next [FIRST, END, GROUP]), then `surveyed`.
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

from ebbgate.errors import EbbgateError
from ebbgate.kernel.device_mapper import Target
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.layout.chain import ChainReader, TableOf
from ebbgate.layout.chunk_owners import ChunkOwners
from ebbgate.layout.locate import expand
from ebbgate.layout.mapping import place
from ebbgate.layout.mounts import Mounts
from ebbgate.layout.survey_answer import FILES_MAX, NAME_CHARS_MAX, TEXT_CHARS_MAX
from ebbgate.model.heat import CHUNK_BYTES
from ebbgate.text import clean_text
from ebbgate.units import format_bytes

SECONDS_MAX: Final = 60
_NAMES_A_LINE: Final = 20
_RUNS_A_LINE: Final = 1000
_PIECES_MAX: Final = 1 << 17
"""Of one file. It takes about 100 MiB of memory then."""

Event = tuple[str, dict[str, object]]


@dataclass(slots=True)
class _Found:
    """What is known so far.

    - `left_out`: files by reason.
    - `error`: the first file or pattern of which nothing is known, and why.
    """

    groups: dict[str, int] = field(default_factory=dict)
    owners: ChunkOwners = field(default_factory=ChunkOwners)
    files: int = 0
    known_bytes: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    error: str = ""

    def leave_out(self, why: str, error: str = "") -> None:
        """Count a file that is not known."""
        self.left_out[why] += 1
        self.error = self.error or clean_text(error, TEXT_CHARS_MAX)


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
    found = _Found()
    deadline_s = time.monotonic() + SECONDS_MAX
    for path in expand(request["layout"]):
        if isinstance(path, EbbgateError):
            found.leave_out("no file matches", path.message)
        elif found.files + found.left_out.total() >= FILES_MAX:
            found.leave_out(f"beyond the first {FILES_MAX} files")
        elif time.monotonic() > deadline_s:
            found.leave_out(f"not read within {SECONDS_MAX} s")
        else:
            _add(found, reader, volume, path, name_of)
    yield from _answer(found, changed=reader.changed())


def _add(
    found: _Found,
    reader: ChainReader,
    volume: str,
    path: Path,
    name_of: Callable[[Path], str],
) -> None:
    try:
        pieces = place(reader.read_next(path), str(path), pieces_max=_PIECES_MAX)
    except EbbgateError as error:
        found.leave_out("cannot be mapped", error.message)
        return
    if fatal := next((piece.why for piece in pieces if piece.fatal), ""):
        found.leave_out("cannot be mapped", f"{path}: {fatal}")
        return
    here = [piece for piece in pieces if piece.layer == volume and not piece.why]
    if not here:
        elsewhere = any(not piece.why for piece in pieces)
        found.leave_out("on another device" if elsewhere else "without data on a device")
        return
    name = clean_text(name_of(path), NAME_CHARS_MAX)
    group = found.groups.setdefault(name, len(found.groups))
    for piece in here:
        found.owners.add(group, piece.layer_bytes, piece.length_bytes)
        found.known_bytes += piece.length_bytes
    found.files += 1


def _answer(found: _Found, changed: bool) -> Iterator[Event]:
    names = list(found.groups)
    for start in range(0, len(names), _NAMES_A_LINE):
        yield "groups", {"names": names[start : start + _NAMES_A_LINE]}
    runs, chunks_left_out = found.owners.runs()
    for start in range(0, len(runs), _RUNS_A_LINE):
        part = runs[start : start + _RUNS_A_LINE]
        yield "runs", {"runs": [(run.first, run.end, run.group) for run in part]}
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
