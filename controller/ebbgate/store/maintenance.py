# SPDX-License-Identifier: GPL-2.0-only
"""Keeps the history small: rolls samples up, forgets, gives space back. I/O: SQLite.

In steps of a few milliseconds, since whoever waits for a flush waits for the one under way.
"""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from ebbgate.store import retention, samples
from ebbgate.store.connection import transaction
from ebbgate.store.documents import to_json
from ebbgate.store.limits import HistoryLimits
from ebbgate.store.rollup import (
    COLUMNS,
    HOUR_NS,
    MINUTE_NS,
    SECOND_NS,
    SOURCE_NS,
    Row,
    bucket_ns,
    merge,
)
from ebbgate.units import NS_PER_S

_LOG = logging.getLogger(__name__)
_GRACE_NS: Final = 5 * NS_PER_S
"""The samples of a minute are written a second or two after its end. Later ones mark it anew."""
_REST_NS: Final = 30 * NS_PER_S
"""So long after everything was in order nothing is looked for."""
_STEP_NS: Final = MINUTE_NS
"""A clock that is off by more from one look to the next was set."""
_DOUBT_NS: Final = HOUR_NS
"""A clock that was set is not believed at once: half of a history must not go for a typing error,
or for a machine that starts in 1970."""
_PAGES: Final = 64
_SPARE_PAGES: Final = 1024
_FULL_ENOUGH: Final = 0.97
"""Of the size, after it was exceeded: not back at the bound with the next sample."""
_DOCUMENTS: Final = ("paths", "missing", "known", "latency")

_DUE: Final = """
    SELECT at_unix_ns, volume FROM rollup_due
    WHERE span_ns = :span AND (at_unix_ns <= :now - :span - :grace OR at_unix_ns > :now + :span)
    ORDER BY at_unix_ns LIMIT 1
"""
_STANDS: Final = "SELECT samples FROM samples WHERE volume = ? AND span_ns = ? AND at_unix_ns = ?"
_PUT: Final = f"""
    INSERT OR REPLACE INTO samples ({", ".join(COLUMNS)}) VALUES ({", ".join("?" * len(COLUMNS))})
"""
_ADD_DUE: Final = "INSERT OR IGNORE INTO rollup_due (span_ns, at_unix_ns, volume) VALUES (?, ?, ?)"
_DONE: Final = "DELETE FROM rollup_due WHERE span_ns = ? AND at_unix_ns = ? AND volume = ?"


