# SPDX-License-Identifier: GPL-2.0-only
"""Files of every older version are brought up to date whole, or left as they were."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.store.connection import open_writer
from ebbgate.store.db import Store
from ebbgate.store.maintenance import Upkeep
from ebbgate.store.migrations import NewerSchema, version
from ebbgate.store.queries import History
from ebbgate.store.rollup import HOUR_NS, MINUTE_NS, SECOND_NS
from ebbgate.store.schema import HISTORY, OVERRIDES, Migrations
from ebbgate.units import MIB
from tests.unit.store.store_fixture import LIMITS

SCHEMAS = Path(__file__).parent / "schemas"
AT_NS = 1_760_000_040_000_000_000
"""When the samples of the old files begin."""
OLDER = [
    (kind, number)
    for kind, known in (("history", HISTORY), ("overrides", OVERRIDES))
    for number in range(1, len(known) + 1)
    if number < len(known)
]


def old_file(folder: Path, kind: str, number: int) -> Path:
    """A file as an older version wrote it."""
    path = folder / f"{kind}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((SCHEMAS / f"{kind}-{number}.sql").read_text())
    return path


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables, with the columns that they had."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3").fetchall()
            for (name,) in tables.fetchall()
        }


def schema(path: Path) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT type, name FROM sqlite_master ORDER BY 1, 2").fetchall()
        columns = [
            (name, *row[1:3])
            for kind, name in rows
            if kind == "table"
            for row in connection.execute(f"PRAGMA table_info({name})")
        ]
        return rows + columns


def known(kind: str) -> Migrations:
    return HISTORY if kind == "history" else OVERRIDES


@pytest.mark.parametrize(("kind", "number"), OLDER)
def test_every_older_file_keeps_its_contents(tmp_path: Path, kind: str, number: int) -> None:
    path = old_file(tmp_path, kind, number)
    before = contents(path)
    open_writer(path, known(kind)).close()
    after = contents(path)
    for table, rows in before.items():
        if table != "decisions":
            assert [row[: len(old)] for row, old in zip(after[table], rows, strict=True)] == rows
    with closing(sqlite3.connect(path)) as connection:
        assert version(connection) == len(known(kind))


@pytest.mark.parametrize(("kind", "number"), OLDER)
def test_a_file_that_was_brought_up_to_date_is_like_a_new_one(
    tmp_path: Path, kind: str, number: int
) -> None:
    path = old_file(tmp_path, kind, number)
    open_writer(path, known(kind)).close()
    open_writer(tmp_path / "new.db", known(kind)).close()
    assert schema(path) == schema(tmp_path / "new.db")


@pytest.mark.parametrize(("kind", "number"), OLDER)
@pytest.mark.parametrize("broken_at", [0, 1])
def test_a_migration_that_fails_leaves_the_old_file_as_it_was(
    tmp_path: Path, kind: str, number: int, broken_at: int
) -> None:
    path = old_file(tmp_path, kind, number)
    before, was = contents(path), schema(path)
    steps = [*known(kind)[:number], ("CREATE TABLE more (x)",)]
    steps[-1] = (*steps[-1][: 1 - broken_at], "DELETE FROM nothing", *steps[-1])
    with pytest.raises(Exception, match="nothing"):
        open_writer(path, tuple(steps))
    assert (contents(path), schema(path)) == (before, was)
    with closing(sqlite3.connect(path)) as connection:
        assert version(connection) == number


def test_a_file_of_each_version_that_was_released_is_kept() -> None:
    kept = {path.stem for path in SCHEMAS.glob("*.sql")}
    assert kept >= {f"{kind}-{number}" for kind, number in OLDER}


def test_the_first_schemas_events_are_counted_and_its_samples_rolled_up(tmp_path: Path) -> None:
    path = old_file(tmp_path, "history", 1)
    with closing(Store.open(path)) as store:
        upkeep = Upkeep(LIMITS)
        while store.tidy(upkeep, AT_NS + 2 * HOUR_NS, 0):
            pass
    with closing(sqlite3.connect(path)) as connection:
        tallies = connection.execute(
            "SELECT what, strategy, knob, outcome, count, amount FROM tallies ORDER BY 1, 3"
        ).fetchall()
        acted = connection.execute("SELECT acted FROM decisions ORDER BY id").fetchall()
    assert tallies == [
        ("action", "idle_destage", "sequential_cutoff", "manual", 1, 0),
        ("action", "idle_destage", "writeback_percent", "changed", 1, 0),
        ("action", "idle_destage", "writeback_rate", "failed", 1, 0),
        ("gap", "", "", "", 1, 2500_000_000),
    ]
    assert acted == [(1,), (0,)]
    with closing(History.open(path)) as history:
        minutes = history.samples("bcache0", 0, 1 << 62, MINUTE_NS)
        assert [row["dirty_bytes"] for row in minutes] == [2 * MIB, None]
        assert minutes[0]["dirty_bytes_max"] == 3 * MIB
        assert len(history.samples("bcache0", 0, 1 << 62, SECOND_NS)) == 4


@pytest.mark.parametrize(("kind", "steps"), [("history", HISTORY), ("overrides", OVERRIDES)])
def test_a_file_of_a_newer_version_is_refused_and_left_alone(
    tmp_path: Path, kind: str, steps: Migrations
) -> None:
    path = tmp_path / f"{kind}.db"
    open_writer(path, (*steps, ("CREATE TABLE of_tomorrow (x)",))).close()
    before = path.read_bytes()
    with pytest.raises(NewerSchema, match=f"has schema {len(steps) + 1}; this ebbgate knows"):
        open_writer(path, steps)
    assert path.read_bytes() == before


def test_a_migration_is_not_seen_half_done_by_a_reader(tmp_path: Path) -> None:
    path = old_file(tmp_path, "history", 1)
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("PRAGMA journal_mode = WAL")
        reader.execute("BEGIN")
        seen = reader.execute("SELECT count(*) FROM decisions").fetchone()
        Store.open(path).close()
        assert reader.execute("PRAGMA user_version").fetchone() == (1,)
        assert reader.execute("SELECT count(*) FROM decisions").fetchone() == seen
        reader.execute("COMMIT")
        assert reader.execute("PRAGMA user_version").fetchone() == (len(HISTORY),)
