# SPDX-License-Identifier: GPL-2.0-only
"""Keeps the history small: rolls samples up, deletes old rows, frees space. I/O: SQLite.

In steps of a few milliseconds, since a flush waits for the step under way.
"""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from ebbgate.log_messages.history import CLOCK_SET, HISTORY_ROWS_SKIPPED
from ebbgate.store import retention, samples
from ebbgate.store.connection import is_record_error, transaction
from ebbgate.store.documents import to_json
from ebbgate.store.limits import HistoryLimits
from ebbgate.store.rollup import COLUMNS, SECOND_NS, SOURCE_NS, Row, bucket_ns, merge
from ebbgate.units import HOUR_NS, MINUTE_NS, NS_PER_S

_LOG = logging.getLogger(__name__)
_GRACE_NS: Final = 5 * NS_PER_S
"""The samples of a minute are written up to two seconds after its end; later ones mark it again."""
_REST_NS: Final = 30 * NS_PER_S
"""Pause after a look that found nothing to do."""
_STEP_NS: Final = MINUTE_NS
"""A larger difference between two looks means that the clock was set."""
_CLOCK_TRUST_NS: Final = HOUR_NS
"""After the clock was set, nothing is deleted by age for this long: a typing error, or a machine
that starts in 1970, must not cost half of the history."""
_PAGES: Final = 64
_SPARE_PAGES: Final = 1024
_FULL_ENOUGH: Final = 0.97
"""Deleting stops at this share of the limit, so that the next sample does not exceed it again."""
_DOCUMENTS: Final = ("paths", "missing", "known", "latency")

_DUE: Final = """
    SELECT at_unix_ns, volume FROM rollup_due
    WHERE span_ns = :span AND (at_unix_ns <= :now - :span - :grace OR at_unix_ns > :now + :span)
    ORDER BY at_unix_ns LIMIT 1
"""
_EXISTING: Final = "SELECT samples FROM samples WHERE volume = ? AND span_ns = ? AND at_unix_ns = ?"
_PUT: Final = f"""
    INSERT OR REPLACE INTO samples ({", ".join(COLUMNS)}) VALUES ({", ".join("?" * len(COLUMNS))})
"""
_ADD_DUE: Final = "INSERT OR IGNORE INTO rollup_due (span_ns, at_unix_ns, volume) VALUES (?, ?, ?)"
_DONE: Final = "DELETE FROM rollup_due WHERE span_ns = ? AND at_unix_ns = ? AND volume = ?"


class Maintenance:
    """Runs maintenance in small steps. Times: `wall_ns` Unix, `mono_ns` of one boot."""

    def __init__(self, limits: HistoryLimits) -> None:
        self.limits = limits
        self._rest_until_ns: int | None = None
        self._trimming = False
        self._seen: tuple[int, int] | None = None
        self._clock_set_ns: int | None = None

    def step(self, connection: sqlite3.Connection, wall_ns: int, mono_ns: int) -> bool:
        """Do one small step; False when there is nothing to do for now."""
        self._watch_clock(connection, wall_ns, mono_ns)
        if roll_up_one(connection, wall_ns):
            return True
        if self._rest_until_ns is not None and mono_ns < self._rest_until_ns:
            return False
        if self._delete_old(connection, wall_ns, mono_ns) or self._free_pages(connection):
            return True
        self._rest_until_ns = mono_ns + _REST_NS
        return False

    def _delete_old(self, connection: sqlite3.Connection, wall_ns: int, mono_ns: int) -> bool:
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
        """Return whether the wall clock has run undisturbed long enough to delete by age."""
        return self._clock_set_ns is None or mono_ns - self._clock_set_ns >= _CLOCK_TRUST_NS

    def _watch_clock(self, connection: sqlite3.Connection, wall_ns: int, mono_ns: int) -> None:
        if self._seen is None:
            newest_ns = _newest_ns(connection)
            if newest_ns is not None and not -_STEP_NS <= wall_ns - newest_ns <= _CLOCK_TRUST_NS:
                self._clock_set_ns = mono_ns
        else:
            seen_wall_ns, seen_mono_ns = self._seen
            if abs((wall_ns - seen_wall_ns) - (mono_ns - seen_mono_ns)) > _STEP_NS:
                _LOG.warning(CLOCK_SET)
                self._clock_set_ns = mono_ns
        self._seen = (wall_ns, mono_ns)

    # ---- space ---------------------------------------------------------------------------------
    def _free_pages(self, connection: sqlite3.Connection) -> bool:
        """Return free pages to the file system: if many, or all while the file is too large."""
        free = retention.free_pages(connection)
        count = connection.execute("PRAGMA page_count").fetchone()[0]
        too_large = count * retention.page_bytes(connection) > self.limits.file_bytes
        if free <= (0 if too_large else max(_SPARE_PAGES, count // 4)):
            return False
        # The statement yields a row without columns for each page; `execute` would stop after one.
        connection.executescript(f"PRAGMA incremental_vacuum({_PAGES})")
        return retention.free_pages(connection) < free


def roll_up_one(connection: sqlite3.Connection, now_ns: int) -> bool:
    """Roll up the oldest minute or hour that is due; False without one."""
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
    """Roll up, skipping a bucket whose rows are invalid."""
    try:
        _roll_up(connection, volume, span_ns, at_unix_ns)
    except Exception as error:
        # Whatever a row has that no ebbgate writes, it must not keep the others from being deleted.
        if isinstance(error, sqlite3.Error) and not is_record_error(error):
            raise
        _LOG.exception(HISTORY_ROWS_SKIPPED, volume)
    connection.execute(_DONE, (span_ns, at_unix_ns, volume))


def _roll_up(connection: sqlite3.Connection, volume: str, span_ns: int, at_unix_ns: int) -> None:
    """Write a roll-up unless a fuller one exists, as it may after a clock was set back."""
    until_ns, source_ns = at_unix_ns + span_ns, SOURCE_NS[span_ns]
    rows = samples.read(connection, volume, at_unix_ns, until_ns, source_ns, latency=True)
    if rows:
        merged = merge(rows, at_unix_ns, span_ns)
        existing = connection.execute(_EXISTING, (volume, span_ns, at_unix_ns)).fetchone()
        if existing is None or merged["samples"] >= existing["samples"]:
            connection.execute(_PUT, _values(merged))
            if span_ns == MINUTE_NS:
                connection.execute(_ADD_DUE, (HOUR_NS, bucket_ns(at_unix_ns, HOUR_NS), volume))


def _values(row: Row) -> list[object]:
    return [_value(row[each], each) for each in COLUMNS]


def _value(value: object, column: str) -> object:
    """Return documents as JSON; unknown is NULL."""
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
