# SPDX-License-Identifier: GPL-2.0-only
"""Queries of the history for reports and exports, quick enough for a month. I/O: SQLite, read-only.

Each period is read in the longest span that it was rolled up to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Final

from ebbgate.store import samples
from ebbgate.store.documents import current_row, strategy_name
from ebbgate.store.queries import HistoryReader
from ebbgate.store.retention import volumes
from ebbgate.store.rollup import SECOND_NS, Row, bucket_ns, merge
from ebbgate.store.summary import HourlyCount, ManualWrite
from ebbgate.units import HOUR_NS, MINUTE_NS

Window = tuple[int, int]
"""Since and until, Unix ns."""

_EVENTS: Final = {
    "decisions": "SELECT id, volume, at_unix_ns, acted, document FROM decisions",
    "actions": "SELECT * FROM actions",
}
_IN_TIME: Final = """
    WHERE volume = :volume AND (at_unix_ns, id) > (:since, :id) AND at_unix_ns < :until
    ORDER BY at_unix_ns, id LIMIT 1000
"""


class ReportHistory(HistoryReader):
    """The history, open for a report. One thread only."""

    @contextmanager
    def one_snapshot(self) -> Iterator[None]:
        """Read one consistent state of the file. Briefly: meanwhile the daemon's log only grows."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def volumes(self) -> list[str]:
        """Return every volume with records."""
        return volumes(self._connection)

    def rows(self, volume: str, since_unix_ns: int, until_unix_ns: int) -> list[Row]:
        """Return hours, elsewhere minutes, elsewhere seconds merged to minutes; oldest first."""
        whole = (since_unix_ns, until_unix_ns)
        hours = self._read(volume, whole, HOUR_NS)
        minutes = self._between(volume, whole, hours, MINUTE_NS)
        found = sorted((*hours, *minutes), key=_begin)
        seconds = self._between(volume, whole, found, SECOND_NS)
        merged = [
            merge(list(of_it), at_ns, MINUTE_NS)
            for at_ns, of_it in groupby(seconds, lambda row: bucket_ns(_begin(row), MINUTE_NS))
        ]
        return sorted((*found, *merged), key=_begin)

    def tallies(self, volume: str, since_unix_ns: int, until_unix_ns: int) -> list[HourlyCount]:
        """Return the counts of the hours that overlap the period (by whole hours)."""
        rows = self._connection.execute(
            """SELECT what, strategy, knob, outcome, sum(count), sum(amount) FROM tallies
               WHERE volume = ? AND at_unix_ns >= ? AND at_unix_ns < ? GROUP BY 1, 2, 3, 4""",
            (volume, bucket_ns(since_unix_ns, HOUR_NS), until_unix_ns),
        )
        return [HourlyCount(what, strategy_name(strategy), *rest) for what, strategy, *rest in rows]

    def overrides(self, volume: str, since_unix_ns: int, until_unix_ns: int) -> list[ManualWrite]:
        """Return writes of others to knobs that ebbgate controlled."""
        rows = self._connection.execute(
            """SELECT knob, at_unix_ns, read_back FROM actions
               WHERE volume = ? AND at_unix_ns >= ? AND at_unix_ns < ?
               AND outcome = 'manual' AND read_back IS NOT NULL ORDER BY at_unix_ns""",
            (volume, since_unix_ns, until_unix_ns),
        )
        return [ManualWrite(knob, at, f"found {value}") for knob, at, value in rows]

    # ---- export --------------------------------------------------------------------------------
    def events(
        self, kind: str, volume: str, since_unix_ns: int, until_unix_ns: int
    ) -> Iterator[dict[str, Any]]:
        """Yield `decisions` (with their explanation) or `actions`, oldest first, read in parts."""
        last = (since_unix_ns, -1)
        while True:
            rows = self._connection.execute(
                _EVENTS[kind] + _IN_TIME,
                {"volume": volume, "since": last[0], "id": last[1], "until": until_unix_ns},
            ).fetchall()
            for row in rows:
                event = dict(row)
                if "document" in event:
                    event |= json.loads(event.pop("document"))
                yield current_row(event)
            if not rows:
                return
            last = (rows[-1]["at_unix_ns"], rows[-1]["id"])

    def samples(self, volume: str, since_unix_ns: int, until_unix_ns: int) -> Iterator[Row]:
        """Yield samples of the finest span that each time still has, oldest first."""
        at_ns = self._next(volume, (since_unix_ns, until_unix_ns))
        while at_ns is not None:
            end_ns = min(until_unix_ns, bucket_ns(at_ns, HOUR_NS) + HOUR_NS)
            yield from self._finest(volume, (at_ns, end_ns))
            at_ns = self._next(volume, (end_ns, until_unix_ns))

    def _next(self, volume: str, window: Window) -> int | None:
        """Return the time of the first sample of any span in a window."""
        found = [
            self._connection.execute(
                """SELECT min(at_unix_ns) FROM samples
                   WHERE volume = ? AND span_ns = ? AND at_unix_ns >= ? AND at_unix_ns < ?""",
                (volume, span_ns, *window),
            ).fetchone()[0]
            for span_ns in (SECOND_NS, MINUTE_NS, HOUR_NS)
        ]
        return min((each for each in found if each is not None), default=None)

    def _finest(self, volume: str, window: Window) -> list[Row]:
        """Return the finest samples of an hour or a part of it."""
        seconds = self._read(volume, window, SECOND_NS, latency=True)
        minutes = self._read(volume, window, MINUTE_NS, latency=True)
        known = {bucket_ns(_begin(row), MINUTE_NS) for row in seconds}
        minutes = [row for row in minutes if _begin(row) not in known]
        if not seconds and not minutes:
            return self._read(volume, window, HOUR_NS, latency=True)
        return sorted((*seconds, *minutes), key=_begin)

    def _between(self, volume: str, whole: Window, found: list[Row], span_ns: int) -> list[Row]:
        """Return rows of a shorter span for times without longer ones."""
        return [row for hole in _holes(whole, found) for row in self._read(volume, hole, span_ns)]

    def _read(
        self, volume: str, window: Window, span_ns: int, *, latency: bool = False
    ) -> list[Row]:
        return samples.read(self._connection, volume, *window, span_ns, latency=latency)


def _holes(whole: Window, rows: list[Row]) -> Iterator[Window]:
    at_ns, until_ns = whole
    for row in rows:
        if row["at_unix_ns"] > at_ns:
            yield at_ns, row["at_unix_ns"]
        at_ns = max(at_ns, row["at_unix_ns"] + row["span_ns"])
    if at_ns < until_ns:
        yield at_ns, until_ns


def _begin(row: Row) -> int:
    at_unix_ns: int = row["at_unix_ns"]
    return at_unix_ns
