# SPDX-License-Identifier: GPL-2.0-only
"""What people see of misses by cgroup and file."""

from __future__ import annotations

from ebbgate.control.attribution_status import (
    NO_ATTRIBUTION,
    CachedAttribution,
    attribution_status,
)
from ebbgate.model.attribution import UNKNOWN_FILE, FileId, MissedBy
from ebbgate.model.heat import VolumeLayout
from ebbgate.signals.recent_attribution import MissesBy, RecentAttribution
from ebbgate.units import NS_PER_S

BIG, OTHER = FileId(252 << 20 | 3, 131), FileId(253 << 20, 9)
RECENT = RecentAttribution(
    MissesBy({77: (30.4, 2.0), 1: (5.0, 0.0), 0: (1.0, 0.0)}, 4.0),
    MissesBy({BIG: (20.0, 2.0), OTHER: (9.0, 0.0), UNKNOWN_FILE: (7.0, 0.0)}, 5.0),
    60.0 * NS_PER_S,
    7,
)


def test_cgroups_and_files_have_names_where_they_are_known() -> None:
    found = attribution_status(RECENT, {77: "/a.slice"}, {BIG: "/srv/db/big"})
    assert found.observed_ns == 60 * NS_PER_S
    assert found.cgroups == (
        MissedBy("/a.slice", 30, 2),
        MissedBy("cgroup 1", 5, 0),
        MissedBy("", 1, 0),
    )
    assert found.files == (
        MissedBy("/srv/db/big", 20, 2),
        MissedBy("inode 9 on 253:0", 9, 0),
        MissedBy("", 7, 0),
    )
    assert (found.cgroups_others, found.files_others) == (4, 5)


def test_lists_are_short_and_the_others_are_counted() -> None:
    cgroups = {number: (float(number), 0.0) for number in range(1, 31)}
    found = attribution_status(RecentAttribution(MissesBy(cgroups, 2.0), ended_ns=1), {}, {})
    assert [each.reads for each in found.cgroups] == list(range(30, 20, -1))
    assert found.cgroups_others == sum(range(21)) + 2


def test_the_files_of_one_table_are_counted_together() -> None:
    """PostgreSQL has a file for each GiB of a table, and a layout has one name for all of them."""
    table = {FileId(1, number): (3.0, 1.0) for number in range(1, 31)}
    files = MissesBy({**table, OTHER: (50.0, 0.0)}, 5.0)
    found = attribution_status(
        RecentAttribution(files=files, ended_ns=1), {}, dict.fromkeys(table, "shop.orders")
    )
    assert found.files == (
        MissedBy("shop.orders", 90, 30),
        MissedBy("inode 9 on 253:0", 50, 0),
    )
    assert found.files_others == 5


def test_without_a_record_nothing_is_known() -> None:
    assert attribution_status(RecentAttribution(), {}, {}).why == NO_ATTRIBUTION


def test_it_is_built_anew_when_a_name_or_a_period_comes() -> None:
    cached = CachedAttribution()
    before = cached.get(RECENT, {}, None)
    assert cached.get(RECENT, {}, None).files[0].name == "inode 131 on 252:3"
    names = {77: "/a.slice"}
    layout = VolumeLayout(1, ("/srv/a", "/srv/b"), files={BIG: 1})
    after = cached.get(RECENT, names, layout)
    assert (after.cgroups[0].name, after.files[0].name) == ("/a.slice", "/srv/b")
    assert cached.get(RECENT, names, layout) is after is not before
