# SPDX-License-Identifier: GPL-2.0-only
"""Gates of bcache as knob writes: their order and their bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.actuators.bcache_steps import (
    BASE,
    Step,
    base_steps,
    congestion_off_steps,
    cutoff_steps,
    gate_steps,
    write,
)
from ebbgate.knobs.catalog import BOUNDS
from ebbgate.model.decision import Gate, GateKind
from ebbgate.units import KIB, MIB


def spelt(steps: tuple[Step, ...]) -> list[tuple[str, str]]:
    """(knob, value) of each write."""
    return [(each.knob, each.value) for each in steps]


@pytest.mark.parametrize(
    ("gate", "writes"),
    [
        (Gate(GateKind.HELD), [("writeback_percent", "0"), ("writeback_running", "0")]),
        (
            Gate(GateKind.CLOSED, 512),
            [("writeback_rate", "1"), ("writeback_percent", "40"), ("writeback_running", "1")],
        ),
        (
            Gate(GateKind.PACED, 8 * MIB),
            [("writeback_rate", "16384"), ("writeback_percent", "40"), ("writeback_running", "1")],
        ),
        (
            Gate(GateKind.RESTING, 512),
            [("writeback_rate", "1"), ("writeback_percent", "40"), ("writeback_running", "1")],
        ),
        (Gate(GateKind.OPEN), [("writeback_percent", "0"), ("writeback_running", "1")]),
    ],
)
def test_each_gate_is_a_list_of_writes(gate: Gate, writes: list[tuple[str, str]]) -> None:
    assert spelt(gate_steps(gate)) == writes


def test_a_released_gate_has_no_steps() -> None:
    with pytest.raises(ValueError, match="released"):
        gate_steps(Gate(GateKind.RELEASED))


def test_only_the_wake_is_written_without_a_change() -> None:
    for step in gate_steps(Gate(GateKind.OPEN)):
        assert step.always == (step.knob == "writeback_running")
    for kind in (GateKind.HELD, GateKind.CLOSED, GateKind.PACED):
        assert not any(step.always for step in gate_steps(Gate(kind, MIB)))


def test_the_steps_of_base_cutoff_and_congestion() -> None:
    assert spelt(base_steps()) == list(BASE.items())
    assert spelt(cutoff_steps(4 * MIB)) == [("sequential_cutoff", str(4 * MIB))]
    assert spelt(congestion_off_steps()) == [
        ("congested_read_threshold_us", "0"),
        ("congested_write_threshold_us", "0"),
    ]


@pytest.mark.parametrize("wanted_bytes", [-1, 0, 1, 511, 512, 64 * KIB - 1])
def test_a_cutoff_below_64_kib_is_never_written(wanted_bytes: int) -> None:
    assert cutoff_steps(wanted_bytes)[0].value == str(64 * KIB)


def test_only_a_hold_stops_the_kernels_thread() -> None:
    for kind in set(GateKind) - {GateKind.RELEASED, GateKind.HELD}:
        assert ("writeback_running", "0") not in spelt(gate_steps(Gate(kind, MIB)))


@pytest.mark.parametrize("knob", ["cache_mode", "io_disable", "detach", "stop", "label"])
def test_a_knob_without_bounds_cannot_be_written(knob: str) -> None:
    with pytest.raises(KeyError):
        write(knob, 1)


NUMBERS = st.integers(min_value=-(1 << 70), max_value=1 << 70)
GATES = st.builds(
    Gate,
    st.sampled_from([k for k in GateKind if k is not GateKind.RELEASED]),
    NUMBERS,
    st.integers(min_value=0, max_value=1 << 40),
)


@given(GATES, NUMBERS)
def test_no_step_has_a_value_outside_the_bounds(gate: Gate, cutoff: int) -> None:
    for step in (*base_steps(), *gate_steps(gate), *cutoff_steps(cutoff)):
        bound = BOUNDS[step.knob]
        assert bound.low <= int(step.value) <= bound.high
