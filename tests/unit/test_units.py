# SPDX-License-Identifier: GPL-2.0-only
"""Conversions: the kernel's figures are read as meant, those for people are short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate import units
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS, NS_PER_S, NS_PER_US


@pytest.mark.parametrize(
    ("text", "count_bytes"),
    [
        ("0", 0),
        ("512", 512),
        ("4.0k", 4 * KIB),
        ("4.0M", 4 * MIB),
        ("0.9T", round(0.9 * 1024 * GIB)),
        ("-1.5M", -3 * MIB // 2),
        (" 420.0M\n", 420 * MIB),
    ],
)
def test_a_size_as_bcache_prints_it(text: str, count_bytes: int) -> None:
    assert units.parse_hprint(text) == count_bytes


@pytest.mark.parametrize(
    "text",
    ["", "k", "4.0MB", "4 M", "0x10", "1.5m", "4,0k", "none", "4.0M/s", "9" * 400, "\u0663M"],
)
def test_other_text_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        units.parse_hprint(text)


@given(st.integers(min_value=0, max_value=1 << 50))
def test_a_size_survives_the_kernels_rounding_within_10_percent(count_bytes: int) -> None:
    # bch_hprint cuts to one decimal: 1.0k may be up to 1.09k.
    value, letter = float(count_bytes), ""
    for each in "kMGTPEZY":
        if value < 1024:
            break
        value, letter = value / 1024, each
    cut = int(value * 10) / 10
    text = f"{cut:.1f}{letter}" if letter else str(count_bytes)
    assert units.parse_hprint(text) == pytest.approx(count_bytes, rel=0.1)


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [
        ("300ms", 300 * NS_PER_MS),
        ("2.5 s", 5 * NS_PER_S // 2),
        ("5min", 300 * NS_PER_S),
        ("1h", 3600 * NS_PER_S),
        ("30d", 30 * 24 * 3600 * NS_PER_S),
        ("7us", 7 * NS_PER_US),
        ("9ns", 9),
    ],
)
def test_a_duration(text: str, duration_ns: int) -> None:
    assert units.parse_duration_ns(text) == duration_ns


@pytest.mark.parametrize(
    "text", ["", "5", "ms", "-5ms", "5 minutes", "1e3s", "5m", "9" * 400 + "h"]
)
def test_no_duration_names_the_known_units(text: str) -> None:
    with pytest.raises(ValueError, match="ns, us, ms, s, min, h or d"):
        units.parse_duration_ns(text)


@pytest.mark.parametrize(
    ("count_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (KIB, "1 KiB"),
        (1.5 * GIB, "1.5 GiB"),
        (420 * MIB, "420 MiB"),
        (2048 * 1024**5, "2048 PiB"),
        (-3 * MIB, "-3 MiB"),
    ],
)
def test_bytes_for_people(count_bytes: float, text: str) -> None:
    assert units.format_bytes(count_bytes) == text
    assert units.format_rate(count_bytes) == f"{text}/s"


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 s"),
        (999, "999 ns"),
        (1500, "1.5 us"),
        (410 * NS_PER_MS, "410 ms"),
        (2.5 * NS_PER_S, "2.5 s"),
        (119 * NS_PER_S, "119 s"),
        (240 * NS_PER_S, "4 min"),
        (7200 * NS_PER_S, "2 h"),
    ],
)
def test_durations_for_people(duration_ns: float, text: str) -> None:
    assert units.format_ns(duration_ns) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.0, "0%"), (0.034, "3.4%"), (0.34, "34%"), (1.0, "100%"), (0.0004, "0.0%")],
)
def test_ratios_for_people(ratio: float, text: str) -> None:
    assert units.format_ratio(ratio) == text


@given(st.integers(min_value=0, max_value=1 << 60))
def test_sectors_and_bytes_are_inverse(sectors: int) -> None:
    assert units.bytes_to_sectors(units.sectors_to_bytes(sectors)) == sectors
    assert units.bytes_to_sectors(units.sectors_to_bytes(sectors) + 511) == sectors


@pytest.mark.parametrize(
    ("text", "count_bytes"),
    [("256MiB", 256 * MIB), ("1.5 GiB", 3 * GIB // 2), ("0B", 0), ("4 KiB", 4 * KIB)],
)
def test_a_size_as_people_write_it(text: str, count_bytes: int) -> None:
    assert units.parse_size_bytes(text) == count_bytes


@pytest.mark.parametrize("text", ["", "256", "256MB", "-1MiB", "MiB", "1,5 GiB"])
def test_no_size_names_the_known_units(text: str) -> None:
    with pytest.raises(ValueError, match="write a number and B, KiB, MiB, GiB or TiB"):
        units.parse_size_bytes(text)
