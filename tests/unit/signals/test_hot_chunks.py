# SPDX-License-Identifier: GPL-2.0-only
"""Which chunks were used last, from the probe's sampled references."""

from __future__ import annotations

from ebbgate.model.hot_set import CHUNKS_MAX, ChunkRange
from ebbgate.model.records import ReuseSamples
from ebbgate.signals.hot_chunks import AGAIN_NS, HotChunks
from ebbgate.units import GIB, MIB


def samples(at_ns: int, *chunks: int, write: bool = False) -> ReuseSamples:
    """References to the sampled block of each of these MiB."""
    return ReuseSamples("bcache0", at_ns, tuple(512 * chunk + 26 + write for chunk in chunks))


def hot(chunks: HotChunks) -> list[int]:
    ranges = chunks.hot_set(0).ranges
    return [chunk for each in ranges for chunk in range(each.first, each.end)]


def test_the_chunks_that_were_used_last_come_first() -> None:
    chunks = HotChunks(64 * MIB)
    chunks.on_samples(samples(0, *range(8)))
    chunks.on_samples(samples(1, 2, write=True))
    assert hot(chunks) == [2, 7, 6, 5, 4, 3, 1, 0]


def test_no_more_chunks_are_known_than_the_cache_holds() -> None:
    chunks = HotChunks(4 * MIB)
    chunks.on_samples(samples(0, *range(100)))
    assert hot(chunks) == [99, 98, 97, 96]


def test_a_scan_does_not_displace_what_is_used_again_and_again() -> None:
    chunks = HotChunks(4 * MIB)
    for turn in range(3):
        chunks.on_samples(samples(turn * AGAIN_NS, 7, 8))
    chunks.on_samples(samples(3 * AGAIN_NS, *range(100, 200)))
    assert hot(chunks) == [8, 7, 199, 198]


def test_uses_in_short_succession_are_one() -> None:
    chunks = HotChunks(2 * MIB)
    chunks.on_samples(samples(0, 1))
    chunks.on_samples(samples(AGAIN_NS - 1, 1))
    chunks.on_samples(samples(AGAIN_NS, 2))
    assert hot(chunks) == [2, 1]


def test_chunks_of_about_the_same_heat_are_in_the_order_of_the_disk() -> None:
    chunks = HotChunks(GIB)
    chunks.on_samples(samples(0, *range(160)))
    ranges = chunks.hot_set(5).ranges
    assert ranges[:2] == (ChunkRange(140, 20), ChunkRange(120, 20))
    assert len(ranges) == 8


def test_chunks_of_a_large_cache_are_larger() -> None:
    chunks = HotChunks(64 * GIB)
    assert chunks.chunk_bytes == 4 * MIB
    chunks.on_samples(samples(0, 0, 3, 4, 9))
    assert sorted(hot(chunks)) == [0, 1, 2]
    assert HotChunks(CHUNKS_MAX * MIB).chunk_bytes == MIB


def test_without_a_cache_little_is_kept() -> None:
    chunks = HotChunks(0)
    chunks.on_samples(samples(0, 1, 2, 3))
    assert hot(chunks) == [3]
