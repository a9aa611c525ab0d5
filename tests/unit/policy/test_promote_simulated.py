# SPDX-License-Identifier: GPL-2.0-only
"""promote_hot on a simulated cache: what it brings, what it measures, and when it stands down."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbgate.model.decision import Decision
from ebbgate.model.heat import ChunkRun, VolumeLayout
from ebbgate.policy.strategies.promote_benefit import HELD_OUT, held_out
from ebbgate.policy.strategies.promote_hot import PromotePhase
from ebbgate.policy.strategies.promote_share import SHARE_MIN
from ebbgate.policy.strategies.promote_stop import PromoteParams
from ebbgate.units import NS_PER_S
from tests.sim.hot_set import HotSet, Load, policy, shifting, uniform

CHUNKS, CACHE, READS_PER_S = 4096, 512, 80
TABLE = 64
LAYOUT = VolumeLayout(
    1,
    tuple(f"table {n}" for n in range(CHUNKS // TABLE)),
    tuple(ChunkRun(n * TABLE, (n + 1) * TABLE, n) for n in range(CHUNKS // TABLE)),
)


RANDOM_EACH_PERIOD = shifting(1 << 18, hot=128, phase_s=20, reads_per_s=READS_PER_S)
"""A chunk counts as hot after two windows; then it is hardly ever hot again."""


def tables(phase_s: int) -> Load:
    """Nine of ten reads go to three tables, which are others in each phase."""

    def load(random: Random, second: int) -> Iterable[int]:
        hot = Random(f"tables {second // phase_s}").sample(range(CHUNKS // TABLE), 3)
        for _ in range(READS_PER_S):
            if random.random() < 0.1:
                yield random.randrange(CHUNKS)
            else:
                yield random.choice(hot) * TABLE + random.randrange(TABLE)

    return load


def database(random: Random, second: int) -> Iterable[int]:
    """Four of 24 tables of 48 MiB are hot, others every two minutes; no faster than the CPU."""
    first = second // 120 * 4 % 24
    return [random.randrange(first, first + 4) * 48 + random.randrange(48) for _ in range(700)]


@pytest.mark.parametrize(("cache_ratio_max", "speed"), [(0.125, 2.3), (0.5, 2.9)])
def test_clients_of_hot_tables_that_change_get_more_requests(
    cache_ratio_max: float, speed: float
) -> None:
    params = PromoteParams(cache_ratio_max=cache_ratio_max, period_ns=20 * NS_PER_S)
    stock = HotSet(database, 384, moves=False, waits=True, pages=128).run(600)
    ours = HotSet(database, 384, policy(params), waits=True, pages=128).run(600)
    assert sum(ours.reads[120:]) > speed * sum(stock.reads[120:])


@pytest.mark.parametrize("seed", [1, 2])
def test_a_hot_set_that_moves_is_missed_less(seed: int) -> None:
    load = shifting(CHUNKS, hot=256, phase_s=180, reads_per_s=READS_PER_S)
    plain = HotSet(load, CACHE, seed=seed, moves=False).run(1080)
    ours = HotSet(load, CACHE, seed=seed).run(1080)
    assert sum(ours.misses[180:]) < 0.65 * sum(plain.misses[180:])
    assert ours.disk_s(180) < 0.75 * plain.disk_s(180)
    benefit = ours.promotion.benefit
    assert benefit.total_gain_ns - benefit.total_error_ns > benefit.total_cost_ns


def test_hot_tables_are_named_and_their_unread_parts_moved() -> None:
    params = PromoteParams(cache_ratio_max=0.25)
    ours = HotSet(tables(300), CACHE, policy(params), layout=LAYOUT)
    reasons: list[str] = []
    ours.on_decision = lambda decision: reasons.append(decision.proposals[0].reason)
    ours.run(600)
    hot = Random("tables 0").sample(range(CHUNKS // TABLE), 3)
    moves = [text for text in reasons[:300] if text.startswith("moves") and "table" in text]
    assert sum(f"64 of table {n}" in moves[0] for n in hot) >= 2
    alone = HotSet(tables(300), CACHE, policy(params)).run(600)
    assert sum(ours.misses[300:]) < 1.05 * sum(alone.misses[300:])


def test_the_measured_gain_is_zero_where_each_period_has_a_random_hot_set() -> None:
    for seed in range(1, 4):
        ours = HotSet(RANDOM_EACH_PERIOD, CACHE, seed=seed).run(600)
        benefit = ours.promotion.benefit
        assert benefit.last is not None
        assert abs(benefit.total_gain_ns) < 2 * benefit.total_error_ns
        assert ours.promotion.stand_downs > 0


def test_it_stands_down_after_three_periods_and_tries_again_later() -> None:
    ours = HotSet(RANDOM_EACH_PERIOD, CACHE)
    reasons: list[str] = []
    ours.on_decision = lambda decision: reasons.append(decision.proposals[0].reason)
    ours.run(1500)
    first = next(at for at, moved in enumerate(ours.moved) if moved)
    last = next(at for at, text in enumerate(reasons) if text.startswith("stands down"))
    # A period until its chunks are watched, and three that are judged.
    assert last - first <= 5 * 30
    assert sum(ours.moved[last + 1 : last + 300]) == 0
    again = next(at for at in range(last + 1, 1500) if ours.moved[at])
    assert 300 <= again - last <= 360


@pytest.mark.parametrize("chunks", [CHUNKS, 700])
def test_requests_without_locality_are_left_alone(chunks: int) -> None:
    ours = HotSet(uniform(chunks, READS_PER_S), CACHE).run(600)
    assert sum(ours.moved) == 0
    assert ours.promotion.phase is PromotePhase.REST


def test_users_who_feel_the_mover_get_more_of_the_time() -> None:
    load = shifting(CHUNKS, hot=1024, phase_s=120, reads_per_s=READS_PER_S)
    params = PromoteParams(cache_ratio_max=0.25)
    felt = HotSet(load, CACHE, policy(params), slows=True)
    shares: list[float] = []
    felt.on_decision = lambda _: shares.append(felt.promotion.share.share)
    felt.run(900)
    free = HotSet(load, CACHE, policy(params)).run(900)
    assert sum(shares[300:]) / len(shares[300:]) < 0.3
    assert free.promotion.share.share == pytest.approx(params.time_share_max)
    # Even the smallest share has bursts that are judged.
    felt.slows = False
    felt.run(600)
    assert felt.promotion.share.share > 0.6


def test_one_of_sixteen_chunks_is_held_out() -> None:
    counts = [sum(held_out(chunk, at * NS_PER_S) for chunk in range(16_000)) for at in range(20)]
    assert sum(counts) / 20 == pytest.approx(16_000 / HELD_OUT, rel=0.05)
    assert len(set(counts)) > 1


def test_a_list_of_one_chunk_is_held_out_as_often_as_any_other() -> None:
    watched: set[tuple[int, int, bool]] = set()
    for seed in range(4):
        # Of other chunks: the same ones would be held out again.
        load = shifting(CHUNKS + seed, hot=1, phase_s=40, reads_per_s=20)
        ours = HotSet(load, CACHE, seed=seed)

        def note(_: Decision, ours: HotSet = ours) -> None:
            chunks = ours.promotion.benefit.chunks
            watched.update((chunk, each.at_ns, each.held_out) for chunk, each in chunks.items())

        ours.on_decision = note
        ours.run(1800)
    share = sum(held for _, _, held in watched) / len(watched)
    assert 0.5 / HELD_OUT < share < 2 / HELD_OUT


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    hot=st.integers(8, 512),
    phase_s=st.integers(20, 200),
    cache_ratio_max=st.floats(0.001, 0.25),
    share_max=st.floats(SHARE_MIN, 0.8),
    writes_per_day=st.one_of(st.none(), st.floats(1, 100)),
)
def test_shares_and_budget_are_never_exceeded_and_held_out_chunks_never_moved(
    seed: int,
    hot: int,
    phase_s: int,
    cache_ratio_max: float,
    share_max: float,
    writes_per_day: float | None,
) -> None:
    params = PromoteParams(
        time_share_max=share_max, cache_ratio_max=cache_ratio_max, writes_per_day=writes_per_day
    )
    load = shifting(CHUNKS, hot, phase_s, READS_PER_S)
    ours = HotSet(load, CACHE, policy(params), seed=seed)

    def check(decision: Decision) -> None:
        state, promotion = ours.promotion, decision.promotion
        if promotion is None:
            return
        held = {chunk for chunk, each in state.benefit.chunks.items() if each.held_out}
        held |= {chunk for chunk, each in state.plan.listed.items() if each.held_out}
        assert held.isdisjoint(promotion.chunks)
        assert len(set(promotion.chunks)) == len(promotion.chunks)
        assert SHARE_MIN <= promotion.time_share <= share_max
        if state.budget.left_bytes is not None:
            assert state.budget.left_bytes > 0

    ours.on_decision = check
    ours.run(300)
    most = cache_ratio_max * CACHE
    assert all(sum(ours.moved[at : at + 30]) <= 2 * most for at in range(0, 300, 30))
    assert sum(ours.moved) <= most * 300 / 30
