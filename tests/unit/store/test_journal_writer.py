# SPDX-License-Identifier: GPL-2.0-only
"""The journal's writer: durable before the first write, and nothing in the way of a restore."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ebbgate.model.decision import JournalEntry, LastWriteLost
from ebbgate.store import journal_writer as module
from ebbgate.store.journal import Journal, read
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten, Values
from ebbgate.store.recorder import Recorder
from tests.builders import decision, journal_entry, proposal
from tests.unit.store.recorder_fixture import overwrite, said
from tests.unit.store.test_recorder_faults import Disk, disk
from tests.waiting import until

__all__ = ["disk"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def last(tmp_path: Path) -> Iterator[LastWritten]:
    opened = LastWritten(tmp_path / "last-written")
    yield opened
    opened.close()


@pytest.fixture
def writer(path: Path, last: LastWritten) -> Iterator[JournalWriter]:
    before = threading.enumerate()
    made = JournalWriter(path, last)
    yield made
    made.stop()
    assert threading.enumerate() == before


def originals(path: Path) -> list[str]:
    return [entry.original for entry in read(path)]


def flushed(writer: JournalWriter) -> bool:
    try:
        writer.flush()
    except OSError:
        return False
    return True


def test_an_original_is_in_the_file_when_the_call_returns(
    writer: JournalWriter, path: Path
) -> None:
    entry = journal_entry()
    assert writer.put(entry) == entry
    assert read(path) == [entry]


def test_a_pending_removal_is_done_before_a_new_original(writer: JournalWriter, path: Path) -> None:
    writer.put(journal_entry(original="10", at_unix_ns=1))
    writer.close("bcache0", "writeback_percent", "restored")
    assert writer.put(journal_entry(original="20", at_unix_ns=2)).original == "20"
    assert originals(path) == ["20"]


# ---- an entry that is open still -----------------------------------------------------------------
def test_a_value_that_ebbgate_wrote_is_never_an_original(writer: JournalWriter, path: Path) -> None:
    """An earlier daemon could not put 10 back: what is there now is its 40."""
    first = journal_entry(original="10", last_written="40", at_unix_ns=1)
    writer.put(first)
    assert writer.put(journal_entry(original="40", last_written="0", at_unix_ns=2)) == first
    assert originals(path) == ["10"]


def test_a_value_that_somebody_else_wrote_becomes_the_original(
    writer: JournalWriter, path: Path
) -> None:
    writer.put(journal_entry(original="10", last_written="40", at_unix_ns=1))
    writer.put(journal_entry(original="25", last_written="0", at_unix_ns=2))
    assert originals(path) == ["25"]


@pytest.mark.parametrize("other", [{"boot_id": "later"}, {"device_uuid": "other"}, {"instance": 2}])
def test_an_entry_of_another_device_or_boot_is_replaced(
    writer: JournalWriter, path: Path, other: dict[str, Any]
) -> None:
    writer.put(journal_entry(original="10", last_written="40", at_unix_ns=1))
    writer.put(journal_entry(original="40", last_written="0", at_unix_ns=2, **other))
    assert originals(path) == ["40"]


def test_a_kept_entry_has_the_values_of_both_writes(
    writer: JournalWriter, last: LastWritten
) -> None:
    first = journal_entry(original="10", last_written="40", at_unix_ns=1)
    writer.put(first)
    writer.put(journal_entry(original="40", last_written="0", at_unix_ns=2))
    assert last.values(first) == Values("0", "40")


def test_a_kept_entry_never_loses_the_value_that_the_knob_has(
    writer: JournalWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = journal_entry(original="10", last_written="40", at_unix_ns=1)
    writer.put(first)
    writer.writing(first, "0", "40")
    write, seen = os.pwrite, []

    def killed_here(handle: int, data: bytes, offset: int) -> int:
        done = write(handle, data, offset)
        with closing(LastWritten(tmp_path / "last-written")) as later:
            seen.append(later.values(first))
        return done

    monkeypatch.setattr(os, "pwrite", killed_here)
    writer.put(journal_entry(original="0", last_written="20", at_unix_ns=2))
    assert seen
    assert all(values is not None and "0" in values for values in seen), seen


# ---- an entry of which the last written value is lost --------------------------------------------
def test_an_original_stays_where_nobody_knows_who_wrote_the_value(
    writer: JournalWriter, last: LastWritten, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The gate was open when the daemon was killed, and the list of last values is gone."""
    last.end(writer.put(journal_entry(original="10", last_written="40", at_unix_ns=1)))
    with pytest.raises(LastWriteLost, match="unknown: set it to 10 by hand, then ebbgate restore"):
        writer.put(journal_entry(original="0", last_written="40", at_unix_ns=2))
    assert originals(path) == ["10"]
    assert caplog.records == [], "the journal works"


