# SPDX-License-Identifier: GPL-2.0-only
"""Values of knobs with their units, and moved into the bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.knobs.catalog import BOUNDS, BY_NAME
from ebbgate.knobs.knob import KnobUnit
from ebbgate.knobs.values import clamped, format_range, format_value, parse_figure

NUMBERS = st.integers(min_value=-(1 << 70), max_value=1 << 70)


@given(st.sampled_from(sorted(BOUNDS)), NUMBERS)
def test_a_value_outside_the_bounds_is_moved_and_noted(knob: str, value: int) -> None:
    within, said = clamped(knob, value)
    bound = BOUNDS[knob]
    assert bound.low <= within <= bound.high
    assert bool(said) == (within != value)
    assert clamped(knob, within) == (within, "")


@pytest.mark.parametrize("knob", BOUNDS)
def test_a_formatted_value_can_be_parsed(knob: str) -> None:
    low = BOUNDS[knob].low
    if BY_NAME[knob].unit is not KnobUnit.FLAG:
        assert parse_figure(knob, format_value(knob, low)) == low
    assert format_value(knob, low) in format_range(knob)


@pytest.mark.parametrize("us", [1001, 1003, 2047, 8009, 16_001])
def test_a_value_with_a_fraction_is_exact(us: int) -> None:
    assert parse_figure("congested_read_threshold_us", f"{us / 1000}ms") == us
    with pytest.raises(ValueError, match="not a whole number of microseconds"):
        parse_figure("congested_read_threshold_us", f"{us / 1000}5ms")
