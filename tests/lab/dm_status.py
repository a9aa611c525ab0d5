# SPDX-License-Identifier: GPL-2.0-only
"""Parses device-mapper's status lines of caches.

Pure. The formats are those of Documentation/admin-guide/device-mapper: cache.rst, writecache.rst.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.lab.errors import LabError

SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """The status line of a dm-cache. Counters have 32 bits and wrap."""

    metadata_used: int
    metadata_total: int
    """In metadata blocks (4 KiB)."""
    block_bytes: int
    used: int
    total: int
    """In cache blocks."""
    read_hits: int
    read_misses: int
    write_hits: int
    write_misses: int
    demotions: int
    promotions: int
    dirty: int
    """In cache blocks."""
    features: tuple[str, ...]
    core: Mapping[str, int]
    """Core arguments, e.g. migration_threshold, in sectors."""
    policy: str
    policy_arguments: Mapping[str, int]
    read_only: bool
    needs_check: bool

    @property
    def mode(self) -> str:
        """writeback, writethrough or passthrough."""
        modes = {"writeback", "writethrough", "passthrough"}
        return next(name for name in self.features if name in modes)

    @property
    def dirty_bytes(self) -> int:
        """Dirty data: whole blocks, as dm-cache counts it."""
        return self.dirty * self.block_bytes


@dataclass(frozen=True, slots=True)
class WritecacheStatus:
    """The status line of a dm-writecache, counted in its blocks."""

    error: int
    """The negated errno that made it stop, 0 while it works."""
    blocks: int
    free: int
    writeback: int
    """Blocks on their way to the origin."""
    reads: int
    read_hits: int
    writes: int
    write_hits_uncommitted: int
    write_hits_committed: int
    writes_around: int
    writes_allocate: int
    writes_blocked: int
    flushes: int
    discards: int


def cache_status(line: str) -> CacheStatus:
    """From `dmsetup status`; LabError for anything that is not a working cache."""
    words = _words(line, "cache")
    counts = [int(word) for word in words[4:11]]
    metadata, blocks = words[1].partition("/"), words[3].partition("/")
    features, rest = _counted(words, 11)
    core, rest = _counted(rest, 0)
    policy, *rest = rest
    policy_arguments, rest = _counted(rest, 0)
    return CacheStatus(
        metadata_used=int(metadata[0]),
        metadata_total=int(metadata[2]),
        block_bytes=int(words[2]) * SECTOR_BYTES,
        used=int(blocks[0]),
        total=int(blocks[2]),
        read_hits=counts[0],
        read_misses=counts[1],
        write_hits=counts[2],
        write_misses=counts[3],
        demotions=counts[4],
        promotions=counts[5],
        dirty=counts[6],
        features=tuple(features),
        core=_pairs(core),
        policy=policy,
        policy_arguments=_pairs(policy_arguments),
        read_only=rest[0] == "ro",
        needs_check=rest[1:2] == ["needs_check"],
    )


def writecache_status(line: str) -> WritecacheStatus:
    """From `dmsetup status`; LabError for anything that is not a working writecache."""
    return WritecacheStatus(*(int(word) for word in _words(line, "writecache")[:14]))


def _words(line: str, target: str) -> list[str]:
    """What follows `[name:] start length target`."""
    words = line.split()
    if words[:1] and words[0].endswith(":"):
        del words[0]
    if words[2:3] != [target] or "Fail" in words or "Error" in words:
        raise LabError(f"this is no working {target}: {line!r}")
    return words[3:]


def _counted(words: list[str], start: int) -> tuple[list[str], list[str]]:
    """Words behind a count, and what is left."""
    end = start + 1 + int(words[start])
    return words[start + 1 : end], words[end:]


def _pairs(words: list[str]) -> dict[str, int]:
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
