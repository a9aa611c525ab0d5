# SPDX-License-Identifier: GPL-2.0-only
"""What a file takes of a cache is known from what a worker says of it."""

from __future__ import annotations

from typing import Any

from ebbgate.daemon.cache_facts import CacheFacts, block_sizes
from ebbgate.model.volume import Kind
from ebbgate.units import GIB, KIB, MIB
from ebbgate.warm.pinning import Need
from tests.builders import dm_volume, volume

BCACHE = CacheFacts(512, 0, GIB, 512 * KIB)
DM_CACHE = CacheFacts(512, MIB, GIB)
SCATTERED: dict[str, Any] = {"bytes": 900 * 4 * KIB, "pieces": 900, "blocks": {str(MIB): 890}}


def test_dm_cache_caches_whole_blocks() -> None:
    assert DM_CACHE.taken_bytes(SCATTERED) == 890 * MIB
    assert DM_CACHE.need(SCATTERED) == Need(900 * 4 * KIB, 890 * MIB, 890)


def test_blocks_that_were_not_counted_are_as_many_as_they_can_be() -> None:
    for blocks in ({}, {"65536": 900}):
        opened = {**SCATTERED, "blocks": blocks}
        assert DM_CACHE.taken_bytes(opened) == 904 * MIB
        assert DM_CACHE.need(opened).reads == 904


def test_bcache_caches_what_is_read() -> None:
    assert BCACHE.taken_bytes(SCATTERED) == 900 * 4 * KIB
    assert BCACHE.need(SCATTERED) == Need(900 * 4 * KIB, 900 * 4 * KIB, 15)


def test_a_worker_is_asked_for_the_blocks_of_dm_cache_alone() -> None:
    assert block_sizes([volume(), dm_volume(Kind.DM_WRITECACHE)]) == {}
    large = dm_volume(block_sectors=2048)
    found = block_sizes([large, dm_volume(), volume(), large])
    assert found == {"block_sizes": [64 * KIB, MIB]}
