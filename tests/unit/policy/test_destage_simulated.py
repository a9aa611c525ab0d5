# SPDX-License-Identifier: GPL-2.0-only
"""The central loop on a simulated disk drains much and delays no request."""

from __future__ import annotations

from functools import lru_cache
from statistics import median

import pytest

from ebbgate.model.decision import Gate, GateKind
from ebbgate.policy.defaults import Policy
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.units import KIB, MIB, NS_PER_MS, NS_PER_S
from tests.sim.scenarios import GapDrain, gap_drain, trickle
from tests.sim.simulation import PROMPT, Reaction, Setup, scattered, unpaced
from tests.sim.writeback import EMULATED, NATIVE, Machine

GAPS = 5
# So much that no arm runs out of dirty data.
DIRTY_BYTES = {4 * KIB: 110 * MIB, 64 * KIB: 640 * MIB, 512 * KIB: 1000 * MIB}
PIECES = pytest.mark.parametrize("piece_bytes", DIRTY_BYTES)
SLOW = Reaction(deliver_ns=15 * NS_PER_MS, write_ns=2 * NS_PER_MS)
FAST = Reaction(deliver_ns=NS_PER_MS, write_ns=NS_PER_MS // 30)
FIRST_MEDIAN_NS_MAX = 45 * NS_PER_MS


@lru_cache
def paced(
    piece_bytes: int, reaction: Reaction = PROMPT, machine: Machine = EMULATED, seed: int = 1
) -> GapDrain:
    """The product."""
    pieces = scattered(piece_bytes, DIRTY_BYTES[piece_bytes])
    return gap_drain(Setup(pieces, reaction=reaction, machine=machine, seed=seed), GAPS)


@lru_cache
def as_fast_as_it_goes(piece_bytes: int) -> GapDrain:
    """The control arm: the same gate, without a pace."""
    return gap_drain(Setup(scattered(piece_bytes, DIRTY_BYTES[piece_bytes]), gate=unpaced), GAPS)


@lru_cache
def destage_off() -> GapDrain:
    """The other control arm: only what leaks."""
    pieces = scattered(64 * KIB, DIRTY_BYTES[64 * KIB])
    return gap_drain(Setup(pieces, gate=lambda _: Gate(GateKind.CLOSED, 512)), GAPS)


@PIECES
def test_a_gap_drains_nearly_as_much_as_without_a_pace(piece_bytes: int) -> None:
    reference = as_fast_as_it_goes(piece_bytes).drained_total_bytes
    assert paced(piece_bytes).drained_total_bytes >= 0.80 * reference


@PIECES
def test_the_first_request_after_a_gap_hardly_waits(piece_bytes: int) -> None:
    assert paced(piece_bytes).first_median_ns <= FIRST_MEDIAN_NS_MAX
    assert max(paced(piece_bytes).first_ns) <= 80 * NS_PER_MS


@pytest.mark.parametrize("piece_bytes", [64 * KIB, 512 * KIB])
def test_without_a_pace_the_first_request_would_wait(piece_bytes: int) -> None:
    assert as_fast_as_it_goes(piece_bytes).first_median_ns > 2 * FIRST_MEDIAN_NS_MAX


@PIECES
def test_the_rest_of_a_burst_is_hardly_slower_than_without_destage(piece_bytes: int) -> None:
    assert destage_off().drained_total_bytes < MIB
    assert paced(piece_bytes).burst_p99_ns <= 1.1 * destage_off().burst_p99_ns


@PIECES
def test_the_queue_is_seldom_far_over_its_aim(piece_bytes: int) -> None:
    assert paced(piece_bytes).crowded_ratio <= 0.02


def test_without_a_pace_the_queue_is_always_far_over_its_aim() -> None:
    assert as_fast_as_it_goes(64 * KIB).crowded_ratio > 0.9


@PIECES
def test_a_slow_control_loop_still_holds(piece_bytes: int) -> None:
    # The median of five first requests is a lottery with a reaction of 15 ms: 24 to 61 ms.
    runs = [paced(piece_bytes, SLOW, seed=seed) for seed in (1, 2, 3)]
    reference = as_fast_as_it_goes(piece_bytes).drained_total_bytes
    # Where it delays requests by more than the policy allows, the next gaps drain less.
    assert min(slow.drained_total_bytes for slow in runs) >= 0.65 * reference
    assert median(first_ns for slow in runs for first_ns in slow.first_ns) <= FIRST_MEDIAN_NS_MAX


@PIECES
def test_a_machine_ten_times_as_fast_is_paced_as_well(piece_bytes: int) -> None:
    fast = paced(piece_bytes, FAST, NATIVE)
    assert fast.drained_total_bytes >= 0.80 * as_fast_as_it_goes(piece_bytes).drained_total_bytes
    assert fast.first_median_ns <= FIRST_MEDIAN_NS_MAX


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
