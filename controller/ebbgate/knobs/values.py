# SPDX-License-Identifier: GPL-2.0-only
"""Values of knobs: with their units, for people, and within the bounds. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ebbgate.knobs.catalog import BOUNDS, BY_NAME
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

_RATES: Final = {f"{name}/s": factor for name, factor in SIZES.items()}
_SUFFIXES: Final[Mapping[KnobUnit, tuple[Mapping[str, int], int]]] = {
    KnobUnit.PERCENT: ({"%": 1}, 1),
    KnobUnit.BYTES: (SIZES, 1),
    KnobUnit.KIB: (SIZES, KIB),
    KnobUnit.SECTORS: (SIZES, SECTOR_BYTES),
    KnobUnit.SECTORS_PER_S: (_RATES, SECTOR_BYTES),
    KnobUnit.SECONDS: (DURATIONS, NS_PER_S),
    KnobUnit.MILLISECONDS: (DURATIONS, NS_PER_MS),
    KnobUnit.MICROSECONDS: (DURATIONS, NS_PER_US),
}
"""By unit: the suffixes that a number may have, and how much one of the kernel's units is."""
_UNSCALED: Final[tuple[Mapping[str, int], int]] = ({}, 1)
_FIGURE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z/%]*)")


def clamped(knob: str, value: int) -> tuple[int, str]:
    """Return the nearest value within the bounds, and a note if it is another one.

    Raises KeyError for a knob that is not in `BOUNDS`: it cannot be written.
    """
    bounds = BOUNDS[knob]
    within = min(bounds.high, max(bounds.low, value))
    if within == value:
        return within, ""
    return within, f"{value} was requested, the limit is {within}: {bounds.why}"


def parse_figure(knob: str, text: str) -> int:
    """Parse a value with a unit into the kernel's unit; a bare number has that unit already.

    Raises ValueError, which says what may be written.
    """
    unit = BY_NAME[knob].unit
    suffixes, own = _SUFFIXES.get(unit, _UNSCALED)
    match = _FIGURE.fullmatch(text.strip())
    factor = suffixes.get(match[2]) if match else None
    if match is None or (match[2] and factor is None):
        known = f", or one with {', '.join(suffixes)}" if suffixes else ""
        raise ValueError(f"{text!r} is not a value of {knob}: write a number of {unit}{known}")
    exact = float(match[1]) * (own if factor is None else factor) / own
    if exact != int(exact):
        raise ValueError(f"{text} is not a whole number of {unit}")
    return int(exact)


def format_value(knob: str, value: int) -> str:
    """Return a value with its unit, for people: `4 MiB`, `10 MiB/s`, `20%`."""
    unit = BY_NAME[knob].unit
    if unit is KnobUnit.PERCENT:
        return f"{value}%"
    suffixes, own = _SUFFIXES.get(unit, _UNSCALED)
    if suffixes is DURATIONS:
        return format_ns(value * own)
    if suffixes is _RATES:
        return format_rate(value * own)
    return format_bytes(value * own) if suffixes is SIZES else str(value)


def format_range(knob: str) -> str:
    """Return the allowed range, for people."""
    bounds = BOUNDS[knob]
    return f"{format_value(knob, bounds.low)} to {format_value(knob, bounds.high)}"
