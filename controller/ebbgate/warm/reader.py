# SPDX-License-Identifier: GPL-2.0-only
"""Reads from a file or volume, tells hits from misses, and takes commands of ebbgated meanwhile.

I/O: one file or volume, sysfs; JSON lines on stdin and stdout.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ebbgate.errors import Unavailable
from ebbgate.warm.collection import LONGEST, Collection
from ebbgate.warm.pace import collection_rest_s
from ebbgate.warm.plan import READ_BYTES_MAX, UNIT_BYTES, Read
from ebbgate.warm.target import Target

TRIES_MIN: Final = 2
TRIES_MAX: Final = 8
"""Places of a block that are tried before it counts as a miss: more than two only if quick ones."""
_SLOW_S: Final = 0.005
"""An SSD hardly ever takes so long for a hit, and a hard disk for a miss often does."""
_ROUNDS_MAX: Final = 8
"""smq promotes a block at the second to fifth round; in a full cache one more is needed."""

Counts = tuple[int | None, int]


@dataclass(slots=True)
class Reader:
    """What the workers have in common; each decides when it reads (`wait`) and how (`send`).

    `unit`: bytes of the smallest read that is cached and that the file allows (`read_unit`).
    `block`: see `CacheFacts`. `burst`: bytes after which garbage is to be collected; 0 for
    a cache without any, or where the kernel may not be asked. `elsewhere`: places that were looked
    for in the cache, of which the volume saw nothing: they lie on another device below the file.
    `touched`, `brought`, `pending`: see `BlockReads`. `internal`: the folder in which bcache shows
    how its garbage collections went. `collection`: the one under way: what is read meanwhile is not
    cached.
    """

    target: Target
    kind: str = ""
    unit: int = 512
    block: int = 0
    burst: int = 0
    elsewhere: int = 0
    internal: Path = Path()
    collection: Collection | None = None
    touched: int = 0
    brought: int = 0
    pending: int = 0
    _volume: int = -1
    _backing: int = -1
    _buffer: memoryview = field(default_factory=lambda: memoryview(mmap.mmap(-1, READ_BYTES_MAX)))
    _rest: bytes = b""

    def start(self, command: dict[str, Any]) -> None:
        """Take the facts about the cache. Raises Unavailable where hits cannot be told."""
        self.kind = command["kind"]
        self.unit = max(command["unit"], self.target.unit_bytes)
        self.block, self.burst = command["block"], command["burst"]
        backing = Path("/sys/dev/block") / command["backing"]
        check_statistics(backing)
        self._backing = os.open(backing / "stat", os.O_RDONLY)
        volume = Path("/sys/dev/block") / command["volume"]
        self._volume = _counter(volume, self.kind)
        self.internal = volume / "bcache/cache/internal"

    def close(self) -> None:
        """Close what `start` has opened."""
        for handle in (self._backing, self._volume):
            if handle >= 0:
                os.close(handle)

    # ---- of each worker ------------------------------------------------------------------------
    def run_to_end(self) -> None:
        """Read until all is done. Raises EbbgateError."""
        raise NotImplementedError

    def wait(self) -> None:
        """Return when the next read may be sent."""
        raise NotImplementedError

    def send(self, read: Read, cost_bytes: int) -> None:
        """Read. `cost_bytes`: what the backing device has to read for it."""
        raise NotImplementedError

    def on_command(self, command: dict[str, Any]) -> None:
        """Take a command."""
        raise NotImplementedError

    # ---- hits and misses -----------------------------------------------------------------------
    def in_turn(self, reads: Sequence[Read], touch: Callable[[Read, int], bool]) -> Sequence[Read]:
        """Read a little of each of these cache blocks in turn until all are hits; return the rest.

        `touch`: see the method of that name.
        """
        missing = reads
        self.pending = 0
        for number in range(_ROUNDS_MAX):
            # The kernel copies a whole block, once.
            cost = UNIT_BYTES if number else self.block
            missing = [
                read for read in missing if not self._counted(touch(read, cost), first=not number)
            ]
            if not missing:
                break
        return missing

    def _counted(self, hit: bool, *, first: bool) -> bool:
        """Count a read of a block; return whether it was a hit. `first`: of this block."""
        self.touched += 1
        if hit and not first:
            self.brought += 1
            self.pending -= 1
        elif first and not hit:
            self.pending += 1
        return hit

    def block_reads(self) -> dict[str, int]:
        """Return what `BlockReads` names, and count anew."""
        found = {"touched": self.touched, "brought": self.brought, "pending": self.pending}
        self.touched = self.brought = 0
        return found

    def touch(self, read: Read, cost_bytes: int) -> bool:
        """Read a little, once that is allowed; return whether it was a hit."""
        self.wait()
        before = self.counts()
        self.send(Read(read.offset_bytes, min(UNIT_BYTES, read.length_bytes)), cost_bytes)
        return _has_hit(before, self.counts())

    def is_hit(self, read: Read) -> bool:
        """Return whether a read that the backing device does not see, but the volume, is possible
        here.

        Another request may reach the backing device meanwhile: on one that completes 1000 a second
        a hit of 0.3 ms looks like a miss in a quarter of all cases. So quick reads are tried more
        often. Each try reads another place of the same block, which those before have not cached.
        """
        begin = after = self.counts()
        slow = found = 0
        for number in range(min(TRIES_MAX, read.length_bytes // self.unit)):
            before = self.counts()
            began_s = time.monotonic()
            with suppress(OSError):
                found += self.read_at(read.offset_bytes + number * self.unit, self.unit)
            slow += time.monotonic() - began_s > _SLOW_S
            after = self.counts()
            if _has_hit(before, after):
                return True
            if slow == TRIES_MIN:
                break
        # A read that has failed may not have reached the volume where the data is.
        if found and after[0] is not None:
            self.elsewhere += after[0] == begin[0]
        return False

    def read_at(self, offset_bytes: int, length_bytes: int) -> int:
        """Read, and forget it; return how many bytes there were. Raises OSError."""
        return os.preadv(self.target.handle, [self._buffer[:length_bytes]], offset_bytes)

    def counts(self) -> Counts:
        """Return how many reads the volume and its backing device have completed."""
        return self.volume_reads(), self.backing_reads()

    def volume_reads(self) -> int | None:
        """Return how many reads the volume has completed; None if it does not count them."""
        return None if self._volume < 0 else _reads(self._volume)

    def backing_reads(self) -> int:
        """Return how many reads the backing device has completed."""
        return _reads(self._backing)

    def collect(self) -> None:
        """Read nothing until a garbage collection is over. The caller asks for one."""
        self.collection = Collection.begin(self.internal, time.monotonic_ns(), self.rest_s())

    def collects(self, now_ns: int) -> bool:
        """Is garbage being collected?"""
        if self.collection is not None and self.collection.is_over(now_ns):
            self.collection = None
        return self.collection is not None

    def rest_s(self) -> float:
        """Return for how long the kernel needs to collect garbage at most."""
        try:
            return collection_rest_s(int((self.internal / LONGEST).read_text()))
        except (OSError, ValueError):
            return collection_rest_s(None)

    # ---- commands ------------------------------------------------------------------------------
    def pause(self, seconds: float) -> None:
        """Send nothing for some time."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            self.listen(left_s)

    def listen(self, seconds: float) -> bool:
        """Wait for commands and take them; return whether one came in this time."""
        ready, _, _ = select.select([0], [], [], seconds)
        if not ready:
            return False
        received = os.read(0, 4096)
        if not received:
            # The daemon is gone.
            raise SystemExit(0)
        *lines, self._rest = (self._rest + received).split(b"\n")
        for line in lines:
            self.on_command(json.loads(line))
        return True


