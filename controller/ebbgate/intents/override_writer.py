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

_LOG = logging.getLogger(__name__)
T = TypeVar("T")


class OverrideWriter:
    """Runs work on the database. `error`: why it cannot be used; empty if it can."""

    def __init__(self, path: Path) -> None:
        self.error = ""
        self._path = path
        self._worker = BackgroundWorker("overrides")
        self._database: OverrideDatabase | None = None

    def submit(self, work: Callable[[OverrideDatabase], T]) -> Future[T]:
        """Queue work on the database. The future raises Unavailable if nothing was written."""
        return self._worker.submit(lambda: self._used(work))

    def _used(self, work: Callable[[OverrideDatabase], T]) -> T:
        try:
            if self._database is None:
                self._database = OverrideDatabase.open(self._path)
            result = work(self._database)
        except TROUBLE as error:
            why = error.message if isinstance(error, EbbgateError) else str(error)
            if not self.error:
                _LOG.error(OVERRIDES_UNUSABLE, self._path.name, why)
            self.error = f"{self._path.name}: {why}"
            self._close()
            raise Unavailable(
                f"it cannot be saved in {self._path}: {why}",
                "make its folder writable, then repeat",
            ) from error
        if self.error:
            _LOG.warning(OVERRIDES_USABLE_AGAIN, self._path.name)
        self.error = ""
        return result

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            try:
                database.close()
            except sqlite3.Error as error:
                _LOG.debug("closing %s: %s", self._path, error)
