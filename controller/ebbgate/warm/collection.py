# SPDX-License-Identifier: GPL-2.0-only
"""Tells when a garbage collection of bcache that was asked for is over. I/O: sysfs.

The kernel's time_stats `btree_gc` (drivers/md/bcache/sysfs.c) show how long the longest one took,
and for how many whole seconds the last one has been over: -1 before the first. So the end of one
that takes some milliseconds cannot be told where the one before ended less than a second earlier.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbgate.units import NS_PER_MS, NS_PER_S

LONGEST: Final = "btree_gc_max_duration_ms"
_SINCE_LAST: Final = "btree_gc_last_sec"
POLL_NS: Final = 50 * NS_PER_MS
"""Between two looks: one costs less than a read."""
_UNKNOWN_S: Final = -1


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection that was asked for at `begun_ns` and is taken to be over at `until_ns`.

    `internal`: the folder of these files; `ended_s`: for how long the one before was over at the
    beginning, in seconds.
    """

    internal: Path
    begun_ns: int
    until_ns: int
    ended_s: int

    @classmethod
    def begin(cls, internal: Path, now_ns: int, most_s: float) -> Collection:
        """Ask for it after this. `most_s`: how long it may take."""
        return cls(internal, now_ns, now_ns + int(most_s * NS_PER_S), _ended_s(internal))

    def is_over(self, now_ns: int) -> bool:
        """Return whether one has ended since, as far as can be told, or the time is over."""
        if now_ns >= self.until_ns:
            return True
        ended_s = _ended_s(self.internal)
        if ended_s == _UNKNOWN_S:
            return False
        since = (ended_s + 1) * NS_PER_S <= now_ns - self.begun_ns
        return since or ended_s < self.ended_s or self.ended_s == _UNKNOWN_S


def _ended_s(internal: Path) -> int:
    try:
        return int((internal / _SINCE_LAST).read_text())
    except (OSError, ValueError):
        return _UNKNOWN_S
