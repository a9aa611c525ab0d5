# SPDX-License-Identifier: GPL-2.0-only
"""What the web asks of the list of wishes. I/O: SQLite, read-only."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from ebbgate.store.connection import identity_of, open_reader
from ebbgate.store.schema import INTENTS

_NEWEST: Final = "SELECT * FROM intents WHERE id < ? ORDER BY id DESC LIMIT ?"
_CHANGED: Final = """
    SELECT * FROM intents WHERE id > ? OR id >= ? AND resolved_unix_ns IS NOT NULL
    ORDER BY id LIMIT ?
"""
_LAST: Final = """
    SELECT coalesce(max(id), 0),
           coalesce(min(CASE WHEN resolved_unix_ns IS NULL THEN id END), max(id) + 1, 0),
           count(resolved_unix_ns)
    FROM intents
"""


@dataclass(frozen=True, slots=True)
class IntentRow:
    """One wish; `resolved_unix_ns`, `ok` and `outcome`: None until it was dealt with."""

    id: int
    kind: str
    volume: str | None
    args: dict[str, Any]
    who: str
    at_unix_ns: int
    resolved_unix_ns: int | None
    ok: bool | None
    outcome: str | None


class WebIntents:
    """The list of wishes, open for reading. One thread only."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Raises NothingRecorded, PermissionDenied, Unavailable for a bad file."""
        return cls(open_reader(path, INTENTS))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def identity(self) -> int:
        """Which file this is."""
        return identity_of(self._connection)

    def newest(self, limit: int, before_id: int = (1 << 63) - 1) -> list[IntentRow]:
        """The newest first."""
        return [_row(row) for row in self._connection.execute(_NEWEST, (before_id, limit))]

    def get(self, number: int) -> IntentRow | None:
        """One wish as it is now."""
        row = self._connection.execute("SELECT * FROM intents WHERE id = ?", (number,)).fetchone()
        return None if row is None else _row(row)

    def changed(self, after_id: int, pending_id: int, limit: int) -> list[IntentRow]:
        """Added after the one, or answered and not before the other, the oldest first."""
        rows = self._connection.execute(_CHANGED, (after_id, pending_id, limit))
        return [_row(row) for row in rows]

    def last(self) -> tuple[int, int, int]:
        """The last number; the first that has no answer yet, or one more than the last; how many
        have one.
        """
        last, pending, answered = self._connection.execute(_LAST).fetchone()
        return last, pending, answered


def _row(row: sqlite3.Row) -> IntentRow:
    answered = row["ok"]
    return IntentRow(
        **{
            **dict(row),
            "args": _args(row["args"]),
            "ok": None if answered is None else bool(answered),
        }
    )


def _args(text: str) -> dict[str, Any]:
    """Nothing for a row that something else has written wrongly."""
    try:
        args = json.loads(text)
    except ValueError:
        return {}
    return args if isinstance(args, dict) else {}
