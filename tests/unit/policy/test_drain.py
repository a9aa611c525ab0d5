# SPDX-License-Identifier: GPL-2.0-only
"""Draining by a time: how wide the gate must be, and whether it will make it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.decision import Gate, GateKind, Proposal
from ebbgate.model.frame import Disturbance, FlowRates, Frame
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import Policy, default_policy
from ebbgate.policy.drain import DrainPlan, gate_of, plan_of, plan_text, proposal
from ebbgate.policy.engine import Outcome, OverrideChange, State, step
from ebbgate.policy.rules import Check, Rule
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.drain_cap import DrainCap
from ebbgate.policy.strategies.gap_use import GapUse, Rest
from ebbgate.policy.strategies.pace_state import PaceState
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS, NS_PER_S
from tests.builders import busy_edge, busy_frame, frame, idle_edge, queue_sample

WAIT = DestageState(phase=Phase.WAIT)
CLOSED = Gate(GateKind.CLOSED, 512)
PARAMS = DestageParams()


def at(**signals: Any) -> Frame:
    known: dict[str, Any] = {
        "dirty_bytes": 800 * MIB,
        "dirty_in_bytes_per_s": 0.0,
        "destage_bytes_per_s": 0.0,
    }
    return frame(**{**known, **signals})


def plan(left_s: float = 112.5, **signals: Any) -> DrainPlan:
    found = plan_of(at(**signals), round(left_s * NS_PER_S))
    assert found is not None
    return found


@pytest.mark.parametrize("in_this_second_mib", [0.0, 100.0])
def test_new_dirty_data_counts_by_its_mean_and_not_by_a_flush(in_this_second_mib: float) -> None:
    found = plan(
        dirty_in_bytes_per_s=in_this_second_mib * MIB,
        destage_bytes_per_s=0.0,
        flows=FlowRates(20.0 * MIB, 0.0, 25.0 * MIB),
    )
    assert (found.needed_bytes_per_s, found.eta_s, found.in_time) == (30 * MIB, 160.0, False)


@pytest.mark.parametrize(
    ("left_s", "signals", "needed_mib", "eta_s", "makes_it"),
    [
        (112.5, {}, 10.0, None, None),
        (112.5, {"destage_bytes_per_s": 10.0 * MIB}, 10.0, 80.0, True),
        (112.5, {"destage_bytes_per_s": 4.0 * MIB}, 10.0, 200.0, False),
        (112.5, {"dirty_in_bytes_per_s": 5.0 * MIB}, 15.0, None, None),
        (
            112.5,
            {"dirty_in_bytes_per_s": 5.0 * MIB, "destage_bytes_per_s": 15.0 * MIB},
            15.0,
            80.0,
            True,
        ),
        (
            112.5,
            {"dirty_in_bytes_per_s": 15.0 * MIB, "destage_bytes_per_s": 15.0 * MIB},
            25.0,
            None,
            None,
        ),
        (112.5, {"destage_bytes_per_s": None}, 10.0, None, None),
        (0, {}, 800.0, None, None),
        (112.5, {"dirty_bytes": 0}, 0.0, None, True),
    ],
)
def test_what_it_takes(
    left_s: float,
    signals: dict[str, Any],
    needed_mib: float,
    eta_s: float | None,
    makes_it: bool | None,
) -> None:
    found = plan(left_s, **signals)
    assert found.needed_bytes_per_s == pytest.approx(needed_mib * MIB)
    assert found.eta_s == (None if eta_s is None else pytest.approx(eta_s))
    assert found.in_time is makes_it


@pytest.mark.parametrize("unknown", ["dirty_bytes", "dirty_in_bytes_per_s"])
def test_what_is_unknown_gives_no_plan_and_no_gate(unknown: str) -> None:
    assert plan_of(at(**{unknown: None}), NS_PER_S) is None
    assert gate_of(None, WAIT, CLOSED, PARAMS) is None


@pytest.mark.parametrize("phase", [Phase.WAIT, Phase.NORMAL, Phase.PRESSURE])
def test_under_load_the_gate_is_as_wide_as_needed(phase: Phase) -> None:
    gate = gate_of(plan(), DestageState(phase=phase), CLOSED, PARAMS)
    assert gate is not None
    assert gate.kind is GateKind.PACED
    assert 10 * MIB <= gate.rate_bytes_per_s <= 13 * MIB


@pytest.mark.parametrize("phase", [Phase.DESTAGE, Phase.UNKNOWN])
def test_in_a_gap_or_without_signals_the_strategy_goes_on(phase: Phase) -> None:
    assert gate_of(plan(), DestageState(phase=phase), CLOSED, PARAMS) is None


@pytest.mark.parametrize(
    ("rest", "cap_kib", "opens"),
    [
        (Rest.RATE, 256, True),
        (Rest.RATE, 20 * 1024, False),
        (Rest.RATE, None, False),
        (Rest.END, 256, False),
        (Rest.NONE, 256, False),
    ],
)
def test_in_a_gap_it_goes_before_a_rest_that_keeps_too_low_a_rate(
    rest: Rest, cap_kib: int | None, opens: bool
) -> None:
    cap = DrainCap(bytes_per_s=None if cap_kib is None else float(cap_kib * KIB))
    state = DestageState(phase=Phase.DESTAGE, gap=GapUse(rest=rest), cap=cap)
    gate = gate_of(plan(), state, Gate(GateKind.RESTING, 512, queue_depth=4), PARAMS)
    assert gate == (Gate(GateKind.PACED, 10 * MIB, queue_depth=4) if opens else None)


def test_a_gate_that_is_wider_already_stays_and_a_clean_volume_needs_none() -> None:
    wide = Gate(GateKind.PACED, 64 * MIB)
    assert gate_of(plan(), DestageState(phase=Phase.PRESSURE), wide, PARAMS) is None
    assert gate_of(plan(dirty_bytes=0), WAIT, CLOSED, PARAMS) is None


@given(st.integers(0, 1 << 44), st.floats(0, 1e6), st.floats(0, 1e10))
def test_the_rate_is_within_the_paces_bounds_and_never_too_low(
    dirty: int, left_s: float, comes_in: float
) -> None:
    found = plan(left_s, dirty_bytes=dirty, dirty_in_bytes_per_s=comes_in)
    gate = gate_of(found, WAIT, CLOSED, PARAMS)
    if dirty == 0:
        assert gate is None
        return
    assert gate is not None
    high = PARAMS.pace.rate_max_bytes_per_s
    assert PARAMS.pace.rate_min_bytes_per_s <= gate.rate_bytes_per_s <= high
    assert gate.rate_bytes_per_s >= min(high, found.needed_bytes_per_s)


def test_a_rate_that_is_needed_a_little_more_or_less_writes_no_knob() -> None:
    rates = {
        gate.rate_bytes_per_s
        for left in range(10_000, 9_800, -1)
        if (gate := gate_of(plan(left / 100), WAIT, CLOSED, PARAMS))
    }
    assert len(rates) <= 2


def test_it_is_done_in_time_on_a_disk_that_keeps_the_pace() -> None:
    dirty, left_s = 800.0 * MIB, 100.0
    while dirty > 0:
        gate = gate_of(plan(left_s, dirty_bytes=int(dirty)), WAIT, CLOSED, PARAMS)
        assert gate is not None
        dirty -= gate.rate_bytes_per_s * 0.25
        left_s -= 0.25
    assert 0 < left_s < 30, "too late, or much faster than needed"


@pytest.mark.parametrize(
    ("needed_mib", "known_mib", "depth"), [(10, 0, 32), (10, 100, 4), (10, 5, 32), (0.1, 100, 1)]
)
def test_on_dm_cache_it_is_the_number_in_flight(
    needed_mib: float, known_mib: float, depth: int
) -> None:
    params = default_policy(Kind.DM_CACHE).destage
    assert params is not None
    state = replace(WAIT, pace=PaceState(throughput_bytes_per_s=known_mib * MIB))
    found = plan(90 / 0.8, dirty_bytes=int(needed_mib * 80 * MIB))
    gate = gate_of(found, state, Gate(GateKind.CLOSED), params)
    assert gate == Gate(GateKind.PACED, depth_ios=depth)


def test_the_reason_has_the_needed_and_the_measured_rate() -> None:
    override = Override(OverrideKind.DRAIN, "bcache0", "jo", 0, 100 * NS_PER_S)
    active = ActiveOverride(override, 150 * NS_PER_S)
    found = plan(destage_bytes_per_s=4.0 * MIB)
    said = proposal(found, active, 50 * NS_PER_S, None)
    assert said.reason == (
        "requested by jo, 100 s left: 800 MiB dirty, needs 10 MiB/s, done in about 3.3 min:"
        " NOT in time at this rate"
    )
    (condition,) = said.conditions
    assert (condition.measured, condition.threshold) == ("4 MiB/s", "10 MiB/s (needed)")
    assert not condition.holds
    assert plan_text(plan(dirty_bytes=0)) == "nothing is dirty"
    assert "in time" in plan_text(plan(destage_bytes_per_s=20.0 * MIB))
    busy = plan(destage_bytes_per_s=5.0 * MIB, dirty_in_bytes_per_s=9.0 * MIB)
    assert plan_text(busy).endswith(
        "; at 5 MiB/s dirty data does not shrink: NOT in time at this rate"
    )
    assert "the dirty level is unknown" in proposal(None, active, 0, None).reason


# ---- in the engine ------------------------------------------------------------------------------
LARGE = {"dirty_bytes": 4 * GIB, "cache_bytes": 20 * GIB, "dirty_room_bytes": 4 * GIB}


def gap(state: State, begin_ms: int, done_ios: int) -> tuple[State, int]:
    """A gap of 2 s on a disk that writes 30 MiB/s; returns what is done after it."""
    state, outcome = step(state, idle_edge(begin_ms), Policy(), begin_ms * NS_PER_MS)
    for at_ms in range(begin_ms + 20, begin_ms + 2000, 20):
        done_ios += done_in_20_ms(outcome)
        sample = queue_sample(at_ms, 2, done_ios)
        state, outcome = step(state, sample, Policy(), sample.at_ns)
    edge = busy_edge(begin_ms + 2000, 2300)
    state, _ = step(state, edge, Policy(), edge.at_ns)
    return state, done_ios


@pytest.mark.parametrize("idle", [False, True])
@pytest.mark.parametrize(
    ("ruled", "opens"),
    [
        (Gate(GateKind.PACED, MIB), True),
        (Gate(GateKind.CLOSED), True),
        (Gate(GateKind.HELD), True),
        (Gate(GateKind.PACED, 1 * GIB), False),
        (Gate(GateKind.OPEN), False),
    ],
)
def test_a_slower_gate_of_a_rule_yields_to_a_drain_also_in_a_gap(
    ruled: Gate, opens: bool, idle: bool
) -> None:
    proposed = Proposal("rule slow", "on: night", gate=ruled)
    rule = Rule("slow", ((Check("dirty_data", ">=", 0),),), proposed, ("destage_rate",))
    policy = replace(Policy(), rules=(rule,))
    ordered = Override(OverrideKind.DRAIN, "bcache0", "jo", 0, 600 * NS_PER_S)
    change = OverrideChange(drain=ActiveOverride(ordered, 600 * NS_PER_S))
    state, outcome = step(State(), change, policy, NS_PER_S)
    for quarter in range(1, 60):
        at_ns = NS_PER_S + quarter * NS_PER_S // 4
        idle_ns = quarter * NS_PER_S // 4 if idle else 0
        known: dict[str, Any] = {"dirty_in_bytes_per_s": 0.0, "destage_bytes_per_s": 0.0, **LARGE}
        seen = frame(at_ns=at_ns, probed_at_ns=at_ns - 1, idle=idle, idle_ns=idle_ns, **known)
        state, outcome = step(state, seen, policy, at_ns)
    assert (outcome.destage.phase is Phase.DESTAGE) is idle
    assert outcome.ruling.gate is not None
    if not opens:
        assert outcome.ruling.gate == ruled
        return
    assert (outcome.ruling.by, outcome.ruling.gate.kind) == ("drain", GateKind.PACED)
    assert outcome.ruling.gate.rate_bytes_per_s >= 4 * GIB / 600


def done_in_20_ms(outcome: Outcome) -> int:
    gate = outcome.gate
    assert gate is not None
    fastest = 10 if gate.kind is GateKind.OPEN else gate.rate_bytes_per_s // (50 * 64 * KIB)
    return min(10, fastest)


def test_gaps_that_users_felt_do_not_make_a_drain_late() -> None:
    felt = Disturbance(NS_PER_S // 2, 8.0 * MIB, 90 * NS_PER_MS)
    state, _ = step(State(), busy_frame(1000, disturbance=felt, **LARGE), Policy(), NS_PER_S)
    assert state.destage.cap.bytes_per_s == 4 * MIB
    ordered = Override(OverrideKind.DRAIN, "bcache0", "jo", 0, 300 * NS_PER_S)
    active = ActiveOverride(ordered, 300 * NS_PER_S)
    state, _ = step(state, OverrideChange(drain=active), Policy(), NS_PER_S)
    state, _ = step(state, busy_frame(1250, **LARGE), Policy(), 1250 * NS_PER_MS)
    state, done_ios = gap(state, 2000, 0)
    needed = 4 * GIB / 230
    assert done_ios * 64 * KIB >= 0.95 * 2 * needed
    # The next gap after the drain is not at rest for what that wrote.
    state, _ = step(state, OverrideChange(), Policy(), 5 * NS_PER_S)
    _, later_ios = gap(state, 6000, done_ios)
    assert (later_ios - done_ios) * 64 * KIB >= 6 * MIB
