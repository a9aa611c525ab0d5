# SPDX-License-Identifier: GPL-2.0-only
"""What the journal's writer does later: after its caller has given up, or once the disk works."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ebbgate.model.decision import JournalEntry
from ebbgate.store import journal_writer as module
from ebbgate.store.journal import Journal, read
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from tests.builders import journal_entry
from tests.waiting import until

KEY = ("bcache0", "writeback_percent")


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
    yield made
    made.stop()


class Hanging:
    """Lets a method of the journal wait until `go`; `came`: once it is called."""

    def __init__(self, patch: pytest.MonkeyPatch, name: str) -> None:
        self.came, self.go = threading.Event(), threading.Event()
        method = getattr(Journal, name)

        def wait(*arguments: Any) -> Any:
            self.came.set()
            assert self.go.wait(10)
            return method(*arguments)

        patch.setattr(Journal, name, wait)


class Refusing:
    """Lets a method of the journal fail while `on`; `calls`: how often it was called."""

    def __init__(self, patch: pytest.MonkeyPatch, name: str) -> None:
        self.on, self.calls = True, 0
        method = getattr(Journal, name)

        def refuse(*arguments: Any) -> Any:
            self.calls += 1
            if self.on:
                raise sqlite3.OperationalError("database or disk is full")
            return method(*arguments)

        patch.setattr(Journal, name, refuse)


def give_up(writer: JournalWriter, entry: JournalEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask for an original that the disk takes only after the caller has given up."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "_TIMEOUT_S", 0.05)
        hanging = Hanging(patch, "find")
        with pytest.raises(OSError, match="does not answer"):
            writer.put(entry)
        assert hanging.came.wait(10)
        hanging.go.set()
        patch.undo()
        writer.flush()


def test_giving_up_removes_no_original_that_was_there_before(
    writer: JournalWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier daemon wrote 40, and the original 10 is still to be restored."""
    first = writer.put(journal_entry(original="10", last_written="40", at_unix_ns=1))
    give_up(writer, journal_entry(original="40", last_written="0", at_unix_ns=2), monkeypatch)
    assert read(path) == [first]


def test_giving_up_leaves_no_original_of_a_knob_that_is_not_written(
    writer: JournalWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_up(writer, journal_entry(), monkeypatch)
    assert read(path) == []


def test_a_flush_says_that_the_disk_hangs(
    writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        hanging = Hanging(patch, "find")
        waiting = threading.Thread(target=writer.put, args=(journal_entry(),))
        waiting.start()
        assert hanging.came.wait(10)
        with pytest.raises(OSError, match="the disk of the journal does not answer"):
            writer.flush(0.01)
        hanging.go.set()
        waiting.join()


def test_what_a_restore_could_not_remove_is_removed_without_any_call(
    path: Path, last: LastWritten, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Journal.open(path)) as journal:
        journal.put(journal_entry())
    monkeypatch.setattr(module, "_RETRY_S", 0.01)
    refusing = Refusing(monkeypatch, "remove")
    with closing(LastWritten(path.with_name("other"))) as other:
        writer = JournalWriter(path, other, [(*KEY, "restored")])
        until(lambda: refusing.calls > 1, "it is tried again")
        refusing.on = False
        until(lambda: read(path) == [], "it is removed")
        assert writer.put(journal_entry(original="20")).original == "20", "the thread lives"
        writer.stop()


def test_a_removal_that_failed_is_tried_once_more_at_the_end(
    path: Path, last: LastWritten, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = JournalWriter(path, last)
    writer.put(journal_entry())
    refusing = Refusing(monkeypatch, "remove")
    writer.close(*KEY, "restored")
    until(lambda: refusing.calls > 0, "it is refused")
    refusing.on = False
    writer.stop()
    assert read(path) == []


def test_an_undo_that_the_disk_refuses_is_made_up_for(
    writer: JournalWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replacement came too late, and the older entry cannot be put back at once."""
    older = writer.put(journal_entry(original="2048", last_written="0", at_unix_ns=1))
    newer = journal_entry(original="4096", last_written="0", at_unix_ns=2)
    put = Journal.put
    came, go, refused = threading.Event(), threading.Event(), threading.Event()

    def late_then_full(journal: Journal, entry: JournalEntry) -> None:
        if entry == newer:
            came.set()
            assert go.wait(10)
        elif not refused.is_set():
            refused.set()
            raise sqlite3.OperationalError("database or disk is full")
        put(journal, entry)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "put", late_then_full)
        patch.setattr(module, "_TIMEOUT_S", 0.05)
        with pytest.raises(OSError, match="does not answer"):
            writer.replace(newer, older, ("0", "512"))
        assert came.wait(10)
        go.set()
        assert refused.wait(10)
    writer.flush()
    assert read(path) == [older]
