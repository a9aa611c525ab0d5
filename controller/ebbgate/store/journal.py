# SPDX-License-Identifier: GPL-2.0-only
"""The journal of originals: what each knob held before ebbgate wrote it first. I/O: SQLite.

It is a separate file (`journal.db`) that only root may open: a process that may read a database may
also lock it, and the journal must never wait for another process. A row exists from before the
first write of a knob until its original is restored. A reboot resets knobs to the kernel's
defaults, so a row of another boot says nothing about the present values.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import astuple, fields
from pathlib import Path
from typing import Final, Self

from ebbgate.model.decision import JournalEntry
from ebbgate.store import access
from ebbgate.store.connection import (
    NOT_UTF8,
    Damaged,
    allow_any_text,
    open_reader,
    open_writer,
    transaction,
)
from ebbgate.store.schema import JOURNAL

_NAMES: Final = tuple(field.name for field in fields(JournalEntry))
_NUMBERS: Final = ("at_unix_ns", "instance")
_ONLY_SHOWN: Final = ("by", "why")
_ADVICE: Final = "do not delete it: it has the originals of knobs; run ebbgate restore"
_COLUMNS: Final = ", ".join(_NAMES)
_ADD: Final = f"""
    INSERT OR REPLACE INTO originals ({_COLUMNS}) VALUES ({", ".join("?" * len(_NAMES))})
"""


class Journal:
    """The journal's file, open for writing; every change is on the disk when its call returns.

    One thread at a time. Every call raises sqlite3.Error where the file cannot be used, and one
    that reads raises Damaged for a row that no ebbgate wrote.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        allow_any_text(connection)
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or make the file. Raises PermissionDenied and Unavailable."""
        connection = open_writer(path, JOURNAL, access.ROOT_MODE, _ADVICE)
        # In the log of SQLite only FULL survives a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        return cls(connection)

    def close(self) -> None:
        """Checkpoint the log and close it."""
        self._connection.close()

    def put(self, entry: JournalEntry) -> None:
        """Store an original; replaces an earlier one of the same knob."""
        with transaction(self._connection) as open_:
            open_.execute(_ADD, astuple(entry))

    def remove(self, volume: str, knob: str) -> None:
        """Remove an original that is restored, or must not be restored any more."""
        with transaction(self._connection) as open_:
            open_.execute("DELETE FROM originals WHERE volume = ? AND knob = ?", (volume, knob))

    def find(self, volume: str, knob: str) -> JournalEntry | None:
        """Return the original of a knob; None where none is stored."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM originals WHERE volume = ? AND knob = ?", (volume, knob)
        )
        return next(iter(_whole(rows)), None)

    def entries(self, boot_id: str | None = None) -> list[JournalEntry]:
        """Return originals that are not restored, oldest first; of every boot with None."""
        return _entries(self._connection, boot_id)

    def quick_check(self) -> str:
        """Return `ok`, or the first fault that SQLite finds; reads the whole file."""
        return str(self._connection.execute("PRAGMA quick_check(1)").fetchone()[0])


def read(path: Path, boot_id: str | None = None) -> list[JournalEntry]:
    """Return originals that are not restored, without changing the file.

    Raises NothingRecorded, PermissionDenied, Unavailable (also if Damaged), sqlite3.Error.
    """
    connection = open_reader(path, JOURNAL, _ADVICE)
    allow_any_text(connection)
    try:
        return _entries(connection, boot_id)
    finally:
        connection.close()


def scan(connection: sqlite3.Connection, order: str) -> Iterator[tuple[int, JournalEntry | None]]:
    """Yield number and entry of each row without using an index, for a damaged file.

    An entry is None if a value is invalid. `order`: `ASC` or `DESC`.
    """
    allow_any_text(connection)
    rows = connection.execute(
        f"SELECT {_COLUMNS}, id FROM originals NOT INDEXED ORDER BY id {order}"
    )
    for row in rows:
        yield row[-1], _entry(row)


def _entries(connection: sqlite3.Connection, boot_id: str | None) -> list[JournalEntry]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM originals WHERE ?1 IS NULL OR boot_id = ?1 ORDER BY id", (boot_id,)
    )
    return _whole(rows)


def _whole(rows: Iterable[sqlite3.Row]) -> list[JournalEntry]:
    """Raises Damaged."""
    entries = [_entry(row) for row in rows]
    found = [entry for entry in entries if entry is not None]
    if len(found) != len(entries):
        what = "a row with a value of a wrong type, or with text that is not UTF-8"
        raise Damaged(f"the journal has {what}", _ADVICE)
    return found


def _entry(row: sqlite3.Row) -> JournalEntry | None:
    """SQLite keeps any type in any column, and another program may have written one."""
    values = {name: row[name] for name in _NAMES}
    return JournalEntry(**values) if all(map(_is_right, _NAMES, values.values())) else None


def _is_right(name: str, value: object) -> bool:
    if name in _NUMBERS:
        return isinstance(value, int)
    return isinstance(value, str) and (name in _ONLY_SHOWN or NOT_UTF8 not in value)
