# SPDX-License-Identifier: GPL-2.0-only
"""Queries of the history's table of requests. I/O: SQLite, read-only."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from ebbgate.errors import Unavailable
from ebbgate.store.connection import NothingRecorded
from ebbgate.store.intent_rows import IntentRow, read
from ebbgate.store.queries import HistoryReader
from ebbgate.units import INT64_MAX

_NEWEST: Final = "SELECT * FROM intents WHERE id < ? ORDER BY id DESC LIMIT ?"
_CHANGED: Final = """
    SELECT * FROM intents WHERE id > ? OR id >= ? AND resolved_unix_ns IS NOT NULL
    ORDER BY id LIMIT ?
"""
_LAST: Final = """
    SELECT coalesce(max(id), 0),
           coalesce((SELECT min(id) FROM intents WHERE resolved_unix_ns IS NULL), max(id) + 1, 0),
           coalesce(max(id), 0)
               - (SELECT count(*) FROM intents WHERE resolved_unix_ns IS NULL)
    FROM intents
"""


class IntentHistory(HistoryReader):
    """The history's requests, open for one answer. One thread only."""

    def newest(self, limit: int, before_id: int = INT64_MAX) -> list[IntentRow]:
        """Return requests, the newest first."""
        return [read(row) for row in self._connection.execute(_NEWEST, (before_id, limit))]

    def get(self, number: int) -> IntentRow | None:
        """Return one request."""
        row = self._connection.execute("SELECT * FROM intents WHERE id = ?", (number,)).fetchone()
        return None if row is None else read(row)

    def since(
        self, after_id: int, pending_id: int, limit: int
    ) -> tuple[list[IntentRow], tuple[int, int, int]]:
        """Return requests above `after_id` and resolved ones from `pending_id` on, oldest first;
        and `last` at the same moment.
        """
        self._connection.execute("BEGIN")
        try:
            rows = self._connection.execute(_CHANGED, (after_id, pending_id, limit))
            return [read(row) for row in rows], self.last()
        finally:
            self._connection.execute("ROLLBACK")

    def last(self) -> tuple[int, int, int]:
        """Return three numbers that only grow, also when the oldest requests are deleted.

        The last request; the first pending one (last + 1 without any); the last one minus the
        count of pending ones.
        """
        last, pending, answered = self._connection.execute(_LAST).fetchone()
        return last, pending, answered


def last_number(path: Path) -> int | None:
    """Return the number of the newest request; 0 without any, None where it cannot be read."""
    try:
        opened = IntentHistory.open(path)
    except NothingRecorded:
        return 0
    except Unavailable:
        return None
    try:
        return opened.last()[0]
    except sqlite3.Error:
        return None
    finally:
        opened.close()
