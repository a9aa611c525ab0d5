# SPDX-License-Identifier: GPL-2.0-only
"""A knob comes back whatever happened to the journal: restore and the daemon's start."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.config.settings import Config, load_config
from ebbgate.daemon.main import restore_leftovers
from ebbgate.store import state_dirs
from ebbgate.store.journal import Journal, read
from ebbgate.store.last_written import LastWritten
from ebbgate.store.migrations import NewerSchema
from ebbgate.store.unrestored import SettledEntry
from tests.builders import journal_entry
from tests.unit.conftest import BOOT_ID, Cli
from tests.unit.store.recorder_fixture import aside, overwrite

KNOB = "/sys/block/bcache0/bcache/writeback_percent"


def several(path: Path) -> None:
    """A journal with the original of the test in front and much of an older boot behind it."""
    with closing(Journal.open(path)) as journal:
        journal.put(journal_entry(original="10"))
        for number in range(300):
            journal.put(journal_entry(f"knob{number}", boot_id="older", why="x" * 2000))


def originals(path: Path) -> list[str]:
    return [entry.original for entry in read(path)]


@pytest.fixture
def machine(cli: Cli) -> Cli:
    """ebbgate wrote 40 into a knob that had 10, and was killed."""
    several(cli.journal_path)
    cli.fake.write(KNOB, "40")
    return cli


def percent(cli: Cli) -> str | None:
    return cli.fake.sysfs.read_text(KNOB)


def config(cli: Cli) -> Config:
    return load_config(state_dir=cli.state_dir, runtime_dir=cli.runtime_dir, environ={})


def start(cli: Cli) -> list[SettledEntry]:
    """What a daemon does before anything else; what it could not take out of the journal."""
    last_written = LastWritten(cli.state_dir / "last-written")
    try:
        return restore_leftovers(config(cli), cli.fake.sysfs, BOOT_ID, last_written)[0]
    finally:
        last_written.close()


def damaged(path: Path) -> None:
    """In the middle: the journal in front can still be read."""
    size = path.stat().st_size
    overwrite(path, size // 2 // 4096 * 4096, 4 * 4096)
    with path.open("r+b") as file:
        # And one that is noticed at once: the file says that it is longer than it is.
        file.truncate(size - 8192)


def refuse_changes(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE DELETE ON originals "
            "BEGIN SELECT RAISE(FAIL, 'disk is full'); END"
        )


def test_restore_works_with_a_damaged_journal(machine: Cli) -> None:
    damaged(machine.journal_path)
    found = machine("restore", "--json")
    assert (found.code, percent(machine)) == (0, "10")
    assert "malformed" in found.document["journal"]
    assert aside(machine.journal_path) == [], "the command line leaves the file as it is"


@pytest.mark.parametrize("words", [("restore",), ("restore", "--json")])
def test_restore_works_beside_a_row_of_a_wrong_type(machine: Cli, words: tuple[str, ...]) -> None:
    machine.journal(journal_entry("writeback_delay", boot_id=BOOT_ID))
    with closing(sqlite3.connect(machine.journal_path)) as connection, connection:
        connection.execute("UPDATE originals SET original = x'ff' WHERE knob = 'writeback_delay'")
    found = machine(*words)
    assert (found.code, percent(machine)) == (0, "10")
    assert "a value of a wrong type" in found.out
    assert "some originals may be lost" in found.out


def test_restore_works_with_a_journal_of_a_newer_version(machine: Cli) -> None:
    with closing(sqlite3.connect(machine.journal_path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert machine("restore").code == 0
    assert percent(machine) == "10"


def test_restore_reports_an_unreadable_journal(machine: Cli) -> None:
    machine.journal_path.write_bytes(os.urandom(100_000))
    found = machine("restore")
    assert found.code == 69
    assert "cannot be used" in found.err


def test_a_starting_daemon_restores_and_replaces_a_damaged_journal(
    machine: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    damaged(machine.journal_path)
    assert start(machine) == []
    assert (percent(machine), originals(machine.journal_path)) == ("10", [])
    assert len(aside(machine.journal_path)) == 1
    assert "restored 1 knobs" in caplog.text


def test_a_daemon_starts_without_a_readable_database(machine: Cli) -> None:
    machine.journal_path.write_bytes(os.urandom(100_000))
    assert start(machine) == []
    assert originals(machine.journal_path) == []


def test_a_daemon_starts_where_there_is_a_folder_instead_of_a_file(
    cli: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    cli.journal_path.mkdir()
    assert start(cli) == []
    assert "whether knobs were left behind is not known" in caplog.text


def test_restored_entries_that_cannot_be_removed_are_passed_on(
    machine: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_changes(machine.journal_path)
    unremoved = start(machine)
    assert ("bcache0", "writeback_percent", "restored") in unremoved
    assert percent(machine) == "10"
    assert "disk is full" in caplog.text


def test_a_daemon_restores_from_a_newer_journal_but_does_not_start(machine: Cli) -> None:
    with closing(sqlite3.connect(machine.journal_path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerSchema, match="install the newer ebbgate"):
        start(machine)
    assert percent(machine) == "10"


def test_a_sound_journal_is_brought_up_to_date(machine: Cli) -> None:
    machine.journal(journal_entry("writeback_delay", boot_id="another boot", at_unix_ns=1))
    assert start(machine) == []
    assert originals(machine.journal_path) == []


# ---- another state folder -----------------------------------------------------------------------
def moved(machine: Cli) -> Path:
    """The settings name another state folder since that daemon; return the one it had."""
    old = machine.state_dir
    state_dirs.remember(config(machine).state_dirs_path, old)
    machine.state_dir = old.with_name("new")
    machine.state_dir.mkdir()
    return old / "journal.db"


def test_a_restore_finds_the_journal_of_an_earlier_state_folder(machine: Cli) -> None:
    old = moved(machine)
    assert machine("restore").code == 0
    assert (percent(machine), originals(old)) == ("10", [])


def test_a_starting_daemon_finds_the_journal_of_an_earlier_state_folder(machine: Cli) -> None:
    old = moved(machine)
    assert start(machine) == []
    assert (percent(machine), originals(old)) == ("10", [])


def test_a_journal_that_cannot_be_read_does_not_hide_that_of_another_folder(
    machine: Cli,
) -> None:
    moved(machine)
    machine.journal_path.write_bytes(os.urandom(100_000))
    result = machine("restore")
    assert (result.code, percent(machine)) == (69, "10")
    assert f"{machine.journal_path} cannot be used" in result.err


def test_a_state_folder_that_cannot_be_made_does_not_hide_another_journal(machine: Cli) -> None:
    moved(machine)
    machine.state_dir.rmdir()
    machine.state_dir.touch()
    result = machine("restore")
    assert (result.code, percent(machine)) == (0, "10")
    assert "the journal could not be brought up to date" in " ".join(result.out.split())


def test_a_knob_that_cannot_be_restored_stays_in_the_journal_of_its_folder(machine: Cli) -> None:
    old = moved(machine)
    machine.fake.remove(KNOB)
    machine.fake.sysfs.locate(KNOB).mkdir()
    with closing(LastWritten(machine.runtime_dir / "last-written")) as last_written:
        _, left = restore_leftovers(config(machine), machine.fake.sysfs, BOOT_ID, last_written)
    assert [entry.original for entry in left] == originals(old) == ["10"]


def test_damaged_lines_of_the_list_of_folders_are_skipped(tmp_path: Path) -> None:
    file, folder = tmp_path / "state-dirs", tmp_path / "one"
    folder.mkdir()
    (folder / "journal.db").touch()
    file.write_text('"cut of\n7\n"relative"\n')
    state_dirs.remember(file, folder)
    state_dirs.remember(file, folder)
    assert file.read_text().count("one") == 1
    assert state_dirs.other_journals(file, tmp_path / "journal.db") == [folder / "journal.db"]
    assert state_dirs.other_journals(file, folder / "journal.db") == []
