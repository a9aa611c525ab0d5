# SPDX-License-Identifier: GPL-2.0-only
"""After any fault of the history's file or disk tuning goes on; it is reported and repaired."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.errors import Unavailable
from ebbgate.model.status import VolumeStatus
from ebbgate.model.volume import Mode
from ebbgate.store import write_queue
from ebbgate.store.db import Store
from ebbgate.store.intent_rows import IntentRow
from ebbgate.store.queries import History
from tests.builders import busy_frame, decision, proposal
from tests.unit.store.recorder_fixture import (
    aside,
    count,
    dropped,
    filled,
    outage,
    recording,
    said,
    sound,
    why,
    written,
)
from tests.waiting import until

REPO = Path(__file__).resolve().parents[3]
BIG = decision(proposal(reason="x" * 20_000))


class Disk:
    """A real file system of 1 MiB."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        """Not a byte is left."""
        with (self.folder / "filler").open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(b"x" * 4096)
            except OSError:
                pass

    def free(self) -> None:
        (self.folder / "filler").unlink()

    def read_only(self, on: bool) -> None:
        subprocess.run(["mount", "-o", f"remount,{'ro' if on else 'rw'}", self.folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "ebbgate-test", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no small disk to be had: {mounted.stderr.strip()}")
    yield Disk(folder)
    subprocess.run(["umount", folder], check=True)


pytestmark = pytest.mark.usefixtures("quick")


# ---- a full disk ---------------------------------------------------------------------------------
def test_on_a_full_disk_records_are_queued_and_written_later(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    path = disk.folder / "history.db"
    with recording(path) as recorder:
        recorder.flush()
        disk.fill()
        for _ in range(10):
            recorder.decision(BIG, 1)
        until(lambda: not recorder.health().written, "the full disk is noticed")
        for number in range(5):
            recorder.live("bcache0", VolumeStatus(at_ns=number))
        disk.free()
        until(lambda: written(recorder), "written again")
        health = recorder.health()
        assert (health.written, health.dropped) == (True, 0)
        last = outage(recorder)
        assert (last.until_unix_ns or 0) >= (last.since_unix_ns or 0) > 0
        assert "full" in why(recorder)
    assert (count(path), sound(path)) == (10, True)
    with closing(History.open(path)) as history:
        assert history.statuses().volumes["bcache0"].status == VolumeStatus(at_ns=4)
    assert (said(caplog, "cannot be written"), said(caplog, "written again")) == (1, 1)


def test_dropped_records_are_counted(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(write_queue, "TASKS_MAX", 50)
    path = disk.folder / "history.db"
    with recording(path) as recorder:
        recorder.flush()
        disk.fill()
        recorder.decision(BIG, 0)
        for number in range(400):
            recorder.decision(decision(proposal(reason=f"{number} {'x' * 3000}")), number)
        until(lambda: dropped(recorder) > 300, "the oldest are given up")
        assert outage(recorder).dropped == dropped(recorder)
        disk.free()
        until(lambda: written(recorder), "written again")
        lost = dropped(recorder)
        assert outage(recorder).dropped == lost
    assert count(path) == 401 - lost
    with closing(sqlite3.connect(path)) as connection:
        newest = connection.execute("SELECT document FROM decisions ORDER BY id DESC").fetchone()
    assert '"reason":"399 ' in newest[0], "the newest are kept"
    assert said(caplog, f"{lost} records of that time are lost") == 1


def test_a_file_at_its_size_limit_is_handled_as_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with recording(path) as recorder:
        recorder.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 65536, hard))
        try:
            for _ in range(50):
                recorder.decision(BIG, 1)
            until(lambda: not recorder.health().written, "the limit is noticed")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        until(lambda: written(recorder), "written again")
    assert (count(path), sound(path)) == (50, True)


# ---- no permission -------------------------------------------------------------------------------
def test_a_read_only_file_system_at_start_does_not_stop_the_daemon(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    path = disk.folder / "history.db"
    disk.read_only(True)
    with recording(path) as recorder:
        until(lambda: not recorder.health().written, "noticed")
        recorder.decision(decision(), 1)
        disk.read_only(False)
        until(lambda: written(recorder), "written again")
    assert count(path) == 1
    assert said(caplog, "cannot be written") == 1


UNPRIVILEGED = """
import sys, time
from pathlib import Path
from ebbgate.store.recorder import Recorder
from tests.builders import decision
recorder = Recorder(Path(sys.argv[1]))
recorder.decision(decision(), 1)
try:
    recorder.flush()
