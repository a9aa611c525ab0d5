# SPDX-License-Identifier: GPL-2.0-only
"""When a cache is full of dirty data, and when it is clean. Pure."""

from __future__ import annotations

from typing import Final

CUTOFF_ASYNC_RATIO: Final = 0.40
CUTOFF_SYNC_RATIO: Final = 0.70


def cutoff_ratio(*, mostly_sync: bool) -> float:
    """Return the in_use level at which the kernel stops caching these writes.

    `mostly_sync`: most are synchronous (O_DIRECT among them).
    Source: drivers/md/bcache/writeback.h, should_writeback().
    """
    return CUTOFF_SYNC_RATIO if mostly_sync else CUTOFF_ASYNC_RATIO


def dirty_room_bytes(cache_bytes: int, level_ratio: float, limit_ratio: float) -> int:
    """Return how many bytes of dirty data fit below the limit; 0 at or above it."""
    return max(0, int(cache_bytes * (limit_ratio - level_ratio)))


def time_to_full_s(room_bytes: int, in_bytes_per_s: float, out_bytes_per_s: float) -> float | None:
    """Return the seconds until the room is used up at these rates; None if it never is.

    0 where there is none, also while nothing arrives: a full bcache takes no dirty data.
    """
    if room_bytes == 0:
        return 0.0
    net = in_bytes_per_s - out_bytes_per_s
    return room_bytes / net if net > 0 else None


def time_to_clean_s(
    dirty_bytes: int, in_bytes_per_s: float, out_bytes_per_s: float
) -> float | None:
    """Return the seconds until nothing is dirty at these rates; None if that never happens."""
    if dirty_bytes == 0:
        return 0.0
    net = out_bytes_per_s - in_bytes_per_s
    return dirty_bytes / net if net > 0 else None
