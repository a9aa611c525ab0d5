# SPDX-License-Identifier: GPL-2.0-only
"""Keeps the history open for its writer, whatever happens to the file.

I/O: SQLite. One thread only.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.log_messages.history import HISTORY_NOT_RENEWED, HISTORY_REMOVED
from ebbgate.store import salvage
from ebbgate.store.connection import code_of, device_and_inode, is_damage
from ebbgate.store.db import Store
from ebbgate.store.limits import HistoryLimits
from ebbgate.store.log_watch import LogHeld, LogWatch, holders
from ebbgate.store.maintenance import Maintenance
from ebbgate.units import NS_PER_MS, NS_PER_S

_LOG = logging.getLogger(__name__)
_CHECK_S: Final = 5.0
_TIDY_NS: Final = 20 * NS_PER_MS
_REOPEN_NS: Final = 2 * NS_PER_S
_BUSY_TIMEOUT_S: Final = 0.25
"""Nothing else writes the history, so only a program that holds a lock on purpose makes the writer
wait, and with it everybody who waits for a flush. Each flush tries again.
"""
_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_STILL_GOOD: Final = (*_LOCKED, sqlite3.SQLITE_FULL)
"""After these errors the open file can still be used; after others it is opened again."""
STORE_ERRORS: Final = (sqlite3.Error, OSError, EbbgateError)
"""What any use of the store may raise."""


class ConnectionManager:
    """Opens the store on demand, checks it, and replaces a damaged file."""

    def __init__(self, path: Path, limits: HistoryLimits) -> None:
        self._path = path
        self._store: Store | None = None
        self._file: tuple[int, int] | None = None
        self._refused: tuple[int, str] | None = None
        self._maintenance = Maintenance(limits)
        self.log = LogWatch(path, limits)

    def store(self) -> Store:
        """Return the open store. Raises one of STORE_ERRORS."""
        if self._store is not None and device_and_inode(self._path) != self._file:
            _LOG.warning(HISTORY_REMOVED, self._path)
            self.close()
        if self._store is None:
            self._store = self._opened()
            self._file = device_and_inode(self._path)
        return self._store

    def reason(self, error: Exception) -> str:
        """Return why the history cannot be written, in words."""
        text = str(getattr(error, "message", error))
        if isinstance(error, sqlite3.Error) and code_of(error) in _LOCKED:
            index = self._path.with_name(f"{self._path.name}-shm")
            return f"{text}: {holders(index)} holds a lock on it"
        return text

    def failed(self, error: BaseException) -> None:
        """Close or replace the file after an error, so that the next use can succeed."""
        if is_damage(error):
            self.close()
            try:
                salvage.renew(self._path, str(error)).close()
            except STORE_ERRORS as second:
                _LOG.error(HISTORY_NOT_RENEWED, second)
        elif not _leaves_file_usable(error):
            self.close()

    def maintain(self, wanted: Callable[[], bool]) -> None:
        """Spend some milliseconds on maintenance; stops as soon as `wanted` returns True."""
        until_ns = time.monotonic_ns() + _TIDY_NS
        # Each step adds to the log, which cannot be checkpointed while a reader holds it.
        while not self.log.held and not wanted() and (now_ns := time.monotonic_ns()) < until_ns:
            if not self.store().maintain(self._maintenance, time.time_ns(), now_ns):
                return

    def close(self) -> None:
        """Close the file; errors are only logged."""
        store, self._store = self._store, None
        if store is not None:
            try:
                store.close()
            except sqlite3.Error as error:
                _LOG.debug("closing the history: %s", error)

    def _opened(self) -> Store:
        """Open and check the store; a failure is not repeated for a while: it may take long."""
        now_ns = time.monotonic_ns()
        if self._refused is not None and now_ns - self._refused[0] < _REOPEN_NS:
            raise Unavailable(f"the history could not be opened: {self._refused[1]}")
        try:
            store = self._checked(salvage.open_or_renew(self._path))
            store.set_busy_timeout(_BUSY_TIMEOUT_S)
        except STORE_ERRORS as error:
            self._refused = (now_ns, str(getattr(error, "message", error)))
            raise
        self._refused = None
        return store

    def _checked(self, store: Store) -> Store:
        try:
            wrong = salvage.find_damage(store, _CHECK_S)
        except BaseException:
            store.close()
            raise
        if not wrong:
            return store
        store.close()
        return salvage.renew(self._path, wrong)


def _leaves_file_usable(error: BaseException) -> bool:
    if isinstance(error, sqlite3.Error):
        return code_of(error) in _STILL_GOOD
    return isinstance(error, LogHeld)
