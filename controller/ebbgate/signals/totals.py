# SPDX-License-Identifier: GPL-2.0-only
"""Totals of a volume since the daemon follows it. Pure.

A probe counts from when it begins to follow the volume; the counts of earlier probes are added. So
no total falls while one daemon follows the volume, which is since `since_unix_ns`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.records import Direction, Tick, TimedFlow
from ebbgate.signals.histogram import add, coarse_latency, latency_sum_ns

Count = int | list[int] | dict[str, "Count"]
Counts = dict[str, Count]
"""Numbers, histograms as lists, and more of the same by name: what `plus` adds."""
Changes = Mapping[tuple[str, str], int]
"""The number of writes, by knob and actor."""

MANUAL: Final = "manual"
"""The actor of a value that someone else wrote over ebbgate's."""
OTHERS: Final = "other"
"""Stands for all actors beyond `_PAIRS_MAX` pairs: the labels of a metric must stay few."""
_PAIRS_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Totals:
    """All totals of a volume.

    - `counts`: of the probe; None before its first record.
    - `changes`: writes that changed a knob, by knob and actor.
    - `rollbacks`: how often the rollback guard rolled each setting back.
    """

    since_unix_ns: int = 0
    counts: Counts | None = None
    changes: Changes = field(default_factory=dict)
    decisions: int = 0
    rollbacks: Mapping[str, int] = field(default_factory=dict)


def tick_counts(tick: Tick) -> Counts:
    """Return what a probe has counted so far, with latencies in buckets of `coarse_latency`."""
    return {
        "arrivals": {_word(d): {"ios": a.ios, "bytes": a.bytes} for d, a in tick.arrivals.items()},
        "paths": {_path(*way): _flow(flow) for way, flow in tick.paths.items()},
        "bypass": {why: {"ios": f.ios, "bytes": f.bytes} for why, f in tick.bypass.items()},
        "run_bytes": {_word(d): list(runs) for d, runs in tick.run_bytes.items()},
        "gap_counts": list(tick.gap_counts),
        "gap_sum_ns": sum(tick.gap_sums_ns),
        "destage": {"ios": tick.destage_done.ios, "bytes": tick.destage_done.bytes},
        "lost": dict(tick.lost),
    }


def _flow(flow: TimedFlow) -> Counts:
    latency = flow.latency
    return {
        "ios": flow.ios,
        "bytes": flow.bytes,
        "latency_counts": coarse_latency(latency) if latency else [],
        "latency_sum_ns": latency_sum_ns(latency),
    }


# str() of an enumeration's member is slow, and this runs every second.
@cache
def _word(direction: Direction) -> str:
    return str(direction)


@cache
def _path(direction: Direction, path: str) -> str:
    return f"{direction} {path}"


def add_counts(one: Counts, other: Counts) -> Counts:
    """Return the sum of both counts; what only one of them has is kept."""
    return {**one, **other, **{key: _plus(one[key], other[key]) for key in one if key in other}}


def _plus(one: Count, other: Count) -> Count:
    if isinstance(one, dict) and isinstance(other, dict):
        return add_counts(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return add(one, other)
    assert isinstance(one, int) and isinstance(other, int)
    return one + other


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


def totals_to_json(totals: Totals) -> dict[str, object]:
    """Return the totals as JSON; what the probe counts is None before its first record."""
    found: dict[str, object] = dict.fromkeys(_COUNTED)
    found |= totals.counts or {}
    found["since_unix_ns"] = totals.since_unix_ns
    found["decisions"] = totals.decisions
    found["rollbacks"] = dict(totals.rollbacks)
    found["knob_changes"] = [
        {"knob": knob, "actor": actor, "count": count}
        for (knob, actor), count in sorted(totals.changes.items())
    ]
    return found


_COUNTED: Final = (
    *("arrivals", "paths", "bypass", "run_bytes"),
    *("gap_counts", "gap_sum_ns", "destage", "lost"),
)
