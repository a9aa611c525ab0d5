# SPDX-License-Identifier: GPL-2.0-only
"""How much may be pinned, and how often it is touched so that the kernel keeps it. Pure.

bcache evicts the bucket that was read least recently, and one read renews a whole bucket
(drivers/md/bcache/alloc.c, invalidate_buckets_lru). So each half of a bucket's size is touched
before much of the cache can have been replaced. dm-cache (smq) lifts a block that was hit by one
level a minute at most and demotes those of the lower half, so each block is touched once a minute.
Newly promoted blocks enter at the highest of 64 levels and the others sink (dm-cache-policy-smq.c,
q_redistribute), so touches keep a file only while less than a 64th of the cache is replaced a
minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ebbgate.model.volume import Kind
from ebbgate.units import DAY_NS, HOUR_NS, MINUTE_NS, NS_PER_S, doubled, format_bytes, format_ratio
from ebbgate.warm.plan import blocks_text

READS_PER_S_MAX: Final = 500
"""Touches of a volume: some 2% of what a SATA SSD can do."""
READS_MAX: Final = {Kind.BCACHE: READS_PER_S_MAX * 300, Kind.DM_CACHE: READS_PER_S_MAX * 50}
"""Touches of all pinned files of a volume, once each."""
_WRITTEN_SHARE: Final = 1 / 16
"""bcache is touched again after so much of the cache was written, read data included."""
_ROUND_NS_MAX: Final = {Kind.BCACHE: 5 * MINUTE_NS, Kind.DM_CACHE: 55 * NS_PER_S}
_COLD_RATIO: Final = 0.99
"""With fewer hits a file is warmed again."""
_WARM_AGAIN_NS: Final = MINUTE_NS
_WARM_AGAIN_NS_MAX: Final = 16 * MINUTE_NS
_PARTLY_AGAIN_NS: Final = HOUR_NS
_PARTLY_AGAIN_NS_MAX: Final = DAY_NS


@dataclass(frozen=True, slots=True)
class Need:
    """What a pinned file takes: bytes of its own, bytes of the cache, and touches in a round."""

    size_bytes: int = 0
    cache_bytes: int = 0
    reads: int = 0


def step_bytes(bucket_bytes: int, block_bytes: int) -> int:
    """Return how far touches are apart. `block_bytes`: of dm-cache, else 0."""
    return block_bytes or bucket_bytes // 2


def need(size_bytes: int, step: int) -> Need:
    """Return what a file takes at most of bcache, which caches what is read.

    Touches are so far apart through all of its pieces (`plan.spread`), however many these are.
    """
    return Need(size_bytes, size_bytes, -(-size_bytes // step))


def need_of_blocks(size_bytes: int, blocks: int, block_bytes: int) -> Need:
    """Return what a file takes of dm-cache, which caches whole blocks."""
    return Need(size_bytes, blocks * block_bytes, blocks)


def is_due(kind: Kind, since_ns: int, written_bytes: int, cache_bytes: int) -> bool:
    """Return whether files are to be touched again.

    `written_bytes`: to the devices of the cache, since the last time.
    """
    if since_ns >= _ROUND_NS_MAX[kind]:
        return True
    return kind is Kind.BCACHE and written_bytes > cache_bytes * _WRITTEN_SHARE


def is_cold(hits: int, reads: int) -> bool:
    """Return whether so few touches were hits that a file has to be warmed again."""
    return hits < reads * _COLD_RATIO


def warm_again_ns(warmed: int, *, partly_elsewhere: bool = False) -> int:
    """Return how long after a warm-up the next one may begin.

    `warmed`: how many there were since the file was hot. A cache that does not take it, or loses it
    again, is asked less and less often. `partly_elsewhere`: some of it is on another device, where
    each warm-up reads it for nothing.
    """
    if partly_elsewhere:
        return doubled(_PARTLY_AGAIN_NS, warmed - 1, _PARTLY_AGAIN_NS_MAX)
    return doubled(_WARM_AGAIN_NS, warmed - 1, _WARM_AGAIN_NS_MAX)


def limit_text(
    kind: Kind, own: Need, others: tuple[int, int], cache_bytes: int, share: float
) -> str:
    """Return why a file cannot be pinned, with the figures; empty if it can.

    `others`: bytes of the cache and touches of what is pinned already. `share`: of the cache, for
    all.
    """
    limit = int(cache_bytes * share)
    if own.cache_bytes + others[0] > limit:
        return (
            f"its {blocks_text(own.cache_bytes, own.size_bytes)} and {format_bytes(others[0])} of"
            f" other pinned files are more than {format_bytes(limit)}, {format_ratio(share)} of the"
            " cache (pin_limit in the settings)"
        )
    if own.reads + others[1] > READS_MAX[kind]:
        return (
            f"it takes {own.reads} touches, and other pinned files {others[1]}: more than"
            f" {READS_MAX[kind]}, at {READS_PER_S_MAX} a second"
        )
    return ""
