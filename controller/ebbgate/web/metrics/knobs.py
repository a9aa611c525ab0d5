# SPDX-License-Identifier: GPL-2.0-only
"""Knobs as numbers in base units. Pure.

Only what is listed here becomes a metric, so that a new file of the kernel makes no new series.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ebbgate.units import KIB, SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Measure:
    """`unit` in the plural, as the metrics' names have it; empty: a plain number. `scale`: one of
    the kernel's in it.
    """

    unit: str
    scale: float = 1.0


_PERCENT: Final = Measure("ratio", 0.01)
_RATE: Final = Measure("bytes_per_second", SECTOR_BYTES)
_SECONDS: Final = Measure("seconds")
_MICROSECONDS: Final = Measure("seconds", 1e-6)
_SWITCH: Final = Measure("")
MEASURES: Final[Mapping[str, Measure]] = {
    "sequential_cutoff": Measure("bytes"),
    "writeback_percent": _PERCENT,
    "writeback_rate": _RATE,
    "writeback_rate_minimum": _RATE,
    "writeback_rate_update_seconds": _SECONDS,
    "writeback_delay": _SECONDS,
    "writeback_running": _SWITCH,
    "congested_read_threshold_us": _MICROSECONDS,
    "congested_write_threshold_us": _MICROSECONDS,
    "journal_delay_ms": Measure("seconds", 1e-3),
    "idle_max_writeback_rate": _SWITCH,
    "gc_after_writeback": _SWITCH,
    "cutoff_writeback": _PERCENT,
    "cutoff_writeback_sync": _PERCENT,
    "migration_threshold": Measure("bytes", SECTOR_BYTES),
    "max_sectors_kb": Measure("bytes", KIB),
}


def knob_number(knob: str, text: object) -> tuple[str, float] | None:
    """Unit and value of what the kernel takes; None for what is no number or not listed."""
    measure = MEASURES.get(knob)
    if measure is None or not isinstance(text, str):
        return None
    try:
        return measure.unit, int(text) * measure.scale
    except ValueError:
        return None
