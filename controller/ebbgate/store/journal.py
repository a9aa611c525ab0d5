# SPDX-License-Identifier: GPL-2.0-only
"""The journal of originals: what each knob held before ebbgate wrote it first. I/O: SQLite.

An entry is open from the first write until the original is back. Knobs fall back to the kernel's
defaults at a reboot, so an open entry of another boot says nothing about today's values.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from ebbgate.model.decision import JournalEntry

OTHER_BOOT = "other boot: the kernel's defaults are back"

_COLUMNS = "volume, knob, path, original, last_written, boot_id, at_unix_ns, by, why"
_OPEN = "closed_unix_ns IS NULL"


def put(connection: sqlite3.Connection, entry: JournalEntry) -> None:
    """Open an entry unless this boot has one for the knob already; close one of another boot."""
    connection.execute(
        f"""UPDATE journal SET closed_unix_ns = ?, closed_how = ?
            WHERE volume = ? AND knob = ? AND boot_id <> ? AND {_OPEN}""",
        (entry.at_unix_ns, OTHER_BOOT, entry.volume, entry.knob, entry.boot_id),
    )
    connection.execute(
        f"INSERT OR IGNORE INTO journal ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            entry.volume,
            entry.knob,
            entry.path,
            entry.original,
            entry.last_written,
            entry.boot_id,
            entry.at_unix_ns,
            entry.by,
            entry.why,
        ),
    )


def open_entries(connection: sqlite3.Connection, boot_id: str | None) -> list[JournalEntry]:
    """Entries that are open, oldest first; of one boot, or of all with None."""
    rows = connection.execute(
        f"""SELECT {_COLUMNS} FROM journal
            WHERE {_OPEN} AND (?1 IS NULL OR boot_id = ?1) ORDER BY id""",
        (boot_id,),
    )
    return [JournalEntry(**{key: row[key] for key in row.keys()}) for row in rows]  # noqa: SIM118


def scan(connection: sqlite3.Connection, order: str) -> Iterator[tuple[int, JournalEntry]]:
    """Number and entry of all that is open, row by row and without an index, for a damaged file.

    `order`: `ASC` or `DESC`.
    """
    rows = connection.execute(
        f"SELECT id, {_COLUMNS} FROM journal NOT INDEXED WHERE {_OPEN} ORDER BY id {order}"
    )
    for row in rows:
        yield row["id"], JournalEntry(**{key: row[key] for key in row.keys()[1:]})


def written(connection: sqlite3.Connection, volume: str, knob: str, value: str) -> None:
    """Keep the value that was last written."""
    connection.execute(
        f"UPDATE journal SET last_written = ? WHERE volume = ? AND knob = ? AND {_OPEN}",
        (value, volume, knob),
    )


def close(connection: sqlite3.Connection, volume: str, knob: str, wall_ns: int, how: str) -> None:
    """Close the open entry of the knob, if there is one."""
    connection.execute(
        f"""UPDATE journal SET closed_unix_ns = ?, closed_how = ?
            WHERE volume = ? AND knob = ? AND {_OPEN}""",
        (wall_ns, how, volume, knob),
    )
