# SPDX-License-Identifier: GPL-2.0-only
"""The signals of rules: name, unit, range, formula. Pure.

The table behind the language's checker, schema and reference. An unknown signal is None, never
zero (only `backing_state` has a word for it, since policies are written for disks that do not
report it, too); a forecast of what will not happen at the present rates is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ebbgate.model.frame import Frame, Regime
from ebbgate.model.records import Direction
from ebbgate.policy.quantity import SignalUnit
from ebbgate.units import NS_PER_S

Value = float | str
"""A figure in the signal's base unit, or a word."""

_READ, _WRITE = Direction.READ, Direction.WRITE


@dataclass(frozen=True, slots=True)
class Signal:
    """`unit`: None if it is one of `words`. `about`: one sentence. `formula`: its definition."""

    name: str
    unit: SignalUnit | None
    about: str
    formula: str
    of: Callable[[Frame], Value | None]
    words: tuple[str, ...] = ()


def _seconds(seconds: float | None, known: bool) -> float | None:
    """Return a forecast in nanoseconds; infinite if its rates are known and never reach it."""
    if seconds is not None:
        return seconds * NS_PER_S
    return math.inf if known else None


def _time_to_full_ns(frame: Frame) -> float | None:
    known = frame.flows_known and frame.dirty_room_bytes is not None
    return _seconds(frame.time_to_full_s, known)


def _time_to_clean_ns(frame: Frame) -> float | None:
    known = frame.flows_known and frame.dirty_bytes is not None
    return _seconds(frame.time_to_clean_s, known)


def _idle(frame: Frame) -> str | None:
    return None if frame.idle is None else "yes" if frame.idle else "no"


def _regime(frame: Frame) -> str | None:
    return None if frame.regime is Regime.UNKNOWN else str(frame.regime)


def _iops(direction: Direction) -> Callable[[Frame], float | None]:
    return lambda frame: frame.foreground[direction].iops if frame.foreground else None


def _rate(direction: Direction) -> Callable[[Frame], float | None]:
    return lambda frame: frame.foreground[direction].bytes_per_s if frame.foreground else None


def _path(direction: Direction, path: str) -> Callable[[Frame], float | None]:
    return lambda frame: frame.p99_ns(direction, path)


