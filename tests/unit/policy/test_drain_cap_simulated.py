# SPDX-License-Identifier: GPL-2.0-only
"""On a simulated disk with a write cache the outer loop keeps what users feel near its target."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from statistics import fmean

import pytest

from ebbgate.policy.defaults import Policy
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.policy.strategies.drain_cap import DrainCap
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS, NS_PER_S
from tests.lab.hdd_queue import AS_SOLD, PLAIN, HddFeatures
from tests.sim.scenarios import GAP_NS, GapDrain, cold_reads, gap_drain
from tests.sim.simulation import Pause, Script, Setup, Simulation, scattered, unpaced

GAPS = 5
LEARNING = 3
"""After so many gaps of one length the end of the next one is foreseen."""
CALM_NS = 9.7 * NS_PER_MS
"""Mean of a read that nothing delays, by the disk's arithmetic."""
TARGET_NS = 3 * NS_PER_MS
IRREGULAR_NS = tuple(round(gap_s * NS_PER_S) for gap_s in (2.0, 2.6, 2.2, 3.2, 3.4, 1.6))
QUEUES = {"none": 0, "mq-deadline": 0, "bfq": 8}
SCHEDULERS = pytest.mark.parametrize("scheduler", QUEUES)
PIECES = pytest.mark.parametrize("piece_bytes", [64 * KIB, 512 * KIB])


@lru_cache
def bursts(
    scheduler: str,
    piece_bytes: int = 64 * KIB,
    target_ns: int | None = TARGET_NS,
    features: HddFeatures = AS_SOLD,
    *,
    paced: bool = True,
    gaps: int = GAPS,
    lengths_ns: tuple[int, ...] = (GAP_NS,),
) -> GapDrain:
    """Bursts of 100 reads with gaps between them."""
    # More than all gaps drain.
    mib = 1200 if len(lengths_ns) == 1 else 1900
    destage = DestageParams(disturbance_ns=target_ns, queue_depth=QUEUES[scheduler])
    setup = Setup(
        scattered(piece_bytes, mib * MIB),
        Policy(destage),
        features=features,
        scheduler=scheduler,
        depth_settable=scheduler == "bfq",
        gate=(lambda gate: gate) if paced else unpaced,
    )
    return gap_drain(setup, gaps, reads=100, rest_ns=100 * NS_PER_MS, lengths_ns=lengths_ns)


@SCHEDULERS
@PIECES
def test_without_the_loop_a_write_cache_slows_bursts_that_nobody_foresees(
    scheduler: str, piece_bytes: int
) -> None:
    means = bursts(scheduler, piece_bytes, None).burst_means_ns
    assert fmean(means[1 : LEARNING + 1]) >= 1.7 * CALM_NS


@SCHEDULERS
@pytest.mark.parametrize("target_ns", [None, TARGET_NS])
def test_the_first_rest_that_foresees_a_return_is_as_long_as_the_write_cache_needs(
    scheduler: str, target_ns: int | None
) -> None:
    """Rests that keep a cap, in the gaps before, say nothing of the cache."""
    means = bursts(scheduler, target_ns=target_ns).burst_means_ns
    assert max(means[LEARNING + 1 :]) <= 1.1 * CALM_NS


@SCHEDULERS
@PIECES
def test_with_the_loop_the_bursts_after_some_gaps_are_near_the_target(
    scheduler: str, piece_bytes: int
) -> None:
    means = bursts(scheduler, piece_bytes, gaps=10).burst_means_ns
    # The first rests are too short for the disk to empty its cache.
    means = (means[LEARNING], *means[LEARNING + 4 :])
    assert max(means) <= CALM_NS + 1.1 * TARGET_NS
    assert fmean(means) <= 1.1 * CALM_NS


@SCHEDULERS
@PIECES
def test_the_loop_drains_most_of_what_an_unpaced_gate_does(
    scheduler: str, piece_bytes: int
) -> None:
    unlimited = bursts(scheduler, piece_bytes, None, paced=False)
    drained = bursts(scheduler, piece_bytes).drained_total_bytes
    assert drained >= 0.6 * unlimited.drained_total_bytes


@SCHEDULERS
@PIECES
def test_the_loop_holds_where_no_gap_is_like_the_one_before(
    scheduler: str, piece_bytes: int
) -> None:
    """Nobody foresees these returns, so only what was felt bounds the drain."""
    off, own = (
        bursts(scheduler, piece_bytes, target_ns, gaps=len(IRREGULAR_NS), lengths_ns=IRREGULAR_NS)
        for target_ns in (None, TARGET_NS)
    )
    # The first burst comes before all gaps, and the next one after a gap without a bound.
    assert fmean(off.burst_means_ns[2:]) >= 1.8 * CALM_NS
    assert fmean(own.burst_means_ns[2:]) <= CALM_NS + 1.1 * TARGET_NS
    assert own.drained_total_bytes >= 0.5 * off.drained_total_bytes


@SCHEDULERS
@PIECES
def test_without_a_write_cache_the_loop_costs_hardly_any_drain(
    scheduler: str, piece_bytes: int
) -> None:
    free, own = (bursts(scheduler, piece_bytes, each, PLAIN) for each in (None, TARGET_NS))
    assert sum(own.drained_bytes[LEARNING:]) >= 0.9 * sum(free.drained_bytes[LEARNING:])


@SCHEDULERS
def test_where_no_rest_is_long_enough_for_small_pieces_the_rate_is_lower(scheduler: str) -> None:
    """Pieces of 4 KiB, far from each other: the disk needs a minute for 32 MiB of them."""
    disk_bytes = 16 * GIB
    setup = Setup(
        scattered(4 * KIB, 400 * MIB, disk_bytes=disk_bytes),
        Policy(DestageParams(disturbance_ns=TARGET_NS, queue_depth=QUEUES[scheduler])),
        features=AS_SOLD,
        scheduler=scheduler,
        depth_settable=scheduler == "bfq",
        disk_bytes=disk_bytes,
    )
    found = gap_drain(setup, 40, reads=100, rest_ns=100 * NS_PER_MS)
    calm_ns, *means_ns = found.burst_means_ns
    # What the first gaps have left in the disk's cache is felt for a minute.
    assert fmean(means_ns[:15]) >= 1.7 * calm_ns
    # A gap in which only a rest bounds the drain is tried again, and then felt in the next ones.
    fifth_slowest_ns = sorted(means_ns[20:])[-5]
    assert fifth_slowest_ns <= 1.1 * calm_ns
    assert fmean(means_ns[20:]) <= calm_ns + TARGET_NS
    assert sum(found.drained_bytes[20:]) >= 20 * 2 * MIB


def test_a_gap_that_outlives_the_recent_ones_is_not_held_to_their_cap() -> None:
    """120 MiB at the cap of the gaps before would take half a minute."""
    low = DrainCap(4.0 * MIB, felt_at_ns=10**15)
    simulation = Simulation(Setup(scattered(64 * KIB, 120 * MIB), scheduler="mq-deadline"))
    state = simulation.state
    use = replace(state.destage.gap, lengths_ns=(NS_PER_S, 2 * NS_PER_S, 3 * NS_PER_S))
    simulation.state = replace(state, destage=replace(state.destage, cap=low, gap=use))

    def load() -> Script:
        yield from cold_reads(random.Random(1), 50)
        yield Pause(10 * NS_PER_S)

    simulation.play(load(), limit_ns=60 * NS_PER_S)
    assert simulation.writeback.dirty_bytes == 0
