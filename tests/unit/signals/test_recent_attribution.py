# SPDX-License-Identifier: GPL-2.0-only
"""Misses by cgroup and file add up, older ones count less, and memory is bounded."""

from __future__ import annotations

import pytest

from ebbgate.model.attribution import AttributionPeriod, FileId, Misses
from ebbgate.signals.recent_attribution import RecentAttribution, add_attribution
from ebbgate.signals.recent_misses import HALF_LIFE_NS
from ebbgate.units import NS_PER_S

FILE = FileId(8 << 20, 12)


def period(
    started_ns: int,
    cgroups: dict[int, Misses],
    files: dict[FileId, Misses] | None = None,
    unlisted: int = 0,
) -> AttributionPeriod:
    ended_ns = started_ns + 10 * NS_PER_S
    return AttributionPeriod(started_ns, ended_ns, cgroups, files or {}, unlisted, 2 * unlisted)


def test_reads_and_writes_add_up_by_owner() -> None:
    first = add_attribution(
        RecentAttribution(), period(0, {7: Misses(5, 1)}, {FILE: Misses(4, 0)}, unlisted=3)
    )
    assert first.cgroups.known == {7: (5, 1)}
    assert first.files.known == {FILE: (4, 0)}
    assert (first.cgroups.unlisted, first.files.unlisted) == (3, 6)
    assert (first.observed_ns, first.ended_ns) == (10 * NS_PER_S, 10 * NS_PER_S)
    later = add_attribution(first, period(HALF_LIFE_NS, {7: Misses(1, 2), 8: Misses(9, 0)}))
    share = 0.5 ** ((later.ended_ns - first.ended_ns) / HALF_LIFE_NS)
    assert share == 0.5
    assert later.cgroups.known == {7: (3.5, 2.5), 8: (9, 0)}
    assert later.files.known == {FILE: (2, 0)}
    assert later.files.unlisted == 3


def test_what_is_long_ago_is_forgotten_but_not_lost() -> None:
    recent = add_attribution(RecentAttribution(), period(0, {7: Misses(1, 0), 8: Misses(64, 0)}))
    recent = add_attribution(recent, period(2 * HALF_LIFE_NS, {}))
    assert recent.cgroups.known.keys() == {8}
    assert recent.cgroups.unlisted == pytest.approx(0.25)


def test_the_owners_with_the_most_misses_are_kept() -> None:
    files = {FileId(8 << 20, inode): Misses(inode, 1) for inode in range(1, 3001)}
    recent = add_attribution(RecentAttribution(), period(0, {}, files))
    assert len(recent.files.known) == 1024
    assert {file.inode for file in recent.files.known} == set(range(3000 - 1023, 3001))
    total = sum(map(sum, recent.files.known.values())) + recent.files.unlisted
    assert total == sum(range(1, 3001)) + 3000
