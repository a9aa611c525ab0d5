# SPDX-License-Identifier: GPL-2.0-only
"""Faults of a database file while a body runs; the file is restored afterwards. I/O: that file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

DatabaseFault = Callable[[Path], AbstractContextManager[None]]


@contextmanager
def missing(path: Path) -> Iterator[None]:
    """The file is missing."""
    aside = path.with_suffix(".aside")
    path.rename(aside)
    yield
    aside.rename(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another program holds an exclusive lock."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("CREATE TABLE IF NOT EXISTS kept (row)")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """The file has random content."""
    whole = path.read_bytes()
    path.write_bytes(os.urandom(len(whole)))
    yield
    path.write_bytes(whole)
