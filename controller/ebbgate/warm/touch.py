# SPDX-License-Identifier: GPL-2.0-only
"""Touches pinned files in the worker process, as ebbgated tells it to.

No file stays open between two requests, so that file systems can be unmounted.
I/O: files, sysfs; JSON lines on stdin and stdout.

    in   {"touch": PATH}, with "block_sizes" as in `worker`
    out  {"event": "opened", "devno", "mount", "inode", "generation", "bytes", "pieces", "blocks",
         "layout"},
         {"event": "missing", "devno", "mount"}, or {"event": "failed", "text", "hint"}. `mount`:
         the folder (or file) on which it is mounted; of a missing file that of the folder in which
         it should be.
         `layout`: a number that changes with the places of its pieces
    in   after `opened`: {"command": "skip"}, or {"command": "touch", "kind", "unit", "block",
         "backing", "burst", "step", "phase", "first", "rate"}; `first`: the place to begin with,
         by its number; those before it come last
    out  after `touch`: {"event": "touched", "reads", "hits", "elsewhere"}; `reads`: places that
         are behind it, with those that lie on another device (`elsewhere`)
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import Enum, auto
from functools import partial
from io import FileIO
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
_STRIDES: Final = 32
_ELSEWHERE_MAX: Final = 128
"""Places on another device at which a round looks at most, since each costs it some reads."""


class Look(Enum):
    """What a read at a place was. `ELSEWHERE`: the volume did not see it."""

    HIT = auto()
    MISS = auto()
    ELSEWHERE = auto()


@dataclass(frozen=True, slots=True)
class Touched:
    """How many places a round is past, and how many of them were hits or lie on another device."""

    reads: int
    hits: int
    elsewhere: int = 0


@dataclass(slots=True)
class Toucher(Reader):
    """Reads a little of each bucket or cache block, and counts hits. `looks`: places so far."""

    looks: int = 0

    def touch_all(self, reads: Sequence[Read], rate: int) -> Touched:
        """Read at these places, in the order of the device, until too many are misses.

        On a busy backing device a slow hit looks like a miss, so behind each miss another place is
        looked at in the end.
        """
        count = elsewhere = 0
        missed = list[Read]()
        began_s, pause_at, before = time.monotonic(), self.looks + _BATCH, self.elsewhere
        while count < len(reads):
            look, end = self._look(reads[count]), count + 1
            if look is Look.ELSEWHERE:
                end = end_of_stretch(count, len(reads), partial(self._is_elsewhere, reads))
                elsewhere += end - count
            elif look is Look.MISS:
                missed.append(reads[count])
            count = end
            if len(missed) > _MISSES_MAX + count * _MISS_RATIO_MAX:
                break
            if self.elsewhere - before > _ELSEWHERE_MAX:
                break
            if self.looks >= pause_at:
                self.pause(began_s + self.looks / rate - time.monotonic())
                pause_at = self.looks + _BATCH
        misses = sum(not self._is_hit_behind(read) for read in missed)
        return Touched(count, count - elsewhere - misses, elsewhere)

    def _look(self, read: Read) -> Look:
        """Read at a place."""
        self.looks += 1
        before = self.elsewhere
        if self.is_hit(read):
            return Look.HIT
        return Look.MISS if self.elsewhere == before else Look.ELSEWHERE

    def _is_elsewhere(self, reads: Sequence[Read], number: int) -> bool:
        return self._look(reads[number]) is Look.ELSEWHERE

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
            _serve_one(json.loads(line), commands)
        except MemoryError:
            # The files after it need less.
            send_event("failed", text="what is known of it takes too much memory")
        except (EbbgateError, OSError) as error:
            if isinstance(error, BrokenPipeError | ConnectionResetError):
                raise
            text = error.message if isinstance(error, EbbgateError) else error.strerror
            hint = error.hint if isinstance(error, EbbgateError) else ""
            send_event("failed", text=text or "it could not be read", hint=hint)
        line = commands.readline()


def _serve_one(request: dict[str, Any], commands: FileIO) -> None:
    path = request["touch"]
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
            blocks=target.block_counts(request),
            layout=hash((target.devno, target.pieces)),
        )
        command = json.loads(commands.readline() or b'{"command": "skip"}')
        if command["command"] == "touch":
            toucher = Toucher(target)
            toucher.start(command)
            try:
                places = tuple(toucher.places(command["step"], command["phase"]))
                first = command["first"]
                found = toucher.touch_all(places[first:] + places[:first], command["rate"])
            finally:
                toucher.close()
            send_event("touched", **asdict(found))
    finally:
        target.close()


def end_of_stretch(first: int, count: int, is_in: Callable[[int], bool]) -> int:
    """Return the number behind the stretch of places that begins with this one.

    `count`: of all places. Few of them are looked at: at distances that grow up to a part of all,
    and then by halves, so that a gap which is shorter than that may not be seen.
    """
    last, step = first, 1
    while last + 1 < count:
        end = min(last + step, count - 1)
        if is_in(end):
            last, step = end, min(2 * step, max(1, count // _STRIDES))
            continue
        while end - last > 1:
            middle = (last + end) // 2
            last, end = (middle, end) if is_in(middle) else (last, middle)
        return end
    return count


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
