# SPDX-License-Identifier: GPL-2.0-only
"""Every signal of a rule has its value from a frame, and None if it is unknown."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.frame import Disturbance, Frame, PathLatency, Rates, Regime
from ebbgate.model.power import DiskPower, PowerState
from ebbgate.model.records import Direction
from ebbgate.policy.quantity import (
    EXAMPLES,
    NotAQuantity,
    SignalUnit,
    format_quantity,
    parse_quantity,
    spell,
)
from ebbgate.policy.rule_signals import SIGNALS
from ebbgate.units import GIB, KIB, MIB, NS_PER_S
from tests.builders import frame

READ, WRITE = Direction.READ, Direction.WRITE
FULL: dict[str, Any] = {
    "idle": True,
    "idle_ns": 7,
    "foreground": {READ: Rates(10, 100), WRITE: Rates(20, 200)},
    "in_flight_ios": 3,
    "paths": {
        (READ, "hit"): PathLatency(30, 1, 5, 10),
        (READ, "miss"): PathLatency(10, 1, 50, 99),
        (READ, "bypass"): PathLatency(0, 0, None, None),
        (WRITE, "writeback"): PathLatency(1, 1, 5, 11),
        (WRITE, "bypass"): PathLatency(1, 1, 5, 22),
    },
    "backing_depth_ios": 4,
    "backing_busy_foreground_ratio": 0.5,
    "destage_in_flight_ios": 6,
    "destage_bytes_per_s": 8.0,
    "dirty_in_bytes_per_s": 9.0,
    "dirty_bytes": 400,
    "dirty_ratio": 0.4,
    "in_use_ratio": 0.6,
    "dirty_room_bytes": 300,
    "time_to_full_s": 2.0,
    "time_to_clean_s": 3.0,
    "disturbance": Disturbance(1, 1.0, 5_000_000),
    "state": "dirty",
    "regime": Regime.BURST,
    "backing_power": DiskPower(PowerState.STANDBY),
}
EXPECTED = {
    "disturbance": 5_000_000,
    "dirty_data": 400,
    "dirty_ratio": 0.4,
    "in_use_ratio": 0.6,
    "room": 300,
    "time_to_full": 2 * NS_PER_S,
    "time_to_clean": 3 * NS_PER_S,
    "dirty_in_rate": 9.0,
    "destage_rate": 8.0,
    "destage_in_flight": 6,
    "idle": "yes",
    "idle_for": 7,
    "in_flight": 3,
    "regime": "burst",
    "state": "dirty",
    "read_iops": 10,
    "write_iops": 20,
    "read_rate": 100,
    "write_rate": 200,
    "read_latency_p99": 99,
    "write_latency_p99": 22,
    "read_hit_p99": 10,
    "read_miss_p99": 99,
    "hit_ratio": 0.75,
    "backing_queue": 4,
    "backing_busy": 0.5,
    "backing_state": "standby",
}


def test_each_signal_is_read_off_the_frame() -> None:
    whole = frame(**FULL)
    assert {name: signal.of(whole) for name, signal in SIGNALS.items()} == EXPECTED


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_of_an_empty_frame_is_unknown_and_not_zero(name: str) -> None:
    assert SIGNALS[name].of(frame()) == ("unknown" if name == "backing_state" else None)


def test_a_forecast_of_what_will_not_happen_is_never_and_not_unknown() -> None:
    steady: Frame = frame(**{**FULL, "time_to_full_s": None, "time_to_clean_s": None})
    assert SIGNALS["time_to_full"].of(steady) == math.inf
    assert SIGNALS["time_to_clean"].of(steady) == math.inf
    assert format_quantity(SignalUnit.DURATION, math.inf) == "never"


def test_a_forecast_without_the_rate_of_write_back_is_unknown() -> None:
    forecasts = {"time_to_full_s": None, "time_to_clean_s": None}
    blind = frame(**{**FULL, **forecasts, "destage_bytes_per_s": None})
    assert SIGNALS["time_to_full"].of(blind) is None
    assert SIGNALS["time_to_clean"].of(blind) is None


@pytest.mark.parametrize("signal", list(SIGNALS.values()), ids=lambda signal: signal.name)
def test_each_signal_has_a_unit_or_words(signal: Any) -> None:
    assert (signal.unit is None) == bool(signal.words)
    assert signal.about[-1] in ".?"
    assert signal.formula


@pytest.mark.parametrize(
    ("unit", "text", "value", "shown"),
    [
        (SignalUnit.SIZE, "64MiB", 64 * MIB, "64 MiB"),
        (SignalUnit.SIZE, "1.5 GiB", 1.5 * GIB, "1.5 GiB"),
        (SignalUnit.SIZE, "0", 0, "0 B"),
        (SignalUnit.RATE, "20MiB/s", 20 * MIB, "20 MiB/s"),
        (SignalUnit.DURATION, "300ms", 300_000_000, "300 ms"),
        (SignalUnit.DURATION, "2h", 7200 * NS_PER_S, "2 h"),
        (SignalUnit.RATIO, "40%", 0.4, "40%"),
        (SignalUnit.COUNT, "4", 4, "4"),
        (SignalUnit.IOPS, "50/s", 50, "50/s"),
    ],
)
def test_a_figure_is_read_with_its_unit(
    unit: SignalUnit, text: str, value: float, shown: str
) -> None:
    assert parse_quantity(unit, text) == value
    assert format_quantity(unit, value) == shown


@given(st.integers(0, 10**12))
def test_a_figure_with_a_fraction_is_exact_and_whole(thousandths: int) -> None:
    number = f"{thousandths // 1000}.{thousandths % 1000:03}"
    for unit, suffix, factor in (
        (SignalUnit.DURATION, "s", NS_PER_S),
        (SignalUnit.DURATION, "min", 60 * NS_PER_S),
        (SignalUnit.SIZE, "GiB", GIB),
        (SignalUnit.RATE, "KiB/s", KIB),
    ):
        value = parse_quantity(unit, number + suffix)
        assert isinstance(value, int)
        assert abs(value * 1000 - thousandths * factor) <= 500


def test_a_count_is_whole() -> None:
    assert parse_quantity(SignalUnit.COUNT, "4.0") == 4
    with pytest.raises(NotAQuantity, match=r"'4\.5' is not a whole number; write a whole number"):
        parse_quantity(SignalUnit.COUNT, "4.5")


@pytest.mark.parametrize("unit", SignalUnit)
def test_a_formatted_value_parses_to_itself(unit: SignalUnit) -> None:
    assert parse_quantity(unit, EXAMPLES[unit]) > 0
    for value in (0, parse_quantity(unit, EXAMPLES[unit])):
        assert parse_quantity(unit, spell(unit, value)) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "-inf", "1e3", "0x10", "٣", "1,5", "1 2", "B"])
@pytest.mark.parametrize("unit", SignalUnit)
def test_a_value_that_is_not_a_number_is_refused(unit: SignalUnit, text: str) -> None:
    with pytest.raises(NotAQuantity):
        parse_quantity(unit, text)
