# SPDX-License-Identifier: GPL-2.0-only
"""Builds a volume's frame from the probe's counters and sysfs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypedDict

from ebbgate.model.dm import CacheStatus
from ebbgate.model.frame import (
    DaemonFacts,
    Disturbance,
    FlowRates,
    Frame,
    PathLatency,
    Rates,
    Regime,
)
from ebbgate.model.heat import HeatPeriod
from ebbgate.model.records import Direction, HeatRecord, Histogram, Tick, Tracked, TrackRefused
from ebbgate.model.volume import VolumeState
from ebbgate.signals import disturbance, flow_rates
from ebbgate.signals.backing_load import destage_in_flight_ios, in_flight_ios, users_busy_ratio
from ebbgate.signals.disturbance import DisturbanceState
from ebbgate.signals.flow_rates import FlowPoint
from ebbgate.signals.forecast import (
    cutoff_ratio,
    dirty_room_bytes,
    time_to_clean_s,
    time_to_full_s,
)
from ebbgate.signals.histogram import (
    bytes_beyond,
    decay_add,
    latency_percentile_ns,
    subtract,
)
from ebbgate.signals.sync_writes import SyncWrites, between, counted
from ebbgate.signals.tick_window import gap_destage, last_window
from ebbgate.signals.totals import Counts, add_counts, counts_shrank, tick_counts
from ebbgate.units import KIB, NS_PER_S

RUN_HALF_LIFE_NS = 120 * NS_PER_S
"""Half-life of run lengths, so that a changed load is learned in minutes."""
GAP_HALF_LIFE_NS = 30 * NS_PER_S
"""Half-life of gaps. With two minutes waits were worse on loads that change, and no better else."""
GAPS_KEPT_MIN = 4.0
"""Lasting gaps fade only down to this count, so that rare gaps are known, too."""
LASTING_BUCKET = 15
"""Gaps from 32 ms are lasting; shorter ones are pauses within a burst."""
PROBE_STALE_NS = 3 * NS_PER_S
PROBE_STALE_TICKS = 3
"""The signals of a probe record are unknown once it is older than both."""
NO_RECORD: Final = "no record from the probe yet"
NO_PATHS: Final = "the probe does not measure the paths of requests to this volume"
NO_HEAT: Final = "no record of misses from the probe yet"
STREAM_RUN_BYTES = 512 * KIB
"""A run this long is a stream in the regime for people."""
BURST_IOPS = 20
"""Fewer requests per second are a light load."""

Runs = Mapping[Direction, tuple[float, ...]]


class _Fields(TypedDict, total=False):
    """Fields of a frame that is being built."""

    volume: str
    at_ns: int
    probed_at_ns: int | None
    window_ns: int
    idle: bool | None
    idle_ns: int | None
    foreground: Mapping[Direction, Rates] | None
    in_flight_ios: int | None
    run_bytes: Mapping[Direction, Histogram]
    run_delta_bytes: Mapping[Direction, Histogram]
    gap_counts: tuple[float, ...]
    paths: Mapping[tuple[Direction, str], PathLatency]
    bypass_bytes: Mapping[str, int]
    backing_depth_ios: int | None
    backing_busy_foreground_ratio: float | None
    destage_in_flight_ios: int | None
    destage_bytes_per_s: float | None
    gap_destage_bytes: int | None
    dirty_in_bytes_per_s: float | None
    flows: FlowRates | None
    dirty_bytes: int | None
    cache_bytes: int | None
    dirty_ratio: float | None
    in_use_ratio: float | None
    dirty_room_bytes: int | None
    time_to_full_s: float | None
    time_to_clean_s: float | None
    disturbance: Disturbance | None
    promotions: int | None
    cache_written_bytes: int | None
    disk_write_cache: bool
    heat: HeatPeriod | None
    cache_mode: str | None
    state: str | None
    regime: Regime
    knobs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FrameState:
    """What the builder remembers of a volume between ticks: recent ticks, decayed histograms.

    - `gap_destage_bytes`: what was written back in gaps until each of the ticks.
    - `intervals_ns`: between the last ticks, two at most, also those of an earlier probe.
    - `before`: the counts of earlier probes; None without one.
    - `destage_missing`: why the probe cannot distinguish destage from users' requests, or empty.
    - `refused`: why the probe does not follow the volume, or empty.
    - `heat`: the newest period of misses.
    - `flows`: of the last ticks, for rates over some seconds.
    - `sync_writes`: whether users' writes are mostly synchronous.
    """

    ticks: tuple[Tick, ...] = ()
    gap_destage_bytes: tuple[int, ...] = (0,)
    intervals_ns: tuple[int, ...] = ()
    gap_counts: tuple[float, ...] = ()
    run_bytes: Runs = field(default_factory=dict)
    before: Counts | None = None
    destage_missing: str = ""
    refused: str = ""
    heat: HeatPeriod | None = None
    flows: tuple[FlowPoint, ...] = ()
    sync_writes: SyncWrites = field(default_factory=SyncWrites)
    disturbance: DisturbanceState = field(default_factory=DisturbanceState)


def totals(state: FrameState) -> Counts | None:
    """Return what this probe and earlier ones counted; None without any record."""
    if not state.ticks:
        return state.before
    now = tick_counts(state.ticks[-1])
    return now if state.before is None else add_counts(state.before, now)


def reset_counters(state: FrameState) -> FrameState:
    """Prepare for a new probe that counts from zero; what was learned of the volume stays."""
    felt = disturbance.restarted(state.disturbance)
    return replace(state, ticks=(), flows=(), before=totals(state), disturbance=felt, refused="")


def on_tracked(state: FrameState, record: Tracked | TrackRefused) -> FrameState:
    """Handle the record with which the probe begins to follow the volume, or refuses to."""
    if isinstance(record, TrackRefused):
        return replace(state, refused=record.why)
    return replace(state, destage_missing=record.destage_missing, refused="")


def on_heat(state: FrameState, record: HeatRecord) -> FrameState:
    """Keep the misses of the newest period."""
    return replace(state, heat=record.period)


def on_tick(state: FrameState, tick: Tick) -> FrameState:
    """Handle a tick. Counters that went back to zero come from a restarted probe."""
    if state.ticks and counts_shrank(state.ticks[-1], tick):
        state = reset_counters(state)
    writes = tick.arrivals[Direction.WRITE]
    if not state.ticks:
        counted_writes = counted(state.sync_writes, writes, 0)
        flows = flow_rates.add((), tick)
        return replace(state, ticks=(tick,), flows=flows, sync_writes=counted_writes)
    last = state.ticks[-1]
    elapsed_ns = tick.at_ns - last.at_ns
    keep_runs = 0.5 ** (elapsed_ns / RUN_HALF_LIFE_NS)
    runs = {
        direction: decay_add(
            state.run_bytes.get(direction, ()),
            subtract(tick.run_bytes.get(direction, ()), last.run_bytes.get(direction, ())),
            keep_runs,
        )
        for direction in Direction
    }
    gaps = _add_gaps(state.gap_counts, subtract(tick.gap_counts, last.gap_counts), elapsed_ns)
    new_writes = between(last.arrivals[Direction.WRITE], writes)
    ticks = last_window((*state.ticks, tick))
    return replace(
        state,
        ticks=ticks,
        gap_destage_bytes=gap_destage(state.gap_destage_bytes, last, tick)[-len(ticks) :],
        intervals_ns=(*state.intervals_ns[-1:], elapsed_ns),
        gap_counts=gaps,
        run_bytes=runs,
        flows=flow_rates.add(state.flows, tick),
        sync_writes=counted(state.sync_writes, new_writes, elapsed_ns),
        disturbance=disturbance.on_tick(state.disturbance, last, tick),
    )


def _add_gaps(old: tuple[float, ...], new: tuple[int, ...], elapsed_ns: int) -> tuple[float, ...]:
    """Return the faded gaps plus the new ones."""
    keep = 0.5 ** (elapsed_ns / GAP_HALF_LIFE_NS)
    lasting = sum(old[LASTING_BUCKET:])
    keep_lasting = max(keep, min(1.0, GAPS_KEPT_MIN / lasting)) if lasting else 1.0
    return (
        *decay_add(old[:LASTING_BUCKET], new[:LASTING_BUCKET], keep),
        *decay_add(old[LASTING_BUCKET:], new[LASTING_BUCKET:], keep_lasting),
    )


def build(
    state: FrameState,
    seen: VolumeState,
    volume: str,
    now_ns: int,
    facts: DaemonFacts | None = None,
) -> Frame:
    """Return the frame at `now_ns`; a missing or stale signal is None and in `missing`."""
    missing: dict[str, str] = {}
    found = _from_sysfs(volume, seen, now_ns, missing)
    if state.destage_missing:
        missing["destage"] = state.destage_missing
    age_ns = now_ns - state.ticks[-1].at_ns if state.ticks else 0
    if not state.ticks:
        missing["foreground"] = state.refused or NO_RECORD
    elif age_ns > _stale_ns(state):
        missing["foreground"] = f"the probe's last record is {age_ns // NS_PER_S} s old"
    else:
        found |= _from_probe(state, now_ns)
        found |= _forecasts(found, state, missing, mapped=seen.dm is not None)
        found |= _disturbance(state, missing)
    if found.get("heat") is None:
        missing["heat"] = missing.get("foreground", NO_HEAT)
    facts = facts or DaemonFacts()
    # Built in one go: each copy of a class with this many fields costs as much as all the rest.
    return Frame(
        **found,
        foreign_knobs=facts.foreign_knobs,
        disk_users=facts.disk_users,
        backing_power=facts.power,
        layout=facts.layout,
        missing=missing,
    )


def _stale_ns(state: FrameState) -> int:
    """Return the age at which a record is stale. One late tick does not raise it."""
    return max(PROBE_STALE_NS, PROBE_STALE_TICKS * min(state.intervals_ns, default=0))


def _from_sysfs(volume: str, seen: VolumeState, now_ns: int, missing: dict[str, str]) -> _Fields:
    for name in ("dirty_bytes", "cache_bytes", "in_use_ratio", "state", "cache_mode"):
        if getattr(seen, name) is None:
            missing[name] = "not in sysfs"
    dirty_ratio = None
    if seen.dirty_bytes is not None and seen.cache_bytes:
        dirty_ratio = seen.dirty_bytes / seen.cache_bytes
    return {
        "volume": volume,
        "at_ns": now_ns,
        "dirty_bytes": seen.dirty_bytes,
        "cache_bytes": seen.cache_bytes,
        "dirty_ratio": dirty_ratio,
        "in_use_ratio": seen.in_use_ratio,
        "promotions": seen.dm.promotions if isinstance(seen.dm, CacheStatus) else None,
        "cache_written_bytes": seen.cache_written_bytes,
        "disk_write_cache": seen.disk_write_cache,
        "cache_mode": seen.cache_mode,
        "state": seen.state,
        "knobs": seen.knobs,
    }


def _from_probe(state: FrameState, now_ns: int) -> _Fields:
    tick, first = state.ticks[-1], state.ticks[0]
    window_ns = tick.at_ns - first.at_ns
    found: _Fields = {
        "probed_at_ns": tick.at_ns,
        "window_ns": window_ns,
        "idle": tick.idle,
        "idle_ns": 0 if in_flight_ios(tick) else max(0, now_ns - tick.last_activity_ns),
        "in_flight_ios": in_flight_ios(tick),
        "gap_counts": state.gap_counts,
        "run_bytes": {d: tuple([round(b) for b in r]) for d, r in state.run_bytes.items()},
        "backing_depth_ios": tick.backing_depth_ios,
        "heat": state.heat,
        "flows": flow_rates.rates(state.flows),
        "destage_in_flight_ios": destage_in_flight_ios(tick),
        "regime": Regime.GAP if tick.idle else Regime.UNKNOWN,
    }
    if window_ns:
        found |= _over_window(tick, first, window_ns)
        found["gap_destage_bytes"] = state.gap_destage_bytes[-1] - state.gap_destage_bytes[0]
    if state.destage_missing:
        # These counts mix destage and users' requests.
        found.pop("destage_in_flight_ios", None)
        found.pop("destage_bytes_per_s", None)
        found.pop("flows", None)
        found.pop("gap_destage_bytes", None)
        found.pop("backing_busy_foreground_ratio", None)
    return found


def _disturbance(state: FrameState, missing: dict[str, str]) -> _Fields:
    felt = state.disturbance
    if state.destage_missing:
        missing["disturbance"] = state.destage_missing
        return {}
    if felt.last is None or felt.last.felt_ns is None:
        missing["disturbance"] = felt.missing
    return {"disturbance": felt.last}


def _over_window(tick: Tick, first: Tick, window_ns: int) -> _Fields:
    """Return the signals that need two ticks."""
    seconds = window_ns / NS_PER_S
    written = _dirtied_bytes(tick, first)
    drained = tick.destage_done.bytes - first.destage_done.bytes
    foreground = {d: _rates(tick, first, d, seconds) for d in Direction}
    runs = {d: subtract(tick.run_bytes.get(d, ()), first.run_bytes.get(d, ())) for d in Direction}
    return {
        "foreground": foreground,
        "run_delta_bytes": runs,
        "paths": _paths(tick, first),
        "bypass_bytes": {
            why: flow.bytes - first.bypass[why].bytes
            for why, flow in tick.bypass.items()
            if why in first.bypass
        },
        "dirty_in_bytes_per_s": None if written is None else written / seconds,
        "destage_bytes_per_s": drained / seconds,
        "backing_busy_foreground_ratio": users_busy_ratio(first, tick),
        "regime": Regime.GAP if tick.idle else _regime(foreground, runs),
    }


def _rates(tick: Tick, first: Tick, direction: Direction, seconds: float) -> Rates:
    now, before = tick.arrivals[direction], first.arrivals[direction]
    return Rates((now.ios - before.ios) / seconds, (now.bytes - before.bytes) / seconds)


def _dirtied_bytes(tick: Tick, first: Tick) -> int | None:
    """Return what the cache took as dirty data; None where the probe does not measure paths."""
    if not tick.paths:
        return None
    way = Direction.WRITE, "writeback"
    now, before = tick.paths.get(way), first.paths.get(way)
    return (now.bytes if now else 0) - (before.bytes if before else 0)


def _paths(tick: Tick, first: Tick) -> dict[tuple[Direction, str], PathLatency]:
    found = {}
    for key, flow in tick.paths.items():
        before = first.paths.get(key)
        ios = flow.ios - (before.ios if before else 0)
        counts = subtract(flow.latency, before.latency if before else ()) if ios else ()
        found[key] = PathLatency(
            ios=ios,
            bytes=flow.bytes - (before.bytes if before else 0),
            p50_ns=latency_percentile_ns(counts, 0.50),
            p99_ns=latency_percentile_ns(counts, 0.99),
            counts=counts,
        )
    return found


def _regime(foreground: Mapping[Direction, Rates], deltas: Mapping[Direction, Histogram]) -> Regime:
    total = sum(sum(runs) for runs in deltas.values())
    if total == 0:
        return Regime.LIGHT
    long = sum(bytes_beyond(runs, STREAM_RUN_BYTES) for runs in deltas.values())
    if long >= 0.5 * total:
        return Regime.STREAM
    iops = sum(rates.iops for rates in foreground.values())
    return Regime.BURST if iops >= BURST_IOPS else Regime.LIGHT


def _forecasts(
    found: _Fields, state: FrameState, missing: dict[str, str], *, mapped: bool
) -> _Fields:
    cache, dirty, ratio = found["cache_bytes"], found["dirty_bytes"], found["dirty_ratio"]
    if dirty is None or not cache or ratio is None:
        missing["time_to_full"] = "the dirty level is unknown"
        return {}
    if mapped:
        # dm caches take writes until all blocks are dirty.
        room = dirty_room_bytes(cache, ratio, 1.0)
    else:
        level = ratio if found["in_use_ratio"] is None else found["in_use_ratio"]
        limit = cutoff_ratio(mostly_sync=state.sync_writes.mostly)
        room = dirty_room_bytes(cache, max(level, ratio), limit)
    arriving, leaving = found.get("dirty_in_bytes_per_s"), found.get("destage_bytes_per_s")
    if arriving is None or leaving is None:
        if not state.ticks[-1].paths:
            missing["time_to_full"] = NO_PATHS
        return {"dirty_room_bytes": room}
    return {
        "dirty_room_bytes": room,
        "time_to_full_s": time_to_full_s(room, arriving, leaving),
        "time_to_clean_s": time_to_clean_s(dirty, arriving, leaving),
    }
