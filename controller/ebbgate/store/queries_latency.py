# SPDX-License-Identifier: GPL-2.0-only
"""Queries latencies of a volume over time, for a heat map. I/O: SQLite, read-only."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ebbgate.model.records import Direction
from ebbgate.signals.histogram import COARSE_BUCKETS, coarse_edge_us
from ebbgate.store.latency import add_packed
from ebbgate.store.rollup import SECOND_NS, usual_apart_ns
from ebbgate.units import HOUR_NS, MINUTE_NS, NS_PER_S

SPANS_S: Final = (2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
"""Not one second: samples are 1 to 1.25 s apart, so some cells would be empty."""
_APART_FACTOR: Final = 1.25
"""A cell is longer than samples are usually apart, so that a short delay leaves none empty."""
EDGES_S: Final = tuple(coarse_edge_us(bucket) / 1e6 for bucket in range(COARSE_BUCKETS))
"""Upper edges of the buckets, ascending. The last bucket also holds everything slower."""
_SOURCES: Final = (HOUR_NS, MINUTE_NS, SECOND_NS)

_READ: Final = """
    SELECT at_unix_ns, latency FROM samples
    WHERE volume = ? AND span_ns = ? AND at_unix_ns >= ? AND at_unix_ns < ? ORDER BY at_unix_ns
"""
_SECONDS: Final = """
    SELECT at_unix_ns FROM samples
    WHERE volume = ? AND span_ns = ? AND at_unix_ns >= ? AND at_unix_ns < ? ORDER BY at_unix_ns
"""
_OLDEST: Final = "SELECT min(at_unix_ns) FROM samples WHERE volume = ? AND span_ns = ?"

Window = tuple[int, int]
"""Since and until, Unix ns."""


@dataclass(frozen=True, slots=True)
class LatencyGrid:
    """Requests by time and latency (`EDGES_S`).

    `counts`: by time; None where unknown, zeros where there were no requests.
    """

    span_s: int
    at_unix_s: tuple[int, ...]
    edges_s: tuple[float, ...]
    counts: tuple[tuple[int, ...] | None, ...]


def latency_grid(
    connection: sqlite3.Connection, volume: str, op: Direction, window: Window, points: int
) -> LatencyGrid:
    """Return a grid of about `points` (at least 1) equal times; one more where both ends are cut.

    Reads the longest span that fits a time of the grid. An unknown volume has an empty grid.
    """
    span_ns = _span_ns(connection, volume, window, points)
    begin_ns = window[0] - window[0] % span_ns
    count = max(0, -((begin_ns - window[1]) // span_ns))
    cells: list[list[int] | None] = [None] * count
    for at_ns, packed in _packed(connection, volume, op, (begin_ns, window[1]), span_ns):
        number = (at_ns - begin_ns) // span_ns
        cell = cells[number] or [0] * COARSE_BUCKETS
        add_packed(cell, packed)
        cells[number] = cell
    return LatencyGrid(
        span_ns // NS_PER_S,
        tuple((begin_ns + number * span_ns) // NS_PER_S for number in range(count)),
        EDGES_S,
        tuple(None if cell is None else tuple(cell) for cell in cells),
    )


def _span_ns(connection: sqlite3.Connection, volume: str, window: Window, points: int) -> int:
    least_ns = -(-(window[1] - window[0]) // points)
    if least_ns < MINUTE_NS:
        least_ns = max(least_ns, _shortest_ns(connection, volume, window))
    for span_s in SPANS_S:
        if span_s * NS_PER_S >= least_ns:
            return span_s * NS_PER_S
    day_ns = SPANS_S[-1] * NS_PER_S
    return -(-least_ns // day_ns) * day_ns


def _shortest_ns(connection: sqlite3.Connection, volume: str, window: Window) -> int:
    """Return the shortest time that has a sample wherever something was recorded."""
    if _only_minutes(connection, volume, window[0]):
        return MINUTE_NS
    rows = connection.execute(_SECONDS, (volume, SECOND_NS, *window)).fetchall()
    # A longer distance is no tick but a pause.
    return min(round(usual_apart_ns([at_ns for (at_ns,) in rows]) * _APART_FACTOR), MINUTE_NS)


def _only_minutes(connection: sqlite3.Connection, volume: str, since_ns: int) -> bool:
    """Return whether only minutes are left of that time."""
    seconds, minutes = (
        connection.execute(_OLDEST, (volume, span_ns)).fetchone()[0]
        for span_ns in (SECOND_NS, MINUTE_NS)
    )
    if minutes is None:
        return False
    return seconds is None or bool(seconds > max(since_ns, minutes) + MINUTE_NS)


def _packed(
    connection: sqlite3.Connection, volume: str, op: Direction, window: Window, span_ns: int
) -> Iterator[tuple[int, list[int]]]:
    """Yield time and latency without overlap: after the last row of a span, the next shorter."""
    since_ns, until_ns = window
    for source_ns in _SOURCES:
        if source_ns > span_ns:
            continue
        rows = connection.execute(_READ, (volume, source_ns, since_ns, until_ns)).fetchall()
        known = [(at_ns, text) for at_ns, text in rows if text is not None]
        # Parse all at once: a day has 1440.
        documents = json.loads(f"[{','.join([text for _, text in known])}]")
        for (at_ns, _), document in zip(known, documents, strict=True):
            yield at_ns, document.get(str(op), [])
        if rows:
            since_ns = rows[-1][0] + source_ns
