# SPDX-License-Identifier: GPL-2.0-only
"""Values of knobs: with their units, for people, and within the bounds. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ebbgate.knobs.catalog import bounds_of, find_knob, knob_row
from ebbgate.knobs.knob import KnobUnit
from ebbgate.units import (
    DURATIONS,
    KIB,
    NS_PER_MS,
    NS_PER_S,
    NS_PER_US,
    SECTOR_BYTES,
    SIZES,
    format_bytes,
    format_ns,
    format_rate,
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a unit measures. `suffixes`: that a number may have, in `1 / per` of the base unit.

    `base`: the base unit in the plural, as in metric names; empty: a plain number.
    """

    suffixes: Mapping[str, int]
    base: str
    per: int = 1


_RATIO: Final = Quantity({"%": 1}, "ratio", 100)
_SIZE: Final = Quantity(SIZES, "bytes")
_RATE: Final = Quantity({f"{name}/s": factor for name, factor in SIZES.items()}, "bytes_per_second")
_DURATION: Final = Quantity(DURATIONS, "seconds", NS_PER_S)
_PLAIN: Final = Quantity({}, "")
_QUANTITIES: Final[Mapping[KnobUnit, tuple[Quantity, int]]] = {
    KnobUnit.PERCENT: (_RATIO, 1),
    KnobUnit.BYTES: (_SIZE, 1),
    KnobUnit.KIB: (_SIZE, KIB),
    KnobUnit.SECTORS: (_SIZE, SECTOR_BYTES),
    KnobUnit.SECTORS_PER_S: (_RATE, SECTOR_BYTES),
    KnobUnit.SECONDS: (_DURATION, NS_PER_S),
    KnobUnit.MILLISECONDS: (_DURATION, NS_PER_MS),
    KnobUnit.MICROSECONDS: (_DURATION, NS_PER_US),
    KnobUnit.FLAG: (_PLAIN, 1),
}
"""By unit: what it measures, and how much one of it is. A knob in another unit is no metric."""
_FIGURE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z/%]*)")


def clamped(knob: str, value: int) -> tuple[int, str]:
    """Return the nearest value within the bounds, and a note if it is another one.

    Raises KeyError for a knob that cannot be set.
    """
    bounds = bounds_of(knob)
    within = min(bounds.high, max(bounds.low, value))
    if within == value:
        return within, ""
    return within, f"{value} was requested, the limit is {within}: {bounds.why}"


def parse_figure(knob: str, text: str) -> int:
    """Parse a value with a unit into the kernel's unit; a bare number has that unit already.

    Raises ValueError, which says what may be written.
    """
    unit = knob_row(knob).unit
    quantity, own = _QUANTITIES.get(unit, (_PLAIN, 1))
    suffixes = quantity.suffixes
    match = _FIGURE.fullmatch(text.strip())
    factor = suffixes.get(match[2]) if match else None
    if match is None or (match[2] and factor is None):
        known = f", or one with {', '.join(suffixes)}" if suffixes else ""
        raise ValueError(f"{text!r} is not a value of {knob}: write a number of {unit}{known}")
    # Not a float: 1.001 ms would be 1000.9999999999999 us.
    exact = Fraction(match[1]) * (own if factor is None else factor) / own
    if exact.denominator != 1:
        raise ValueError(f"{text} is not a whole number of {unit}")
    return int(exact)


def format_value(knob: str, value: int) -> str:
    """Return a value with its unit, for people: `4 MiB`, `10 MiB/s`, `20%`."""
    unit = knob_row(knob).unit
    if unit is KnobUnit.PERCENT:
        return f"{value}%"
    quantity, own = _QUANTITIES.get(unit, (_PLAIN, 1))
    if quantity is _DURATION:
        return format_ns(value * own)
    if quantity is _RATE:
        return format_rate(value * own)
    return format_bytes(value * own) if quantity is _SIZE else str(value)


def metric_value(knob: str, text: str | None) -> tuple[str, float] | None:
    """Return base unit and value in it; None for text that is no number, or an unlisted knob."""
    row = find_knob(knob)
    found = _QUANTITIES.get(row.unit) if row else None
    if found is None or text is None:
        return None
    quantity, own = found
    try:
        return quantity.base, int(text) * own / quantity.per
    except ValueError:
        return None


def format_range(knob: str) -> str:
    """Return the allowed range, for people."""
    bounds = bounds_of(knob)
    return f"{format_value(knob, bounds.low)} to {format_value(knob, bounds.high)}"
