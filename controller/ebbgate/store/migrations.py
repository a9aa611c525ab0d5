# SPDX-License-Identifier: GPL-2.0-only
"""Brings a database to the schema of this version. I/O: SQLite.

`user_version` counts the migrations that a file has seen. Each runs in one transaction together
with its count, so a crash in the middle leaves the file at the version before.
"""

from __future__ import annotations

import secrets
import sqlite3

from ebbgate.errors import Unavailable
from ebbgate.store.schema import Migrations


class NewerSchema(Unavailable):
    """A newer ebbgate has written the file: what it means is not known here."""


def version(connection: sqlite3.Connection) -> int:
    """How many migrations the file has seen."""
    row = connection.execute("PRAGMA user_version").fetchone()
    return int(row[0])


def check_not_newer(connection: sqlite3.Connection, migrations: Migrations, name: str) -> None:
    """Raise NewerSchema for a file that a newer ebbgate has written."""
    found = version(connection)
    if found > len(migrations):
        raise NewerSchema(
            f"{name} has schema {found}; this ebbgate knows {len(migrations)}",
            "install the newer ebbgate again, or move the file away and lose its history",
        )


def migrate(connection: sqlite3.Connection, migrations: Migrations, name: str) -> int:
    """Apply what is missing; returns the number of migrations that ran.

    The connection must be in autocommit mode (`isolation_level=None`).
    """
    check_not_newer(connection, migrations, name)
    ran = 0
    while version(connection) < len(migrations):
        ran += _migrate_once(connection, migrations)
    return ran


def _migrate_once(connection: sqlite3.Connection, migrations: Migrations) -> int:
    # Take the write lock before the version is looked at: two starting programs take turns.
    connection.execute("BEGIN IMMEDIATE")
    try:
        seen = version(connection)
        if seen == 0:
            # Another file from now on, even under the same name.
            connection.execute(f"PRAGMA application_id = {1 + secrets.randbits(30)}")
        if seen < len(migrations):
            for statement in migrations[seen]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {seen + 1}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return 1
