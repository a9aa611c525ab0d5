# SPDX-License-Identifier: GPL-2.0-only
"""Draining by a time: how wide the gate must be, and whether it will make it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.frame import Frame
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import default_policy
from ebbgate.policy.drain import DrainPlan, gate_of, plan_of, plan_text, proposal
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.pace_state import PaceState
from ebbgate.units import MIB, NS_PER_S
from tests.builders import frame

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
    assert "the dirty level is unknown" in proposal(None, active, 0, None).reason
