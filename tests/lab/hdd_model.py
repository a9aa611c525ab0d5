# SPDX-License-Identifier: GPL-2.0-only
"""When a hard disk would have finished a request.

Pure: time comes in as `arrival_ns`, chance as a seeded generator.

One head, one request at a time, first come first served. A request costs

    transfer   length / 130 MB/s
    seek       0.5 ms + 8.5 ms * sqrt(distance / size of the disk)
    rotation   uniform in 0 .. 8.33 ms (one turn at 7200/min)

The next sector costs neither seek nor rotation; a skip of up to 256 KiB ahead costs the time in
which the skipped bytes pass under the head. There is no write cache and no reordering here: those
are in hdd_queue.py.

A disk that reorders has to know where on the platter each request lies, so for it the rotation is
not drawn: the place follows from the offset (one track passes in one turn), the turn from the time.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

TRANSFER_BYTES_PER_S = 130_000_000
SEEK_BASE_NS = 500_000
SEEK_FULL_STROKE_NS = 8_500_000
ROTATION_NS = 8_333_333
SKIP_BYTES_MAX = 256 * 1024
TRACK_BYTES = TRANSFER_BYTES_PER_S * ROTATION_NS // 1_000_000_000


def transfer_ns(length_bytes: int) -> int:
    """Time in which so many bytes pass under the head."""
    return length_bytes * 1_000_000_000 // TRANSFER_BYTES_PER_S


def seek_ns(distance_bytes: int, size_bytes: int) -> int:
    """Time to move the head over a distance, on a disk of the given size."""
    return SEEK_BASE_NS + round(SEEK_FULL_STROKE_NS * math.sqrt(distance_bytes / size_bytes))


def rotation_ns(at_ns: int, offset_bytes: int) -> int:
    """Time from `at_ns` until the offset's sector passes under a head that is on its track."""
    passes_ns = offset_bytes % TRACK_BYTES * ROTATION_NS // TRACK_BYTES
    return (passes_ns - at_ns) % ROTATION_NS


@dataclass(slots=True)
class HddModel:
    """The state of one disk: where the head is, and when it is free again."""

    size_bytes: int
    random: random.Random
    scale: float = 1.0
    """Factor on every service time; 0 makes the disk as fast as its host."""
    head_bytes: int = 0
    free_at_ns: int = 0
    busy_ns: int = 0

    def finish_ns(self, arrival_ns: int, offset_bytes: int, length_bytes: int) -> int:
        """The time at which a request that arrives now is done; moves the head there.

        Requests queue: the head starts at the later of `arrival_ns` and the end of the previous
        one. Times are absolute, so a caller that oversleeps does not make the disk slower.
        """
        service_ns = round(self.service_ns(offset_bytes, length_bytes) * self.scale)
        return self.occupy(
            max(arrival_ns, self.free_at_ns), service_ns, offset_bytes + length_bytes
        )

    def occupy(self, start_ns: int, service_ns: int, head_bytes: int) -> int:
        """Keep the head busy, which leaves it at `head_bytes`; return when it is free."""
        self.free_at_ns = start_ns + service_ns
        self.busy_ns += service_ns
        self.head_bytes = head_bytes
        return self.free_at_ns

    def service_ns(self, offset_bytes: int, length_bytes: int) -> int:
        """How long the head is busy with a request; draws a rotation if it has to seek."""
        distance_bytes = offset_bytes - self.head_bytes
        if 0 <= distance_bytes <= SKIP_BYTES_MAX:
            return transfer_ns(distance_bytes + length_bytes)
        wait_ns = round(self.random.uniform(0, ROTATION_NS))
        return seek_ns(abs(distance_bytes), self.size_bytes) + wait_ns + transfer_ns(length_bytes)

    def placed_service_ns(self, start_ns: int, offset_bytes: int, length_bytes: int) -> int:
        """Return what `service_ns` does, with the rotation that follows from place and time."""
        distance_bytes = offset_bytes - self.head_bytes
        if 0 <= distance_bytes <= SKIP_BYTES_MAX:
            return transfer_ns(distance_bytes + length_bytes)
        reached_ns = seek_ns(abs(distance_bytes), self.size_bytes)
        wait_ns = rotation_ns(start_ns + reached_ns, offset_bytes)
        return reached_ns + wait_ns + transfer_ns(length_bytes)
