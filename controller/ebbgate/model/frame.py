# SPDX-License-Identifier: GPL-2.0-only
"""All signals of one volume at one instant. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ebbgate.model.records import Direction, Histogram


class Regime(StrEnum):
    """What the foreground load looks like, for people."""

    UNKNOWN = "unknown"
    GAP = "gap"
    BURST = "burst"
    STREAM = "stream"
    LIGHT = "light"


@dataclass(frozen=True, slots=True)
class Rates:
    """One direction of the foreground over the frame's window."""

    iops: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class PathLatency:
    """Latency of one path over the frame's window, as seen at the volume. None without requests.

    `counts`: the histogram, in the probe's buckets (`signals.histogram`).
    """

    ios: int
    bytes: int
    p50_ns: int | None
    p99_ns: int | None
    counts: Histogram = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything that is known of a volume at `at_ns`; what is not known is None and in `missing`.

    `probed_at_ns`: the time of the probe's record in it, None without a fresh one.
    `window_ns`: the time that rates and path latencies cover. `run_bytes`: bytes by log2 run
    length, decayed over the last minutes. `dirty_room_bytes`: what the kernel will still take as
    dirty data before it stops caching writes. `promotions`: of dm-cache, since its table was
    loaded. `missing`: signal -> why it is unknown.
    """

    volume: str
    at_ns: int
    probed_at_ns: int | None
    window_ns: int
    idle: bool | None
    idle_ns: int | None
    foreground: Mapping[Direction, Rates] | None
    in_flight_ios: int | None
    run_bytes: Mapping[Direction, Histogram] = field(default_factory=dict)
    run_delta_bytes: Mapping[Direction, Histogram] = field(default_factory=dict)
    gap_counts: tuple[float, ...] = ()
    paths: Mapping[tuple[Direction, str], PathLatency] = field(default_factory=dict)
    bypass_bytes: Mapping[str, int] = field(default_factory=dict)
    backing_depth_ios: int | None = None
    backing_busy_foreground_ratio: float | None = None
    destage_in_flight_ios: int | None = None
    destage_bytes_per_s: float | None = None
    dirty_in_bytes_per_s: float | None = None
    dirty_bytes: int | None = None
    cache_bytes: int | None = None
    dirty_ratio: float | None = None
    in_use_ratio: float | None = None
    dirty_room_bytes: int | None = None
    time_to_full_s: float | None = None
    time_to_clean_s: float | None = None
    promotions: int | None = None
    cache_mode: str | None = None
    state: str | None = None
    regime: Regime = Regime.UNKNOWN
    knobs: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
