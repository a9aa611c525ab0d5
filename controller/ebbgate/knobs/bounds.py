# SPDX-License-Identifier: GPL-2.0-only
"""Every knob that ebbgate may write, with its hard bounds; and what it never writes. Pure.

The bounds hold whatever a strategy, a rule or a person asks for; a value of a strategy outside them
is moved to the nearest bound, and the outcome says so. A person's is refused (knobs.settable).
Each strategy bounds its own steps: the pace asks for at most 1.8 times what the disk just did
(strategies.pace), a cutoff for streams stays for at least 3 s (strategies.stream_bypass), and all
else is set once and put back. A close goes all the way at once, since a request waits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ebbgate.knobs.dm_cache import FLUSH, MAX_SECTORS, THRESHOLD
from ebbgate.signals.kernel_sleep import DELAY
from ebbgate.units import (
    DURATIONS,
    KIB,
    NS_PER_S,
    NS_PER_US,
    SECTOR_BYTES,
    SIZES,
    format_bytes,
    format_ns,
    format_rate,
)

PERCENT: Final = "writeback_percent"
RATE: Final = "writeback_rate"
RUNNING: Final = "writeback_running"
CUTOFF: Final = "sequential_cutoff"
CONGESTED: Final = ("congested_read_threshold_us", "congested_write_threshold_us")
TRIGGER_GC: Final = "trigger_gc"
KERNEL_WRITES: Final = frozenset({RATE})
"""Knobs that the kernel itself changes: a foreign value is no sign of an administrator."""
TRIGGERS: Final = frozenset({RUNNING, TRIGGER_GC, FLUSH})
"""Writes that start something and leave no value behind: nothing to journal."""


class KnobUnit(StrEnum):
    """What the kernel counts a knob in."""

    PERCENT = "percent"
    BYTES = "bytes"
    KIB = "KiB"
    SECTORS = "sectors of 512 bytes"
    SECTORS_PER_S = "sectors of 512 bytes a second"
    SECONDS = "seconds"
    MICROSECONDS = "microseconds"
    FLAG = "0 or 1"


_RATES: Final = {f"{name}/s": factor for name, factor in SIZES.items()}
_SUFFIXES: Final[Mapping[KnobUnit, tuple[Mapping[str, int], int]]] = {
    KnobUnit.PERCENT: ({"%": 1}, 1),
    KnobUnit.BYTES: (SIZES, 1),
    KnobUnit.KIB: (SIZES, KIB),
    KnobUnit.SECTORS: (SIZES, SECTOR_BYTES),
    KnobUnit.SECTORS_PER_S: (_RATES, SECTOR_BYTES),
    KnobUnit.SECONDS: (DURATIONS, NS_PER_S),
    KnobUnit.MICROSECONDS: (DURATIONS, NS_PER_US),
    KnobUnit.FLAG: ({}, 1),
}
"""By unit: what may stand behind a number, and how much of it the kernel's own unit is."""
_FIGURE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z/%]*)")


@dataclass(frozen=True, slots=True)
class Bound:
    """`low`, `high`: in `unit`, as the kernel takes it. `interval_ns`: the shortest time between
    two writes, whatever a strategy asks for; 0 for a gate, whose close a request waits for. A
    restore never waits.
    """

    low: int
    high: int
    unit: KnobUnit
    why: str
    source: str
    interval_ns: int = 0


_KERNEL_CLAMP: Final = "the kernel's own range"
BOUNDS: Final[Mapping[str, Bound]] = {
    PERCENT: Bound(
        0,
        40,
        KnobUnit.PERCENT,
        "above it no write is cached",
        "bcache/sysfs.c, bch_cutoff_writeback",
    ),
    RATE: Bound(
        1,
        1 << 30,
        KnobUnit.SECTORS_PER_S,
        "0 is no rate; above it the sum overflows",
        "bcache/util.c",
    ),
    CUTOFF: Bound(
        64 * KIB,
        (1 << 32) - 1,
        KnobUnit.BYTES,
        "0 stops the detector, 1 to 511 bypass everything, and less than 64 KiB bypasses ordinary "
        "requests",
        "bcache/request.c, check_should_bypass",
        NS_PER_S,
    ),
    DELAY: Bound(
        0,
        3600,
        KnobUnit.SECONDS,
        "a sleep that nothing ends",
        "bcache/writeback.c, writeback_delay",
    ),
    "writeback_rate_update_seconds": Bound(
        1, 60, KnobUnit.SECONDS, _KERNEL_CLAMP, "bcache/writeback.h, WRITEBACK_RATE_UPDATE_SECS_MAX"
    ),
    "idle_max_writeback_rate": Bound(0, 1, KnobUnit.FLAG, "a switch", "bcache/sysfs.c"),
    CONGESTED[0]: Bound(
        0, 10_000_000, KnobUnit.MICROSECONDS, "10 s is for ever", "bcache/io.c", NS_PER_S
    ),
    CONGESTED[1]: Bound(
        0, 10_000_000, KnobUnit.MICROSECONDS, "10 s is for ever", "bcache/io.c", NS_PER_S
    ),
    RUNNING: Bound(
        1, 1, KnobUnit.FLAG, "0 would stop destage for good; a 1 wakes its thread", "bcache/sysfs.c"
    ),
    TRIGGER_GC: Bound(
        1, 1, KnobUnit.FLAG, "any write collects garbage", "bcache/sysfs.c", NS_PER_S
    ),
    THRESHOLD: Bound(
        0,
        1 << 20,
        KnobUnit.SECTORS,
        "512 MiB under way keep a disk busy for seconds",
        "dm-cache-target.c, spare_migration_bandwidth",
    ),
    MAX_SECTORS: Bound(
        16,
        1 << 20,
        KnobUnit.KIB,
        "shorter requests cost more than they keep out",
        "block/blk-sysfs.c, queue_max_sectors_store",
        NS_PER_S,
    ),
}
INTERVAL_NS_MIN: Final[Mapping[str, int]] = {
    knob: bound.interval_ns for knob, bound in BOUNDS.items() if bound.interval_ns
}

