# SPDX-License-Identifier: GPL-2.0-only
"""An original that replaces another one: the older one is in force until the new one is durable."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ebbgate.store import journal_writer as module
from ebbgate.store.journal import Journal, read
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten, Values
from tests.builders import journal_entry
from tests.waiting import until

OLDER = journal_entry(original="2048", last_written="0", at_unix_ns=1)
NEW = journal_entry(original="4096", last_written="0", at_unix_ns=2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def last(tmp_path: Path) -> Iterator[LastWritten]:
    with closing(LastWritten(tmp_path / "last-written")) as opened:
        yield opened


@pytest.fixture
def writer(path: Path, last: LastWritten) -> Iterator[JournalWriter]:
    made = JournalWriter(path, last)
    made.put(OLDER)
    yield made
    made.stop()


def test_both_can_be_written_until_the_older_one_is_forgotten(
    writer: JournalWriter, path: Path, last: LastWritten
) -> None:
    writer.replace(NEW, OLDER, ("0", "512"))
    assert read(path) == [NEW]
    assert last.values(NEW) == Values("0", "512")
    writer.writing(OLDER, "0", "512")
    writer.writing(NEW, "1", "0")
    writer.forget(OLDER)
    assert (last.values(OLDER), last.values(NEW)) == (None, Values("1", "0"))
    writer.close(NEW.volume, NEW.knob, "restored")
    writer.flush()
    assert read(path) == []
    assert last.values(NEW) is None


def test_an_original_that_ebbgate_wrote_itself_replaces_another_one(
    writer: JournalWriter, path: Path
) -> None:
    entry = journal_entry(original="0", last_written="0", at_unix_ns=3)
    writer.replace(entry, OLDER, ("0", "0"))
    assert read(path) == [entry]


def test_where_the_disk_refuses_the_older_one_stays(
    writer: JournalWriter, path: Path, last: LastWritten, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "put", full)
        with pytest.raises(OSError, match="full"):
            writer.replace(NEW, OLDER, ("0", "512"))
    writer.writing(OLDER, "0", "512")
    assert (read(path), last.values(OLDER)) == ([OLDER], Values("0", "512"))


def test_one_that_comes_too_late_is_undone(
    writer: JournalWriter, path: Path, last: LastWritten, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller goes on with the older entry: what it writes is recorded for that one."""
    put, came = Journal.put, []

    def watched(journal: Journal, entry: Any) -> None:
        came.append(entry)
        put(journal, entry)

    monkeypatch.setattr(Journal, "put", watched)
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match="does not answer"):
            writer.replace(NEW, OLDER, ("0", "512"))
        other.execute("COMMIT")
    until(lambda: len(came) > 1, "the older one is put back")
    monkeypatch.undo()
    writer.flush()
    assert came == [NEW, OLDER]
    assert read(path) == [OLDER]
    assert last.values(OLDER) is not None
