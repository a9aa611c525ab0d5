# SPDX-License-Identifier: GPL-2.0-only
"""A damaged history is moved aside and a new one is created."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.store import salvage
from ebbgate.store.db import Store
from tests.builders import decision
from tests.unit.store.recorder_fixture import (
    aside,
    count,
    filled,
    overwrite,
    recording,
    said,
    sound,
    written,
)
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("quick")


def test_a_file_that_is_no_database_is_moved_aside(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text("somebody's shopping list\n" * 400)
    with recording(path) as recorder:
        recorder.flush()
    assert sound(path)
    (old,) = aside(path)
    assert old.read_text().startswith("somebody's shopping list")
    assert said(caplog, f"moved to {old}") == 1


def test_damage_is_found_at_start(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(path)
    size = path.stat().st_size
    overwrite(path, size // 2 // 4096 * 4096, 16 * 4096)
    with recording(path) as recorder:
        recorder.flush()
    assert (sound(path), count(path)) == (True, 0)
    assert len(aside(path)) == 1
    assert said(caplog, "starting a new one") == 1


def test_damage_in_use_leads_to_a_new_history(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(path)
    with recording(path) as recorder:
        recorder.flush()
        # Folds the log into the file, all of which is then lost.
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        overwrite(path, 0, path.stat().st_size)
        recorder.decision(decision(), 1)
        until(lambda: bool(aside(path)) and written(recorder), "a new history is begun")
        recorder.decision(decision(), 2)
    assert sound(path)
    assert count(path) >= 1
    assert said(caplog, "damaged") >= 1


def test_a_truncated_file_is_replaced(path: Path) -> None:
    filled(path)
    os.truncate(path, path.stat().st_size // 2)
    with recording(path) as recorder:
        recorder.flush()
    assert (sound(path), count(path)) == (True, 0)


@pytest.mark.parametrize("damage", ["bytes", "cut off", "gone"])
def test_a_damaged_log_costs_the_last_records_only(tmp_path: Path, damage: str) -> None:
    live = tmp_path / "live" / "history.db"
    # Of now: what is old is forgotten as soon as there is time for it.
    now_ns = time.time_ns()
    with closing(Store.open(live)) as store:
        store.add_decision(decision(), now_ns)
        assert store.fold_log(1.0)
        for at in range(1, 60):
            store.add_decision(decision(), now_ns + at)
        # As after a crash: the log is not checkpointed into the file.
        shutil.copytree(live.parent, tmp_path / "crashed")
    path = tmp_path / "crashed" / "history.db"
    log = path.with_name("history.db-wal")
    if damage == "bytes":
        overwrite(log, log.stat().st_size // 2, 5000)
    elif damage == "cut off":
        os.truncate(log, log.stat().st_size // 2)
    else:
        log.unlink()
    with recording(path) as recorder:
        recorder.flush()
    kept = count(path)
    assert kept == 1 if damage == "gone" else 20 < kept < 40
    assert sound(path)


def test_a_file_deleted_in_use_is_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "history.db"
    with recording(path) as recorder:
        recorder.flush()
        for each in tmp_path.glob("history.db*"):
            each.unlink()
        recorder.decision(decision(), 1)
        until(lambda: written(recorder) and path.exists(), "a new one")
    assert count(path) == 1
    assert said(caplog, "was moved or deleted") == 1


def test_only_the_newest_damaged_files_are_kept(path: Path) -> None:
    for number in range(5):
        path.write_text(f"nonsense {number}" * 500)
        with recording(path) as recorder:
            recorder.flush()
        path.unlink()
    kept = [each.read_text()[:10] for each in aside(path)]
    assert sorted(kept) == ["nonsense 2", "nonsense 3", "nonsense 4"]


def test_a_check_that_takes_too_long_is_stopped_and_finds_no_damage(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    filled(path, 3000)
    with closing(Store.open(path)) as store:
        assert salvage.find_damage(store, 60.0) == ""
        assert said(caplog, "checked only part of it") == 0
        for _ in range(1000):
            # Whether the time is up before the check begins or while it lasts is chance.
            assert salvage.find_damage(store, 0.001) == ""
            if said(caplog, "checked only part of it"):
                return
    pytest.fail("no check was ended")


def test_a_damaged_history_stays_if_no_new_one_can_be_made(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    filled(path)
    os.truncate(path, path.stat().st_size // 2)
    before = path.read_bytes()
    # In the way of the new file, as a full disk would be.
    (tmp_path / "history.db.new-wal").mkdir()
    with recording(path) as recorder:
        until(lambda: not recorder.health().written, "noticed")
        assert path.read_bytes() == before
        (tmp_path / "history.db.new-wal").rmdir()
        until(lambda: written(recorder), "written again")
    assert sound(path)
