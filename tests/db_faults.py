# SPDX-License-Identifier: GPL-2.0-only
"""What may befall a database file while a body runs; it is as before afterwards. I/O: that file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

DatabaseFault = Callable[[Path], AbstractContextManager[None]]


@contextmanager
def missing(path: Path) -> Iterator[None]:
    """It is not there."""
    aside = path.with_suffix(".aside")
    path.rename(aside)
    yield
    aside.rename(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """By a program that keeps everybody out."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("CREATE TABLE IF NOT EXISTS kept (row)")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """It holds what no database holds."""
    whole = path.read_bytes()
    path.write_bytes(os.urandom(len(whole)))
    yield
    path.write_bytes(whole)