@pytest.mark.parametrize("found", ["10", "40"])
def test_a_lost_value_is_known_again_with_the_original_or_the_first_write(
    writer: JournalWriter, last: LastWritten, found: str
) -> None:
    first = writer.put(journal_entry(original="10", last_written="40", at_unix_ns=1))
    last.end(first)
    assert writer.put(journal_entry(original=found, last_written="0", at_unix_ns=2)) == first
    assert last.values(first) == Values("0", found)


def test_an_original_stays_of_a_knob_that_the_kernel_writes(
    writer: JournalWriter, last: LastWritten
) -> None:
    first = writer.put(journal_entry("writeback_rate", original="8", last_written="1"))
    last.end(first)
    assert writer.put(journal_entry("writeback_rate", original="999", at_unix_ns=2)) == first


def test_the_value_of_a_table_is_never_lost(
    writer: JournalWriter, last: LastWritten, path: Path
) -> None:
    last.end(writer.put(journal_entry("table", original="0 8 a", last_written="0 8 b")))
    writer.put(journal_entry("table", original="0 8 c", last_written="0 8 d", at_unix_ns=2))
    assert originals(path) == ["0 8 c"]


def test_a_lost_value_keeps_the_other_volumes_of_a_set_from_an_original(
    writer: JournalWriter, last: LastWritten, path: Path
) -> None:
    last.end(writer.put(shared("bcache0", "2000", 1)))
    with pytest.raises(LastWriteLost):
        writer.put(shared("bcache1", "1", 2))
    assert originals(path) == ["2000"]


def test_a_write_without_a_record_is_refused(last: LastWritten) -> None:
    with pytest.raises(OSError, match="the last values of writeback_percent are lost"):
        last.writing(journal_entry(), Values("0", "40"))


# ---- two volumes of one cache set ----------------------------------------------------------------
SHARED = "/sys/fs/bcache/11111111-2222-3333-4444-555555555555/internal/idle_max_writeback_rate"


def shared(volume: str, original: str, at_unix_ns: int) -> JournalEntry:
    knob = "idle_max_writeback_rate"
    return journal_entry(
        knob, volume=volume, path=SHARED, original=original, last_written="0", at_unix_ns=at_unix_ns
    )


def test_a_knob_that_two_volumes_write_has_one_original(writer: JournalWriter, path: Path) -> None:
    writer.put(shared("bcache0", "1", 1))
    assert writer.put(shared("bcache1", "0", 2)).original == "1"
    assert originals(path) == ["1", "1"]


def test_the_last_volume_that_releases_a_shared_knob_restores_it(writer: JournalWriter) -> None:
    first, second = writer.put(shared("bcache0", "1", 1)), writer.put(shared("bcache1", "0", 2))
    assert writer.claims.disclaim(first) is True
    assert writer.claims.disclaim(second) is False
    writer.claims.reclaim(second)
    assert writer.claims.disclaim(first) is True, "it could not be put back, and is held still"
    writer.close("bcache1", second.knob, "somebody else has changed it")
    assert writer.claims.disclaim(first) is False


# ---- what must not matter ------------------------------------------------------------------------
def test_a_full_disk_of_the_history_does_not_affect_the_journal(
    disk: Disk, writer: JournalWriter, path: Path
) -> None:
    recorder = Recorder(disk.folder / "history.db")
    try:
        recorder.flush()
        disk.fill()
        recorder.decision(decision(proposal(reason="x" * 20_000)), 1)
        until(lambda: not recorder.health().written, "the full disk is noticed")
        writer.put(journal_entry())
        assert originals(path) == ["10"]
    finally:
        disk.free()
        recorder.stop()


