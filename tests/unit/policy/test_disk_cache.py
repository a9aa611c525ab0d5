# SPDX-License-Identifier: GPL-2.0-only
"""The begin of gaps shows how long a disk's own write cache takes to empty."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.policy.strategies import disk_cache, explanation, gap_use
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState
from ebbgate.policy.strategies.disk_cache import DiskCache
from ebbgate.policy.strategies.gap_use import RUN_OFF_NS_MAX, GapUse
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S
from tests.builders import idle_frame, queue_sample

COST_NS = 250 * NS_PER_MS


def caching(held_ios: float, per_s: float, fills_per_s: float = 4000) -> Callable[[int], int]:
    """What a disk has completed at a time in ms that takes in `held_ios` and writes `per_s`."""
    return lambda at_ms: int(min(fills_per_s * at_ms / 1000, held_ios + per_s * at_ms / 1000))


def gap(
    cache: DiskCache, done: Callable[[int], int], length_ms: int = 2300, begin_ms: int = 0
) -> DiskCache:
    """The state after a gap with a sample each 20 ms."""
    cache = disk_cache.begin(cache)
    for at_ms in range(0, length_ms, 20):
        cache = disk_cache.on_queue(cache, queue_sample(begin_ms + at_ms, 4, 7000 + done(at_ms)))
    return disk_cache.close(cache)


@given(
    st.floats(0.3, 1.0),
    st.integers(150, 1500),
    st.floats(5.0, 20.0),
    st.integers(1400, 9000),
)
def test_the_time_to_empty_is_what_it_held_over_what_the_platters_write(
    empties_s: float, per_s: int, faster: float, length_ms: int
) -> None:
    done = caching(empties_s * per_s, per_s, faster * per_s)
    found_ns = gap(DiskCache(), done, length_ms).empties_ns
    assert found_ns / NS_PER_S == pytest.approx(empties_s, abs=0.08, rel=0.1)


def wavy(at_ms: int) -> int:
    """A disk without a cache whose rate changes by a fifth within a gap."""
    return int(0.3 * at_ms + 15 * math.sin(at_ms / 250))


@pytest.mark.parametrize(
    "done",
    [
        lambda at_ms: at_ms // 3,
        lambda at_ms: max(0, at_ms - 100) // 3,
        lambda at_ms: int(0.3 * at_ms + (at_ms / 100) ** 2),
        wavy,
        lambda at_ms: 0,
    ],
)
def test_a_disk_without_a_cache_shows_none(done: Callable[[int], int]) -> None:
    assert gap(DiskCache(), done).empties_ns == 0


def test_one_gap_of_five_may_be_wrong() -> None:
    cache = DiskCache()
    for number in range(5):
        cache = gap(cache, caching(900 if number == 2 else 150, 300), begin_ms=5000 * number)
    assert cache.empties_ns / NS_PER_S == pytest.approx(0.5, abs=0.05)


def test_too_short_a_gap_says_nothing() -> None:
    cache = gap(DiskCache(), caching(150, 300))
    assert gap(cache, caching(150, 300), length_ms=500).recent_ns == cache.recent_ns


def test_a_gap_is_measured_until_the_gate_is_closed_and_once() -> None:
    cache = gap(DiskCache(), caching(150, 300))
    assert disk_cache.close(cache) == cache
    assert disk_cache.on_queue(cache, queue_sample(9000, 4, 99)) == cache


def test_a_limited_rate_says_nothing() -> None:
    cache = disk_cache.begin(DiskCache())
    for at_ms in range(0, 2000, 20):
        cache = disk_cache.on_queue(cache, queue_sample(at_ms, 4, caching(150, 300)(at_ms)))
    assert disk_cache.close(cache, usable=False).recent_ns == ()


# ---- what a gap makes of it ---------------------------------------------------------------------
def used(use: GapUse, begin_ms: int, cap: float | None = None, opens_wide: bool = True) -> GapUse:
    """The state after a gap of 2.5 s on a disk whose cache takes half a second to empty."""
    done, own_ms = caching(150, 300), 0
    use = gap_use.begin(use, 30 * NS_PER_MS, COST_NS, opens_wide)
    for own_ms in range(30, 2500, 20):
        at_ms = begin_ms + own_ms
        use = gap_use.advance(use, own_ms * NS_PER_MS, at_ms * NS_PER_MS, COST_NS, 300)
        under_way = 0 if use.rest is gap_use.Rest.END else 8
        use = gap_use.on_queue(use, queue_sample(at_ms, under_way, 7000 + done(own_ms - 30)), cap)
    return gap_use.end(use, 2500 * NS_PER_MS)


def test_rests_last_until_the_disk_has_emptied_its_cache() -> None:
    use = used(GapUse(), 0)
    assert use.hidden_ns / NS_PER_S == pytest.approx(0.5, abs=0.05)
    assert use.run_off_ns == use.hidden_ns + GapUse().run_off_ns
    for number in range(1, 9):
        use = used(use, 5000 * number)
    assert use.foreseen
    assert use.hidden_ns / NS_PER_S == pytest.approx(0.5, abs=0.05)
    assert use.hidden_ns < use.run_off_ns < use.hidden_ns + 150 * NS_PER_MS


def test_rests_are_shorter_again_without_a_cache() -> None:
    use = GapUse(run_off_ns=600 * NS_PER_MS, hidden_ns=500 * NS_PER_MS)
    ended = replace(use, run_off_began_ns=NS_PER_S, rest=gap_use.Rest.END)
    for number in range(1, 60):
        ended = replace(ended, run_off_began_ns=number * NS_PER_S, rest=gap_use.Rest.END)
        ended = gap_use.on_queue(ended, queue_sample(1000 * number + 50, 0), None)
    assert ended.hidden_ns < 200 * NS_PER_MS


@pytest.mark.parametrize(("cap", "opens_wide"), [(MIB, True), (None, False)])
def test_a_rate_that_is_not_the_disks_says_nothing(cap: float | None, opens_wide: bool) -> None:
    assert used(GapUse(), 0, cap, opens_wide).hidden_ns == 0


def test_a_cache_that_takes_longer_than_any_rest_bounds_the_rest() -> None:
    use = GapUse(cache=DiskCache(closed=False, recent_ns=(9 * NS_PER_S,)))
    assert gap_use.end(use).run_off_ns == RUN_OFF_NS_MAX


def test_more_under_way_than_usual_begins_the_rest_earlier() -> None:
    use = gap_use.begin(GapUse(lengths_ns=(2500 * NS_PER_MS,) * 3), 30 * NS_PER_MS, COST_NS)
    rests = []
    for under_way in (20, 64):
        seen = gap_use.on_queue(use, queue_sample(2280, under_way), None)
        now_ns = 2290 * NS_PER_MS
        rests.append(gap_use.advance(seen, now_ns, now_ns, COST_NS, 300).rest)
    assert rests == [gap_use.Rest.NONE, gap_use.Rest.END]


@pytest.mark.parametrize(
    ("hidden_ms", "text"),
    [(300, "rests 420 ms before, 300 ms of it for the disk's own write cache)"), (9, "before)")],
)
def test_the_part_of_a_rest_for_the_disks_own_cache_is_explained(hidden_ms: int, text: str) -> None:
    use = GapUse((2500 * NS_PER_MS,) * 3, run_off_ns=420 * NS_PER_MS)
    state = DestageState(gap=replace(use, hidden_ns=hidden_ms * NS_PER_MS))
    found = explanation.of_destage(state, idle_frame(0, idle_ns=NS_PER_S), DestageParams())
    assert [each for each in found if str(each.threshold).endswith(text)]
