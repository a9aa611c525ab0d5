# SPDX-License-Identifier: GPL-2.0-only
"""Brings a database to the schema of this version. I/O: SQLite.

`user_version` holds the version of a file. It changes in one transaction with the tables, so a
crash in the middle leaves the file at the version before.
"""

from __future__ import annotations

import secrets
import sqlite3

from ebbgate.errors import Unavailable
from ebbgate.store.schema import Schema


class NewerSchema(Unavailable):
    """A newer ebbgate has written the file."""


class UnreleasedSchema(Unavailable):
    """A development version of ebbgate has written the file."""


def version(connection: sqlite3.Connection) -> int:
    """Return the schema version of the file; 0 for an empty one."""
    row = connection.execute("PRAGMA user_version").fetchone()
    return int(row[0])


def check_version(connection: sqlite3.Connection, schema: Schema, name: str) -> None:
    """Raise NewerSchema or UnreleasedSchema for a file that this ebbgate cannot use."""
    found = version(connection)
    if found > schema.version:
        raise NewerSchema(
            f"{name} is of a newer ebbgate: it has schema {found}; this ebbgate knows"
            f" {schema.version}",
            "install the newer ebbgate again, or move the file away and lose its history",
        )
    if 0 < found < schema.first:
        raise UnreleasedSchema(
            f"{name} has schema {found}, of an ebbgate that was never released",
            "move the file away; its history is lost",
        )


def migrate(connection: sqlite3.Connection, schema: Schema, name: str) -> None:
    """Create the tables of an empty file, or apply the migrations that a file lacks.

    The connection must be in autocommit mode (`isolation_level=None`).
    """
    check_version(connection, schema, name)
    while version(connection) < schema.version:
        _migrate_once(connection, schema)


def _migrate_once(connection: sqlite3.Connection, schema: Schema) -> None:
    # Take the write lock before reading the version: two programs that start take turns.
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = version(connection)
        if found == 0:
            # Tells this file from another one that later has the same name.
            connection.execute(f"PRAGMA application_id = {1 + secrets.randbits(30)}")
            _apply(connection, schema.create, schema.first)
        elif found < schema.version:
            _apply(connection, schema.migrations[found - schema.first], found + 1)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _apply(connection: sqlite3.Connection, statements: tuple[str, ...], number: int) -> None:
    for statement in statements:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {number}")
