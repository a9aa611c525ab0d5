# SPDX-License-Identifier: GPL-2.0-only
"""A process that may only read a database and delays its writer as far as it can.

`python -m tests.hostile_reader locks FILE`: takes read locks on every byte of the log's index that
SQLite locks, which needs no more than the right to read that file.
`python -m tests.hostile_reader transaction FILE`: reads one row and never ends its transaction.

I/O: the files of that database, a process. It says `ready`, and lets go when its input ends.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.programs import REPO

FIRST_BYTE, BYTES = 120, 8
"""SQLite's WAL_WRITE_LOCK and those after it (wal.c), in the index of the log."""


def hold(kind: str, path: Path) -> None:
    """Hold the database until the input ends."""
    if kind == "locks":
        handle = os.open(f"{path}-shm", os.O_RDONLY)
        fcntl.lockf(handle, fcntl.LOCK_SH, BYTES, FIRST_BYTE)
    else:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    print("ready", flush=True)
    sys.stdin.read()


@contextmanager
def holding(kind: str, path: Path) -> Iterator[int]:
    """Run such a process during the body; yields its PID."""
    argv = [sys.executable, "-m", "tests.hostile_reader", kind, str(path)]
    env = {**os.environ, "PYTHONPATH": f"{REPO / 'controller'}:{REPO}"}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.stdin.close()


if __name__ == "__main__":
    hold(sys.argv[1], Path(sys.argv[2]))