_ALL: Final = (
    Signal(
        "dirty_data",
        SignalUnit.SIZE,
        "Dirty data in the cache.",
        "as the kernel reports it (bcache: rounded to 5 %)",
        lambda frame: frame.dirty_bytes,
    ),
    Signal(
        "dirty_ratio",
        SignalUnit.RATIO,
        "Dirty data as a share of the cache.",
        "dirty_data / size of the cache",
        lambda frame: frame.dirty_ratio,
    ),
    Signal(
        "in_use_ratio",
        SignalUnit.RATIO,
        "Share of the cache's buckets or blocks in use, including clean ones.",
        "bcache: 100 % - cache_available_percent; dm-cache: used / total blocks",
        lambda frame: frame.in_use_ratio,
    ),
    Signal(
        "room",
        SignalUnit.SIZE,
        "Dirty data that the cache still takes before the kernel stops caching writes.",
        "bcache: size x (40 % or, for synchronous writes, 70 % - in_use_ratio); others: size x "
        "(100 % - dirty_ratio)",
        lambda frame: frame.dirty_room_bytes,
    ),
    Signal(
        "time_to_full",
        SignalUnit.DURATION,
        "Time until writes are no longer cached; `never` while the room does not shrink.",
        "room / (dirty_in_rate - destage_rate)",
        _time_to_full_ns,
    ),
    Signal(
        "time_to_clean",
        SignalUnit.DURATION,
        "Time until nothing is dirty; `never` while dirty data does not shrink.",
        "dirty_data / (destage_rate - dirty_in_rate)",
        _time_to_clean_ns,
    ),
    Signal(
        "dirty_in_rate",
        SignalUnit.RATE,
        "Rate of writes that the cache takes as dirty data.",
        "bytes on the path writeback / window",
        lambda frame: frame.dirty_in_bytes_per_s,
    ),
    Signal(
        "destage_rate",
        SignalUnit.RATE,
        "Rate of write-back: dirty data that reaches the backing device.",
        "bytes of write-back completed / window",
        lambda frame: frame.destage_bytes_per_s,
    ),
    Signal(
        "destage_in_flight",
        SignalUnit.COUNT,
        "Pieces of write-back under way.",
        "queued - completed",
        lambda frame: frame.destage_in_flight_ios,
    ),
    Signal(
        "disturbance",
        SignalUnit.DURATION,
        "How much longer requests took right after the last gap in which data was written back.",
        "mean of the first requests to the backing device - mean of like ones otherwise,"
        " both without the slowest tenth",
        lambda frame: frame.disturbance_ns,
    ),
    Signal(
        "idle",
        None,
        "Whether the volume has been idle for the learned wait.",
        "nothing in flight and no arrival since the wait began",
        _idle,
        ("yes", "no"),
    ),
    Signal(
        "idle_for",
        SignalUnit.DURATION,
        "Time since the last request of users.",
        "now - last arrival or completion; 0 while one is in flight",
        lambda frame: frame.idle_ns,
    ),
    Signal(
        "in_flight",
        SignalUnit.COUNT,
        "Users' requests in progress.",
        "arrived - completed",
        lambda frame: frame.in_flight_ios,
    ),
    Signal(
        "regime",
        None,
        "The kind of load.",
        "gap: idle; stream: at least half of the bytes in runs from 512 KiB; burst: at least 20"
        " requests per second; light: fewer",
        _regime,
        ("gap", "burst", "stream", "light"),
    ),
    Signal(
        "state",
        None,
        "The state that the kernel reports; in any other state no rule is evaluated.",
        "bcache: state; others: dirty_data = 0",
        lambda frame: frame.state,
        ("clean", "dirty"),
    ),
    Signal("read_iops", SignalUnit.IOPS, "Reads of users.", "arrivals / window", _iops(_READ)),
    Signal("write_iops", SignalUnit.IOPS, "Writes of users.", "arrivals / window", _iops(_WRITE)),
    Signal("read_rate", SignalUnit.RATE, "Bytes that users read.", "bytes / window", _rate(_READ)),
    Signal(
        "write_rate", SignalUnit.RATE, "Bytes that users write.", "bytes / window", _rate(_WRITE)
    ),
    Signal(
        "read_latency_p99",
        SignalUnit.DURATION,
        "p99 of users' reads, measured at the volume.",
        "the highest p99 of the paths hit, miss and bypass; unknown without reads",
        lambda frame: frame.worst_p99_ns(_READ),
    ),
    Signal(
        "write_latency_p99",
        SignalUnit.DURATION,
        "p99 of users' writes, measured at the volume.",
        "the highest p99 of the paths writeback, writethrough and bypass; unknown without writes",
        lambda frame: frame.worst_p99_ns(_WRITE),
    ),
    Signal(
        "read_hit_p99",
        SignalUnit.DURATION,
        "p99 of reads from the cache.",
        "of the path hit; unknown without any",
        _path(_READ, "hit"),
    ),
    Signal(
        "read_miss_p99",
        SignalUnit.DURATION,
        "p99 of reads from the backing device.",
        "of the path miss; unknown without any",
        _path(_READ, "miss"),
    ),
    Signal(
        "hit_ratio",
        SignalUnit.RATIO,
        "Share of reads whose data was entirely in the cache.",
        "hits / reads; unknown without reads",
        lambda frame: frame.read_hit_ratio,
    ),
    Signal(
        "backing_queue",
        SignalUnit.COUNT,
        "Requests at the backing device, including write-back.",
        "issued - completed",
        lambda frame: frame.backing_depth_ios,
    ),
    Signal(
        "backing_busy",
        SignalUnit.RATIO,
        "How busy users keep the backing device (upper bound).",
        "sum of users' latencies there / window, at most 100 %",
        lambda frame: frame.backing_busy_foreground_ratio,
    ),
    Signal(
        "backing_state",
        None,
        "Whether the disks below the backing device turn; read at most every 30 s, without waking"
        " them.",
        "of several disks the most awake one; standby: does not turn; unknown: not SCSI, SAS or"
        " SATA, or not reported (`ebbgate status` says why)",
        lambda frame: str(frame.backing_power.state),
        ("unknown", "active", "idle", "standby"),
    ),
)
SIGNALS: Final[Mapping[str, Signal]] = {signal.name: signal for signal in _ALL}
