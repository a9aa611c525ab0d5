# SPDX-License-Identifier: GPL-2.0-only
"""Which parts of a volume users miss in the cache, and to which files they belong. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ebbgate.model.attribution import FileId
from ebbgate.model.promotion import ChunkState
from ebbgate.units import KIB, MIB

CHUNK_BYTES: Final = MIB
"""Misses are counted by parts of this size (bpf/heat.h), numbered from the volume's start."""
HEAD_READ_BYTES: Final = 4 * KIB
"""A read that only brings a disk's heads to a chunk."""
HEAT_BINS_MAX: Final = 256
"""The picture of a volume has at most so many parts."""


@dataclass(frozen=True, slots=True)
class ChunkMisses:
    """Requests of users to one chunk that reached the backing device, by kind.

    `sync_reads`: somebody waits for them; `other_reads`: long readahead (bpf/heat.h).
    """

    chunk: int
    sync_reads: int = 0
    other_reads: int = 0
    writes: int = 0


@dataclass(frozen=True, slots=True)
class HeatPeriod:
    """The misses of a volume between two records of the probe.

    - `started_ns`, `ended_ns`: on CLOCK_MONOTONIC.
    - `chunks`: those with the most misses first.
    - `left_out_ios`: misses of chunks that are not among these.
    - `dropped_ios`: misses for which the probe's table had no room.
    """

    started_ns: int
    ended_ns: int
    chunks: tuple[ChunkMisses, ...] = ()
    left_out_ios: int = 0
    dropped_ios: int = 0


@dataclass(frozen=True, slots=True)
class ChunkRun:
    """Chunks `first` to `end` (exclusive) that a group owns alone or for the most part."""

    first: int
    end: int
    group: int


@dataclass(frozen=True, slots=True)
class VolumeLayout:
    """Who owns the chunks of a volume, as read at `read_ns`.

    `groups`: names of files, relations or images. `runs`: ascending, without overlap. `files`: the
    group of each inode that was read.
    """

    read_ns: int
    groups: tuple[str, ...] = ()
    runs: tuple[ChunkRun, ...] = ()
    files: Mapping[FileId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MissedChunk:
    """A chunk that users missed of late. `state`: None where it is not worth a move."""

    chunk: int
    misses: int
    group: str = ""
    state: ChunkState | None = None


@dataclass(frozen=True, slots=True)
class MissedGroup:
    """Users' misses of a file or relation of late.

    - `name`: empty for all data of no known file.
    - `chunks`: how many it has; None for those of no file.
    - `moved`, `pending`, `held_out`: of these, by what promote_hot does with them.
    """

    name: str
    misses: int
    chunks: int | None = None
    moved: int = 0
    pending: int = 0
    held_out: int = 0


@dataclass(frozen=True, slots=True)
class HeatStatus:
    """Where users missed the cache in the last minutes; older misses count less.

    - `why`: why that is unknown, or empty; then all other fields have their defaults.
    - `observed_ns`: the time that `misses` covers. `unlisted`: those whose place is unknown.
    - `bins`: misses by parts of `bin_bytes` from the volume's start; `moved`, `pending` and
      `held_out`: how many chunks of each part promote_hot has moved, chosen and left out.
    - `chunks`, `groups`: those with the most misses first; `groups` is empty without a layout.
    """

    why: str = ""
    observed_ns: int = 0
    misses: int = 0
    unlisted: int = 0
    bin_bytes: int = 0
    bins: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    pending: tuple[int, ...] = ()
    held_out: tuple[int, ...] = ()
    chunks: tuple[MissedChunk, ...] = ()
    groups: tuple[MissedGroup, ...] = ()
