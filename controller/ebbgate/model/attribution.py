# SPDX-License-Identifier: GPL-2.0-only
"""Whose requests missed the cache: cgroups and files. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

UNKNOWN_CGROUP: Final = 0
"""The cgroup of requests of which the kernel tells none."""


class FileId(NamedTuple):
    """An inode. `dev`: of its filesystem, major << 20 | minor."""

    dev: int
    inode: int


UNKNOWN_FILE: Final = FileId(0, 0)
"""The file of direct I/O, of metadata, and of all else of which the probe knows none."""


@dataclass(frozen=True, slots=True)
class Misses:
    """Requests of users that reached the backing device."""

    reads: int = 0
    writes: int = 0


@dataclass(frozen=True, slots=True)
class AttributionPeriod:
    """The misses of a volume in a time, by who made them.

    - `started_ns`, `ended_ns`: on CLOCK_MONOTONIC.
    - `cgroups`: by id, which is an inode number in cgroupfs; `files`: by inode.
    - `cgroups_unlisted`, `files_unlisted`: misses of others, too many to be named.
    """

    started_ns: int
    ended_ns: int
    cgroups: dict[int, Misses]
    files: dict[FileId, Misses]
    cgroups_unlisted: int = 0
    files_unlisted: int = 0


@dataclass(frozen=True, slots=True)
class MissedBy:
    """Misses of one cgroup, or of one file or table, of late.

    `name`: empty for all of which none is known.
    """

    name: str
    reads: int
    writes: int


@dataclass(frozen=True, slots=True)
class AttributionStatus:
    """Whose requests missed the cache in the last minutes; older misses count less.

    - `why`: why that is unknown, or empty; then all other fields have their defaults.
    - `observed_ns`: the time that the misses cover.
    - `cgroups`, `files`: those with the most misses first.
    - `cgroups_others`, `files_others`: misses of all that are not listed.
    """

    why: str = ""
    observed_ns: int = 0
    cgroups: tuple[MissedBy, ...] = ()
    cgroups_others: int = 0
    files: tuple[MissedBy, ...] = ()
    files_others: int = 0