except OSError as error:
    print("refused:", error)
print("alive:", recorder._thread.is_alive(), recorder.health().written)
recorder.stop()
"""


def test_the_thread_survives_a_folder_without_permission(open_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    for part in ("controller", "tests"):
        shutil.copytree(
            REPO / part, open_folder / part, ignore=shutil.ignore_patterns("__pycache__", "results")
        )
    found = subprocess.run(
        [sys.executable, "-B", "-c", UNPRIVILEGED, open_folder / "state" / "history.db"],
        cwd=open_folder,
        env={"PYTHONPATH": f"{open_folder}/controller:{open_folder}:{':'.join(sys.path)}"},
        user=65534,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "no access to" in found.stdout
    assert "alive: True False" in found.stdout


def test_the_thread_survives_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.mkdir()
    with recording(path) as recorder:
        recorder.decision(decision(), 1)
        until(lambda: not recorder.health().written, "noticed")
        path.rmdir()
        until(lambda: written(recorder), "written again")
    assert count(path) == 1


# ---- a disk that hangs, records that cannot be kept ----------------------------------------------
def test_samples_are_recorded_with_the_mode_of_their_volume(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with recording(path) as recorder:
        recorder.sample(busy_frame(1000))
        recorder.live("bcache0", VolumeStatus(mode=Mode.ENFORCE))
        recorder.sample(busy_frame(3000))
        recorder.live("bcache0", VolumeStatus(mode=Mode.ENFORCE, frozen=True))
        recorder.sample(busy_frame(5000))
    with closing(sqlite3.connect(path)) as connection:
        modes = connection.execute("SELECT mode FROM samples ORDER BY at_unix_ns").fetchall()
    assert modes == [(None,), ("enforce",), ("hold",)]


def test_a_dropped_volume_does_not_come_back_with_an_older_document(disk: Disk) -> None:
    path = disk.folder / "history.db"
    with recording(path) as recorder:
        recorder.live("bcache0", VolumeStatus(at_ns=1))
        recorder.flush()
        disk.fill()
        recorder.live("bcache0", VolumeStatus(summary="x" * 500_000))
        until(lambda: not recorder.health().written, "noticed")
        recorder.drop_live("bcache0")
        disk.free()
        until(lambda: written(recorder), "written again")
    with closing(History.open(path)) as history:
        assert history.live_rows() == []


def test_what_an_outage_drops_is_neither_the_end_of_a_volume_nor_a_request(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_queue, "TASKS_MAX", 50)
    path = disk.folder / "history.db"
    with recording(path) as recorder:
        for name in ("bcache0", "bcache1"):
            recorder.live(name, VolumeStatus(at_ns=1))
        recorder.flush()
        disk.fill()
        recorder.decision(BIG, 0)
        until(lambda: not recorder.health().written, "noticed")
        recorder.drop_live("bcache1")
        recorder.intent(IntentRow(7, "mode", "bcache1", {"mode": "advise"}, "jo", 1))
        recorder.intent_done(7, ok=True, outcome="done")
        for number in range(400):
            recorder.decision(decision(proposal(reason=f"{number} {'x' * 3000}")), number)
        until(lambda: dropped(recorder) > 300, "the oldest are given up")
        disk.free()
        until(lambda: written(recorder), "written again")
        recorder.live("bcache0", VolumeStatus(at_ns=2))
        recorder.flush()
    with closing(History.open(path)) as history:
        assert list(history.statuses().volumes) == ["bcache0"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT id, outcome FROM intents").fetchall() == [(7, "done")]


def test_a_history_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    filled(path, 3)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with recording(path) as recorder, pytest.raises(OSError, match="has schema 99"):
        recorder.flush()
    assert aside(path) == []
    with pytest.raises(Unavailable, match="newer"):
        Store.open(path)
