# SPDX-License-Identifier: GPL-2.0-only
"""Rows of samples on a regular grid: a hole in the history is a hole in every column. Pure.

Nothing is interpolated. A sample of a second covers the time to the next one, so that a tick that
is slower than a second makes no holes; a longer pause does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ebbgate.store.rollup import BYTES, IOS, P50, P99, SECOND_NS, Row, bucket_ns, usual_apart_ns
from ebbgate.units import HOUR_NS, MINUTE_NS, NS_PER_S
from ebbgate.web.convert import seconds
from ebbgate.web.models.history import Columns, PathColumns, Samples

_COLUMNS: Final = tuple(Columns.__annotations__)
SPANS_NS: Final = (SECOND_NS, MINUTE_NS, HOUR_NS)
_INTERVALS_COVERED: Final = 1.5
"""A sample covers this many usual intervals, so that a short delay makes no hole."""
_COVERED_NS_MAX: Final = 30 * NS_PER_S
"""No tick is slower than 10 s, so a longer pause is always a hole."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Points at `since_ns + i * span_ns` for i in 0..count-1; `since_ns` is a multiple of it."""

    since_ns: int
    span_ns: int
    count: int

    @property
    def until_ns(self) -> int:
        """The end of the last point."""
        return self.since_ns + self.count * self.span_ns

    def at_ns(self, number: int) -> int:
        """Return the start of a point."""
        return self.since_ns + number * self.span_ns


def grid(since_ns: int, until_ns: int, points: int, finest_ns: int = SECOND_NS) -> Grid | None:
    """Return the finest grid of at most `points` points that covers `[since, until)`; None if even
    hours are too many.
    """
    for span_ns in SPANS_NS:
        first_ns = bucket_ns(since_ns, span_ns)
        count = -((first_ns - until_ns) // span_ns)
        if span_ns >= finest_ns and 0 < count <= points:
            return Grid(first_ns, span_ns, count)
    return None


def place(rows: Sequence[Row], grid: Grid) -> list[Row | None]:
    """Return the row of each point, or None. `rows`: oldest first."""
    if grid.span_ns != SECOND_NS:
        at = {bucket_ns(row["at_unix_ns"], grid.span_ns): row for row in rows}
        return [at.get(grid.at_ns(number)) for number in range(grid.count)]
    each_covers_ns = covered_ns(rows)
    found: list[Row | None] = []
    newest = -1
    for number in range(grid.count):
        begin_ns = grid.at_ns(number)
        while newest + 1 < len(rows) and rows[newest + 1]["at_unix_ns"] < begin_ns + grid.span_ns:
            newest += 1
        known = newest >= 0 and rows[newest]["at_unix_ns"] + each_covers_ns > begin_ns
        found.append(rows[newest] if known else None)
    return found


def covered_ns(rows: Sequence[Row]) -> int:
    """Return how long a sample of a second is valid."""
    return round(min(_usual_ns(rows) * _INTERVALS_COVERED, _COVERED_NS_MAX))


def _usual_ns(rows: Sequence[Row]) -> float:
    return usual_apart_ns([row["at_unix_ns"] for row in rows])


def samples(volume: str, rows: Sequence[Row], grid: Grid) -> Samples:
    """Return the columns of a volume."""
    placed = place(rows, grid)
    if grid.span_ns == SECOND_NS:
        # Each counts what came since the one before it, and fills as many points.
        points = round(min(_usual_ns(rows), _COVERED_NS_MAX) / SECOND_NS)
        first = grid.since_ns // SECOND_NS
        if points > 1:
            placed = [row and _part(row, points, at) for at, row in enumerate(placed, first)]
    names = sorted({name for row in placed if row is not None for name in row["paths"]})
    return Samples.unchecked(
        volume=volume,
        span_s=grid.span_ns // NS_PER_S,
        since_unix_s=grid.since_ns / NS_PER_S,
        until_unix_s=grid.until_ns / NS_PER_S,
        at_unix_s=[grid.at_ns(number) / NS_PER_S for number in range(grid.count)],
        columns=Columns.unchecked(**{name: _column(placed, name) for name in _COLUMNS}),
        mode=[None if row is None else row["mode"] for row in placed],
        paths={name: _path(placed, name) for name in names},
    )


def _part(row: Row, points: int, number: int) -> Row:
    """Return what a sample counts at one of its points; any `points` in a row have all of it."""

    def part(count: int | None) -> int | None:
        # Not rounded for each: one request would be none at all of its points.
        return count and count * (number + 1) // points - count * number // points

    paths = {
        name: [*map(part, figures[:P50]), *figures[P50:]] for name, figures in row["paths"].items()
    }
    return row | {"paths": paths, "bypass_bytes": part(row["bypass_bytes"])}


def _column(rows: Sequence[Row | None], name: str) -> list[Any]:
    return [None if row is None else _finite(row[name]) for row in rows]


def _path(rows: Sequence[Row | None], name: str) -> PathColumns:
    figures = [None if row is None else row["paths"].get(name) for row in rows]
    return PathColumns.unchecked(
        ios=[None if each is None else each[IOS] for each in figures],
        bytes=[None if each is None else each[BYTES] for each in figures],
        p50_s=[None if each is None else seconds(each[P50]) for each in figures],
        p99_s=[None if each is None else seconds(each[P99]) for each in figures],
    )


def _finite(value: float | None) -> float | None:
    """Return a value for a chart, which has no point for `never`."""
    return None if value is None or not math.isfinite(value) else value
