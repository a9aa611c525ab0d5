# SPDX-License-Identifier: GPL-2.0-only
"""What an emulated disk has done so far, and how fast it is to be: one page of shared memory.

I/O: a small mapped file, written by the nbdkit plugin and read by anyone at any time. Each field
is eight aligned bytes, so a reader never sees half a number.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

_COUNTERS = struct.Struct("=6Q")
_SCALE = struct.Struct("=d")
_SCALE_OFFSET = _COUNTERS.size
_SIZE = 4096


@dataclass(frozen=True, slots=True)
class HddCounters:
    """Totals since the disk was made."""

    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    busy_ns: int = 0
    """Time in which the head was seeking, waiting for the platter, or transferring."""
    flushes: int = 0

    def __sub__(self, earlier: HddCounters) -> HddCounters:
        """What happened since an earlier reading."""
        return HddCounters(
            self.reads - earlier.reads,
            self.writes - earlier.writes,
            self.read_bytes - earlier.read_bytes,
            self.write_bytes - earlier.write_bytes,
            self.busy_ns - earlier.busy_ns,
            self.flushes - earlier.flushes,
        )


class HddControl:
    """The shared page of one disk."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), _SIZE)

    @classmethod
    def create(cls, path: Path) -> HddControl:
        """A new page: nothing done yet, full model speed."""
        path.write_bytes(bytes(_SIZE))
        control = cls(path)
        control.scale = 1.0
        return control

    def close(self) -> None:
        """Let go of the page; the disk goes on."""
        self._page.close()

    @property
    def counters(self) -> HddCounters:
        """The totals as of now."""
        return HddCounters(*_COUNTERS.unpack_from(self._page))

    @counters.setter
    def counters(self, value: HddCounters) -> None:
        fields = (value.reads, value.writes, value.read_bytes, value.write_bytes)
        _COUNTERS.pack_into(self._page, 0, *fields, value.busy_ns, value.flushes)

    @property
    def scale(self) -> float:
        """Factor on every service time of the model; takes effect with the next request."""
        scale: float = _SCALE.unpack_from(self._page, _SCALE_OFFSET)[0]
        return scale

    @scale.setter
    def scale(self, value: float) -> None:
        _SCALE.pack_into(self._page, _SCALE_OFFSET, value)
