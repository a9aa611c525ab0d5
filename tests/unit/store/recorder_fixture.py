# SPDX-License-Identifier: GPL-2.0-only
"""A recorder at work, and what another program sees of its file. I/O: SQLite, threads."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ebbgate.model.status import OutageStatus
from ebbgate.store.db import Store
from ebbgate.store.recorder import Recorder
from tests.builders import decision, frame, proposal

DEADLINE_S = 20.0


def recorders() -> set[threading.Thread]:
    """Return the threads of recorders that run."""
    return {thread for thread in threading.enumerate() if thread.name == "recorder"}


@contextmanager
def recording(path: Path) -> Iterator[Recorder]:
    before = recorders()
    recorder = Recorder(path)
    (own,) = recorders() - before
    try:
        yield recorder
    finally:
        recorder.stop()
        assert not own.is_alive()


def written(recorder: Recorder) -> bool:
    """Return whether everything recorded so far is on the disk."""
    try:
        recorder.flush()
    except OSError:
        return False
    return True


def outage(recorder: Recorder) -> OutageStatus:
    """Return the last time that nothing could be written."""
    found = recorder.health().trouble
    assert found is not None
    return found


def why(recorder: Recorder) -> str:
    """Return why nothing could be written."""
    return outage(recorder).why or ""


def dropped(recorder: Recorder) -> int:
    """Return how many records were given up so far."""
    return recorder.health().dropped or 0


def count(path: Path, table: str = "decisions") -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return found


def sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def said(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in record.getMessage() for record in caplog.records)


def aside(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.damaged-*[0-9Z]"))


def filled(path: Path, decisions: int = 300) -> None:
    """Make a history with many records."""
    with closing(Store.open(path)) as store, store.batch():
        for at in range(decisions):
            store.add_decision(decision(proposal(reason="x" * 2000)), at)
        store.add_samples([(frame(), at) for at in range(decisions)])


def overwrite(path: Path, offset: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(os.urandom(length))
