# SPDX-License-Identifier: GPL-2.0-only
"""The journal's file: an original is safe once `put` returns, whatever happens to the file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import Unavailable
from ebbgate.store import journal_salvage
from ebbgate.store.connection import NothingRecorded
from ebbgate.store.journal import Journal, read
from tests.builders import journal_entry
from tests.unit.store.recorder_fixture import aside, overwrite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    opened = Journal.open(path)
    yield opened
    opened.close()


def test_an_entry_is_read_as_it_was_written(journal: Journal, path: Path) -> None:
    entry = journal_entry(device_uuid="6b1e", instance=4711)
    journal.put(entry)
    assert journal.entries(entry.boot_id) == [entry]
    assert journal.find(entry.volume, entry.knob) == entry
    assert read(path) == [entry]


def test_a_restored_original_is_removed_and_the_knob_can_be_journalled_again(
    journal: Journal,
) -> None:
    journal.put(journal_entry(original="10"))
    journal.remove("bcache0", "writeback_percent")
    assert journal.entries() == []
    journal.put(journal_entry(original="20"))
    assert [kept.original for kept in journal.entries()] == ["20"]


def test_entries_are_separate_by_knob_volume_and_boot(journal: Journal) -> None:
    journal.put(journal_entry())
    journal.put(journal_entry(knob="writeback_delay"))
    journal.put(journal_entry(volume="bcache1", boot_id="monday"))
    journal.remove("bcache0", "writeback_percent")
    left = [(kept.volume, kept.knob) for kept in journal.entries()]
    assert left == [("bcache0", "writeback_delay"), ("bcache1", "writeback_percent")]
    assert [kept.volume for kept in journal.entries("monday")] == ["bcache1"]


def test_only_root_may_open_the_journal_and_its_log(journal: Journal, path: Path) -> None:
    journal.put(journal_entry())
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {"journal.db": 0o600, "journal.db-wal": 0o600, "journal.db-shm": 0o600}


def test_an_older_journal_loses_the_rights_of_others(path: Path) -> None:
    with closing(Journal.open(path)) as journal:
        journal.put(journal_entry())
    path.chmod(0o666)
    Journal.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_entry_is_durable_when_the_call_returns(journal: Journal, path: Path) -> None:
    """What a killed machine would find: the files as they are now, log included."""
    journal.put(journal_entry())
    crashed = path.parent / "crashed"
    crashed.mkdir()
    for file in path.parent.glob("journal.db*"):
        shutil.copy(file, crashed)
    assert len(read(crashed / "journal.db")) == 1


def test_every_change_is_synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def kept(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", kept)
    with closing(Journal.open(path)):
        assert opened[-1].execute("PRAGMA synchronous").fetchone()[0] == 2


def test_the_schema_refuses_two_originals_of_one_knob(journal: Journal, path: Path) -> None:
    journal.put(journal_entry(original="10"))
    with closing(sqlite3.connect(path)) as other, pytest.raises(sqlite3.IntegrityError):
        other.execute(
            "INSERT INTO originals SELECT id + 1, volume, knob, path, original, last_written,"
            " boot_id, at_unix_ns, by, why, device_uuid, instance FROM originals"
        )


def test_reading_makes_no_journal(path: Path) -> None:
    with pytest.raises(NothingRecorded):
        read(path)
    assert not path.exists()


# ---- a damaged file ------------------------------------------------------------------------------
def filled(path: Path) -> None:
    with closing(Journal.open(path)) as journal:
        for number in range(200):
            journal.put(journal_entry(f"knob{number}", original=str(number), why="x" * 900))


def spoil(path: Path, column: str, value: str = "x'ff00'") -> None:
    """As a hand with sqlite3 could: SQLite takes any type in any column."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE originals SET {column} = {value} WHERE id = 1")


def leaves(path: Path) -> list[int]:
    """The pages of the rows; none where SQLite was built without this table."""
    query = "SELECT pageno FROM dbstat WHERE name = 'originals' AND pagetype = 'leaf' ORDER BY path"
    with closing(sqlite3.connect(path)) as connection:
        try:
            return [page for (page,) in connection.execute(query)]
        except sqlite3.OperationalError:
            return []


