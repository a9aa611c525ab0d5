# SPDX-License-Identifier: GPL-2.0-only
"""Converts between quantities of the kernel, of messages and of people. Pure.

The core counts in bytes and nanoseconds. Sectors (512 B) exist only where the kernel speaks them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

SECTOR_BYTES: Final = 512
KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

NS_PER_US: Final = 1_000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000
MINUTE_NS: Final = 60 * NS_PER_S
HOUR_NS: Final = 60 * MINUTE_NS
DAY_NS: Final = 24 * HOUR_NS

INT64_MAX: Final = (1 << 63) - 1
"""The largest number that SQLite keeps."""

_TWO_DIGITS: Final = 10
_THREE_DIGITS: Final = 100
_BYTE_SUFFIXES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
# bcache's own letters (bch_hprint in drivers/md/bcache/util.c): one letter, powers of 1024.
_HPRINT_LETTERS: Final = "kMGTPEZY"
_HPRINT: Final = re.compile(r"^(-?[0-9]{1,20}(?:\.[0-9]{1,9})?)([kMGTPEZY]?)$")
SIZES: Final[Mapping[str, int]] = {
    suffix: 1024**power for power, suffix in enumerate(_BYTE_SUFFIXES[:-1])
}
"""Units of sizes that people write, in bytes."""
DURATIONS: Final[Mapping[str, int]] = {
    "ns": 1,
    "us": NS_PER_US,
    "ms": NS_PER_MS,
    "s": NS_PER_S,
    "min": MINUTE_NS,
    "h": HOUR_NS,
    "d": DAY_NS,
}
"""Units of durations, in nanoseconds."""
_FIGURE: Final = re.compile(r"^([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([A-Za-z]+)$")


def sectors_to_bytes(sectors: int) -> int:
    """Convert 512-byte sectors to bytes."""
    return sectors * SECTOR_BYTES


def bytes_to_sectors(count_bytes: int) -> int:
    """Convert bytes to 512-byte sectors, rounded down."""
    return count_bytes // SECTOR_BYTES


def parse_hprint(text: str) -> int:
    """Parse bytes as bcache prints them for humans: `4.0M`, `512`, `0.9T`.

    The kernel prints one decimal, so the result is exact to 5 % at worst (`1.0k` may be 1.09k).
    Raises ValueError on anything else.
    """
    match = _HPRINT.match(text.strip())
    if match is None:
        raise ValueError(f"not a size as bcache prints it: {text!r}")
    number, letter = match.groups()
    scale = 1024 ** (_HPRINT_LETTERS.index(letter) + 1) if letter else 1
    return round(float(number) * scale)


def parse_duration_ns(text: str) -> int:
    """Parse nanoseconds from `300ms`, `2.5 s`, `5min`. Raises ValueError with the known units."""
    return _parse(text, DURATIONS, "duration")


def parse_size_bytes(text: str) -> int:
    """Parse bytes from `64MiB`, `1.5 GiB`. Raises ValueError with the known units."""
    return _parse(text, SIZES, "size")


def _parse(text: str, factors: Mapping[str, int], what: str) -> int:
    match = _FIGURE.match(text.strip())
    if match is None or match[2] not in factors:
        *most, last = factors
        known = f"{', '.join(most)} or {last}"
        raise ValueError(f"not a {what}: {text!r}; write a number and {known}")
    return round(float(match[1]) * factors[match[2]])


def doubled(value: int, times: int, most: int) -> int:
    """Return a value doubled so many times, `most` at most: the wait until the next try."""
    return min(most, value << min(times, 64))


def format_bytes(count_bytes: float) -> str:
    """Format bytes: `64 KiB`, `1.5 GiB`; three significant digits at most."""
    value = float(count_bytes)
    for suffix in _BYTE_SUFFIXES:
        if abs(value) < KIB or suffix == _BYTE_SUFFIXES[-1]:
            return f"{_short(value)} {suffix}"
        value /= KIB
    raise AssertionError("unreachable")


def format_rate(bytes_per_s: float) -> str:
    """Format a rate: `12.5 MiB/s`."""
    return f"{format_bytes(bytes_per_s)}/s"


def format_ns(duration_ns: float) -> str:
    """Format a duration: `410 ms`, `2.5 s`, `4 min`."""
    value = float(duration_ns)
    if value == 0:
        return "0 s"
    if abs(value) < NS_PER_US:
        return f"{_short(value)} ns"
    if abs(value) < NS_PER_MS:
        return f"{_short(value / NS_PER_US)} us"
    if abs(value) < NS_PER_S:
        return f"{_short(value / NS_PER_MS)} ms"
    if abs(value) < 2 * MINUTE_NS:
        return f"{_short(value / NS_PER_S)} s"
    if abs(value) < 2 * HOUR_NS:
        return f"{_short(value / MINUTE_NS)} min"
    return f"{_short(value / HOUR_NS)} h"


def format_ratio(ratio: float) -> str:
    """Format a ratio (0..1): `34%`, `3.4%`."""
    percent = ratio * 100
    return f"{percent:.0f}%" if abs(percent) >= _TWO_DIGITS or percent == 0 else f"{percent:.1f}%"


def _short(value: float) -> str:
    if value == int(value) or abs(value) >= _THREE_DIGITS:
        return f"{value:.0f}"
    return f"{value:.1f}"
