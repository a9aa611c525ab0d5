# SPDX-License-Identifier: GPL-2.0-only
"""Builds the status of users' misses by cgroup and file for people. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final

from ebbgate.model.attribution import (
    UNKNOWN_CGROUP,
    UNKNOWN_FILE,
    AttributionStatus,
    FileId,
    MissedBy,
)
from ebbgate.model.heat import VolumeLayout
from ebbgate.signals.recent_attribution import MissesBy, Owner, RecentAttribution

_LISTED_MAX: Final = 10
"""Cgroups and files in the status, which is written once a second."""
NO_ATTRIBUTION: Final = "no record of who missed yet"


@dataclass(slots=True)
class CachedAttribution:
    """The status of one volume, built anew when something has changed; it changes in place."""

    _shown: AttributionStatus = field(default_factory=AttributionStatus)
    _of: tuple[object, ...] = ()

    def get(
        self, recent: RecentAttribution, cgroups: Mapping[int, str], layout: VolumeLayout | None
    ) -> AttributionStatus:
        """Return the status. `cgroups`: paths by id."""
        of = (recent, cgroups, layout)
        if [*map(id, of)] != [*map(id, self._of)]:
            self._of = of
            known = layout or VolumeLayout(0)
            files = {file: known.groups[group] for file, group in known.files.items()}
            self._shown = attribution_status(recent, cgroups, files)
        return self._shown


def attribution_status(
    recent: RecentAttribution, cgroups: Mapping[int, str], files: Mapping[FileId, str]
) -> AttributionStatus:
    """Return the status. `cgroups`: paths by id; `files`: names of those that are known."""
    if not recent.ended_ns:
        return AttributionStatus(why=NO_ATTRIBUTION)
    listed_cgroups, cgroups_others = _listed(recent.cgroups, lambda id_: _cgroup(id_, cgroups))
    listed_files, files_others = _listed(recent.files, lambda id_: _file(id_, files))
    return AttributionStatus(
        observed_ns=round(recent.observed_ns),
        cgroups=listed_cgroups,
        cgroups_others=cgroups_others,
        files=listed_files,
        files_others=files_others,
    )


def _listed(
    misses: MissesBy[Owner], name_of: Callable[[Owner], str]
) -> tuple[tuple[MissedBy, ...], int]:
    """Return those with the most misses, and how many all others have.

    A table of many GiB has a file for each, all of one name.
    """
    sums = dict[str, tuple[float, float]]()
    for owner, (reads, writes) in misses.known.items():
        name = name_of(owner)
        before = sums.get(name, (0.0, 0.0))
        sums[name] = before[0] + reads, before[1] + writes
    most = nlargest(_LISTED_MAX, sums, key=lambda name: sum(sums[name]))
    rows = tuple(MissedBy(name, *map(round, sums[name])) for name in most)
    others = misses.unlisted + sum(sum(sums[name]) for name in sums.keys() - {*most})
    return rows, round(others)


def _cgroup(cgroup: int, names: Mapping[int, str]) -> str:
    return "" if cgroup == UNKNOWN_CGROUP else names.get(cgroup, f"cgroup {cgroup}")


def _file(file: FileId, names: Mapping[FileId, str]) -> str:
    if file == UNKNOWN_FILE:
        return ""
    device = f"{file.dev >> 20}:{file.dev & 0xFFFFF}"
    return names.get(file, f"inode {file.inode} on {device}")