def check_statistics(device: Path) -> None:
    """Raise Unavailable if a device keeps no statistics: each read would seem to be a hit."""
    # A partition has those of its disk. The kernel resolves `..` behind the link.
    places = (device / "queue/iostats", device / "../queue/iostats")
    setting = next((place for place in places if place.exists()), None)
    if setting is None or setting.read_text().strip() != "0":
        return
    # Linux 6.1 counts the requests of device-mapper whatever it is, and has it off there.
    if (device / "dm").is_dir() and _counts_reads(device):
        return
    path = os.path.realpath(setting)
    raise Unavailable(
        "the backing device keeps no statistics, so that hits cannot be told from misses:"
        f" {path} is 0",
        f"echo 1 > {path}",
    )


def _counts_reads(device: Path) -> bool:
    """Read a little of a device of device-mapper; return whether that was counted."""
    node = Path("/dev", device.resolve().name)
    try:
        handle = os.open(node, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        try:
            before = _completed(device)
            os.preadv(handle, [mmap.mmap(-1, UNIT_BYTES)], 0)
            return _completed(device) != before
        finally:
            os.close(handle)
    except OSError as error:
        text = f"{node} cannot be read, to see whether it keeps statistics: {error.strerror}"
        raise Unavailable(text) from error


def _completed(device: Path) -> int:
    return int((device / "stat").read_text().split()[0])


def _has_hit(before: Counts, after: Counts) -> bool:
    """Return whether what was read between two counts was a hit.

    The volume must have seen it: what another device below the file reads is not cached at all.
    """
    (volume, backing), (volume_after, backing_after) = before, after
    return backing_after == backing and (volume is None or volume_after != volume)


def _counter(volume: Path, kind: str) -> int:
    """Open the statistics of a volume; -1 where it keeps none.

    dm keeps none without `iostats`; bcache always does. A volume in use was read at least once.
    """
    handle = os.open(volume / "stat", os.O_RDONLY)
    iostats = kind == "bcache" or (volume / "queue/iostats").read_text().strip() != "0"
    if iostats and _reads(handle):
        return handle
    os.close(handle)
    return -1


def _reads(handle: int) -> int:
    return int(os.pread(handle, 256, 0).split()[0])


def send_event(event: str, **fields: object) -> None:
    """Write one line to the daemon."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()
