# SPDX-License-Identifier: GPL-2.0-only
"""What people see of misses by place: the picture, the hottest chunks and files, what was moved."""

from __future__ import annotations

from ebbgate.control.heat_status import CachedHeatStatus, heat_status
from ebbgate.model.heat import (
    ChunkMisses,
    ChunkRun,
    HeatPeriod,
    HeatStatus,
    MissedChunk,
    MissedGroup,
    VolumeLayout,
)
from ebbgate.model.owners import NO_OWNERS, owners_of
from ebbgate.model.promotion import ChunkState
from ebbgate.policy.engine import PromoteState
from ebbgate.policy.strategies.promote_benefit import Benefit, Watched
from ebbgate.policy.strategies.promote_choice import Plan
from ebbgate.signals.recent_misses import RecentMisses, add_period
from ebbgate.units import MIB, NS_PER_S
from tests.builders import frame

LAYOUT = VolumeLayout(0, ("/srv/a", "/srv/b"), (ChunkRun(0, 10, 1), ChunkRun(20, 30, 0)))
RECENT = RecentMisses({3: 4.4, 15: 1.0, 25: 9.0, 26: 2.0}, 3.0, 60.0 * NS_PER_S, 7)
PROMOTE = PromoteState(
    plan=Plan(
        listed={
            3: Watched(3, 1.0, False),
            25: Watched(3, 4.0, True),
            5: Watched(3, 2.0, False),
            6: Watched(3, 2.0, False),
        },
        done=frozenset({5, 6}),
        failed=frozenset({6}),
    ),
    benefit=Benefit({1: Watched(1, 1.0, True), 2: Watched(1, 1.0, False)}),
    in_cache={2: None, 511: None, 5: None},
)


def test_parts_chunks_and_files_are_in_the_status() -> None:
    found = heat_status(RECENT, owners_of(NO_OWNERS, LAYOUT), PROMOTE, 512 * MIB)
    assert (found.misses, found.unlisted, found.observed_ns) == (19, 3, 60 * NS_PER_S)
    assert (found.bin_bytes, len(found.bins)) == (2 * MIB, 256)
    assert {i: misses for i, misses in enumerate(found.bins) if misses} == {
        1: 4,
        7: 1,
        12: 9,
        13: 2,
    }
    assert {i for i, moved in enumerate(found.moved) if moved} == {1, 2, 255}
    assert {i for i, pending in enumerate(found.pending) if pending} == {1}
    assert {i for i, held_out in enumerate(found.held_out) if held_out} == {0, 12}
    assert found.chunks == (
        MissedChunk(25, 9, "/srv/a", ChunkState.HELD_OUT),
        MissedChunk(3, 4, "/srv/b", ChunkState.PENDING),
        MissedChunk(26, 2, "/srv/a"),
        MissedChunk(15, 1),
    )
    assert found.groups == (
        MissedGroup("/srv/a", 11, 10, held_out=1),
        MissedGroup("/srv/b", 4, 10, moved=2, pending=1, held_out=1),
        MissedGroup("", 1, None, moved=1),
    )


def test_without_promote_hot_or_layout_there_are_only_chunks() -> None:
    found = heat_status(RECENT, NO_OWNERS, PromoteState(), 512 * MIB)
    assert (found.moved, found.held_out, found.groups) == ((), (), ())
    assert found.chunks[0] == MissedChunk(25, 9)


def test_lists_are_short() -> None:
    chunks = dict.fromkeys(range(100), 5.0)
    runs = tuple(ChunkRun(i, i + 1, i) for i in range(100))
    layout = VolumeLayout(0, tuple(map(str, range(100))), runs)
    found = heat_status(
        RecentMisses(chunks), owners_of(NO_OWNERS, layout), PromoteState(), 100 * MIB
    )
    assert (len(found.chunks), len(found.groups), len(found.bins)) == (20, 20, 100)


def test_the_status_is_built_once_a_period() -> None:
    cached, period = CachedHeatStatus(), HeatPeriod(0, 10 * NS_PER_S, (ChunkMisses(3, 4),))
    recent, now = add_period(RecentMisses(), period), frame(heat=period)
    found = cached.get(recent, now, PromoteState(), 8 * MIB)
    assert found.bins == (0, 0, 0, 4, 0, 0, 0, 0)
    assert cached.get(recent, now, PROMOTE, 8 * MIB) is found
    recent = add_period(recent, HeatPeriod(period.ended_ns, 2 * period.ended_ns))
    assert cached.get(recent, now, PROMOTE, 8 * MIB).held_out == (0, 1, 0, 0, 0, 0, 0, 0)


def test_files_appear_once_they_are_known() -> None:
    cached, period = CachedHeatStatus(), HeatPeriod(0, 10 * NS_PER_S, (ChunkMisses(3, 4),))
    recent = add_period(RecentMisses(), period)
    assert cached.get(recent, frame(heat=period), PromoteState(), 8 * MIB).groups == ()
    recent = add_period(recent, HeatPeriod(period.ended_ns, 2 * period.ended_ns))
    now = frame(heat=period, layout=LAYOUT)
    assert [each.name for each in cached.get(recent, now, PromoteState(), 8 * MIB).groups] == [
        "/srv/b"
    ]


def test_unknown_misses_have_the_reason() -> None:
    unknown = frame(missing={"heat": "no record yet"})
    found = CachedHeatStatus().get(RECENT, unknown, PromoteState(), MIB)
    assert found == HeatStatus(why="no record yet")
