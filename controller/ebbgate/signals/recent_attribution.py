# SPDX-License-Identifier: GPL-2.0-only
"""Whose requests missed the cache in the last minutes, in bounded memory. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, Generic, TypeVar

from ebbgate.model.attribution import AttributionPeriod, FileId, Misses
from ebbgate.signals.recent_misses import HALF_LIFE_NS

_KEPT_MAX: Final = 1024
_FORGOTTEN: Final = 0.5
"""Owners with fewer misses than this are no longer kept."""

Owner = TypeVar("Owner", bound=Hashable)


@dataclass(frozen=True, slots=True)
class MissesBy(Generic[Owner]):
    """Reads and writes by owner; older ones count less. `unlisted`: of owners not kept."""

    known: Mapping[Owner, tuple[float, float]] = field(default_factory=dict)
    unlisted: float = 0.0


@dataclass(frozen=True, slots=True)
class RecentAttribution:
    """Misses by cgroup and by file. `observed_ns`: the time that they cover, likewise decayed.

    `ended_ns`: of the last period.
    """

    cgroups: MissesBy[int] = field(default_factory=MissesBy)
    files: MissesBy[FileId] = field(default_factory=MissesBy)
    observed_ns: float = 0.0
    ended_ns: int = 0


def add_attribution(recent: RecentAttribution, period: AttributionPeriod) -> RecentAttribution:
    """Return the misses after one more period."""
    begun_ns = recent.ended_ns or period.started_ns
    keep = 0.5 ** (max(0, period.ended_ns - begun_ns) / HALF_LIFE_NS)
    return RecentAttribution(
        cgroups=_added(recent.cgroups, keep, period.cgroups, period.cgroups_unlisted),
        files=_added(recent.files, keep, period.files, period.files_unlisted),
        observed_ns=recent.observed_ns * keep + period.ended_ns - period.started_ns,
        ended_ns=period.ended_ns,
    )


def _added(
    before: MissesBy[Owner], keep: float, new: Mapping[Owner, Misses], unlisted: int
) -> MissesBy[Owner]:
    sums = {owner: (reads * keep, writes * keep) for owner, (reads, writes) in before.known.items()}
    for owner, misses in new.items():
        reads, writes = sums.get(owner, (0.0, 0.0))
        sums[owner] = (reads + misses.reads, writes + misses.writes)
    kept = {owner: each for owner, each in sums.items() if sum(each) >= _FORGOTTEN}
    if len(kept) > _KEPT_MAX:
        most = sorted(((sum(each), owner) for owner, each in kept.items()), key=itemgetter(0))
        kept = {owner: kept[owner] for _, owner in most[-_KEPT_MAX:]}
    total = sum(map(sum, sums.values()))
    others = unlisted + total - sum(map(sum, kept.values()))
    return MissesBy(kept, before.unlisted * keep + others)