class Maintenance:
    """What the writer does beside writing. Times: `wall_ns` of Unix, `mono_ns` of one boot."""

    def __init__(self, limits: HistoryLimits) -> None:
        self.limits = limits
        self._rest_until_ns: int | None = None
        self._trimming = False
        self._seen: tuple[int, int] | None = None
        self._doubted_ns: int | None = None

    def step(self, connection: sqlite3.Connection, wall_ns: int, mono_ns: int) -> bool:
        """Do one small thing; False when there is nothing to do for now."""
        self._watch_clock(connection, wall_ns, mono_ns)
        if roll_up_one(connection, wall_ns):
            return True
        if self._rest_until_ns is not None and mono_ns < self._rest_until_ns:
            return False
        if self._forget(connection, wall_ns, mono_ns) or self._give_back(connection):
            return True
        self._rest_until_ns = mono_ns + _REST_NS
        return False

    def _forget(self, connection: sqlite3.Connection, wall_ns: int, mono_ns: int) -> bool:
        with transaction(connection):
            if self.clock_trusted(mono_ns):
                gone = retention.delete_by_age(connection, self.limits, wall_ns)
                if gone:
                    return True
            used = retention.used_bytes(connection)
            most = self.limits.pages_bytes
            self._trimming = used > (most * _FULL_ENOUGH if self._trimming else most)
            return self._trimming and bool(
                retention.delete_by_size(connection, self.limits, wall_ns)
            )

    # ---- the clock -----------------------------------------------------------------------------
    def clock_trusted(self, mono_ns: int) -> bool:
        """Has the wall clock gone its way for long enough to forget by it?"""
        return self._doubted_ns is None or mono_ns - self._doubted_ns >= _DOUBT_NS

    def _watch_clock(self, connection: sqlite3.Connection, wall_ns: int, mono_ns: int) -> None:
        if self._seen is None:
            newest_ns = _newest_ns(connection)
            if newest_ns is not None and not -_STEP_NS <= wall_ns - newest_ns <= _DOUBT_NS:
                self._doubted_ns = mono_ns
        else:
            seen_wall_ns, seen_mono_ns = self._seen
            if abs((wall_ns - seen_wall_ns) - (mono_ns - seen_mono_ns)) > _STEP_NS:
                _LOG.warning(
                    "the clock was set or the machine slept: nothing is forgotten for an hour"
                )
                self._doubted_ns = mono_ns
        self._seen = (wall_ns, mono_ns)

    # ---- space ---------------------------------------------------------------------------------
    def _give_back(self, connection: sqlite3.Connection) -> bool:
        """Return pages to the file system where many are free; a few are soon used again.

        None is kept while the file is larger than it may be.
        """
        free = retention.free_pages(connection)
        count = connection.execute("PRAGMA page_count").fetchone()[0]
        too_large = count * retention.page_bytes(connection) > self.limits.file_bytes
        if free <= (0 if too_large else max(_SPARE_PAGES, count // 4)):
            return False
        # The statement yields a row without columns for each page; `execute` would stop after one.
        connection.executescript(f"PRAGMA incremental_vacuum({_PAGES})")
        return retention.free_pages(connection) < free


def roll_up_one(connection: sqlite3.Connection, now_ns: int) -> bool:
    """Roll one minute or hour of one volume up, the oldest that is due; False without one."""
    for span_ns in (MINUTE_NS, HOUR_NS):
        due = connection.execute(_DUE, {"span": span_ns, "now": now_ns, "grace": _GRACE_NS})
        found = due.fetchone()
        if found is not None:
            with transaction(connection):
                _roll_up_or_skip(connection, found["volume"], span_ns, found["at_unix_ns"])
            return True
    return False


def _roll_up_or_skip(
    connection: sqlite3.Connection, volume: str, span_ns: int, at_unix_ns: int
) -> None:
    """Rows that make no sense cost their minute, not all that come after it."""
    try:
        _roll_up(connection, volume, span_ns, at_unix_ns)
    except (ValueError, TypeError, LookupError, AttributeError):
        _LOG.exception("%s: a time in the history makes no sense and is left out", volume)
    connection.execute(_DONE, (span_ns, at_unix_ns, volume))


def _roll_up(connection: sqlite3.Connection, volume: str, span_ns: int, at_unix_ns: int) -> None:
    """Where samples went before a clock was set back, the fuller account of a time stays."""
    until_ns, source_ns = at_unix_ns + span_ns, SOURCE_NS[span_ns]
    rows = samples.read(connection, volume, at_unix_ns, until_ns, source_ns, latency=True)
    if rows:
        merged = merge(rows, at_unix_ns, span_ns)
        stands = connection.execute(_STANDS, (volume, span_ns, at_unix_ns)).fetchone()
        if stands is None or merged["samples"] >= stands["samples"]:
            connection.execute(_PUT, _values(merged))
            if span_ns == MINUTE_NS:
                connection.execute(_ADD_DUE, (HOUR_NS, bucket_ns(at_unix_ns, HOUR_NS), volume))


def _values(row: Row) -> list[object]:
    return [_value(row[each], each) for each in COLUMNS]


def _value(value: object, column: str) -> object:
    """SQLite's NULL is what is unknown, not a document that says so."""
    return to_json(value) if column in _DOCUMENTS and isinstance(value, dict) else value


def _newest_ns(connection: sqlite3.Connection) -> int | None:
    newest = [
        connection.execute(
            "SELECT max(at_unix_ns) FROM samples WHERE volume = ? AND span_ns = ?",
            (volume, SECOND_NS),
        ).fetchone()[0]
        for volume in retention.volumes(connection)
    ]
    return max((each for each in newest if each is not None), default=None)
