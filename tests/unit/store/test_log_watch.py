# SPDX-License-Identifier: GPL-2.0-only
"""A log (WAL) that a reader keeps from being checkpointed is noticed, named and limited."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.model.status import LogStatus
from ebbgate.store.db import Store
from ebbgate.store.limits import LOG_BYTES, LOG_BYTES_HELD, SIZE_BYTES_MIN, HistoryLimits
from ebbgate.store.log_watch import LogRoom, LogWatch, holders
from ebbgate.units import MIB, NS_PER_S
from tests.builders import decision, proposal
from tests.hostile_reader import holding

SMALL = HistoryLimits(SIZE_BYTES_MIN)
BIG = decision(proposal(reason="x" * 12_000))


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(Store.open(path)) as store:
        yield store


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """A second connection that began to read and does not end."""
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM decisions").fetchone()
        yield


def grow(store: Store, path: Path, log_bytes: int) -> None:
    """Write until the log has this size."""
    while size(path, "-wal") < log_bytes:
        with store.batch():
            for number in range(10):
                store.add_decision(BIG, number)


def size(path: Path, part: str = "") -> int:
    found = path.with_name(path.name + part)
    return found.stat().st_size if found.exists() else 0


def test_the_log_is_checkpointed_without_readers(store: Store, path: Path) -> None:
    watch = LogWatch(path, SMALL)
    grow(store, path, LOG_BYTES)
    assert watch.look(store, 1, 1) is LogRoom.ALL
    assert (watch.held, watch.status().held_since_unix_ns) == (False, None)
    assert watch.log_bytes == size(path, "-wal")


def test_a_short_reader_is_awaited(store: Store, path: Path) -> None:
    watch = LogWatch(path, SMALL)
    with reading(path):
        grow(store, path, LOG_BYTES_HELD + 1)
    assert watch.look(store, 1, 1) is LogRoom.ALL
    assert (watch.held, size(path, "-wal")) == (False, 0)


def test_a_long_reader_keeps_the_log_from_being_folded(store: Store, path: Path) -> None:
    watch = LogWatch(path, SMALL)
    with reading(path):
        grow(store, path, LOG_BYTES_HELD + 1)
        assert watch.look(store, 7, 7) is LogRoom.ALL
        assert watch.held
        shown = watch.status()
        assert shown == LogStatus(size(path, "-wal")), "an export may do so for some seconds"
        watch.look(store, 7 + 31 * NS_PER_S, 7 + 31 * NS_PER_S)
        assert watch.status().held_since_unix_ns == 7
    watch.look(store, 99 * NS_PER_S, 99 * NS_PER_S)
    assert watch.status() == LogStatus(0)


def test_file_and_log_never_exceed_the_size(store: Store, path: Path) -> None:
    watch = LogWatch(path, SMALL)
    rooms = []
    with reading(path):
        while (room := watch.look(store, 1, 1)) is not LogRoom.NONE:
            rooms.append(room)
            grow(store, path, size(path, "-wal") + 1)
        assert size(path) + size(path, "-wal") <= SMALL.size_bytes
        # What is in the log alone will be in the file.
        assert store.file_bytes() + size(path, "-wal") <= SMALL.size_bytes
    before = rooms.count(LogRoom.ALL)
    assert set(rooms[:before]) == {LogRoom.ALL}
    assert set(rooms[before:]) == {LogRoom.STATUS}
    assert watch.look(store, 1, 1) is LogRoom.ALL


@pytest.mark.parametrize("rows", [60, 70, 80, 90])
def test_transactions_larger_than_usual_end_earlier(store: Store, path: Path, rows: int) -> None:
    watch = LogWatch(path, SMALL)
    with reading(path):
        while watch.look(store, 1, 1) is not LogRoom.NONE:
            with store.batch():
                for number in range(rows):
                    store.add_decision(BIG, number)
        assert store.file_bytes() + size(path, "-wal") <= SMALL.size_bytes


def test_a_blocked_checkpoint_and_its_end_are_logged_once(
    store: Store, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watch = LogWatch(path, replace(SMALL, size_bytes=64 * MIB))
    with reading(path):
        grow(store, path, LOG_BYTES_HELD + 1)
        for second in range(0, 120, 10):
            watch.look(store, second * NS_PER_S, second * NS_PER_S)
    watch.look(store, 120 * NS_PER_S, 120 * NS_PER_S)
    held, over = (record.getMessage() for record in caplog.records)
    assert "its log cannot be checkpointed and has 5.1 MiB" in held
    assert "recording stops before file and log exceed 64 MiB (history_size)" in held
    assert over == "the log of the history is checkpointed again after 2 min"


def test_the_process_that_holds_the_log_is_named(store: Store, path: Path) -> None:
    watch = LogWatch(path, SMALL)
    with holding("transaction", path) as pid:
        grow(store, path, LOG_BYTES_HELD + 1)
        watch.look(store, 1, 1)
        assert f"(pid {pid}, uid {os.getuid()})" in watch.held_by
        assert str(os.getpid()) not in watch.held_by
        assert watch.held_by in str(watch.trouble())
    assert watch.look(store, 2, 2) is LogRoom.ALL


def test_a_process_name_is_filtered(tmp_path: Path) -> None:
    index = tmp_path / "history.db-shm"
    index.touch()
    proc = tmp_path / "proc"
    (proc / "41").mkdir(parents=True)
    (proc / "41/comm").write_bytes(b"a\x1b[2J\nb\n")
    inode = index.stat().st_ino
    lines = [
        f"1: POSIX  ADVISORY  READ 41 08:01:{inode} 123 123",
        f"1: -> POSIX  ADVISORY  WRITE 42 08:01:{inode} 120 120",
        f"2: POSIX  ADVISORY  READ 43 08:01:{inode} 128 128",
        f"3: OFDLCK ADVISORY  READ -1 08:01:{inode} 0 EOF",
        "4: POSIX  ADVISORY  READ 44 08:01:1 120 127",
        "nonsense",
    ]
    (proc / "locks").write_text("\n".join(lines))
    assert holders(index, proc) == f"a?[2J?b (pid 41, uid {os.getuid()})"
    (proc / "locks").write_text("\n".join(lines[1:]))
    assert holders(index, proc) == "another program"
    assert holders(tmp_path / "missing", tmp_path / "missing") == "another program"
