# SPDX-License-Identifier: GPL-2.0-only
"""The packaged daemon starts on a full disk and after a downgrade; nothing that it finds is lost.

I/O: a bare system; a script stands in for the probe.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing

import pytest

from tests.package.chroot import FULL_VAR, Chroot, Done

STATE = "/var/lib/ebbgate"
HELLO = (
    '{"t": "hello", "ns": 1, "protocol": 1, "probe": "ebpf", "version": "0", "boot_id": "b",'
    ' "signals": {}}'
)
PROBE = f"#!/bin/sh\necho '{HELLO}'\nwhile read -r line; do :; done\n"


@pytest.fixture
def used(installed: Chroot) -> Chroot:
    """A system whose daemon has run once."""
    installed.sysfs.write("/sys/block/bcache0/bcache/writeback_percent", "10")
    installed.put("/tmp/probe", PROBE, 0o755)
    assert "is ready" in start(installed).text
    return installed


def start(system: Chroot, first: str = "") -> Done:
    """Run the daemon for some seconds."""
    return system.run("timeout", "4", "ebbgated", "--probe", "/tmp/probe", first=first)


def set_newer(system: Chroot, name: str) -> str:
    """Make a database one of a newer version; return its digest."""
    with closing(sqlite3.connect(system.path(f"{STATE}/{name}"))) as database:
        database.execute("PRAGMA user_version = 99")
    return digest(system, name)


def digest(system: Chroot, name: str) -> str:
    return hashlib.sha256(system.path(f"{STATE}/{name}").read_bytes()).hexdigest()


def rows(system: Chroot) -> list[tuple[object, ...]]:
    """Return what the history has of earlier samples and decisions."""
    with closing(sqlite3.connect(system.path(f"{STATE}/history.db"))) as database:
        names = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return [(name, *database.execute(f"SELECT count(*) FROM {name}")) for (name,) in names]


def test_on_a_full_disk_the_daemon_runs_without_a_history_and_says_so(used: Chroot) -> None:
    before = rows(used)
    done = start(used, FULL_VAR)
    assert f"the history cannot be written ({STATE}/history.db cannot be used:" in done.text
    assert "its disk is full); tuning goes on without it" in done.text
    assert "ebbgated 0" in done.text
    assert "is ready" in done.text
    assert "has stopped; every knob is restored" in done.text
    assert rows(used) == before


def test_after_a_downgrade_newer_databases_are_named_and_left_alone(used: Chroot) -> None:
    names = ("history.db", "overrides.db")
    before = [set_newer(used, name) for name in names]
    done = start(used)
    assert "the history cannot be written (history.db is of a newer ebbgate" in done.text
    assert "overrides.db cannot be used; tuning continues: overrides.db is of a newer" in done.text
    assert "is ready" in done.text
    assert [digest(used, name) for name in names] == before


def test_after_a_downgrade_a_newer_journal_ends_the_daemon_with_the_next_step(
    used: Chroot,
) -> None:
    before = set_newer(used, "journal.db")
    done = start(used)
    assert done.rc == 69
    assert "ebbgated: journal.db is of a newer ebbgate" in done.text
    assert "install the newer ebbgate again; do not delete it" in done.text
    assert digest(used, "journal.db") == before
