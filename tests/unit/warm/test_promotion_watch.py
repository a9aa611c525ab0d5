# SPDX-License-Identifier: GPL-2.0-only
"""Promotions that no process of ours has caused are users', and stop our reads where they grow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.frame import Frame, PathLatency
from ebbgate.model.records import Direction
from ebbgate.units import NS_PER_MS, NS_PER_S
from ebbgate.warm.promotion_watch import (
    CLEAN_NS,
    HOLD_MAX_NS,
    HOLD_NS,
    LAG_NS,
    MARGIN,
    BlockReads,
    PromotionWatch,
)

TICK_NS = 250 * NS_PER_MS
TICKS_PER_S = NS_PER_S // TICK_NS
LAG_TICKS = LAG_NS // TICK_NS


@dataclass
class Volume:
    """A dm-cache by the clock: what the kernel counts, and what a process reports."""

    watch: PromotionWatch = field(default_factory=PromotionWatch)
    now_ns: int = 1000 * NS_PER_S
    promotions: int | None = 700
    users: bool = True

    def __post_init__(self) -> None:
        self.tick()

    def tick(self, promoted: int = 0, **reads: Any) -> None:
        """Let a quarter of a second pass, with so many promotions and this report."""
        self.now_ns += TICK_NS
        if self.promotions is not None:
            self.promotions = (self.promotions + promoted) % (1 << 32)
        if reads:
            self.watch.on_reads(self.now_ns, BlockReads(**reads))
        paths = {(Direction.READ, "miss"): PathLatency(20 * self.users, 0, None, None, ())}
        frame = Frame("v", self.now_ns, foreground={}, paths=paths, promotions=self.promotions)
        self.watch.on_frame(frame)

    def rests(self, seconds: int, users: int = 0) -> None:
        """Users' misses bring in so many blocks a tick, and nothing of ours reads."""
        for _ in range(seconds * TICKS_PER_S):
            self.tick(users)

    def reads(self, seconds: int, users: int = 0, ours: int = 5) -> None:
        """A process of ours reads beside them, unless it is to wait."""
        for _ in range(seconds * TICKS_PER_S):
            if self.why:
                self.tick(users)
            else:
                self.tick(users + ours, touched=3 * ours, brought=ours)

    @property
    def why(self) -> str:
        return self.watch.why(self.now_ns)

    @property
    def others(self) -> int | None:
        self.rests(LAG_NS // NS_PER_S + 1)
        return self.watch.others


def test_what_a_process_has_brought_in_is_not_users() -> None:
    volume = Volume()
    volume.reads(20)
    assert (volume.others, volume.why) == (0, "")
    volume.tick(17)
    assert volume.others == 17


@pytest.mark.parametrize("late", range(-LAG_TICKS, LAG_TICKS + 1))
def test_a_report_and_the_counter_may_come_one_after_the_other(late: int) -> None:
    """`late`: ticks between the counter and the report."""
    volume = Volume()
    for tick in range(2 * LAG_TICKS + 1):
        reads = {"touched": 9, "brought": 9} if tick == LAG_TICKS + late else {}
        volume.tick(9 + 4 if tick == LAG_TICKS else 0, **reads)
    assert volume.others == 4


def test_blocks_that_are_read_in_turn_are_ours_until_it_is_known() -> None:
    volume = Volume()
    volume.tick(40, touched=64, pending=64)
    assert volume.others == 0
    volume.tick(0, touched=64, brought=40, pending=24)
    volume.tick(0, touched=24, pending=0)
    assert volume.others == 0
    volume.tick(30, touched=64, pending=20)
    assert volume.others == 10
    volume.tick(0, touched=20, brought=5, pending=0)
    assert volume.others == 25


def test_what_a_process_misses_when_it_ends_may_be_ours() -> None:
    volume = Volume()
    volume.tick(0, touched=64, pending=64)
    volume.watch.on_ended(volume.now_ns)
    volume.tick(64)
    assert volume.others == 0


def test_an_old_report_does_not_hide_users_misses() -> None:
    volume = Volume()
    # What was in the cache already, and was taken for a miss since users had one meanwhile.
    volume.tick(0, touched=64, brought=64)
    volume.rests(5)
    volume.tick(30)
    assert volume.others == 30


def test_without_users_a_promotion_is_ours() -> None:
    volume = Volume(users=False)
    volume.tick(12, touched=64)
    assert volume.others == 0


def test_the_counter_wraps() -> None:
    volume = Volume(promotions=(1 << 32) - 5)
    volume.tick(20)
    assert (volume.promotions, volume.others) == (15, 20)


def test_a_table_that_is_loaded_again_counts_nothing() -> None:
    volume = Volume()
    volume.tick(20)
    assert volume.others == 20
    volume.promotions = 0
    volume.tick()
    volume.tick(3)
    assert volume.others == 23


def test_of_a_gap_between_looks_nothing_is_known() -> None:
    volume = Volume()
    volume.now_ns += 60 * NS_PER_S
    volume.tick(500)
    assert volume.others == 0


def test_a_cache_that_counts_no_promotions_is_unknown_and_stops_nothing() -> None:
    volume = Volume(promotions=None)
    volume.rests(10)
    volume.reads(60)
    assert (volume.others, volume.watch.holds) == (None, 0)


@given(
    ours=st.lists(st.integers(0, 64), min_size=1, max_size=80),
    users=st.lists(st.integers(0, 64), min_size=80, max_size=80),
    late=st.integers(0, LAG_TICKS),
)
def test_each_promotion_is_counted_once(ours: list[int], users: list[int], late: int) -> None:
    volume = Volume()
    reports = [0] * late + ours
    for tick, brought in enumerate(reports):
        promoted = (ours[tick] if tick < len(ours) else 0) + users[tick % len(users)]
        volume.tick(promoted, touched=brought, brought=brought)
    assert volume.others == sum(users[tick % len(users)] for tick in range(len(reports)))


@given(st.lists(st.tuples(*[st.integers(0, 200)] * 3), max_size=80))
def test_users_never_have_more_than_there_were(ticks: list[tuple[int, int, int]]) -> None:
    volume, before = Volume(), 0
    for promoted, brought, pending in ticks:
        volume.tick(promoted, touched=brought, brought=brought, pending=pending)
        others = volume.watch.others or 0
        assert before <= others <= sum(each[0] for each in ticks)
        before = others


# ---- stops --------------------------------------------------------------------------------------
def test_reads_stop_where_users_misses_are_promoted_more_often_beside_them() -> None:
    volume = Volume()
    volume.rests(10, users=2)
    volume.reads(60, users=2)
    assert (volume.why, volume.watch.holds) == ("", 0)
    while not volume.why:
        volume.reads(1, users=12)
    assert volume.why.startswith("beside its reads users' misses brought ")
    assert volume.why.endswith("without them: it waits for 10 s")
    volume.rests(HOLD_NS // NS_PER_S + 1, users=2)
    assert (volume.why, volume.watch.holds) == ("", 1)


def test_users_who_need_the_disk_as_much_without_our_reads_stop_nothing() -> None:
    volume = Volume()
    volume.rests(30, users=40)
    volume.reads(300, users=40)
    assert volume.watch.holds == 0


def test_a_load_that_has_grown_by_itself_stops_reads_once() -> None:
    volume = Volume()
    volume.rests(30)
    volume.reads(300, users=40)
    assert volume.watch.holds == 1


def test_what_may_be_ours_still_stops_nothing() -> None:
    volume = Volume()
    volume.rests(30)
    for _ in range(20):
        volume.tick(MARGIN, touched=64, pending=MARGIN)
        volume.tick(0, touched=64, brought=MARGIN)
    assert volume.watch.holds == 0


@pytest.mark.parametrize(("blocks", "holds"), [(MARGIN, 0), (MARGIN + 1, 1)])
def test_a_few_blocks_more_than_in_rests_stop_nothing(blocks: int, holds: int) -> None:
    volume = Volume()
    volume.rests(30)
    volume.tick(0, touched=1)
    volume.tick(blocks, touched=1)
    volume.rests(4)
    assert volume.watch.holds == holds


def test_without_a_rest_to_compare_with_nothing_stops() -> None:
    volume = Volume()
    volume.reads(100, users=40)
    assert volume.watch.holds == 0


def test_each_stop_is_longer_until_reads_did_no_harm_for_a_while() -> None:
    volume = Volume()
    waits = []
    for _ in range(9):
        volume.rests(10)
        while not volume.why:
            volume.reads(1, users=40)
        begin_ns = volume.now_ns
        while volume.why:
            volume.rests(1)
        waits.append(round((volume.now_ns - begin_ns) / NS_PER_S))
    longest = HOLD_MAX_NS // NS_PER_S
    expected = [10, 20, 40, 80, 160, 320, *[longest] * 3]
    assert all(abs(a - b) <= 1 for a, b in zip(waits, expected, strict=True)), waits
    volume.reads(CLEAN_NS // NS_PER_S + 3)
    while not volume.why:
        volume.reads(1, users=40)
    assert volume.why.endswith("it waits for 10 s")