def test_a_reader_that_locks_the_history_does_not_affect_the_journal(
    tmp_path: Path, writer: JournalWriter, path: Path
) -> None:
    """A reader of `history.db` can lock its writer out; this is impossible for the journal."""
    recorder = Recorder(tmp_path / "history.db")
    try:
        recorder.flush()
        with closing(sqlite3.connect(tmp_path / "history.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            begun_s = time.monotonic()
            writer.put(journal_entry())
            writer.close("bcache0", "writeback_percent", "restored")
            writer.flush()
            assert time.monotonic() - begun_s < 2
    finally:
        recorder.stop()
    assert originals(path) == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# ---- a file in trouble ---------------------------------------------------------------------------
def test_on_a_full_disk_an_original_is_refused_and_removals_are_retried(
    disk: Disk, last: LastWritten, caplog: pytest.LogCaptureFixture
) -> None:
    writer = JournalWriter(disk.folder / "journal.db", last)
    try:
        writer.put(journal_entry(original="10"))
        disk.fill()
        with pytest.raises(OSError, match=r"full|I/O"):
            for number in range(500):
                writer.put(journal_entry(f"knob{number}", why="x" * 4000))
        writer.close("bcache0", "writeback_percent", "restored")
        disk.free()
        until(lambda: flushed(writer), "written again")
    finally:
        writer.stop()
    assert "writeback_percent" not in [entry.knob for entry in read(disk.folder / "journal.db")]
    assert said(caplog, "the journal of knobs cannot be written") == 1
    assert said(caplog, "the journal can be written again") == 1


def test_a_disk_that_hangs_is_an_os_error_and_the_entry_is_discarded(
    writer: JournalWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.flush()
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match="does not answer"):
            writer.put(journal_entry())
        other.execute("COMMIT")
    monkeypatch.undo()
    until(lambda: flushed(writer), "written again")
    assert originals(path) == []


def test_a_journal_deleted_in_use_is_made_again_with_its_originals(
    writer: JournalWriter, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer.put(journal_entry(original="10"))
    writer.put(journal_entry("writeback_delay", original="30"))
    for each in path.parent.glob("journal.db*"):
        each.unlink()
    writer.close("bcache0", "writeback_delay", "restored")
    writer.flush()
    assert originals(path) == ["10"]
    assert said(caplog, "was moved or deleted") == 1


def test_damage_in_use_loses_no_original(
    writer: JournalWriter, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer.put(journal_entry(original="10"))
    # Folds the log into the file, all of which is then lost.
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    overwrite(path, 0, path.stat().st_size)
    writer.put(journal_entry("writeback_delay", original="30"))
    assert sorted(originals(path)) == ["10", "30"]
    assert said(caplog, "damaged") >= 1


def test_entries_that_a_restore_could_not_remove_are_removed_by_the_daemon(
    path: Path, last: LastWritten
) -> None:
    with closing(Journal.open(path)) as journal:
        journal.put(journal_entry())
    writer = JournalWriter(path, last, [("bcache0", "writeback_percent", "restored")])
    writer.flush()
    writer.stop()
    assert originals(path) == []


def test_a_bug_in_a_record_does_not_end_the_thread(
    writer: JournalWriter, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    with pytest.raises(Exception, match=r"."):
        writer.put(journal_entry(original=object()))
    writer.put(journal_entry())
    assert originals(path) == ["10"]


# ---- what was last written -----------------------------------------------------------------------
def test_what_was_last_written_survives_the_process(tmp_path: Path, last: LastWritten) -> None:
    entry = journal_entry(original="10", last_written="40")
    assert last.values(entry) is None
    last.begin(entry)
    assert last.values(entry) == Values("40", "10")
    last.writing(entry, Values("0", "40"))
    again = LastWritten(tmp_path / "last-written")
    assert again.values(entry) == Values("0", "40")
    again.close()


def test_the_record_of_a_settled_entry_is_reused(tmp_path: Path, last: LastWritten) -> None:
    for number in range(50):
        entry = journal_entry(at_unix_ns=number)
        last.begin(entry)
        last.end(entry)
        assert last.values(entry) is None
    assert (tmp_path / "last-written").stat().st_size == 512


def test_only_open_entries_are_kept_and_only_root_may_read_them(
    tmp_path: Path, last: LastWritten
) -> None:
    old, new = journal_entry(at_unix_ns=1), journal_entry(at_unix_ns=2)
    last.begin(old)
    last.begin(new)
    last.keep_only([new])
    assert (last.values(old), last.values(new)) == (None, Values("40", "10"))
    assert stat.S_IMODE((tmp_path / "last-written").stat().st_mode) == 0o600


def test_invalid_records_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "last-written"
    path.write_bytes(os.urandom(5000))
    last = LastWritten(path)
    entry = journal_entry()
    last.begin(entry)
    assert last.values(entry) == Values("40", "10")
    last.close()


def test_a_value_that_does_not_fit_is_refused(last: LastWritten) -> None:
    entry = journal_entry()
    last.begin(entry)
    with pytest.raises(OSError, match="too long"):
        last.writing(entry, Values("x" * 600, "10"))