NEVER: Final[Mapping[str, str]] = {
    "attach": "puts a cache under a volume that is in use",
    "detach": "throws away all that is cached",
    "stop": "ends the volume or the cache set",
    "unregister": "ends the cache set",
    "flash_vol_create": "makes a volume out of the cache",
    "io_disable": "makes every request fail",
    "synchronous": "0 makes the cache start empty, its dirty data lost",
    "errors": "may halt the machine at an error of the cache",
    "io_error_limit": "ends the cache set at its first error when it is 0",
    "io_error_halflife": "decides when errors end the cache set",
    "stop_when_cache_set_failed": "decides whether data without its cache may be written",
    "discard": "stalls writers at every bucket that is freed, and persists",
    "copy_gc_enabled": "copies buckets about on the SSD without need",
    "cache_mode": "decides what a dead SSD costs: the administrator's alone, and it persists",
    "cache_replacement_policy": "persists in the superblock of the SSD",
    "label": "writes the superblock of the disk",
    "running": "starts a volume without its cache",
    "clear_stats": "takes the counters from whoever watches them",
    "cutoff_writeback": "is a parameter of the module, and may deadlock when changed",
    "cutoff_writeback_sync": "is a parameter of the module, and may deadlock when changed",
    "cache_copy_throttle": "holds up every dm-cache device of the machine",
    "invalidate_cblocks": "throws away what is cached",
}
"""Knob -> why nothing of ebbgate writes it, whoever asks (bcache/sysfs.c, super.c; dm-cache)."""


def clamped(knob: str, value: int) -> tuple[int, str]:
    """The nearest value within the bounds, and what to say where that is another; else nothing.

    Raises KeyError for a knob that is not in `BOUNDS`: it cannot be written.
    """
    bound = BOUNDS[knob]
    within = min(bound.high, max(bound.low, value))
    said = "" if within == value else f"{value} was asked for, the bound is {within}: {bound.why}"
    return within, said


def parse_figure(knob: str, text: str) -> int:
    """What a person wrote, in the kernel's unit; a bare number is in that unit already.

    Raises ValueError, which says what may be written.
    """
    suffixes, own = _SUFFIXES[BOUNDS[knob].unit]
    match = _FIGURE.fullmatch(text.strip())
    factor = suffixes.get(match[2]) if match else None
    if match is None or (match[2] and factor is None):
        raise ValueError(f"{text!r} is no value of {knob}: write {_forms(knob)}")
    exact = float(match[1]) * (own if factor is None else factor) / own
    if exact != int(exact):
        raise ValueError(f"{text} is no whole number of {BOUNDS[knob].unit}")
    return int(exact)


def format_value(knob: str, value: int) -> str:
    """A value with its unit, for people: `4 MiB`, `10 MiB/s`, `20%`."""
    unit = BOUNDS[knob].unit
    if unit is KnobUnit.PERCENT:
        return f"{value}%"
    if unit is KnobUnit.FLAG:
        return str(value)
    count = value * _SUFFIXES[unit][1]
    if unit is KnobUnit.SECTORS_PER_S:
        return format_rate(count)
    return (
        format_ns(count)
        if unit in (KnobUnit.SECONDS, KnobUnit.MICROSECONDS)
        else format_bytes(count)
    )


def format_range(knob: str) -> str:
    """The range that is allowed, for people."""
    bound = BOUNDS[knob]
    return f"{format_value(knob, bound.low)} to {format_value(knob, bound.high)}"


def _forms(knob: str) -> str:
    unit = BOUNDS[knob].unit
    known = ", ".join(_SUFFIXES[unit][0])
    return f"a number of {unit}" + (f", or one with {known}" if known else "")
