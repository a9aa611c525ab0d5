# SPDX-License-Identifier: GPL-2.0-only
"""Summarizes what ebbgate did with a volume over a period, and the effect. Pure.

Unknown is never zero: a figure that was not measured is None.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ebbgate.policy.defaults import IDLE_DESTAGE, STREAM_BYPASS
from ebbgate.store.rollup import IOS, P99, Row, hit_ratio, mean, merge_paths, weight
from ebbgate.units import NS_PER_S

Document = dict[str, Any]

SERIES: Final = 32
"""Points of the dirty level over the period, for a chart that fits a terminal."""
TUNED: Final = ("enforce",)
UNTOUCHED: Final = ("observe", "advise")
IOS_MIN: Final = 1000
COVERED_NS_MIN: Final = 600 * NS_PER_S
"""With less than this on either side there is no comparison."""


@dataclass(frozen=True, slots=True)
class HourlyCount:
    """A row of `tallies` without its time."""

    what: str
    strategy: str
    knob: str
    outcome: str
    count: int
    amount: int


@dataclass(frozen=True, slots=True)
class ManualWrite:
    """A knob that somebody else wrote while ebbgate controlled it; `found`: in words."""

    knob: str
    at_unix_ns: int
    found: str


def summarize(
    rows: Sequence[Row],
    tallies: Sequence[HourlyCount],
    overrides: Sequence[ManualWrite],
    since_unix_ns: int,
    until_unix_ns: int,
) -> Document:
    """Return the figures of one volume. `rows`: minutes and hours without overlap, oldest first."""
    return {
        "recorded_s": sum(row["covered_ns"] for row in rows) / NS_PER_S,
        "mode_s": _by_mode(rows),
        "done": {
            "writes": writes(tallies),
            "overrides": [
                {"knob": each.knob, "at_unix_ns": each.at_unix_ns, "found": each.found}
                for each in overrides
            ],
            "gaps": gaps(tallies),
            "destaged": destaged(rows),
            "streams": streams(rows, tallies),
        },
        "brought": {
            "dirty": dirty(rows, since_unix_ns, until_unix_ns),
            "hit_ratio": hit_ratio(merge_paths(row["paths"] for row in rows)),
            "latency": latency(rows),
        },
    }


def writes(tallies: Iterable[HourlyCount]) -> list[Document]:
    """Return knob writes by strategy, knob and outcome."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for tally in tallies:
        if tally.what == "action":
            counts[tally.strategy, tally.knob][tally.outcome] += tally.count
    return [
        {"strategy": strategy, "knob": knob, "outcomes": dict(sorted(found.items()))}
        for (strategy, knob), found in sorted(counts.items())
    ]


def gaps(tallies: Iterable[HourlyCount]) -> Document:
    """Gaps that were seen, how long they were together, and in how many the gate was opened."""
    tallies = list(tallies)
    seen = [tally for tally in tallies if tally.what == "gap"]
    return {
        "seen": sum(tally.count for tally in seen),
        "length_ns": sum(tally.amount for tally in seen),
        "used": _acted(tallies, IDLE_DESTAGE, "destage"),
        "pressure": _acted(tallies, IDLE_DESTAGE, "pressure"),
    }


def destaged(rows: Iterable[Row]) -> Document:
    """Bytes destaged while the load was away, and while it was there."""
    rows = list(rows)
    known = [row for row in rows if weight(row, "destage_bytes_per_s")]
    total = sum(_seconds(row, "destage_bytes_per_s") * row["destage_bytes_per_s"] for row in known)
    in_gaps = [row["gap_destage_bytes"] for row in rows if row["gap_destage_bytes"] is not None]
    if not known or not in_gaps:
        return {"in_gaps_bytes": None, "under_load_bytes": None}
    return {"in_gaps_bytes": sum(in_gaps), "under_load_bytes": max(0, round(total) - sum(in_gaps))}


def streams(rows: Iterable[Row], tallies: Iterable[HourlyCount]) -> Document:
    """Return how often streams were kept out of the cache, and all bytes that bypassed it."""
    bypassed = [row["bypass_bytes"] for row in rows if row["bypass_bytes"] is not None]
    return {
        "kept_out": _acted(tallies, STREAM_BYPASS, "bypass"),
        "bypassed_bytes": sum(bypassed) if bypassed else None,
    }


def dirty(rows: Sequence[Row], since_unix_ns: int, until_unix_ns: int) -> Document:
    """Return mean, maximum and history of the dirty data, and the share of time without any."""
    parts: list[list[Row]] = [[] for _ in range(SERIES)]
    step_ns = max(1, (until_unix_ns - since_unix_ns) // SERIES)
    for row in rows:
        begin_ns = row["at_unix_ns"] - since_unix_ns
        # In a short period an hour spans several points.
        first, last = begin_ns // step_ns, (begin_ns + row["span_ns"] - 1) // step_ns
        for place in range(max(0, first), min(SERIES - 1, last) + 1):
            parts[place].append(row)
    most = [row["dirty_bytes_max"] for row in rows if row["dirty_bytes_max"] is not None]
    return {
        "mean_bytes": mean(rows, "dirty_bytes"),
        "most_bytes": max(most, default=None),
        "clean_ratio": mean(rows, "clean_ratio"),
        "series_bytes": [mean(part, "dirty_bytes") for part in parts],
    }


def latency(rows: Sequence[Row]) -> list[Document]:
    """Return the p99 of each path while ebbgate tuned, and while it did not.

    The mean of the p99 of seconds, weighted by requests; None where a side has too little data.
    Times in which the mode changed or is unknown count for neither side.
    """
    sides = {
        "untouched": [row for row in rows if row["mode"] in UNTOUCHED],
        "tuned": [row for row in rows if row["mode"] in TUNED],
    }
    found = {name: _paths(side) for name, side in sides.items()}
    names = sorted({path for paths in found.values() for path in paths})
    return [{"path": path, **{name: found[name].get(path) for name in sides}} for path in names]


def _paths(rows: Sequence[Row]) -> dict[str, Document]:
    if sum(row["covered_ns"] for row in rows) < COVERED_NS_MIN:
        return {}
    return {
        path: {"ios": figures[IOS], "p99_ns": figures[P99]}
        for path, figures in merge_paths(row["paths"] for row in rows).items()
        if (figures[IOS] or 0) >= IOS_MIN
    }


def _acted(tallies: Iterable[HourlyCount], strategy: str, stand: str) -> int:
    return sum(
        tally.count
        for tally in tallies
        if (tally.what, tally.strategy, tally.outcome) == ("acted", strategy, stand)
    )


def _by_mode(rows: Iterable[Row]) -> Mapping[str, float]:
    seconds: Counter[str] = Counter()
    for row in rows:
        seconds[row["mode"] or "unknown"] += row["covered_ns"]
    return {mode: spent / NS_PER_S for mode, spent in sorted(seconds.items())}


def _seconds(row: Row, column: str) -> float:
    """Return for how many seconds a column of a row was known."""
    known: float = row["covered_ns"] / NS_PER_S * weight(row, column) / row["samples"]
    return known
