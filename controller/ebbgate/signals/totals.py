# SPDX-License-Identifier: GPL-2.0-only
"""What was counted of a volume since it is followed: figures that only grow. Pure.

The probe counts from the moment at which it follows the volume; what those counted that have ended
is added. So no figure falls while one daemon follows the volume, and `since_unix_ns` says since
when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.records import Direction, Tick, TimedFlow
from ebbgate.signals.histogram import add, coarse_latency, latency_sum_ns

Counts = dict[str, Any]
"""Numbers, histograms as lists, and more of the same by name: what `plus` adds."""
Changes = Mapping[tuple[str, str], int]
"""How often a knob was written, by knob and actor."""

MANUAL: Final = "manual"
"""The actor of a value that somebody else wrote over ours."""
OTHERS: Final = "other"
"""All actors beyond `_PAIRS_MAX` pairs: names of rules come and go, labels of a metric must not."""
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


def counted(tick: Tick) -> Counts:
    """What a probe has counted so far. Latencies in buckets of `coarse_latency`."""
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


# The text of an enumeration's member is made anew each time, and this is done once a second.
@cache
def _word(direction: Direction) -> str:
    return str(direction)


@cache
def _path(direction: Direction, path: str) -> str:
    return f"{direction} {path}"


def plus(one: Any, other: Any) -> Any:
    """Both counts together; what only one of them has is taken as it is."""
    if isinstance(one, dict):
        both = {key: plus(one[key], other[key]) for key in one if key in other}
        return {**one, **other, **both}
    return add(one, other) if isinstance(one, list) else one + other


def add_changes(changes: Changes, outcomes: Iterable[Outcome]) -> Changes:
    """Count the writes that really changed a knob."""
    pairs = [
        (each.action.knob, each.action.strategy)
        for each in outcomes
        if each.kind is OutcomeKind.CHANGED
    ]
    return add_pairs(changes, pairs) if pairs else changes


def add_pairs(changes: Changes, pairs: Iterable[tuple[str, str]]) -> Changes:
    """Count these, of knob and actor."""
    found = Counter(changes)
    for knob, actor in pairs:
        known = (knob, actor) in found or len(found) < _PAIRS_MAX
        found[(knob, actor) if known else (knob, OTHERS)] += 1
    return found


def document(totals: Totals) -> Counts:
    """For the live document; what the probe counts is None where it has not said anything yet."""
    found: Counts = dict.fromkeys(_COUNTED) if totals.counts is None else dict(totals.counts)
    found["since_unix_ns"] = totals.since_unix_ns
    found["decisions"] = totals.decisions
    found["guard_trips"] = dict(totals.rollbacks)
    found["knob_changes"] = [
        {"knob": knob, "actor": actor, "count": count}
        for (knob, actor), count in sorted(totals.changes.items())
    ]
    return found


_COUNTED: Final = (
    "arrivals",
    "paths",
    "bypass",
    "run_bytes",
    "gap_counts",
    "gap_sum_ns",
    "destage",
    "lost",
)
