# SPDX-License-Identifier: GPL-2.0-only
"""How much dirty data the kernel will still take, and when that or cleanness is reached. Pure.

Source: drivers/md/bcache/writeback.h, should_writeback(): a write is cached dirty only while the
cache's in_use is at most cutoff_writeback (40 %) or, for synchronous writes (O_DIRECT among them),
cutoff_writeback_sync (70 %).
"""

from __future__ import annotations

from typing import Final

CUTOFF_ASYNC_RATIO: Final = 0.40
CUTOFF_SYNC_RATIO: Final = 0.70
SYNC_SHARE_MIN: Final = 0.9
"""With more asynchronous writes than this leaves, the lower cutoff is the one that counts."""


def cutoff_ratio(sync_share: float | None) -> float:
    """The in_use level at which the kernel stops caching this mix of writes.

    `sync_share` (0..1) of the written bytes' requests are synchronous; None: the cautious 40 %.
    """
    if sync_share is None or sync_share < SYNC_SHARE_MIN:
        return CUTOFF_ASYNC_RATIO
    return CUTOFF_SYNC_RATIO


def dirty_room_bytes(cache_bytes: int, level_ratio: float, limit_ratio: float) -> int:
    """Bytes of dirty data until the limit; 0 at or above it."""
    return max(0, int(cache_bytes * (limit_ratio - level_ratio)))


def time_to_full_s(room_bytes: int, in_bytes_per_s: float, out_bytes_per_s: float) -> float | None:
    """Seconds until the room is used up at these rates; None when it does not shrink."""
    net = in_bytes_per_s - out_bytes_per_s
    return room_bytes / net if net > 0 else None


def time_to_clean_s(
    dirty_bytes: int, in_bytes_per_s: float, out_bytes_per_s: float
) -> float | None:
    """Seconds until nothing is dirty at these rates; 0 when clean, None when it does not shrink."""
    if dirty_bytes == 0:
        return 0.0
    net = out_bytes_per_s - in_bytes_per_s
    return dirty_bytes / net if net > 0 else None
