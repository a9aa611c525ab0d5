# SPDX-License-Identifier: GPL-2.0-only
"""Touches pinned files in the worker process, as ebbgated tells it to.

No file stays open between two requests, so that file systems can be unmounted.
I/O: files, sysfs; JSON lines on stdin and stdout.

    in   {"touch": PATH}
    out  {"event": "opened", "devno", "mount", "inode", "generation", "bytes", "pieces"},
         {"event": "missing", "devno", "mount"}, or {"event": "failed"}. `mount`: the folder (or
         file) on which it is mounted; of a missing file that of the folder in which it should be
    in   after `opened`: {"command": "skip"}, or {"command": "touch", "kind", "unit", "block",
         "backing", "burst", "step", "phase", "first", "rate"}; `first`: the place to begin with,
         by its number; those before it come last
    out  after `touch`: {"event": "touched", "reads", "hits"}
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from io import FileIO
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.layout.mounts import Mounts
from ebbgate.warm.btrfs import device_of
from ebbgate.warm.plan import Read, aligned, blocks, spread
from ebbgate.warm.reader import TRIES_MAX, Reader, send_event
from ebbgate.warm.target import device_below_loops, open_file

_BATCH: Final = 50
"""Touches after which the rate is kept."""
_MISSES_MAX: Final = 16
_MISS_RATIO_MAX: Final = 0.005
"""Each miss costs the backing device four reads: with more misses the file is warmed anyway."""


@dataclass(slots=True)
class Toucher(Reader):
    """Reads a little of each bucket or cache block, and counts hits."""

    def touch_all(self, reads: Iterable[Read], rate: int) -> tuple[int, int]:
        """Return how many places were read, and how many of them were hits.

        On a busy backing device a slow hit looks like a miss, so behind each miss another place is
        looked at in the end.
        """
        count, missed = 0, list[Read]()
        began_s = time.monotonic()
        for read in reads:
            count += 1
            if not self.is_hit(read):
                missed.append(read)
            if len(missed) > _MISSES_MAX + count * _MISS_RATIO_MAX:
                break
            if count % _BATCH == 0:
                self.pause(began_s + count / rate - time.monotonic())
        return count, count - sum(not self._is_hit_behind(read) for read in missed)

    def _is_hit_behind(self, read: Read) -> bool:
        """Return whether the place behind those that the last look may have read is a hit."""
        skip = TRIES_MAX * self.unit
        behind = Read(read.offset_bytes + skip, read.length_bytes - skip)
        return behind.length_bytes >= self.unit and self.is_hit(behind)

    def places(self, step_bytes: int, phase_bytes: int) -> Iterator[Read]:
        """Yield where to read: each block of dm-cache, or a place every `step_bytes`."""
        pieces, _ = aligned(self.target.readable(self.unit), self.unit)
        if self.kind == "dm-cache":
            return blocks(pieces, self.block)
        # A file that is smaller than the phase has a place in each round, too.
        total = sum(piece.length_bytes for piece in pieces)
        begin = phase_bytes % total if total else 0
        first, step = (each // self.unit * self.unit for each in (begin, step_bytes))
        return spread(pieces, step, first)

    def on_command(self, command: dict[str, Any]) -> None:
        """Nothing is sent while a file is touched."""
        raise EbbgateError(f"unexpected: {command['command']}")


def serve(request: dict[str, Any], commands: FileIO) -> None:
    """Touch one file after the other until the daemon ends. Raises OSError."""
    line = json.dumps(request).encode()
    while line:
        try:
            _serve_one(json.loads(line)["touch"], commands)
        except (EbbgateError, OSError) as error:
            if isinstance(error, BrokenPipeError | ConnectionResetError):
                raise
            text = error.message if isinstance(error, EbbgateError) else error.strerror
            send_event("failed", text=text or "it could not be read")
        line = commands.readline()


def _serve_one(path: str, commands: FileIO) -> None:
    if missing := _missing(path):
        devno, mount = missing
        send_event("missing", devno=devno, mount=mount)
        return
    target = open_file(path)
    try:
        send_event(
            "opened",
            devno=target.devno,
            mount=mount_of(target.named),
            inode=os.fstat(target.named).st_ino,
            generation=target.generation,
            bytes=sum(piece.length_bytes for piece in target.pieces),
            pieces=len(target.pieces),
        )
        command = json.loads(commands.readline() or b'{"command": "skip"}')
        if command["command"] == "touch":
            toucher = Toucher(target)
            toucher.start(command)
            try:
                places = partial(toucher.places, command["step"], command["phase"])
                first = command["first"]
                reads = chain(islice(places(), first, None), islice(places(), first))
                count, hits = toucher.touch_all(reads, command["rate"])
            finally:
                toucher.close()
            send_event("touched", reads=count, hits=hits)
    finally:
        target.close()


def _missing(path: str) -> tuple[tuple[int, int], str] | None:
    """Return device and mount of the folder in which a file should be; None if it is there.

    Raises Unavailable where they are not known.
    """
    if Path(path).exists():
        return None
    folder = _folder_above(path)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = devno_of_folder(handle, folder), mount_of(handle)
    finally:
        os.close(handle)
    # It may have been mounted since the first look.
    return None if Path(path).exists() else found


def _folder_above(path: str) -> Path:
    """Return the nearest folder that is there: of the file's file system, or of another one."""
    folder = Path(os.path.realpath(path)).parent
    while not folder.is_dir():
        folder = folder.parent
    return folder


def devno_of_folder(handle: int, folder: Path) -> tuple[int, int]:
    """Return the device of an open folder. Raises Unavailable where it has several."""
    found = os.fstat(handle).st_dev
    if os.major(found):
        return device_below_loops((os.major(found), os.minor(found)), str(folder))
    return device_of(handle, str(folder)) or (0, os.minor(found))


def mount_of(handle: int) -> str:
    """Return where the file system of an open file or folder is mounted. Raises Unavailable."""
    point = Mounts().of(handle).point
    if not point:
        raise Unavailable("its mount is not in /proc/self/mountinfo")
    return point