def test_originals_before_and_after_the_damage_are_read(path: Path) -> None:
    filled(path)
    pages = leaves(path)
    if not pages:
        pytest.skip("this SQLite does not say where its pages are")
    overwrite(path, (pages[len(pages) // 2] - 1) * 4096, 4096)
    entries, whole = journal_salvage.salvage(path)
    assert not whole
    assert 150 < len(entries) < 200
    assert {"0", "199"} <= {entry.original for entry in entries}


def test_a_damaged_journal_is_replaced_by_one_with_its_readable_originals(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled(path)
    os.truncate(path, path.stat().st_size // 2)
    with closing(journal_salvage.open_or_renew(path)) as journal:
        kept = [entry.original for entry in journal.entries()]
        assert "0" in kept
        journal.put(journal_entry(original="10"))
    assert len(aside(path)) == 1
    assert "others may be lost" in caplog.text


def test_the_hint_for_an_unusable_journal_is_not_to_delete_it(path: Path) -> None:
    path.write_text("somebody's shopping list\n" * 400)
    with pytest.raises(Unavailable) as caught:
        Journal.open(path)
    assert caught.value.hint.startswith("do not delete it: it has the originals of knobs")


def test_the_hint_for_a_newer_journal_is_not_to_delete_it(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(Unavailable) as caught:
        Journal.open(path)
    assert caught.value.hint.startswith("install the newer ebbgate again; do not delete it")


def test_a_file_that_is_no_database_is_moved_aside(path: Path) -> None:
    path.write_text("somebody's shopping list\n" * 400)
    with closing(journal_salvage.open_or_renew(path)) as journal:
        assert journal.entries() == []


def test_a_crash_while_replacing_the_journal_loses_no_original(path: Path) -> None:
    filled(path.with_name("journal.db.new"))
    with closing(journal_salvage.open_or_renew(path)) as journal:
        assert len(journal.entries()) == 200


def test_a_crash_between_two_renames_leaves_no_log_of_the_damaged_journal(path: Path) -> None:
    with closing(Journal.open(path)) as old:
        old.put(journal_entry("writeback_delay"))
        shutil.copy(path.with_name("journal.db-wal"), path.with_name("kept"))
    path.unlink()
    path.with_name("kept").rename(path.with_name("journal.db-wal"))
    filled(path.with_name("journal.db.new"))
    with closing(journal_salvage.open_or_renew(path)) as journal:
        assert len(journal.entries()) == 200


def test_a_row_of_a_wrong_type_is_not_taken_for_an_original(path: Path) -> None:
    with closing(Journal.open(path)) as journal:
        journal.put(journal_entry())
        journal.put(replace(journal_entry("writeback_delay"), original=b"\0"))  # type: ignore[arg-type]
    entries, whole = journal_salvage.salvage(path)
    assert [entry.knob for entry in entries] == ["writeback_percent"]
    assert not whole


@pytest.mark.parametrize("column", ["volume", "knob", "path", "original", "last_written", "by"])
def test_a_row_of_a_wrong_type_is_moved_aside_with_its_file(
    path: Path, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled(path)
    spoil(path, column)
    with closing(journal_salvage.open_or_renew(path)) as journal:
        assert len(journal.entries()) == 199
    assert len(aside(path)) == 1
    assert "a value of a wrong type" in caplog.text
    assert "others may be lost" in caplog.text


NOT_UTF8 = "CAST(x'ff41' AS TEXT)"
"""As after a bit error of the disk, which SQLite does not notice."""


@pytest.mark.parametrize("column", ["volume", "knob", "path", "original", "last_written"])
def test_text_that_is_not_utf8_costs_only_its_row(
    path: Path, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled(path)
    spoil(path, column, NOT_UTF8)
    with closing(journal_salvage.open_or_renew(path)) as journal:
        assert len(journal.entries()) == 199
        journal.put(journal_entry("writeback_delay"))
    assert len(aside(path)) == 1
    assert "text that is not UTF-8" in caplog.text


def test_a_reason_that_is_not_utf8_costs_no_original(path: Path) -> None:
    filled(path)
    spoil(path, "why", NOT_UTF8)
    assert len(read(path)) == 200
    with closing(journal_salvage.open_or_renew(path)) as journal:
        assert len(journal.entries()) == 200
    assert aside(path) == []
