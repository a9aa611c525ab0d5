# SPDX-License-Identifier: GPL-2.0-only
"""Watches the log (WAL) of the history, which a reader can keep from being folded.

I/O: the size of the log, /proc, a checkpoint through the store.

SQLite appends to the log as long as somebody reads an older state of the file, and whoever may read
the history may do so for ever. `history_size` holds all the same: before file and log exceed it,
nothing more is written.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

from ebbgate.errors import Unavailable
from ebbgate.store.db import Store
from ebbgate.store.limits import LOG_BYTES_HELD, HistoryLimits
from ebbgate.store.lock_holders import holders
from ebbgate.units import NS_PER_S, format_bytes, format_ns

_LOG = logging.getLogger(__name__)
_FOLD_S: Final = 0.05
"""Readers of a moment end meanwhile. Whoever waits for the writer waits for this, too."""
_SAY_NS: Final = 30 * NS_PER_S
"""An export may read for some seconds: that is ordinary."""


class LogHeld(Unavailable):
    """The log cannot be folded and there is no room for more of it.

    `status_was_written`: the newest live documents were written all the same.
    """

    status_was_written = False


class LogRoom(Enum):
    """What may be written to the history now."""

    ALL = "all"
    STATUS = "status"
    """Only the live documents, so that people are told."""
    NONE = "none"


@dataclass(slots=True)
class LogWatch:
    """The log of one database, looked at by its writer. Times: `wall_ns` Unix, `mono_ns` of a boot.

    `held_by`: the processes that keep it, for a sentence; empty where it is not held.
    """

    path: Path
    limits: HistoryLimits
    proc: Path = field(default=Path("/proc"))
    log_bytes: int = 0
    room: LogRoom = LogRoom.ALL
    held_by: str = ""
    _since: tuple[int, int] | None = None
    _said: bool = False

    @property
    def held(self) -> bool:
        """Is the log too long, and does another program keep it from being folded?"""
        return self._since is not None

    def look(self, store: Store, wall_ns: int, mono_ns: int) -> LogRoom:
        """Fold a log that is too long; returns what may be written. Raises sqlite3.Error."""
        self.log_bytes = self._size_bytes()
        if self.log_bytes > LOG_BYTES_HELD and not store.fold_log(_FOLD_S):
            self._hold(wall_ns, mono_ns)
            self.room = self._room(store.file_bytes() + self.log_bytes)
        else:
            self.log_bytes = self._size_bytes()
            self._let_go(mono_ns)
            self.room = LogRoom.ALL
        return self.room

    def trouble(self) -> LogHeld:
        """Why nothing is recorded now."""
        return LogHeld(
            f"{self.held_by} keeps reading it, so its log cannot be folded: the log has"
            f" {format_bytes(self.log_bytes)}, and history_size is"
            f" {format_bytes(self.limits.size_bytes)}",
            "end that program",
        )

    def document(self) -> dict[str, Any]:
        """`held_since_unix_ns`: None unless it is worth saying."""
        worth_saying = self._since is not None and (self._said or self.room is not LogRoom.ALL)
        since = self._since if worth_saying else None
        return {
            "bytes": self.log_bytes,
            "held_since_unix_ns": None if since is None else since[0],
            "held_by": self.held_by if since else None,
        }

    def _room(self, total_bytes: int) -> LogRoom:
        if total_bytes < self.limits.sampling_bytes:
            return LogRoom.ALL
        return LogRoom.STATUS if total_bytes < self.limits.writing_bytes else LogRoom.NONE

    def _hold(self, wall_ns: int, mono_ns: int) -> None:
        if self._since is None:
            self._since = (wall_ns, mono_ns)
        self.held_by = holders(self.path.with_name(f"{self.path.name}-shm"), self.proc)
        if not self._said and mono_ns - self._since[1] >= _SAY_NS:
            self._said = True
            _LOG.warning(
                "%s keeps reading the history, so that its log cannot be folded: it has %s;"
                " recording stops before file and log exceed %s (history_size)",
                self.held_by,
                format_bytes(self.log_bytes),
                format_bytes(self.limits.size_bytes),
            )

    def _let_go(self, mono_ns: int) -> None:
        if self._since is not None and self._said:
            lasted = format_ns(mono_ns - self._since[1])
            _LOG.warning("the log of the history is folded again, after %s", lasted)
        self._since, self._said, self.held_by = None, False, ""

    def _size_bytes(self) -> int:
        try:
            return self.path.with_name(f"{self.path.name}-wal").stat().st_size
        except OSError:
            return 0
