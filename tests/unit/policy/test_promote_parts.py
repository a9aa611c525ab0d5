# SPDX-License-Identifier: GPL-2.0-only
"""The parts of promote_hot: scores, choice, measured benefit, budget of writes."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from statistics import fmean

import pytest

from ebbgate.model.heat import ChunkMisses, ChunkRun, HeatPeriod, VolumeLayout
from ebbgate.model.owners import NO_OWNERS, owners_of
from ebbgate.model.promotion import ChunksMoved, Promotion
from ebbgate.policy.strategies import promote_benefit
from ebbgate.policy.strategies.promote_benefit import Benefit, Costs, Watched
from ebbgate.policy.strategies.promote_choice import Earlier, Plan, Room, Worth, choose
from ebbgate.policy.strategies.promote_score import (
    ChunkScore,
    Groups,
    Scores,
    add_window,
    weighted,
    without,
)
from ebbgate.policy.strategies.promote_stop import PromoteParams, WriteBudget, charge
from ebbgate.units import DAY_NS, GIB, NS_PER_MS, NS_PER_S
from tests.builders import busy_frame

WINDOW_NS = 10 * NS_PER_S
HALF_LIFE_NS = 3 * WINDOW_NS
COSTS = Costs(8 * NS_PER_MS, 20 * NS_PER_MS, displaced_rate=0.0, horizon_s=120.0)
FILES = VolumeLayout(1, ("even", "uneven"), (ChunkRun(0, 100, 0), ChunkRun(100, 200, 1)))


def scored(*windows: dict[int, int], left_out: int = 0) -> Scores:
    """The scores after windows with so many synchronous reads of each chunk."""
    scores = Scores(chunk_count=10_000)
    for number, misses in enumerate(windows):
        chunks = tuple(ChunkMisses(chunk, ios) for chunk, ios in misses.items())
        window = HeatPeriod(number * WINDOW_NS, (number + 1) * WINDOW_NS, chunks, left_out)
        scores = add_window(scores, window, HALF_LIFE_NS, 1 / 3)
    return scores


def test_misses_for_which_nobody_waits_count_a_third() -> None:
    found = ChunkMisses(1, sync_reads=3, other_reads=3, writes=6)
    assert weighted(found, 1 / 3) == pytest.approx(6)
    assert weighted(found, 0.0) == pytest.approx(4)


def test_misses_fade_and_are_forgotten_at_last() -> None:
    scores = scored({1: 8}, {}, {}, {2: 1})
    assert scores.chunks[1].misses == pytest.approx(4)
    assert scores.chunks[2] == ChunkScore(1.0, 1)
    assert scored({1: 1}, *[{}] * 12).chunks == {}
    assert scored({1: 2}, left_out=10).misses == pytest.approx(12)


def test_misses_of_unknown_chunks_alone_give_no_rate() -> None:
    window = HeatPeriod(0, WINDOW_NS, (), dropped_ios=10)
    assert add_window(Scores(), window, HALF_LIFE_NS, 1 / 3).mean_rate == 0.0


def test_a_moved_chunk_starts_from_nothing() -> None:
    scores = without(scored({1: 8, 2: 8}, {1: 8}), (1,))
    assert set(scores.chunks) == {2}


def test_misses_of_moved_chunks_are_laid_on_no_others() -> None:
    moved, rest = dict.fromkeys(range(1000), 8), {2000: 4, 2001: 6}
    scores = without(scored(moved | rest, moved | rest), tuple(moved))
    alone = scored(rest, rest)
    assert scores.misses == pytest.approx(alone.misses)
    assert scores.mean_rate == pytest.approx(alone.mean_rate)
    assert hottest_rate(scores) == pytest.approx(hottest_rate(alone))
    assert hottest_rate(scores) > 100 * scores.mean_rate


def hottest_rate(scores: Scores) -> float:
    """The misses per second to expect of chunk 2001, which belongs to no file."""
    return Groups(scores).heats[-1].expected_rate(scores.chunks[2001].misses, scores.seconds)


def test_a_chunk_without_misses_shares_the_heat_of_an_even_file_only() -> None:
    random = Random(1)
    even = {chunk: random.choice([3, 4, 5]) for chunk in range(90)}
    uneven = {100: 200, 101: 160}
    scores = scored(even | uneven, even | uneven)
    heats = Groups(scores, owners_of(NO_OWNERS, FILES)).heats
    assert heats[0].rate == pytest.approx(heats[1].rate, rel=0.1)
    unseen = [heats[group].expected_rate(0.0, scores.seconds) for group in (0, 1)]
    assert unseen[0] > 0.5 * heats[0].rate
    assert unseen[1] < 0.05 * heats[1].rate


def test_without_locality_every_chunk_is_expected_to_have_the_mean() -> None:
    random = Random(2)
    windows = [dict.fromkeys(range(10_000), 0) for _ in range(3)]
    for window in windows:
        for _ in range(5_000):
            window[random.randrange(10_000)] += 1
    scores = scored(*windows)
    heat = Groups(scores).heats[-1]
    hottest = max(each.misses for each in scores.chunks.values())
    assert hottest > 4
    assert heat.expected_rate(hottest, scores.seconds) < 1.2 * heat.rate


@pytest.mark.parametrize(("chunk", "group"), [(0, 0), (99, 0), (100, 1), (199, 1), (200, -1)])
def test_a_chunk_belongs_to_the_file_that_owns_it(chunk: int, group: int) -> None:
    owners = owners_of(NO_OWNERS, FILES)
    assert owners.group_of(chunk) == group
    assert (chunk in owners.chunks_of(group)) is (group >= 0)
    assert owners_of(owners, FILES) is owners


def test_the_list_ends_where_a_move_no_longer_pays() -> None:
    misses = {chunk: 2 ** (chunk // 10) for chunk in range(60)}
    groups = Groups(scored(misses, misses))
    plan = choose(1, groups, Worth(COSTS, ratio=1.0), Room(100, 0.4), Earlier())
    few = choose(1, groups, Worth(COSTS, ratio=0.1), Room(100, 0.4), Earlier())
    assert 0 < len(few.listed) < len(plan.listed) == plan.admitted
    assert set(few.listed) == set(range(60 - len(few.listed), 60))
    assert len(choose(1, groups, Worth(COSTS, 1.0), Room(7, 0.4), Earlier()).listed) == 7
    assert choose(1, groups, Worth(COSTS, 1.0), Room(9, 0.4), Earlier(range(60))).listed == {}


def test_parts_of_a_hot_file_that_were_missed_once_or_never_are_listed() -> None:
    early, late = dict.fromkeys(range(0, 60), 4), dict.fromkeys(range(0, 90), 4)
    groups = Groups(scored(early, late), owners_of(NO_OWNERS, FILES))
    plan = choose(1, groups, Worth(COSTS, 1.0), Room(1000, 0.4), Earlier((), {95}))
    assert set(range(90)) <= set(plan.listed) <= set(range(100)) - {95}
    alone = choose(1, Groups(scored(early, late)), Worth(COSTS, 1.0), Room(1000, 0.4), Earlier())
    assert set(alone.listed) == set(range(60))


def test_held_out_chunks_are_compared_only_as_far_as_the_list_was_moved() -> None:
    listed = {chunk: Watched(1, 1.0, chunk in (2, 5, 8)) for chunk in range(10)}
    plan = Plan(1, listed, Promotion((7, 9), 0.4), frozenset({0, 1, 3, 4, 6}))
    assert set(plan.to_watch(5, ended=True)) == {0, 1, 2, 3, 4, 5, 6}
    assert all(each.at_ns == 5 for each in plan.to_watch(5, ended=True).values())


@pytest.mark.parametrize(("ended", "watched"), [(True, {0, 1, 2, 3}), (False, {0, 1, 2})])
def test_held_out_chunks_at_the_end_of_a_list_are_compared_once_it_is_moved(
    *, ended: bool, watched: set[int]
) -> None:
    listed = {chunk: Watched(1, 1.0, chunk in (0, 3)) for chunk in range(4)}
    plan = Plan(1, listed, Promotion((1, 2), 0.4)).with_report(ChunksMoved(2, (1,), (2,)))
    assert set(plan.to_watch(5, ended=ended)) == watched


def test_what_is_held_out_stays_so_on_the_next_lists() -> None:
    misses = dict.fromkeys(range(64), 64)
    groups, worth, room = Groups(scored(misses, misses)), Worth(COSTS, 1.0), Room(64, 0.4)
    first = choose(1, groups, worth, room, Earlier())
    held = {chunk for chunk, each in first.listed.items() if each.held_out}
    assert 0 < len(held) < 64
    for at_ns in range(2, 50):
        plan = choose(at_ns, groups, worth, room, Earlier(listed=first.listed))
        assert {chunk for chunk, each in plan.listed.items() if each.held_out} == held
    anew = [choose(at_ns, groups, worth, room, Earlier()).listed for at_ns in range(2, 50)]
    assert any(each.keys() == first.listed.keys() and each != first.listed for each in anew)


def test_a_chunk_that_was_moved_all_the_same_is_not_compared_as_held_out() -> None:
    listed = {1: Watched(1, 1.0, held_out=True), 2: Watched(1, 1.0, held_out=False)}
    plan = Plan(1, listed, Promotion((2,), 0.4)).with_report(ChunksMoved(2, moved=(1,)))
    assert [each.held_out for each in plan.to_watch(5, ended=False).values()] == [False]
    assert plan.promotion == Promotion((2,), 0.4)


def sample(seed: int, effect: float) -> tuple[Benefit, float]:
    """320 chunks of which each move saves this share of misses, and what it saves on average."""
    random = Random(seed)
    chunks, misses, saved = {}, {}, []
    for chunk in range(320):
        held = random.random() < 1 / 16
        rate = random.paretovariate(3)
        chunks[chunk] = Watched(0, rate, held)
        untouched = rate * 30 * random.uniform(0, 1.2)
        misses[chunk] = untouched if held else untouched * (1 - effect)
        saved += [] if held else [untouched * effect]
    return Benefit(chunks, misses), fmean(saved)


@pytest.mark.parametrize("effect", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("untouched", [0.0, 0.6])
def test_the_measured_gain_has_no_bias_and_an_honest_error(effect: float, untouched: float) -> None:
    errors, within, ratios = [], [], []
    for seed in range(400):
        benefit, truth = sample(seed, effect)
        benefit = replace(benefit, untouched=untouched)
        found = promote_benefit.measure(benefit, COSTS, 30 * NS_PER_S)
        assert found is not None
        ratios.append(found.untouched)
        scale = found.moved * COSTS.service_ns
        errors.append(found.gain_ns / scale - truth)
        within.append(abs(errors[-1]) <= 2 * found.error_ns / scale)
    assert fmean(ratios) == pytest.approx(0.6, abs=0.05)
    assert fmean(errors) == pytest.approx(0.0, abs=0.5)
    assert fmean(within) > 0.88


def test_gain_below_cost_is_counted_and_ended_by_a_period_that_pays() -> None:
    chunks = {chunk: Watched(0, 1.0, held_out=chunk < 4) for chunk in range(64)}
    poor = Benefit(chunks, dict.fromkeys(chunks, 30.0))
    benefit = poor
    for period in range(1, 4):
        now_ns = period * 30 * NS_PER_S
        same = dict.fromkeys(benefit.chunks, 30.0)
        benefit = promote_benefit.close_period(replace(benefit, misses=same), COSTS, now_ns)
        assert benefit.under == period
    rich = replace(benefit, misses=dict.fromkeys(range(4), 300.0))
    assert promote_benefit.close_period(rich, COSTS, 119 * NS_PER_S).under == 0
    assert promote_benefit.start_again(benefit).ratio == 1.0


# ---- budget of writes ---------------------------------------------------------------------------
def test_a_day_of_writes_is_spent_and_comes_back() -> None:
    params = PromoteParams(writes_per_day=0.5)

    def at(hours: float, written: int, budget: WriteBudget) -> WriteBudget:
        at_ns = int(hours * DAY_NS / 24)
        frame = busy_frame(0, cache_bytes=8 * GIB, cache_written_bytes=written)
        return charge(budget, replace(frame, at_ns=at_ns), params)

    first = at(2, GIB, WriteBudget())
    assert first.left_bytes == pytest.approx(3 * GIB)
    spent = at(3, 5 * GIB, first)
    assert spent.left_bytes is not None and spent.left_bytes < 0
    assert at(27, 5 * GIB, spent).left_bytes == pytest.approx(spent.left_bytes + 4 * GIB)
    assert at(200, 5 * GIB, spent).left_bytes == pytest.approx(4 * GIB)
    # The counter begins anew with another cache device.
    assert at(3, 0, first).left_bytes == pytest.approx(3 * GIB + 4 * GIB / 24)


def test_an_unknown_count_of_writes_leaves_no_budget() -> None:
    params = PromoteParams(writes_per_day=0.5)
    assert charge(WriteBudget(1.0), busy_frame(0, cache_bytes=GIB), params).left_bytes is None


def test_a_moment_of_unknown_counts_gives_no_budget_back() -> None:
    """A machine that ran for weeks and wrote little has a full day left by its mean since boot."""
    params = PromoteParams(writes_per_day=0.5)

    def at(days: float, written: int | None, budget: WriteBudget) -> WriteBudget:
        frame = busy_frame(0, cache_bytes=8 * GIB, cache_written_bytes=written)
        return charge(budget, replace(frame, at_ns=int(days * DAY_NS)), params)

    spent = at(30.01, 5 * GIB, at(30, GIB, WriteBudget()))
    known = at(30.01, 5 * GIB, at(30.01, None, spent))
    assert spent.left_bytes is not None
    assert known.left_bytes == pytest.approx(spent.left_bytes)
    assert spent.left_bytes < GIB
    later = at(30.01, 6 * GIB, at(30.01, None, spent))
    assert later.left_bytes == pytest.approx(spent.left_bytes - GIB)
