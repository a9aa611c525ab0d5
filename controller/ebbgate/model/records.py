# SPDX-License-Identifier: GPL-2.0-only
"""The records of a probe (bpf/README.md documents the protocol). Pure.

Counters are cumulative since the volume was tracked; times are CLOCK_MONOTONIC nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ebbgate.model.attribution import AttributionPeriod
from ebbgate.model.heat import HeatPeriod

PROTOCOL_VERSION = 1

Histogram = tuple[int, ...]
"""Counts by bucket; trailing zeros may be missing."""


class Direction(StrEnum):
    """The direction of a request for its issuer."""

    READ = "read"
    WRITE = "write"


class EdgeKind(StrEnum):
    """`idle`: nothing was in flight or arrived for the wait; `busy`: the first arrival after."""

    IDLE = "idle"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Flow:
    """Requests and bytes of one class."""

    ios: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class TimedFlow:
    """Requests, bytes and a latency histogram (log-linear, see `signals.histogram`)."""

    ios: int = 0
    bytes: int = 0
    latency: Histogram = ()


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Foreground requests that arrived at the volume in one direction."""

    ios: int = 0
    bytes: int = 0
    sync_ios: int = 0


@dataclass(frozen=True, slots=True)
class Hello:
    """The first record of a probe: its identity and the signals that this kernel provides."""

    at_ns: int
    protocol: int
    probe: str
    version: str
    boot_id: str
    signals: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Tick:
    """All counters of one volume at one time.

    - `backing_depth_ios`: requests issued to the backing device and not completed; None if the
      kernel does not count them.
    - `backing_latency`: of users' requests at the backing device.
    """

    volume: str
    at_ns: int
    arrivals: Mapping[Direction, Arrivals]
    in_flight_ios: Mapping[Direction, int]
    idle: bool
    last_activity_ns: int
    run_bytes: Mapping[Direction, Histogram]
    gap_counts: Histogram
    gap_sums_ns: Histogram
    paths: Mapping[tuple[Direction, str], TimedFlow]
    bypass: Mapping[str, Flow]
    backing_depth_ios: int | None
    backing_latency: Mapping[Direction, Histogram]
    destage_queued: Flow
    destage_done: Flow
    lost: Mapping[str, int]
    destage_in_flight_ios: int | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A change between idle and busy. `length_ns`: of the gap that ended, or idle time so far."""

    volume: str
    at_ns: int
    kind: EdgeKind
    length_ns: int


@dataclass(frozen=True, slots=True)
class QueueSample:
    """The destage under way at one time, while pacing.

    `in_flight_ios`: writes queued at the backing device and not completed. `done_*`: cumulative.
    `cache_reads_ios`: still being read from the cache device. `awaiting_write_ios`: read and not
    yet sent to the backing device.
    """

    volume: str
    at_ns: int
    in_flight_ios: int
    done_ios: int
    done_bytes: int
    cache_reads_ios: int = 0
    awaiting_write_ios: int = 0

    @property
    def under_way_ios(self) -> int:
        """Pieces that were begun: all of them reach the disk, even if the gate closes now."""
        return self.in_flight_ios + self.cache_reads_ios + self.awaiting_write_ios


@dataclass(frozen=True, slots=True)
class ReuseSamples:
    """References to sampled blocks of 4 KiB, in their order (bpf/reuse.h tells which are sampled).

    Each is twice the number of its block, plus 1 for a write.
    """

    volume: str
    at_ns: int
    references: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HeatRecord:
    """Where users missed the cache since the record before."""

    volume: str
    at_ns: int
    period: HeatPeriod


@dataclass(frozen=True, slots=True)
class AttributionRecord:
    """Whose requests missed the cache since the record before."""

    volume: str
    at_ns: int
    period: AttributionPeriod


@dataclass(frozen=True, slots=True)
class Tracked:
    """The probe follows this volume from now on.

    `destage_missing`: why the probe cannot distinguish destage from users' requests, or empty.
    """

    volume: str
    at_ns: int
    destage_missing: str = ""


@dataclass(frozen=True, slots=True)
class TrackRefused:
    """The probe cannot follow this volume; `why` says what to do."""

    volume: str
    at_ns: int
    why: str


@dataclass(frozen=True, slots=True)
class Untracked:
    """The probe no longer follows this volume; `why` is `requested` or `vanished`."""

    volume: str
    at_ns: int
    why: str


@dataclass(frozen=True, slots=True)
class ProbeWarning:
    """Something that the probe lost, refused or reports; `count` is cumulative."""

    at_ns: int
    what: str
    count: int
    text: str


@dataclass(frozen=True, slots=True)
class SignalsChanged:
    """What `Hello` said of the signals holds no more: a module was loaded since."""

    at_ns: int
    signals: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bye:
    """The last record of a probe that ends normally."""

    at_ns: int
    why: str


Record = (
    Hello
    | Tick
    | Edge
    | QueueSample
    | ReuseSamples
    | HeatRecord
    | AttributionRecord
    | Tracked
    | TrackRefused
    | Untracked
    | ProbeWarning
    | SignalsChanged
    | Bye
)
