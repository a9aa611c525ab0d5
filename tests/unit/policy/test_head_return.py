# SPDX-License-Identifier: GPL-2.0-only
"""One read brings a disk's heads back, once for each time the gate was open in a gap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.frame import Frame
from ebbgate.model.heat import CHUNK_BYTES, HEAD_READ_BYTES
from ebbgate.model.records import Edge, QueueSample
from ebbgate.policy.defaults import Policy
from ebbgate.policy.engine import State, step
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.policy.strategies.disk_cache_fill import DiskCacheFill
from ebbgate.policy.strategies.gap_use import GapUse
from ebbgate.policy.strategies.head_return import (
    HeadReturn,
    follow,
    page_offset_bytes,
)
from ebbgate.units import GIB, NS_PER_MS
from tests.builders import busy_edge, busy_frame, idle_edge, idle_frame, queue_sample

PERIOD_MS = 5000
Event = Frame | Edge | QueueSample
NOW_NS = 1000 * NS_PER_MS
AWAY = HeadReturn(away=True)


def at(head: HeadReturn, ms: int, gap: GapUse | None = None) -> HeadReturn:
    """After so many ms without write-back in the gap."""
    now_ns = NOW_NS + ms * NS_PER_MS
    return follow(head, gap or GapUse(), now_ns, idle=True, drains=False, over=True)


def reads(*events: Event, head_return: int = 1) -> list[int]:
    """The times in ms of the events at which a read was asked for."""
    policy = Policy(DestageParams(head_return=head_return))
    state, found = State(), []
    for event in events:
        before = state.destage.head.count
        state, _ = step(state, event, policy, event.at_ns)
        if state.destage.head.count > before:
            found.append(event.at_ns // NS_PER_MS)
    return found


def alike(count: int = 4) -> list[Event]:
    """Gaps of 2.5 s, in which write-back is under way until they end."""
    return [
        event
        for begin_ms in range(PERIOD_MS, PERIOD_MS * (count + 1), PERIOD_MS)
        for event in (
            busy_frame(begin_ms - 200),
            idle_edge(begin_ms + 300),
            queue_sample(begin_ms + 400, 3),
            busy_edge(begin_ms + 2500, 2500),
        )
    ]


def last_gap(*inside: Event) -> list[Event]:
    """A fifth gap, which is foreseen."""
    begin_ms = 5 * PERIOD_MS
    return [*alike(), busy_frame(begin_ms - 200), idle_edge(begin_ms + 300), *inside]


def test_a_rest_before_the_likely_end_asks_once_nothing_is_under_way() -> None:
    begin_ms = 5 * PERIOD_MS
    inside = [queue_sample(begin_ms + ms, 3 if ms < 2420 else 0) for ms in range(400, 2500, 20)]
    assert reads(*last_gap(*inside)) == [begin_ms + 2420]


def test_a_gap_that_nobody_foresees_has_none_while_dirty_data_is_left() -> None:
    inside = [queue_sample(PERIOD_MS + ms, 0) for ms in range(400, 2500, 20)]
    begin: list[Event] = [busy_frame(PERIOD_MS - 200), idle_edge(PERIOD_MS + 300)]
    assert reads(*begin, *inside) == []


def test_a_volume_that_has_become_clean_has_one() -> None:
    begin: list[Event] = [busy_frame(PERIOD_MS - 200), idle_edge(PERIOD_MS + 300)]
    clean = [idle_frame(PERIOD_MS + ms, dirty_bytes=0) for ms in (500, 750, 1000)]
    assert reads(*begin, queue_sample(PERIOD_MS + 400, 3), *clean) == [PERIOD_MS + 500]


def test_a_clean_volume_that_nothing_was_written_back_to_has_none() -> None:
    assert reads(*(idle_frame(ms, dirty_bytes=0) for ms in (250, 500, 750))) == []


def test_users_move_the_heads_themselves() -> None:
    begin: list[Event] = [busy_frame(PERIOD_MS - 200), idle_edge(PERIOD_MS + 300)]
    clean = [idle_frame(PERIOD_MS + 5500, dirty_bytes=0)]
    assert reads(*begin, busy_edge(PERIOD_MS + 2500, 2500), *clean) == []


def test_after_a_time_without_signals_none_is_due() -> None:
    """The disk may sleep by then."""
    begin: list[Event] = [busy_frame(PERIOD_MS - 200), idle_edge(PERIOD_MS + 300)]
    clean = idle_frame(PERIOD_MS + 9000, dirty_bytes=0)
    silent = idle_frame(PERIOD_MS + 500, idle=None)
    assert reads(*begin, queue_sample(PERIOD_MS + 400, 3), silent, clean) == []
    assert reads(*begin, queue_sample(PERIOD_MS + 400, 3), clean) != []


def test_a_policy_may_have_none() -> None:
    begin_ms = 5 * PERIOD_MS
    inside = [queue_sample(begin_ms + ms, 0) for ms in range(400, 2500, 20)]
    assert reads(*last_gap(*inside), head_return=0) == []
    assert reads(*last_gap(*inside)) != []


@pytest.mark.parametrize(
    ("gap", "due_ms"),
    [
        (GapUse(), [0]),
        (GapUse(hidden_ns=250 * NS_PER_MS), [125, 225]),
        (GapUse(fill=DiskCacheFill()), [0]),
        (GapUse(hidden_ns=900 * NS_PER_MS, fill=DiskCacheFill(held_ns=80 * NS_PER_MS)), [40, 72]),
    ],
)
def test_with_a_write_cache_it_is_asked_for_twice(gap: GapUse, due_ms: list[int]) -> None:
    head, found = AWAY, []
    for ms in range(400):
        before, head = head, at(head, ms, gap)
        found += [ms] if head.count > before.count else []
    assert found == due_ms
    assert head == HeadReturn(count=len(due_ms))


def test_what_is_under_way_again_begins_the_wait_anew() -> None:
    gap = GapUse(hidden_ns=250 * NS_PER_MS)
    head = at(AWAY, 0, gap)
    head = follow(head, gap, NOW_NS + 100 * NS_PER_MS, idle=True, drains=True, over=False)
    head = at(head, 130, gap)
    assert head.count == 0
    assert at(head, 255, gap).count == 1


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 20), st.integers(HEAD_READ_BYTES, 64 * GIB))
def test_the_page_lies_on_the_volume(chunk: int, count: int, volume_bytes: int) -> None:
    offset = page_offset_bytes(chunk, count, volume_bytes)
    assert offset % HEAD_READ_BYTES == 0
    assert 0 <= offset <= volume_bytes - HEAD_READ_BYTES


@given(st.integers(16, 40), st.integers(0, 10_000))
def test_pages_are_near_the_chunk_and_do_not_repeat_soon(chunk: int, first: int) -> None:
    found = [page_offset_bytes(chunk, first + each, 64 * CHUNK_BYTES) for each in range(64)]
    assert len({*found}) == len(found)
    assert all(abs(each // CHUNK_BYTES - chunk) <= 8 for each in found)
