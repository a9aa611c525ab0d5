# SPDX-License-Identifier: GPL-2.0-only
"""Figures with units as in policy files: `64MiB/s`, `30ms`, `40%`. Pure.

A figure without a unit is refused, since a bare 30 may be milliseconds or seconds; only 0 needs
none. For an unknown unit the error names the nearest one.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from typing import Final

from ebbgate import units


class SignalUnit(StrEnum):
    """The unit of a figure; internally always the base unit.

    `size`: bytes; `rate`: bytes per second; `duration`: nanoseconds; `ratio`: 0..1; `count`: a
    number; `iops`: requests per second; `endurance`: writes of the whole device per day.
    """

    SIZE = "size"
    RATE = "rate"
    DURATION = "duration"
    RATIO = "ratio"
    COUNT = "count"
    IOPS = "iops"
    ENDURANCE = "endurance"


FACTORS: Final[Mapping[SignalUnit, Mapping[str, float]]] = {
    SignalUnit.SIZE: units.SIZES,
    SignalUnit.RATE: {f"{name}/s": factor for name, factor in units.SIZES.items()},
    SignalUnit.DURATION: units.DURATIONS,
    SignalUnit.RATIO: {"%": 0.01},
    SignalUnit.COUNT: {"": 1},
    SignalUnit.IOPS: {"/s": 1},
    SignalUnit.ENDURANCE: {"DWPD": 1},
}
"""By unit, the suffixes of a number and their factors to the base unit."""

EXAMPLES: Final[Mapping[SignalUnit, str]] = {
    SignalUnit.SIZE: "64MiB",
    SignalUnit.RATE: "20MiB/s",
    SignalUnit.DURATION: "300ms",
    SignalUnit.RATIO: "40%",
    SignalUnit.COUNT: "4",
    SignalUnit.IOPS: "50/s",
    SignalUnit.ENDURANCE: "0.3 DWPD",
}
_WHOLE: Final = frozenset({SignalUnit.SIZE, SignalUnit.RATE, SignalUnit.DURATION})
"""Measured in whole bytes and nanoseconds; what people write may be between two of them."""
_FIGURE: Final = re.compile(r"^(-?[0-9]{1,15}(?:\.[0-9]{1,9})?) *([A-Za-zµμ/%]*)$")
# Common spellings that difflib does not find, or takes for another unit.
_MEANT: Final = {
    spelling: name
    for name, spellings in {
        "us": ("µs", "μs", "usecs", "microsecond", "microseconds"),
        "ms": ("msec", "millisecond", "milliseconds"),
        "s": ("sec", "secs", "second", "seconds"),
        "min": ("m",),
        "h": ("hr", "hrs", "hour", "hours"),
        "d": ("day", "days"),
        "/s": ("iops",),
    }.items()
    for spelling in spellings
}
_PREFIXES: Final = {"k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB"}


class NotAQuantity(ValueError):
    """The error, the expected form, and the nearest unit or nothing."""

    def __init__(self, what: str, expected: str, nearest: str = "") -> None:
        super().__init__(f"{what}; {expected}")
        self.what = what
        self.expected = expected
        self.nearest = nearest


def parse_quantity(unit: SignalUnit, text: str) -> float:
    """Return the figure in its base unit, an integer if it has no fraction or can have none.

    Raises NotAQuantity.
    """
    match = _FIGURE.match(text.strip())
    if match is None:
        raise NotAQuantity(f"{text!r} is not a valid {unit}", expected(unit))
    number, suffix = match.groups()
    value = float(number)
    factor = FACTORS[unit].get(suffix)
    if factor is None:
        if value == 0 and not suffix:
            return 0
        what = f"{text!r} has no unit" if not suffix else f"{suffix!r} is not a unit of {unit}"
        raise NotAQuantity(what, expected(unit), nearest_unit(unit, suffix))
    if unit is SignalUnit.RATIO:
        return value / 100
    # A float is not exact: 2.05 s would be 2049999999.9999998 ns, and a size may need over 53 bits.
    exact = Fraction(number) * int(factor)
    if unit in _WHOLE or exact.denominator == 1:
        return round(exact)
    if unit is SignalUnit.COUNT:
        raise NotAQuantity(f"{text!r} is not a whole number", expected(unit))
    return float(exact)


def format_quantity(unit: SignalUnit, value: float) -> str:
    """Return it for people; an infinite duration is `never`."""
    if math.isinf(value):
        return "never"
    if unit is SignalUnit.SIZE:
        return units.format_bytes(value)
    if unit is SignalUnit.RATE:
        return units.format_rate(value)
    if unit is SignalUnit.DURATION:
        return units.format_ns(value)
    if unit is SignalUnit.RATIO:
        return units.format_ratio(value)
    if unit is SignalUnit.ENDURANCE:
        return spell(unit, value)
    return f"{value:.0f}/s" if unit is SignalUnit.IOPS else f"{value:.0f}"


def spell(unit: SignalUnit, value: float) -> str:
    """Return it as in policy files: the largest unit that leaves an integer."""
    if value == 0:
        return "0"
    if unit is SignalUnit.RATIO:
        return f"{value * 100:g}%"
    if unit is SignalUnit.ENDURANCE:
        return f"{value:g} DWPD"
    name, factor = next(iter(FACTORS[unit].items()))
    for larger, size in FACTORS[unit].items():
        if value % size == 0:
            name, factor = larger, size
    return f"{value / factor:.0f}{name}"


def expected(unit: SignalUnit) -> str:
    """Return the form of a figure of this unit, for error messages."""
    known = ", ".join(name for name in FACTORS[unit] if name)
    example = f"for example {EXAMPLES[unit]}"
    return f"write a number and {known}, {example}" if known else f"write a whole number, {example}"


def nearest_unit(unit: SignalUnit, suffix: str) -> str:
    """Return the unit that was probably meant; empty if none is near."""
    known = [name for name in FACTORS[unit] if name]
    if not suffix:
        return ""
    low = suffix.lower()
    guesses = [_MEANT.get(low, ""), _PREFIXES.get(low[0], ""), f"{_PREFIXES.get(low[0], '')}/s"]
    for guess in guesses:
        if guess in known:
            return guess
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(low, lowered, n=1, cutoff=0.4)
    return lowered[close[0]] if close else ""
