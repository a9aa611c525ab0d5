# SPDX-License-Identifier: GPL-2.0-only
"""The central loop on a simulated disk drains much and delays no request."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from itertools import product
from statistics import fmean, median

import pytest

from ebbgate.model.decision import Gate, GateKind
from ebbgate.policy.defaults import Policy
from ebbgate.policy.limits import Bounds, Limits
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.units import KIB, MIB, NS_PER_MS, NS_PER_S
from tests.sim.scenarios import GapDrain, gap_drain, trickle
from tests.sim.simulation import PROMPT, Reaction, Setup, scattered, unpaced
from tests.sim.writeback import EMULATED, NATIVE, Machine

GAPS = 5
LEARNING = 3
"""After so many gaps of one length the end of the next one is foreseen."""
IRREGULAR_NS = tuple(round(each * NS_PER_S) for each in (2.5, 1.1, 3.4, 1.7, 4.2, 2.1))
# So much that no arm runs out of dirty data.
DIRTY_BYTES = {4 * KIB: 110 * MIB, 64 * KIB: 640 * MIB, 512 * KIB: 1000 * MIB}
PIECES = pytest.mark.parametrize("piece_bytes", DIRTY_BYTES)
SLOW = Reaction(deliver_ns=15 * NS_PER_MS, write_ns=2 * NS_PER_MS)
FAST = Reaction(deliver_ns=NS_PER_MS, write_ns=NS_PER_MS // 30)
FIRST_NS_MAX = 20 * NS_PER_MS
"""The slowest of some reads that nothing delays takes 13 to 17 ms."""


@lru_cache
def ours(
    piece_bytes: int, reaction: Reaction = PROMPT, machine: Machine = EMULATED, seed: int = 1
) -> GapDrain:
    """The product."""
    pieces = scattered(piece_bytes, DIRTY_BYTES[piece_bytes])
    return gap_drain(Setup(pieces, reaction=reaction, machine=machine, seed=seed), GAPS)


@lru_cache
def without_rests(piece_bytes: int) -> GapDrain:
    """The control arm: the same gate without rests."""
    return gap_drain(Setup(scattered(piece_bytes, DIRTY_BYTES[piece_bytes]), gate=unpaced), GAPS)


@lru_cache
def destage_off() -> GapDrain:
    """The other control arm: only what leaks."""
    pieces = scattered(64 * KIB, DIRTY_BYTES[64 * KIB])
    return gap_drain(Setup(pieces, gate=lambda _: Gate(GateKind.CLOSED, 512)), GAPS)


def foreseen_drain(found: GapDrain, piece_bytes: int) -> float:
    """What a gap drains whose end is foreseen, as a share of an ordinary gap without rests."""
    return fmean(found.drained_bytes[LEARNING:]) / median(without_rests(piece_bytes).drained_bytes)


@PIECES
def test_a_foreseen_gap_drains_nearly_as_much_as_without_rests(piece_bytes: int) -> None:
    assert foreseen_drain(ours(piece_bytes), piece_bytes) >= 0.85


@PIECES
def test_the_first_request_after_a_foreseen_gap_does_not_wait(piece_bytes: int) -> None:
    assert max(ours(piece_bytes).first_ns[LEARNING:]) <= FIRST_NS_MAX


@PIECES
def test_without_rests_the_first_request_would_wait(piece_bytes: int) -> None:
    assert without_rests(piece_bytes).first_median_ns > 2 * FIRST_NS_MAX


@PIECES
def test_bursts_after_foreseen_gaps_are_hardly_slower_than_without_destage(
    piece_bytes: int,
) -> None:
    assert destage_off().drained_total_bytes < MIB
    calm_ns = fmean(destage_off().burst_means_ns)
    assert max(ours(piece_bytes).burst_means_ns[LEARNING + 1 :]) <= 1.1 * calm_ns


@PIECES
def test_a_slow_control_loop_still_holds(piece_bytes: int) -> None:
    runs = [ours(piece_bytes, SLOW, seed=seed) for seed in (1, 2, 3)]
    assert min(foreseen_drain(slow, piece_bytes) for slow in runs) >= 0.8
    assert max(first_ns for slow in runs for first_ns in slow.first_ns[LEARNING:]) <= FIRST_NS_MAX


@PIECES
def test_a_machine_ten_times_as_fast_does_as_well(piece_bytes: int) -> None:
    fast = ours(piece_bytes, FAST, NATIVE)
    assert foreseen_drain(fast, piece_bytes) >= 0.85
    assert max(fast.first_ns[LEARNING:]) <= FIRST_NS_MAX


@PIECES
def test_gaps_of_irregular_length_drain_while_bursts_are_not_slower(piece_bytes: int) -> None:
    """Their ends are not foreseen: the first request waits, but no longer than without rests."""
    setup = Setup(scattered(piece_bytes, DIRTY_BYTES[piece_bytes]), scheduler="mq-deadline")
    own, free = (
        gap_drain(each, GAPS, lengths_ns=IRREGULAR_NS)
        for each in (setup, replace(setup, gate=unpaced))
    )
    assert own.drained_total_bytes >= 0.6 * free.drained_total_bytes
    assert own.first_median_ns <= free.first_median_ns
    assert own.burst_p99_ns <= free.burst_p99_ns


@pytest.mark.parametrize("rate_mib", [10, 30])
def test_a_limit_of_the_rate_is_kept_on_average(rate_mib: int) -> None:
    most = rate_mib * MIB
    policy = Policy(
        DestageParams(disturbance_ns=None, mean_rate_max_bytes_per_s=most),
        limits=Limits(destage_rate=Bounds(high=most)),
    )
    setup = Setup(scattered(64 * KIB, 640 * MIB), policy, scheduler="mq-deadline")
    drained = gap_drain(setup, 2, lengths_ns=[10 * NS_PER_S]).drained_bytes
    assert max(drained) <= 10.7 * most
    assert min(drained) >= 8 * most


@PIECES
def test_a_low_limit_is_used_in_short_gaps(piece_bytes: int) -> None:
    """A closed gate lets hardly anything through, but the thread must not sleep into the gap."""
    most = 2 * MIB
    policy = Policy(
        DestageParams(disturbance_ns=None, mean_rate_max_bytes_per_s=most),
        limits=Limits(destage_rate=Bounds(high=most)),
    )
    setup = Setup(scattered(piece_bytes, 64 * MIB), policy, scheduler="mq-deadline")
    drained = gap_drain(setup, GAPS).drained_bytes
    assert fmean(drained[1:]) >= 0.7 * most * 2.5


def test_large_pieces_delay_a_return_that_is_not_foreseen_less_with_rests() -> None:
    firsts: dict[bool, list[int]] = {True: [], False: []}
    drained = {True: 0, False: 0}
    for seed, rests in product((1, 2, 3), firsts):
        setup = Setup(scattered(512 * KIB, 1200 * MIB), scheduler="mq-deadline", seed=seed)
        rng = random.Random(seed)
        lengths_ns = [round(rng.uniform(1, 4) * NS_PER_S) for _ in range(GAPS)]
        arm = setup if rests else replace(setup, gate=unpaced)
        found = gap_drain(arm, GAPS, reads=60, lengths_ns=lengths_ns)
        firsts[rests] += found.first_ns
        drained[rests] += found.drained_total_bytes
    assert fmean(firsts[True]) <= 0.85 * fmean(firsts[False])
    assert drained[True] >= 0.95 * drained[False]


def test_a_periodic_trickle_that_starves_a_fixed_wait_drains() -> None:
    pieces = scattered(64 * KIB, 64 * MIB)
    # The pressure path is off in both arms, so that only the wait differs.
    fixed = DestageParams(wait_ns=1100 * NS_PER_MS, light_ratio=0.0)
    learned = DestageParams(light_ratio=0.0)
    starved = trickle(Setup(pieces, policy=Policy(fixed)), reads=30)
    drained = trickle(Setup(pieces, policy=Policy(learned)), reads=30)
    assert starved.clean_after_ns is None
    assert drained.clean_after_ns is not None and drained.clean_after_ns <= 15 * NS_PER_S
    assert drained.wait_ns <= 100 * NS_PER_MS
    assert drained.latency_median_ns <= 1.3 * starved.latency_median_ns


def test_a_trickle_without_useful_gaps_drains_under_load() -> None:
    found = trickle(Setup(scattered(64 * KIB, 64 * MIB)), period_ns=100 * NS_PER_MS, reads=400)
    assert found.clean_after_ns is not None
    assert found.latency_median_ns <= 20 * NS_PER_MS
