# SPDX-License-Identifier: GPL-2.0-only
"""All signals of a volume at one time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ebbgate.model.heat import HeatPeriod, VolumeLayout
from ebbgate.model.power import NOT_ASKED, DiskPower
from ebbgate.model.records import Direction, Histogram
from ebbgate.model.volume import NO_USERS, DiskUsers


class Regime(StrEnum):
    """The kind of load, for people."""

    UNKNOWN = "unknown"
    GAP = "gap"
    BURST = "burst"
    STREAM = "stream"
    LIGHT = "light"


@dataclass(frozen=True, slots=True)
class Rates:
    """Users' load in one direction over the frame's window."""

    iops: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class PathLatency:
    """Latency of one path over the frame's window, at the volume; None without requests.

    `counts`: the histogram, in the probe's buckets (`signals.histogram`).
    """

    ios: int
    bytes: int
    p50_ns: int | None
    p99_ns: int | None
    counts: Histogram = ()


@dataclass(frozen=True, slots=True)
class Disturbance:
    """How users felt the write-back of a gap.

    - `gap_end_ns`: the first probe record after the gap.
    - `destage_bytes_per_s`: how fast the gap wrote back.
    - `felt_ns`: how much longer the first requests after it took on average than like requests
      take otherwise; None where there was nothing to compare with.
    """

    gap_end_ns: int
    destage_bytes_per_s: float
    felt_ns: int | None


@dataclass(frozen=True, slots=True)
class FlowRates:
    """Mean rates over some seconds, in which the page cache flushes once.

    - `dirty_in_bytes_per_s`: of writes that the cache took as dirty data.
    - `through_bytes_per_s`: of writes that went through it, to the backing device.
    - `destage_bytes_per_s`: of write-back.
    """

    dirty_in_bytes_per_s: float
    through_bytes_per_s: float
    destage_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class DaemonFacts:
    """What the daemon knows besides the probe's records and the volume's files.

    `layout`: who owns the chunks of the volume; None until it was read.
    """

    foreign_knobs: frozenset[str] = frozenset()
    disk_users: DiskUsers = NO_USERS
    power: DiskPower = NOT_ASKED
    layout: VolumeLayout | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything that is known of a volume at `at_ns`. What is unknown is None and in `missing`.

    - `probed_at_ns`: the time of the probe's record in it; None without a fresh one.
    - `window_ns`: the time that rates and path latencies cover.
    - `idle_ns`: time since users' last request; 0 while one is in flight.
    - `run_bytes`: bytes by log2 run length, decayed over minutes; `run_delta_bytes`: in the window.
    - `gap_destage_bytes`: what of the destage in the window a gap began.
    - `dirty_room_bytes`: how much more dirty data the kernel takes before it stops caching writes.
    - `flows`: mean rates of dirty data; None where one of them is unknown.
    - `disturbance`: of the last gap that wrote back and could be judged.
    - `promotions`: of dm-cache, since its table was loaded.
    - `cache_written_bytes`: written to the devices of the cache since boot, by whomever.
    - `disk_write_cache`: a hard disk below has a volatile write cache, as the kernel knows it.
    - `heat`: where users missed the cache, in the last period of 10 s for which the probe told.
    - `layout`: who owns the chunks of the volume; None until it was read.
    - `backing_power`: whether the disks below turn; asked for every 30 s at most.
    - `foreign_knobs`: knobs that ebbgate leaves alone: manual, set by a person, or refused.
    - `disk_users`: what else is on the disks below the volume.
    - `missing`: signal -> why it is unknown.
    """

    volume: str
    at_ns: int
    probed_at_ns: int | None = None
    window_ns: int = 0
    idle: bool | None = None
    idle_ns: int | None = None
    foreground: Mapping[Direction, Rates] | None = None
    in_flight_ios: int | None = None
    run_bytes: Mapping[Direction, Histogram] = field(default_factory=dict)
    run_delta_bytes: Mapping[Direction, Histogram] = field(default_factory=dict)
    gap_counts: tuple[float, ...] = ()
    paths: Mapping[tuple[Direction, str], PathLatency] = field(default_factory=dict)
    bypass_bytes: Mapping[str, int] = field(default_factory=dict)
    backing_depth_ios: int | None = None
    backing_busy_foreground_ratio: float | None = None
    destage_in_flight_ios: int | None = None
    destage_bytes_per_s: float | None = None
    gap_destage_bytes: int | None = None
    dirty_in_bytes_per_s: float | None = None
    flows: FlowRates | None = None
    dirty_bytes: int | None = None
    cache_bytes: int | None = None
    dirty_ratio: float | None = None
    in_use_ratio: float | None = None
    dirty_room_bytes: int | None = None
    time_to_full_s: float | None = None
    time_to_clean_s: float | None = None
    disturbance: Disturbance | None = None
    promotions: int | None = None
    cache_written_bytes: int | None = None
    disk_write_cache: bool = False
    heat: HeatPeriod | None = None
    layout: VolumeLayout | None = None
    backing_power: DiskPower = NOT_ASKED
    cache_mode: str | None = None
    state: str | None = None
    regime: Regime = Regime.UNKNOWN
    knobs: Mapping[str, str] = field(default_factory=dict)
    foreign_knobs: frozenset[str] = frozenset()
    disk_users: DiskUsers = NO_USERS
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def flows_known(self) -> bool:
        """Whether a forecast that is None is known never to come; else its rates are unknown."""
        return self.dirty_in_bytes_per_s is not None and self.destage_bytes_per_s is not None

    def worst_p99_ns(self, direction: Direction) -> int | None:
        """Return the p99 of the slowest path with requests; None without any.

        This is an upper bound of the p99 over all paths, which those of the paths do not give.
        """
        found = [
            path.p99_ns
            for (way, _), path in self.paths.items()
            if way is direction and path.p99_ns is not None
        ]
        return max(found) if found else None

    def p99_ns(self, direction: Direction, path: str) -> int | None:
        """Return the p99 of one path; None without requests on it."""
        latency = self.paths.get((direction, path))
        return None if latency is None else latency.p99_ns

    @property
    def disturbance_ns(self) -> int | None:
        """How much longer requests took on average right after the last gap with write-back."""
        return self.disturbance.felt_ns if self.disturbance else None

    @property
    def read_hit_ratio(self) -> float | None:
        """Share of reads (0..1) served from the cache alone; None without reads."""
        ios = {path: each.ios for (way, path), each in self.paths.items() if way is Direction.READ}
        total = sum(ios.values())
        return ios.get("hit", 0) / total if total else None
