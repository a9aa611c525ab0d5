# SPDX-License-Identifier: GPL-2.0-only
"""Uses `overrides.db` in a thread, so that the event loop never waits. I/O: a thread.

The file is opened on first use, and again after a failure.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from ebbgate.background import BackgroundWorker
from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.intents.database import TROUBLE, OverrideDatabase
from ebbgate.log_messages.history import OVERRIDES_UNUSABLE, OVERRIDES_USABLE_AGAIN
from ebbgate.store.connection import device_and_inode

_LOG = logging.getLogger(__name__)
T = TypeVar("T")


class _Removed(Unavailable):
    """The open file has its name no more.

    It stays open: what is in force has its numbers, which a new file would give to others.
    """


class OverrideWriter:
    """Runs work on the database. `error`: why it cannot be used; empty if it can."""

    def __init__(self, path: Path) -> None:
        self.error = ""
        self._path = path
        self._worker = BackgroundWorker("overrides")
        self._database: OverrideDatabase | None = None
        self._file: tuple[int, int] | None = None

    def submit(self, work: Callable[[OverrideDatabase], T]) -> Future[T]:
        """Queue work on the database. The future raises Unavailable if nothing was written."""
        return self._worker.submit(lambda: self._used(work))

    def _used(self, work: Callable[[OverrideDatabase], T]) -> T:
        try:
            if self._database is None:
                self._database = OverrideDatabase.open(self._path)
                self._file = device_and_inode(self._path)
            self._check_in_place()
            result = work(self._database)
        except TROUBLE as error:
            why = error.message if isinstance(error, EbbgateError) else str(error)
            if not self.error:
                _LOG.error(OVERRIDES_UNUSABLE, self._path.name, why)
            self.error = f"{self._path.name}: {why}"
            hint = "make its folder writable, then repeat"
            if isinstance(error, _Removed):
                hint = error.hint
            else:
                self._close()
            raise Unavailable(f"it cannot be saved in {self._path}: {why}", hint) from error
        if self.error:
            _LOG.warning(OVERRIDES_USABLE_AGAIN, self._path.name)
        self.error = ""
        return result

    def _check_in_place(self) -> None:
        """Raises _Removed; what would be written to a removed file is lost with its last user."""
        if device_and_inode(self._path) != self._file:
            raise _Removed(
                "the file was moved, deleted or replaced while ebbgated runs",
                "move it back, or restart ebbgated, which uses what is there then",
            )

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            try:
                database.close()
            except sqlite3.Error as error:
                _LOG.debug("closing %s: %s", self._path, error)
