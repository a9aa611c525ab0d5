# SPDX-License-Identifier: GPL-2.0-only
"""dm-cache's pace: so many blocks at once as a returning request may wait for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.records import QueueSample
from ebbgate.policy.strategies import pace
from ebbgate.policy.strategies.pace_state import PaceParams, PaceState, ThrottleKind
from ebbgate.signals.gaps import likely_until_ns, reaching
from ebbgate.units import KIB, NS_PER_MS, NS_PER_S

PARAMS = PaceParams(
    throttle=ThrottleKind.DEPTH,
    target_ns=32 * NS_PER_MS,
    depth_min_ios=1.0,
    depth_max_ios=16.0,
    depth_wide_ios=32.0,
)


def disk(per_s: float, sure_until_ms: int = 0) -> PaceState:
    """A disk whose pace was measured."""
    return PaceState(
        completions_per_s=per_s,
        throughput_bytes_per_s=per_s * 64 * KIB,
        likely_until_ns=sure_until_ms * NS_PER_MS,
    )


def sample(at_ms: int, under_way: int = 4, done: int = 0) -> QueueSample:
    return QueueSample("vg-data", at_ms * NS_PER_MS, under_way, 0, done, done * 64 * KIB)


def paced(depth: int) -> Gate:
    return Gate(GateKind.PACED, depth_ios=depth)


def test_a_disk_that_nobody_knows_gets_four_blocks() -> None:
    assert pace.begin(PaceState(), 0, PARAMS).gate == paced(4)


def test_the_number_stands_for_a_time_on_this_disk() -> None:
    assert pace.begin(disk(130), 0, PARAMS).gate == paced(4)
    assert pace.begin(disk(300), 0, PARAMS).gate == paced(9)
    assert pace.begin(disk(20), 0, PARAMS).gate == paced(1)
    assert pace.begin(disk(20_000), 0, PARAMS).gate == paced(16)


def test_it_is_wide_only_while_the_gap_is_sure_to_outlast_what_is_under_way() -> None:
    # Three times 5 blocks at 160 a second: 94 ms, and a margin.
    assert pace.begin(disk(160), 0, PARAMS, 2200 * NS_PER_MS).gate == paced(15)
    state = disk(160, sure_until_ms=2200)
    assert pace.step(state, sample(2040, 15), PARAMS).gate == paced(15)
    assert pace.step(state, sample(2050, 15), PARAMS).gate == paced(5)
    assert pace.step(state, sample(1700, 90), PARAMS).gate == paced(5)
    assert pace.begin(disk(400), 0, PARAMS, 2200 * NS_PER_MS).gate == paced(32)


def test_without_a_measured_pace_it_is_never_wide() -> None:
    assert pace.begin(PaceState(), 0, PARAMS, 60 * NS_PER_S).gate == paced(4)


def test_the_pace_is_learned_from_what_gets_done() -> None:
    state = pace.begin(PaceState(), 0, PARAMS)
    for step in range(1, 60):
        state = pace.step(state, sample(step * 30, 4, done=step * 9), PARAMS)
    assert 280 < state.completions_per_s < 320
    assert state.gate == paced(9)


@given(
    st.floats(min_value=0, max_value=1e6),
    st.integers(min_value=0, max_value=4000),
    st.integers(min_value=0, max_value=10_000),
    st.integers(min_value=0, max_value=10**12),
)
def test_the_number_is_always_within_its_bounds(
    per_s: float, under_way: int, at_ms: int, sure_ms: int
) -> None:
    gate = pace.step(disk(per_s, sure_ms), sample(at_ms, under_way), PARAMS).gate
    assert gate.kind is GateKind.PACED
    assert 1 <= gate.depth_ios <= 32


def gaps(**at: int) -> tuple[float, ...]:
    """Counts by bucket, e.g. b21=10: ten gaps of 2.1 to 4.2 s."""
    return tuple(float(at.get(f"b{bucket}", 0)) for bucket in range(33))


def test_a_gap_is_sure_until_the_shortest_of_its_like() -> None:
    bursts = gaps(b21=20)
    # Evenly spread in [2.097 s, 4.194 s): a twentieth of the bucket is let go.
    assert 2.19e9 < likely_until_ns(bursts, 100 * NS_PER_MS, 0.95) < 2.21e9


def test_among_gaps_of_its_length_none_is_sure_to_go_on() -> None:
    # Else a gap of 10 s among gaps of 10 s is sure at 9.9 s, too, and its end is met wide open.
    assert likely_until_ns(gaps(b23=20), 99 * NS_PER_S // 10, 0.95) == 99 * NS_PER_S // 10


def test_one_that_outlasted_the_short_ones_is_sure_for_longer() -> None:
    mixed = gaps(b17=10, b23=10)
    assert likely_until_ns(mixed, 50 * NS_PER_MS, 0.95) < 150 * NS_PER_MS
    assert 8.3e9 < likely_until_ns(mixed, NS_PER_S, 0.95) < 8.9e9


def test_nothing_is_sure_of_a_gap_that_was_never_seen() -> None:
    assert likely_until_ns((), 5, 0.95) == 5
    assert likely_until_ns(gaps(b10=5), NS_PER_S, 0.95) == NS_PER_S


@given(
    st.lists(st.integers(min_value=0, max_value=50), min_size=1, max_size=33),
    st.integers(min_value=0, max_value=1 << 36),
    st.floats(min_value=0.05, max_value=1.0),
)
def test_what_is_called_sure_is_reached_by_that_share(
    counts: list[int], idle_ns: int, share: float
) -> None:
    sure = likely_until_ns(counts, idle_ns, share)
    assert sure >= idle_ns
    if sure > idle_ns:
        assert reaching(counts, sure) >= share * reaching(counts, idle_ns) - 0.05
