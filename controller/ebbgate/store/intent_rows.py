# SPDX-License-Identifier: GPL-2.0-only
"""Writes and reads rows of requests. I/O: SQLite, on the caller's connection."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ebbgate.store.documents import to_json

_TEXT_KEPT: Final = 256
"""Characters of one argument; the text of a policy has a file of its own."""
_ROWS_KEPT: Final = 10_000
"""A flood of requests takes some MB and displaces nothing else."""
_FORGET: Final = "DELETE FROM intents WHERE id <= ?"
_ADD: Final = """
    INSERT OR REPLACE INTO intents (id, kind, volume, args, who, at_unix_ns)
    VALUES (?, ?, ?, ?, ?, ?)
"""
_RESOLVE: Final = "UPDATE intents SET resolved_unix_ns = ?, ok = ?, outcome = ? WHERE id = ?"
_ABANDON: Final = """
    UPDATE intents SET resolved_unix_ns = ?, ok = 0, outcome = ?
    WHERE resolved_unix_ns IS NULL AND id < ?
"""


@dataclass(frozen=True, slots=True)
class IntentRow:
    """One request; `resolved_unix_ns`, `ok` and `outcome`: None while it is pending."""

    id: int
    kind: str
    volume: str | None
    args: dict[str, Any]
    who: str
    at_unix_ns: int
    resolved_unix_ns: int | None = None
    ok: bool | None = None
    outcome: str | None = None


def add(connection: sqlite3.Connection, intent: IntentRow) -> None:
    """Insert a request that has no outcome yet."""
    args = to_json(_shortened(intent.args))
    row = (intent.id, intent.kind, intent.volume, args, intent.who, intent.at_unix_ns)
    connection.execute(_ADD, row)
    connection.execute(_FORGET, (intent.id - _ROWS_KEPT,))


def resolve(
    connection: sqlite3.Connection, number: int, wall_ns: int, ok: bool, outcome: str
) -> None:
    """Store the outcome of a request."""
    connection.execute(_RESOLVE, (wall_ns, ok, outcome, number))


def abandon(connection: sqlite3.Connection, below: int, wall_ns: int, outcome: str) -> None:
    """Store the same outcome for every request below a number that has none."""
    connection.execute(_ABANDON, (wall_ns, outcome, below))


def read(row: sqlite3.Row) -> IntentRow:
    """Return a row; `args` is empty where the text is no JSON object."""
    ok = row["ok"]
    found = {**dict(row), "args": _args(row["args"]), "ok": None if ok is None else bool(ok)}
    return IntentRow(**found)


def _shortened(args: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value[:_TEXT_KEPT] + "..."
        if isinstance(value, str) and len(value) > _TEXT_KEPT
        else value
        for name, value in args.items()
    }


def _args(text: str) -> dict[str, Any]:
    try:
        args = json.loads(text)
    except ValueError:
        return {}
    return args if isinstance(args, dict) else {}
