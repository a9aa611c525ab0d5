# SPDX-License-Identifier: GPL-2.0-only
"""How fast to destage: the throttle of the queue and its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.records import QueueSample
from ebbgate.policy.strategies import pace
from ebbgate.policy.strategies.pace import depth_target_ios
from ebbgate.policy.strategies.pace_state import PaceParams, PaceState, ThrottleKind
from ebbgate.signals.gaps import likely_until_ns, reaching
from ebbgate.units import KIB, MIB, NS_PER_MS, NS_PER_S
from tests.builders import queue_sample

PARAMS = PaceParams()
FOUR_PER_TARGET = 4 * NS_PER_S / PARAMS.target_ns
"""So many completions a second that the target is a queue of four."""
KNOWN = PaceState(throughput_bytes_per_s=200 * 64.0 * KIB, completions_per_s=200.0)


def begun(state: PaceState = KNOWN, at_ms: int = 1000) -> PaceState:
    return pace.begin(state, at_ms * NS_PER_MS, PARAMS)


def stepped(state: PaceState, *samples: QueueSample) -> PaceState:
    for sample in samples:
        state = pace.step(state, sample, PARAMS)
    return state


def test_the_first_gap_begins_at_the_start_rate() -> None:
    gate = begun(PaceState()).gate
    assert (gate.kind, gate.rate_bytes_per_s) == (GateKind.PACED, PARAMS.rate_start_bytes_per_s)


def test_a_later_gap_begins_at_the_pace_of_the_last() -> None:
    assert begun().gate.rate_bytes_per_s == 200 * 64 * KIB


def test_at_the_target_the_rate_is_what_the_disk_completes() -> None:
    state = replace(KNOWN, completions_per_s=FOUR_PER_TARGET)
    assert depth_target_ios(state, PARAMS) == 4.0
    gate = stepped(begun(state), queue_sample(1010, 4, 10)).gate
    assert gate.rate_bytes_per_s == 200 * 64 * KIB


def test_completions_without_bytes_say_nothing_of_the_size_of_a_piece() -> None:
    params = PaceParams(throttle=ThrottleKind.DEPTH)
    state = pace.begin(PaceState(), NS_PER_S, params)
    for sample in (
        queue_sample(1010, 4, 10, done_bytes=0),
        queue_sample(1200, 4, 90, done_bytes=0),
    ):
        state = pace.step(state, sample, params)
    assert state.completions_per_s > 0
    assert state.piece_bytes == 64 * KIB


@pytest.mark.parametrize(
    ("in_flight", "factor"), [(0, 1.8), (2, 1.4), (4, 1.0), (6, 0.6), (8, 0.2), (60, 0.2)]
)
def test_the_rate_leans_against_the_queue(in_flight: int, factor: float) -> None:
    state = begun(replace(KNOWN, completions_per_s=FOUR_PER_TARGET))
    gate = stepped(state, queue_sample(1010, in_flight, 10)).gate
    assert gate.rate_bytes_per_s == pytest.approx(factor * 200 * 64 * KIB, rel=1e-6)


def test_pieces_that_are_still_read_from_the_cache_count_as_queue() -> None:
    one = stepped(begun(), queue_sample(1010, 6, 10)).gate
    other = stepped(begun(), queue_sample(1010, 2, 10, cache_reads_ios=4)).gate
    assert one.rate_bytes_per_s == other.rate_bytes_per_s


def test_the_disk_is_measured_over_a_window() -> None:
    samples = [queue_sample(1000 + 5 * i, 4, 10 + i) for i in range(6)]
    early = stepped(begun(PaceState()), *samples[:5])
    assert early.completions_per_s == 0
    state = stepped(early, samples[5])
    assert state.completions_per_s == pytest.approx(200)
    assert state.piece_bytes == 64 * KIB


def test_what_is_measured_is_smoothed() -> None:
    state = stepped(begun(), queue_sample(1000, 4, 0), queue_sample(1025, 4, 10))
    assert state.completions_per_s == pytest.approx(0.7 * 200 + 0.3 * 400)


@pytest.mark.parametrize(("done", "learned"), [(3, 0.97 * 200 + 0.03 * 100), (12, 400)])
def test_a_faster_disk_is_learned_at_once_and_a_slower_one_slowly(
    done: int, learned: float
) -> None:
    samples = (queue_sample(1000, 4, 0), queue_sample(1010, 0, 1), queue_sample(1030, 4, done))
    assert stepped(begun(), *samples).completions_per_s == pytest.approx(learned)
    # The next window is not dry any more.
    wet = stepped(begun(), *samples, queue_sample(1060, 4, done + 3)).completions_per_s
    assert wet == pytest.approx(0.7 * learned + 0.3 * 100)


def test_a_window_without_completions_is_no_measurement_of_the_disk() -> None:
    state = stepped(begun(), queue_sample(1000, 4, 10), queue_sample(1030, 4, 10))
    assert state.completions_per_s == 200


def test_a_probe_that_restarted_begins_a_new_window() -> None:
    samples = [queue_sample(1000, 4, 1000), queue_sample(1030, 4, 0), queue_sample(1060, 4, 6)]
    assert stepped(begun(), *samples).completions_per_s == pytest.approx(0.7 * 200 + 0.3 * 200)


def test_all_requests_in_flight_count_wherever_they_are() -> None:
    state = begun(replace(KNOWN, completions_per_s=FOUR_PER_TARGET))
    everywhere = queue_sample(1010, 2, 10, cache_reads_ios=1, awaiting_write_ios=3)
    assert everywhere.under_way_ios == 6
    assert stepped(state, everywhere).gate == stepped(state, queue_sample(1010, 6, 10)).gate


def test_a_closed_gate_keeps_what_was_learned_of_the_disk() -> None:
    state = pace.end(stepped(begun(), queue_sample(1010, 4, 10)))
    assert state.gate.kind is GateKind.CLOSED
    assert state.window_start is None
    assert state.completions_per_s == 200


def test_before_anything_was_measured_a_piece_counts_as_64_kib() -> None:
    assert PaceState().piece_bytes == 64 * KIB


SAMPLES = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=100),
        st.integers(min_value=0, max_value=64),
        st.integers(min_value=0, max_value=500),
        st.integers(min_value=512, max_value=4 * MIB),
        st.booleans(),
    ),
    max_size=40,
)


@given(SAMPLES)
def test_rate_and_target_stay_within_their_bounds_for_any_probe_values(
    steps: list[tuple[int, int, int, int, bool]],
) -> None:
    state, at_ms, done_ios, done_bytes = begun(PaceState()), 1000.0, 0, 0
    for step_ms, in_flight, completed, piece_bytes, restart in steps:
        at_ms += step_ms
        done_ios = 0 if restart else done_ios + completed
        done_bytes = 0 if restart else done_bytes + completed * piece_bytes
        state = stepped(state, queue_sample(at_ms, in_flight, done_ios, done_bytes=done_bytes))
        gate = state.gate
        assert gate.kind is GateKind.PACED
        assert PARAMS.rate_min_bytes_per_s <= gate.rate_bytes_per_s <= PARAMS.rate_max_bytes_per_s
        # The step that one write may take: not far beyond what the disk was seen to do.
        known = state.throughput_bytes_per_s or PARAMS.rate_start_bytes_per_s
        step_max = max(PARAMS.rate_min_bytes_per_s, (1 + PARAMS.gain) * known)
        assert gate.rate_bytes_per_s <= step_max
        assert PARAMS.depth_min_ios <= depth_target_ios(state, PARAMS) <= PARAMS.depth_max_ios


@given(st.integers(min_value=0, max_value=63), st.floats(min_value=1, max_value=5000))
def test_a_longer_queue_never_raises_the_rate(in_flight: int, completions: float) -> None:
    state = begun(replace(KNOWN, completions_per_s=completions))
    shorter = stepped(state, queue_sample(1001, in_flight, 10)).gate
    longer = stepped(state, queue_sample(1001, in_flight + 1, 10)).gate
    assert longer.rate_bytes_per_s <= shorter.rate_bytes_per_s


# ---- dm-cache: a number of blocks ---------------------------------------------------------------
DM_PARAMS = PaceParams(
    throttle=ThrottleKind.DEPTH,
    target_ns=32 * NS_PER_MS,
    depth_min_ios=1.0,
    depth_max_ios=16.0,
    depth_wide_ios=32.0,
)


def disk(per_s: float, likely_until_ms: int = 0) -> PaceState:
    """A disk whose pace was measured."""
    return PaceState(
        completions_per_s=per_s,
        throughput_bytes_per_s=per_s * 64 * KIB,
        likely_until_ns=likely_until_ms * NS_PER_MS,
    )


def sample(at_ms: int, under_way: int = 4, done: int = 0) -> QueueSample:
    return QueueSample("vg-data", at_ms * NS_PER_MS, under_way, done, done * 64 * KIB)


def paced(depth: int) -> Gate:
    return Gate(GateKind.PACED, depth_ios=depth)


def test_an_unmeasured_disk_gets_four_blocks() -> None:
    assert pace.begin(PaceState(), 0, DM_PARAMS).gate == paced(4)


def test_the_depth_corresponds_to_a_time_on_this_disk() -> None:
    assert pace.begin(disk(130), 0, DM_PARAMS).gate == paced(4)
    assert pace.begin(disk(300), 0, DM_PARAMS).gate == paced(9)
    assert pace.begin(disk(20), 0, DM_PARAMS).gate == paced(1)
    assert pace.begin(disk(20_000), 0, DM_PARAMS).gate == paced(16)


def test_it_is_wide_only_while_the_gap_is_sure_to_outlast_what_is_under_way() -> None:
    # Three times 5 blocks at 160 a second: 94 ms, and a margin.
    assert pace.begin(disk(160), 0, DM_PARAMS, 2200 * NS_PER_MS).gate == paced(15)
    state = disk(160, likely_until_ms=2200)
    assert pace.step(state, sample(2040, 15), DM_PARAMS).gate == paced(15)
    assert pace.step(state, sample(2050, 15), DM_PARAMS).gate == paced(5)
    assert pace.step(state, sample(1700, 90), DM_PARAMS).gate == paced(5)
    assert pace.begin(disk(400), 0, DM_PARAMS, 2200 * NS_PER_MS).gate == paced(32)


def test_without_a_measured_pace_it_is_never_wide() -> None:
    assert pace.begin(PaceState(), 0, DM_PARAMS, 60 * NS_PER_S).gate == paced(4)


def test_the_pace_is_learned_from_what_gets_done() -> None:
    state = pace.begin(PaceState(), 0, DM_PARAMS)
    for step in range(1, 60):
        state = pace.step(state, sample(step * 30, 4, done=step * 9), DM_PARAMS)
    assert 280 < state.completions_per_s < 320
    assert state.gate == paced(9)


SORTED = replace(DM_PARAMS, depth_sorted_ios=512.0, foreseen=True)


@pytest.mark.parametrize(
    ("left_ms", "depth"),
    [
        (60_000, 512),
        (5_200, 512),
        (5_100, 256),
        (2_000, 128),
        (700, 64),
        (600, 32),
        (0, 32),
        (-5, 32),
    ],
)
def test_a_foreseen_gap_has_what_a_third_of_its_rest_can_take(left_ms: int, depth: int) -> None:
    assert pace.begin(disk(300), 0, SORTED, left_ms * NS_PER_MS).gate == paced(depth)


@pytest.mark.parametrize(("block_kib", "depth"), [(64, 512), (128, 256), (1024, 32)])
def test_large_blocks_take_no_more_memory_than_small_ones(block_kib: int, depth: int) -> None:
    state = replace(disk(300), throughput_bytes_per_s=300.0 * block_kib * KIB)
    assert pace.begin(state, 0, SORTED, 60 * NS_PER_S).gate == paced(depth)


def test_a_foreseen_gap_of_an_unmeasured_disk_is_wide() -> None:
    assert pace.begin(PaceState(), 0, SORTED, 60 * NS_PER_S).gate == paced(32)


@given(
    st.floats(min_value=0, max_value=1e6),
    st.integers(min_value=0, max_value=4000),
    st.integers(min_value=0, max_value=10_000),
    st.integers(min_value=0, max_value=10**12),
)
def test_the_number_is_always_within_its_bounds(
    per_s: float, under_way: int, at_ms: int, sure_ms: int
) -> None:
    gate = pace.step(disk(per_s, sure_ms), sample(at_ms, under_way), DM_PARAMS).gate
    assert gate.kind is GateKind.PACED
    assert 1 <= gate.depth_ios <= 32


def gaps(**at: int) -> tuple[float, ...]:
    """Counts by bucket, e.g. b21=10: ten gaps of 2.1 to 4.2 s."""
    return tuple(float(at.get(f"b{bucket}", 0)) for bucket in range(33))


def test_a_gap_is_likely_to_last_as_long_as_the_shortest_similar_one() -> None:
    bursts = gaps(b21=20)
    # Evenly spread in [2.097 s, 4.194 s): a twentieth of the bucket is dropped.
    assert 2.19e9 < likely_until_ns(bursts, 100 * NS_PER_MS, 0.95) < 2.21e9


def test_no_gap_of_this_length_is_sure_to_continue() -> None:
    # Else a gap of 10 s among gaps of 10 s is sure at 9.9 s, too, and its end is met wide open.
    assert likely_until_ns(gaps(b23=20), 99 * NS_PER_S // 10, 0.95) == 99 * NS_PER_S // 10


def test_a_gap_that_outlasted_short_ones_is_likely_to_last_longer() -> None:
    mixed = gaps(b17=10, b23=10)
    assert likely_until_ns(mixed, 50 * NS_PER_MS, 0.95) < 150 * NS_PER_MS
    assert 8.3e9 < likely_until_ns(mixed, NS_PER_S, 0.95) < 8.9e9


def test_an_unknown_gap_has_no_likely_end() -> None:
    assert likely_until_ns((), 5, 0.95) == 5
    assert likely_until_ns(gaps(b10=5), NS_PER_S, 0.95) == NS_PER_S


@given(
    st.lists(st.integers(min_value=0, max_value=50), min_size=1, max_size=33),
    st.integers(min_value=0, max_value=1 << 36),
    st.floats(min_value=0.05, max_value=1.0),
)
def test_the_given_share_of_gaps_reaches_the_likely_end(
    counts: list[int], idle_ns: int, share: float
) -> None:
    sure = likely_until_ns(counts, idle_ns, share)
    assert sure >= idle_ns
    if sure > idle_ns:
        assert reaching(counts, sure) >= share * reaching(counts, idle_ns) - 0.05
