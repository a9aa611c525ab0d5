# SPDX-License-Identifier: GPL-2.0-only
"""Totals of a volume since the daemon follows it. Pure.

A probe counts from when it begins to follow the volume; the counts of earlier probes are added. So
no total falls while one daemon follows the volume, which is since `since_unix_ns`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Final, TypeVar

from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.records import Direction, Tick, TimedFlow
from ebbgate.model.status import CacheWrites, FlowTotals, KnobChanges, TimedFlowTotals, VolumeTotals
from ebbgate.signals.histogram import add, coarse_latency, latency_sum_ns

_T = TypeVar("_T")
Changes = Mapping[tuple[str, str], int]
"""The number of writes, by knob and actor."""

MANUAL: Final = "manual"
"""The actor of a value that someone else wrote over ebbgate's."""
OTHERS: Final = "other"
"""Stands for all actors beyond `_PAIRS_MAX` pairs: the labels of a metric must stay few."""
_PAIRS_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Counts:
    """What probes have counted; the fields are those of `VolumeTotals`."""

    arrivals: Mapping[str, FlowTotals]
    paths: Mapping[str, TimedFlowTotals]
    bypass: Mapping[str, FlowTotals]
    run_bytes: Mapping[str, tuple[int, ...]]
    gap_counts: tuple[int, ...]
    gap_sum_ns: int
    destage: FlowTotals
    lost: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Totals:
    """All totals of a volume.

    - `counts`: of the probe; None before its first record.
    - `changes`: writes that changed a knob, by knob and actor.
    - `rollbacks`: how often the rollback guard rolled each setting back.
    - `dirty_age_ns`, `cache_writes`: as in `VolumeTotals`.
    """

    since_unix_ns: int = 0
    counts: Counts | None = None
    changes: Changes = field(default_factory=dict)
    decisions: int = 0
    rollbacks: Mapping[str, int] = field(default_factory=dict)
    dirty_age_ns: int | None = None
    cache_writes: CacheWrites | None = None


def tick_counts(tick: Tick) -> Counts:
    """Return what a probe has counted so far, with latencies in buckets of `coarse_latency`."""
    return Counts(
        arrivals={_word(d): FlowTotals(a.ios, a.bytes) for d, a in tick.arrivals.items()},
        paths={_path(*way): _timed(flow) for way, flow in tick.paths.items()},
        bypass={why: FlowTotals(f.ios, f.bytes) for why, f in tick.bypass.items()},
        run_bytes={_word(d): tuple(runs) for d, runs in tick.run_bytes.items()},
        gap_counts=tuple(tick.gap_counts),
        gap_sum_ns=sum(tick.gap_sums_ns),
        destage=FlowTotals(tick.destage_done.ios, tick.destage_done.bytes),
        lost=dict(tick.lost),
    )


def counts_shrank(last: Tick, tick: Tick) -> bool:
    """Return whether the counts began anew, as those of a restarted probe do."""
    return (
        tick.at_ns <= last.at_ns
        or tick.destage_done.ios < last.destage_done.ios
        or any(tick.arrivals[d].ios < last.arrivals[d].ios for d in Direction)
    )


def _timed(flow: TimedFlow) -> TimedFlowTotals:
    latency = flow.latency
    counts = tuple(coarse_latency(latency)) if latency else ()
    return TimedFlowTotals(flow.ios, flow.bytes, counts, latency_sum_ns(latency))


# str() of an enumeration's member is slow, and this runs every second.
@cache
def _word(direction: Direction) -> str:
    return str(direction)


@cache
def _path(direction: Direction, path: str) -> str:
    return f"{direction} {path}"


def add_counts(one: Counts, other: Counts) -> Counts:
    """Return the sum of both counts; what only one of them has is kept."""
    return Counts(
        arrivals=_by_name(_flows, one.arrivals, other.arrivals),
        paths=_by_name(_timed_flows, one.paths, other.paths),
        bypass=_by_name(_flows, one.bypass, other.bypass),
        run_bytes=_by_name(_histograms, one.run_bytes, other.run_bytes),
        gap_counts=_histograms(one.gap_counts, other.gap_counts),
        gap_sum_ns=one.gap_sum_ns + other.gap_sum_ns,
        destage=_flows(one.destage, other.destage),
        lost=_by_name(int.__add__, one.lost, other.lost),
    )


def _by_name(
    plus: Callable[[_T, _T], _T], one: Mapping[str, _T], other: Mapping[str, _T]
) -> dict[str, _T]:
    both = {name: plus(one[name], other[name]) for name in one if name in other}
    return {**one, **other, **both}


def _flows(one: FlowTotals, other: FlowTotals) -> FlowTotals:
    return FlowTotals(one.ios + other.ios, one.bytes + other.bytes)


def _timed_flows(one: TimedFlowTotals, other: TimedFlowTotals) -> TimedFlowTotals:
    return TimedFlowTotals(
        one.ios + other.ios,
        one.bytes + other.bytes,
        _histograms(one.latency_counts, other.latency_counts),
        (one.latency_sum_ns or 0) + (other.latency_sum_ns or 0),
    )


def _histograms(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(add(one, other))


def add_changes(changes: Changes, outcomes: Iterable[Outcome]) -> Changes:
    """Add the writes that changed a knob."""
    pairs = [
        (each.action.knob, each.action.strategy)
        for each in outcomes
        if each.kind is OutcomeKind.CHANGED
    ]
    return add_pairs(changes, pairs) if pairs else changes


def add_pairs(changes: Changes, pairs: Iterable[tuple[str, str]]) -> Changes:
    """Add these pairs of knob and actor."""
    found = Counter(changes)
    for knob, actor in pairs:
        known = (knob, actor) in found or len(found) < _PAIRS_MAX
        found[(knob, actor) if known else (knob, OTHERS)] += 1
    return found


def volume_totals(totals: Totals) -> VolumeTotals:
    """Return the totals as they are in the volume's status."""
    own = VolumeTotals(
        since_unix_ns=totals.since_unix_ns,
        decisions=totals.decisions,
        rollbacks=totals.rollbacks,
        knob_changes=tuple(KnobChanges(*pair, n) for pair, n in sorted(totals.changes.items())),
        dirty_age_ns=totals.dirty_age_ns,
        cache_writes=totals.cache_writes,
    )
    counts = totals.counts
    if counts is None:
        return own
    return replace(own, **{each.name: getattr(counts, each.name) for each in fields(counts)})
