# SPDX-License-Identifier: GPL-2.0-only
"""What an emulated disk has done so far, and how it is to behave: one page of shared memory.

I/O: a small mapped file, written by the nbdkit plugin and read by anyone at any time. Each field
is eight aligned bytes, so a reader never sees half a number.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import astuple, dataclass
from pathlib import Path

from tests.lab.hdd_queue import PLAIN, HddFeatures
from tests.lab.wait import wait_until

_COUNTERS = struct.Struct("=7Q")
_GAUGES = struct.Struct("=2Q")
_SCALE = struct.Struct("=d")
_FEATURES = struct.Struct("=3Q")
_CUTS = struct.Struct("=2Q")
_GAUGES_OFFSET = _COUNTERS.size
_SCALE_OFFSET = _GAUGES_OFFSET + _GAUGES.size
_FEATURES_OFFSET = _SCALE_OFFSET + _SCALE.size
_CUTS_OFFSET = _FEATURES_OFFSET + _FEATURES.size
_SIZE = 4096
_CUT_TIMEOUT_S = 20


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
    lost_bytes: int = 0
    """Cached writes that a power cut undid."""

    def __sub__(self, earlier: HddCounters) -> HddCounters:
        """What happened since an earlier reading."""
        pairs = zip(astuple(self), astuple(earlier), strict=True)
        return HddCounters(*(now - before for now, before in pairs))


class HddControl:
    """The shared page of one disk."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), _SIZE)

    @classmethod
    def create(cls, path: Path, features: HddFeatures = PLAIN) -> HddControl:
        """A new page: nothing done yet, full model speed."""
        path.write_bytes(bytes(_SIZE))
        control = cls(path)
        control.scale = 1.0
        control.features = features
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
        _COUNTERS.pack_into(self._page, 0, *astuple(value))

    @property
    def cached_bytes(self) -> int:
        """What the disk's write cache holds that is not on the platter."""
        return self.gauges[0]

    @property
    def depth_max(self) -> int:
        """The most requests that the disk had at a time, since `forget_depth`."""
        return self.gauges[1]

    def forget_depth(self) -> None:
        """Start `depth_max` anew; the disk must be idle."""
        self.gauges = self.cached_bytes, 0

    @property
    def gauges(self) -> tuple[int, int]:
        """`cached_bytes` and `depth_max`."""
        cached_bytes, depth_max = _GAUGES.unpack_from(self._page, _GAUGES_OFFSET)
        return cached_bytes, depth_max

    @gauges.setter
    def gauges(self, value: tuple[int, int]) -> None:
        _GAUGES.pack_into(self._page, _GAUGES_OFFSET, *value)

    @property
    def scale(self) -> float:
        """Factor on every service time of the model; takes effect with the next request."""
        scale: float = _SCALE.unpack_from(self._page, _SCALE_OFFSET)[0]
        return scale

    @scale.setter
    def scale(self, value: float) -> None:
        _SCALE.pack_into(self._page, _SCALE_OFFSET, value)

    @property
    def features(self) -> HddFeatures:
        """Reordering, write cache, track buffer; take effect with the next request.

        The guest is not told: what it was told of the write cache stays.
        """
        ncq, *sizes_bytes = _FEATURES.unpack_from(self._page, _FEATURES_OFFSET)
        return HddFeatures(bool(ncq), *sizes_bytes)

    @features.setter
    def features(self, value: HddFeatures) -> None:
        _FEATURES.pack_into(self._page, _FEATURES_OFFSET, *map(int, astuple(value)))

    @property
    def cuts(self) -> tuple[int, int]:
        """Power cuts asked for, and carried out."""
        asked, done = _CUTS.unpack_from(self._page, _CUTS_OFFSET)
        return asked, done

    @cuts.setter
    def cuts(self, value: tuple[int, int]) -> None:
        _CUTS.pack_into(self._page, _CUTS_OFFSET, *value)

    def cut_power(self) -> None:
        """Take the disk's power away for a moment; return once that has happened.

        What its write cache holds is lost, and every request that it has fails.
        """
        asked, done = self.cuts
        self.cuts = asked + 1, done
        wait_until(lambda: self.cuts[1] > asked, _CUT_TIMEOUT_S, "the disk to lose its power")
