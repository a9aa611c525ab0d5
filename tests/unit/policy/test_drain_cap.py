# SPDX-License-Identifier: GPL-2.0-only
"""What users felt of a gap limits how fast the next one writes back, and only that does."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.frame import Disturbance, Frame
from ebbgate.model.records import Edge, QueueSample
from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import Policy, default_policy
from ebbgate.policy.engine import step
from ebbgate.policy.state import State
from ebbgate.policy.strategies import explanation
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.policy.strategies.drain_cap import CAP_MIN_BYTES_PER_S, DrainCap, judge
from ebbgate.policy.strategies.idle_destage import gate_of
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S
from tests.builders import busy_edge, busy_frame, idle_edge, idle_frame, queue_sample

TARGET_NS = 3 * NS_PER_MS
BFQ = {"queue_depth:sda": "31", "scheduler:sda": "bfq"}


def felt(number: int, ms: float | None, rate_mib: float = 80) -> Disturbance:
    """The disturbance by gap `number`, a gap each 4 s."""
    felt_ns = None if ms is None else round(ms * NS_PER_MS)
    return Disturbance(4 * number * NS_PER_S, rate_mib * MIB, felt_ns)


def after(*found: Disturbance) -> DrainCap:
    """The cap after these gaps."""
    cap = DrainCap()
    for each in found:
        cap = judge(cap, each, TARGET_NS, each.gap_end_ns + NS_PER_S // 2)
    return cap


def cap_mib(*found: Disturbance) -> float | None:
    cap = after(*found).bytes_per_s
    return None if cap is None else cap / MIB


@pytest.mark.parametrize(
    ("found", "mib"),
    [
        ((felt(1, 0),), None),
        ((felt(1, 3),), None),
        ((felt(1, None),), None),
        # Two of three gaps over the target: slower by as much, within bounds.
        ((felt(1, 4),), None),
        ((felt(1, 3.1), felt(2, 3.1)), 72),
        ((felt(1, 4), felt(2, 1), felt(3, 4)), 60),
        ((felt(1, 4), felt(2, 1), felt(3, 1), felt(4, 4)), None),
        # Or one by twice as much.
        ((felt(1, 6),), 40),
        ((felt(1, 300),), 40),
        # The gap after that does not count, if it is felt.
        ((felt(1, 6), felt(2, 6, 40)), 40),
        ((felt(1, 6), felt(2, 6, 40), felt(3, 6, 40)), 20),
        # It counts what the gap did, not what it was allowed to.
        ((felt(1, 6), felt(2, 6), felt(3, 6, 10)), 5),
        ((felt(1, 6), felt(2, 6), felt(3, 6, 0.1)), 0.25),
        # A drain by a deadline wrote more than the cap: it is not raised by a gap that is felt.
        ((felt(1, 6), felt(2, 6, 40), felt(3, 6, 200)), 40),
        # Nothing felt: faster, but not to where it was felt.
        ((felt(1, 6), felt(2, 1, 40)), 52),
        ((felt(1, 6), felt(2, 1, 40), felt(3, 1, 52), felt(4, 1, 60)), 72),
        ((felt(1, 6), felt(2, None, 40)), 40),
        ((felt(1, 6), felt(1, 6, 40)), 40),
    ],
)
def test_the_cap_follows_from_what_was_felt(
    found: tuple[Disturbance, ...], mib: float | None
) -> None:
    assert cap_mib(*found) == (None if mib is None else pytest.approx(mib, rel=0.01))


def test_a_full_cache_that_is_felt_again_does_not_lower_the_rate_to_return_to() -> None:
    slow = [felt(number, 6, rate) for number, rate in ((2, 40), (3, 40), (4, 20), (5, 20))]
    calm = [felt(number, 0, 5) for number in range(6, 20)]
    assert cap_mib(felt(1, 6), *slow, *calm) == pytest.approx(77, rel=0.1)


def test_what_was_learned_is_tried_again_slowly_and_then_forgotten() -> None:
    found = [felt(1, 6), *(felt(number, 0, 64) for number in range(2, 200))]
    minute, two, five = (cap_mib(*found[: seconds // 4]) for seconds in (60, 120, 300))
    assert minute is not None and two is not None
    assert 72 <= minute <= 78
    assert 88 <= two <= 108
    assert five is None


def test_a_gap_is_judged_once() -> None:
    cap = after(felt(1, 6))
    assert judge(cap, felt(1, 6), TARGET_NS, 10 * NS_PER_S) is cap


GAPS = st.lists(
    st.tuples(
        st.integers(1, 1000),
        st.one_of(st.none(), st.integers(0, 10 * NS_PER_S)),
        st.floats(0, 1e12),
    ),
    max_size=30,
)


@given(GAPS, st.integers(NS_PER_MS, NS_PER_S))
def test_the_cap_is_finite_and_never_below_its_floor(
    gaps: list[tuple[int, int | None, float]], target_ns: int
) -> None:
    cap, now_ns = DrainCap(), 0
    for pause_s, felt_ns, rate in gaps:
        now_ns += pause_s * NS_PER_S
        before = cap
        cap = judge(cap, Disturbance(now_ns, rate, felt_ns), target_ns, now_ns)
        if felt_ns is None or rate == 0:
            assert cap == before
        elif felt_ns > target_ns and cap.bytes_per_s != before.bytes_per_s:
            assert cap.bytes_per_s is not None
            assert cap.bytes_per_s <= max(0.9 * rate, CAP_MIN_BYTES_PER_S)
        elif felt_ns <= target_ns:
            assert cap.bytes_per_s is None or cap.bytes_per_s >= (before.bytes_per_s or math.inf)
        assert cap.bytes_per_s is None or CAP_MIN_BYTES_PER_S <= cap.bytes_per_s < math.inf
        assert judge(cap, Disturbance(now_ns, rate, felt_ns), target_ns, now_ns + 1) == cap


# ---- in the strategy ----------------------------------------------------------------------------
def run(*events: Frame | Edge | QueueSample, policy: Policy | None = None) -> tuple[State, Gate]:
    """The state after these events, and its gate."""
    state, policy = State(), policy or Policy()
    assert policy.destage is not None
    for event in events:
        state, _ = step(state, event, policy, event.at_ns)
    return state, gate_of(state.destage, policy.destage)


def burst(ms: float | None = 6, rate_mib: float = 20, **signals: Any) -> Frame:
    """The frame of a burst in which so much was felt of the last gap."""
    return busy_frame(5000, disturbance=felt(1, ms, rate_mib), **signals)


EMPTY = [queue_sample(6000 + 20 * number, 0, 40 * number) for number in range(30)]
"""A disk that takes 125 MiB/s into its own cache: nothing is ever under way."""


def test_the_gate_rests_once_more_than_the_cap_is_written() -> None:
    assert run(burst(), idle_edge(6000), *EMPTY[:1])[1] == Gate(GateKind.OPEN)
    assert run(burst(), idle_edge(6000), *EMPTY)[1].kind is GateKind.RESTING


def test_without_a_cap_the_gate_stays_open() -> None:
    assert run(burst(1), idle_edge(6000), *EMPTY)[1] == Gate(GateKind.OPEN)


def test_the_cap_does_not_apply_under_load() -> None:
    full = {"dirty_room_bytes": 0, "dirty_in_bytes_per_s": 1.0}
    later = busy_frame(15_000, disturbance=felt(1, 6, 0.5), **full)
    _, gate = run(burst(6, 0.5), later)
    assert (gate.kind, gate.rate_bytes_per_s) == (GateKind.PACED, 8 * MIB)


def test_a_rest_keeps_the_shallow_queue() -> None:
    policy = Policy(destage=DestageParams(queue_depth=8))
    state, gate = run(burst(knobs=BFQ), idle_edge(6000), *EMPTY, policy=policy)
    assert (gate.kind, gate.queue_depth) == (GateKind.RESTING, 8)
    assert state.destage.sampled


def test_on_dm_cache_the_cap_limits_the_blocks_at_once() -> None:
    policy = default_policy(Kind.DM_CACHE)
    # 10 blocks of 64 KiB in 36 ms are 17 MiB/s.
    done = [queue_sample(6000 + 40 * number, 4, 11 * number) for number in range(10)]
    assert run(burst(1), idle_edge(6000), *done, policy=policy)[1].depth_ios >= 9
    assert run(burst(), idle_edge(6000), *done, policy=policy)[1].depth_ios == 5
    assert run(burst(6, 1), idle_edge(6000), *done, policy=policy)[1].depth_ios == 1


def test_without_a_target_nothing_is_capped() -> None:
    policy = Policy(destage=DestageParams(disturbance_ns=None))
    state, _ = run(burst(300), idle_edge(6000), policy=policy)
    assert state.destage.cap == DrainCap()


def test_a_target_that_is_taken_away_ends_the_cap() -> None:
    state, _ = run(burst())
    params = DestageParams(disturbance_ns=None)
    state, _ = step(state, burst(), Policy(destage=params), 5001 * NS_PER_MS)
    assert state.destage.cap == DrainCap()


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (6, "- 6 ms <= 3 ms longer (in gaps at most 10 MiB/s)"),
        (1, "+ 1 ms <= 3 ms longer (no limit in gaps)"),
        (None, ""),
    ],
)
def test_target_value_and_cap_are_explained(ms: float | None, text: str) -> None:
    state, _ = run(burst(ms))
    assert state.frame is not None
    found = [
        f"{'+' if each.holds else '-'} {each.measured} {each.comparison} {each.threshold}"
        for each in explanation.of_destage(state.destage, state.frame, DestageParams())
        if each.signal == "wait after write-back"
    ]
    assert found == ([text] if text else [])


def test_a_rest_for_the_cap_is_explained() -> None:
    state, _ = run(burst(), idle_edge(6000), *EMPTY)
    assert state.frame is not None
    texts = [
        each.threshold
        for each in explanation.of_destage(state.destage, state.frame, DestageParams())
    ]
    assert "3 ms longer (in gaps at most 10 MiB/s; the gate rests now)" in texts


@pytest.mark.parametrize(
    ("lasted_s", "text"),
    [
        (2.0, "in gaps at most 10 MiB/s"),
        (4.0, "in gaps at most 10 MiB/s; 20 MiB/s in this one, which outlives the others"),
        (60.0, "in gaps at most 10 MiB/s; none any more in this gap, which outlives the others"),
    ],
)
def test_the_cap_of_a_gap_that_outlives_the_others_is_explained(lasted_s: float, text: str) -> None:
    state, _ = run(burst(), idle_edge(6000))
    lengths_ns = tuple(round(each * NS_PER_S) for each in (0.4, 2.0, 0.9, 2.0, 1.4, 2.0))
    gap = replace(state.destage.gap, lengths_ns=lengths_ns)
    since_ns = 100 * NS_PER_S
    destage = replace(state.destage, gap=gap, idle_since_ns=since_ns)
    frame = idle_frame(round(100_000 + lasted_s * 1000), disturbance=felt(1, 6))
    found = explanation.of_destage(destage, frame, DestageParams())
    assert f"3 ms longer ({text})" in [each.threshold for each in found]


def test_no_edge_or_sample_changes_the_cap() -> None:
    state, _ = run(burst())
    cap = state.destage.cap
    events: list[Frame | Edge | QueueSample] = [idle_edge(6000), *EMPTY, busy_edge(8000)]
    for event in [*events, idle_frame(9000)]:
        state, _ = step(state, event, Policy(), event.at_ns)
        assert state.destage.cap is cap
