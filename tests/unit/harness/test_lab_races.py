# SPDX-License-Identifier: GPL-2.0-only
"""The lab reads files that come and go: nothing is checked first and read afterwards."""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.bench import product
from tests.bench.store import size_bytes
from tests.fake_machine import machine
from tests.lab import host, workdir
from tests.lab.agent import Agent
from tests.lab.channel import Channel
from tests.lab.errors import CommandFailed
from tests.lab.session import Session, why_lost

PAIRS = "SELECT (SELECT number FROM left), (SELECT number FROM right)"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """The lab's real agent, in this process instead of in a guest."""
    ours, theirs = socket.socketpair()
    agent = threading.Thread(target=Agent(theirs.fileno()).serve, daemon=True)
    agent.start()
    channel = Channel(ours, lambda: "the agent has ended")
    channel.hello(10)
    yield Session(channel, tmp_path, tmp_path)
    channel.close()
    agent.join(10)
    theirs.close()


@contextlib.contextmanager
def in_background(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """`work` in a thread, until the body is over."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def write_pairs(path: Path, over: threading.Event) -> None:
    """Like a daemon that is started and stopped: each close removes the log."""
    number = 0
    while not over.is_set():
        number += 1
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
            for _ in range(3):
                writer.execute("BEGIN IMMEDIATE")
                writer.execute("UPDATE left SET number = ?", (number,))
                writer.execute("UPDATE right SET number = ?", (number,))
                writer.execute("COMMIT")


def rows(session: Session, query: str) -> list[tuple[Any, ...]]:
    return product.Product.rows(SimpleNamespace(session=session), query)  # type: ignore[arg-type]


def test_the_history_is_read_whole_while_its_log_comes_and_goes(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history.db"
    monkeypatch.setattr(product, "STATE_DIR", str(tmp_path))
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.executescript(
            "PRAGMA journal_mode = WAL; CREATE TABLE left (number); CREATE TABLE right (number);"
            "INSERT INTO left VALUES (0); INSERT INTO right VALUES (0);"
        )
    seen = set()
    with in_background(lambda over: write_pairs(path, over)):
        deadline_s = time.monotonic() + 1
        while time.monotonic() < deadline_s:
            ((left, right),) = rows(session, PAIRS)
            assert left == right, "a torn copy"
            seen.add(left)
    assert len(seen) > 3, "the writer did not write"


def test_a_history_that_is_not_there_yet_is_one_clear_error(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(product, "STATE_DIR", str(tmp_path))
    with pytest.raises(CommandFailed, match="unable to open database"):
        rows(session, PAIRS)


def test_a_path_that_vanishes_while_it_is_resolved_is_none(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "exists", lambda _: True)
    assert session.resolve(tmp_path / "gone") is None


def test_the_last_words_of_a_guest_whose_folder_goes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "exists", lambda _: True)
    assert "has ended or is silent" in why_lost(tmp_path / "removed")


def test_the_knobs_of_a_machine_of_files_are_read_while_they_are_written(tmp_path: Path) -> None:
    machine.make(tmp_path)
    knob = tmp_path / "sys/block/bcache0/bcache/writeback_percent"

    def write(over: threading.Event) -> None:
        while not over.is_set():
            new = knob.resolve().with_name(".writeback_percent.new")
            new.write_text("10\n")
            new.replace(knob.resolve())

    with in_background(write):
        for _ in range(100):
            assert not [name for name in machine.knobs(tmp_path) if name.endswith(".new")]


def test_a_folder_that_is_just_made_is_not_taken_for_an_orphan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    really_open = os.open

    def swept_meanwhile(path: Any, flags: int, mode: int = 0o777, **where: Any) -> int:
        handle = really_open(path, flags, mode, **where)
        if Path(path).name == "lock" and flags & os.O_CREAT:
            # Another process, between the making of the lock's file and the lock.
            workdir.sweep()
        return handle

    monkeypatch.setattr(os, "open", swept_meanwhile)
    made = workdir.Workdir()
    assert made.path.is_dir()
    made.remove()
    assert not made.path.exists()


def test_a_missing_file_or_process_has_no_text_size_or_threads(tmp_path: Path) -> None:
    assert host.text_of(tmp_path / "none") == ""
    assert size_bytes(tmp_path / "none") == 0
    assert host.scheduled_ns(1 << 30) == {}
