# SPDX-License-Identifier: GPL-2.0-only
"""Files of older versions are brought up to date whole, or left as they were."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.errors import Unavailable
from ebbgate.store.connection import open_reader, open_writer
from ebbgate.store.db import Store
from ebbgate.store.migrations import NewerSchema, UnreleasedSchema, migrate, version
from ebbgate.store.queries import History
from ebbgate.store.schema import HISTORY, JOURNAL, OVERRIDES, Schema

OLD = Schema(("CREATE TABLE a (x)", "INSERT INTO a VALUES (1)"), first=3)
NEW = replace(OLD, migrations=(("ALTER TABLE a ADD COLUMN y", "CREATE TABLE b (z)"),))


def unreleased_history(folder: Path) -> Path:
    """A file as development versions wrote it before the first release."""
    path = folder / "history.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE decisions (id); PRAGMA user_version = 3")
    return path


def test_a_new_file_has_the_newest_version(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "a.db", OLD)) as connection:
        assert version(connection) == OLD.version == 3


def test_an_older_file_is_migrated_once_and_keeps_its_rows(tmp_path: Path) -> None:
    open_writer(tmp_path / "a.db", OLD).close()
    with closing(open_writer(tmp_path / "a.db", NEW)) as connection:
        migrate(connection, NEW, "a.db")
        assert version(connection) == NEW.version == 4
        assert tuple(connection.execute("SELECT x, y FROM a").fetchone()) == (1, None)


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "a.db", OLD)
    broken = replace(OLD, migrations=(("CREATE TABLE b (y)", "CREATE TABLE oops ("),))
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, broken, "a.db")
    assert version(connection) == OLD.version
    assert {row[0] for row in connection.execute("SELECT name FROM sqlite_master")} == {"a"}


def test_a_reader_never_sees_half_a_migration(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    open_writer(path, OLD).close()
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM a").fetchone()
        open_writer(path, NEW).close()
        assert reader.execute("PRAGMA user_version").fetchone() == (OLD.version,)
        reader.execute("COMMIT")
        assert reader.execute("PRAGMA user_version").fetchone() == (NEW.version,)


def test_a_reader_of_an_older_file_is_advised_to_start_the_daemon(tmp_path: Path) -> None:
    open_writer(tmp_path / "a.db", OLD).close()
    with pytest.raises(Unavailable, match=r"has schema 3, and 4 is needed[\s\S]*start the daemon"):
        open_reader(tmp_path / "a.db", NEW)


@pytest.mark.parametrize("schema", [HISTORY, JOURNAL, OVERRIDES])
def test_a_file_of_a_newer_version_is_refused_and_left_alone(
    tmp_path: Path, schema: Schema
) -> None:
    path = tmp_path / "a.db"
    open_writer(
        path, replace(schema, migrations=(*schema.migrations, ("CREATE TABLE later (x)",)))
    ).close()
    before = path.read_bytes()
    for opened in (open_writer, open_reader):
        with pytest.raises(NewerSchema, match=f"has schema {schema.version + 1}; this ebbgate"):
            opened(path, schema)
    assert path.read_bytes() == before


def test_a_file_of_an_unreleased_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = unreleased_history(tmp_path)
    before = path.read_bytes()
    for opened in (Store.open, History.open):
        with pytest.raises(UnreleasedSchema, match=r"never released[\s\S]*move the file away"):
            opened(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM decisions").fetchone() == (0,)
    assert len(path.read_bytes()) == len(before)
