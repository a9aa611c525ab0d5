# SPDX-License-Identifier: GPL-2.0-only
"""The journal never loses an original and never takes a value of ours for one."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.store.db import Store
from ebbgate.store.queries import History
from tests.builders import journal_entry


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "history.db")
    yield opened
    opened.close()


def test_an_entry_comes_back_as_it_was(store: Store, tmp_path: Path) -> None:
    entry = journal_entry()
    store.journal_put(entry)
    assert store.journal_open(entry.boot_id) == [entry]
    assert History.open(tmp_path / "history.db").journal_open(None) == [entry]


def test_an_original_is_never_replaced_by_what_we_wrote(store: Store) -> None:
    entry = journal_entry(original="10")
    store.journal_put(entry)
    store.journal_put(replace(entry, original="40"))
    assert [kept.original for kept in store.journal_open()] == ["10"]


def test_the_last_written_value_is_kept_apart(store: Store) -> None:
    store.journal_put(journal_entry(original="10"))
    store.journal_written("bcache0", "writeback_percent", "0")
    (kept,) = store.journal_open()
    assert (kept.original, kept.last_written) == ("10", "0")


def test_a_closed_entry_is_done_and_the_knob_can_be_taken_again(store: Store) -> None:
    store.journal_put(journal_entry(original="10"))
    store.journal_close("bcache0", "writeback_percent", 9, "restored")
    assert store.journal_open() == []
    store.journal_put(journal_entry(original="20"))
    assert [kept.original for kept in store.journal_open()] == ["20"]


def test_an_entry_of_another_boot_gives_way_to_one_of_this_boot(store: Store) -> None:
    store.journal_put(journal_entry(boot_id="monday", original="10"))
    assert store.journal_open("tuesday") == []
    assert len(store.journal_open(None)) == 1
    store.journal_put(journal_entry(boot_id="tuesday", original="20"))
    assert [kept.original for kept in store.journal_open()] == ["20"]


def test_knobs_and_volumes_do_not_mix(store: Store) -> None:
    store.journal_put(journal_entry())
    store.journal_put(journal_entry(knob="writeback_delay"))
    store.journal_put(journal_entry(volume="bcache1"))
    store.journal_close("bcache0", "writeback_percent", 9, "restored")
    left = [(kept.volume, kept.knob) for kept in store.journal_open()]
    assert left == [("bcache0", "writeback_delay"), ("bcache1", "writeback_percent")]


def test_an_entry_is_safe_before_the_call_returns(store: Store, tmp_path: Path) -> None:
    """What a killed machine would find: the files as they are now, log included."""
    store.journal_put(journal_entry())
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for file in tmp_path.glob("history.db*"):
        shutil.copy(file, crashed)
    assert len(Store.open(crashed / "history.db").journal_open()) == 1


def test_an_entry_is_synced_and_samples_are_not(store: Store) -> None:
    seen: list[int] = []
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    store.journal_put(journal_entry())
    seen.append(statements.index("PRAGMA synchronous = FULL"))
    seen.append(next(i for i, text in enumerate(statements) if "INSERT" in text))
    seen.append(statements.index("COMMIT"))
    seen.append(statements.index("PRAGMA synchronous = NORMAL"))
    assert seen == sorted(seen)
    assert store._connection.execute("PRAGMA synchronous").fetchone()[0] == 1


def test_a_journal_that_cannot_be_kept_is_an_oserror(store: Store) -> None:
    store._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(OSError, match="the journal of knobs cannot be kept"):
        store.journal_put(journal_entry())


def test_a_full_disk_is_an_oserror_and_the_store_works_on(store: Store) -> None:
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(OSError, match="full"):
        store.journal_put(journal_entry(why="x" * 100_000))
    store._connection.execute("PRAGMA max_page_count = 100000")
    store.journal_put(journal_entry())
    assert len(store.journal_open()) == 1


def test_a_second_open_original_is_impossible_in_the_schema_itself(store: Store) -> None:
    store.journal_put(journal_entry())
    columns = "volume, knob, path, original, last_written, boot_id, at_unix_ns, by, why"
    with pytest.raises(sqlite3.IntegrityError):
        store._connection.execute(f"INSERT INTO journal ({columns}) SELECT {columns} FROM journal")
