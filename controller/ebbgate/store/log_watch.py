# SPDX-License-Identifier: GPL-2.0-only
"""Watches the log (WAL) of the history, which readers can keep from being checkpointed.

I/O: the size of the log, /proc, a checkpoint through the store.

SQLite appends to the log while a program reads an older state of the file, and every reader of the
history may do so forever. `history_size` holds all the same: writing stops before file and log
exceed it.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from ebbgate.errors import Unavailable
from ebbgate.log_messages.history import HISTORY_READER_ENDED, HISTORY_READER_STAYS
from ebbgate.model.status import LogStatus
from ebbgate.store.db import Store
from ebbgate.store.limits import BATCH_BYTES, LOG_BYTES_HELD, HistoryLimits
from ebbgate.units import NS_PER_S, format_bytes, format_ns

_LOG = logging.getLogger(__name__)
_FOLD_S: Final = 0.05
"""Short readers end meanwhile. Callers that wait for a flush wait for this, too."""
_WARN_NS: Final = 30 * NS_PER_S
"""An export may read for some seconds without a warning."""
_LINE: Final = re.compile(
    r"\d+: (?:POSIX|OFDLCK) +\S+ +(?:READ|WRITE) +(-?\d+) [0-9a-f:]+:(\d+) (\d+) (\d+|EOF)"
)
"""proc_locks(5): type, mode, access, PID (-1: not known), device and inode, first and last byte."""
_FIRST_BYTE: Final = 120
_LAST_BYTE: Final = 127
"""Of the index of the log (-shm): the locks of a writer, a checkpoint, a recovery and of five read
marks. Byte 128 is locked by every program that has the file open and delays nobody."""
_NAMED_MAX: Final = 3
_UNPRINTABLE: Final = re.compile(r"[^ -~]")


class LogHeld(Unavailable):
    """The log cannot be checkpointed and there is no room for more.

    `status_was_written`: the newest status documents were still written.
    """

    status_was_written = False


class LogRoom(Enum):
    """What may be written to the history now."""

    ALL = "all"
    STATUS = "status"
    """Only status documents, so that readers see the reason."""
    NONE = "none"


@dataclass(slots=True)
class LogWatch:
    """The log of one database. Times: `wall_ns` Unix, `mono_ns` of one boot.

    `held_by`: the processes that keep it from being checkpointed, as text; empty without any.
    `_total_bytes`: of file and held log, as last seen; `_batch_bytes`: what the largest transaction
    so far has added to them.
    """

    path: Path
    limits: HistoryLimits
    proc: Path = field(default=Path("/proc"))
    log_bytes: int = 0
    room: LogRoom = LogRoom.ALL
    held_by: str = ""
    _batch_bytes: int = BATCH_BYTES
    _total_bytes: int = 0
    _since: tuple[int, int] | None = None
    _warned: bool = False

    @property
    def held(self) -> bool:
        """Whether the log is too long because another program keeps it from being checkpointed."""
        return self._since is not None

    def look(self, store: Store, wall_ns: int, mono_ns: int) -> LogRoom:
        """Checkpoint a log that is too long; return what may be written. Raises sqlite3.Error."""
        self.log_bytes = self._size_bytes()
        if self.log_bytes > LOG_BYTES_HELD and not store.fold_log(_FOLD_S):
            total_bytes = store.file_bytes() + self.log_bytes
            if self.held:
                # Since the last look at most one transaction was written.
                self._batch_bytes = max(self._batch_bytes, total_bytes - self._total_bytes)
            self._total_bytes = total_bytes
            self._hold(wall_ns, mono_ns)
            self.room = self._room(total_bytes)
        else:
            self.log_bytes = self._size_bytes()
            self._release(mono_ns)
            self.room = LogRoom.ALL
        return self.room

    def trouble(self) -> LogHeld:
        """Return the error that explains why nothing is recorded now."""
        return LogHeld(
            f"{self.held_by} keeps reading it, so its log cannot be checkpointed: the log has"
            f" {format_bytes(self.log_bytes)}, and history_size is"
            f" {format_bytes(self.limits.size_bytes)}",
            "end that program",
        )

    def status(self) -> LogStatus:
        """Return what the daemon's status says; `held_since_unix_ns`: None unless it matters."""
        matters = self._since is not None and (self._warned or self.room is not LogRoom.ALL)
        if self._since is None or not matters:
            return LogStatus(self.log_bytes)
        return LogStatus(self.log_bytes, self._since[0], self.held_by)

    def _room(self, total_bytes: int) -> LogRoom:
        # Many volumes, or statuses with long lists, make a transaction larger than is usual.
        total_bytes += self._batch_bytes - BATCH_BYTES
        if total_bytes < self.limits.sampling_bytes:
            return LogRoom.ALL
        return LogRoom.STATUS if total_bytes < self.limits.writing_bytes else LogRoom.NONE

    def _hold(self, wall_ns: int, mono_ns: int) -> None:
        if self._since is None:
            self._since = (wall_ns, mono_ns)
        self.held_by = holders(self.path.with_name(f"{self.path.name}-shm"), self.proc)
        if not self._warned and mono_ns - self._since[1] >= _WARN_NS:
            self._warned = True
            _LOG.warning(
                HISTORY_READER_STAYS,
                self.held_by,
                format_bytes(self.log_bytes),
                format_bytes(self.limits.size_bytes),
            )

    def _release(self, mono_ns: int) -> None:
        if self._since is not None and self._warned:
            lasted = format_ns(mono_ns - self._since[1])
            _LOG.warning(HISTORY_READER_ENDED, lasted)
        self._since, self._warned, self.held_by = None, False, ""

    def _size_bytes(self) -> int:
        try:
            return self.path.with_name(f"{self.path.name}-wal").stat().st_size
        except OSError:
            return 0


def holders(index: Path, proc: Path = Path("/proc")) -> str:
    """Return the other processes that hold locks on the index of a log (`history.db-shm`), as text.

    `another program` where the kernel does not name any.
    """
    found = sorted(set(_pids(index, proc)) - {os.getpid()})
    named = [_named(pid, proc) for pid in found[:_NAMED_MAX]]
    if len(found) > _NAMED_MAX:
        named.append(f"{len(found) - _NAMED_MAX} more")
    return ", ".join(named) or "another program"


def _pids(index: Path, proc: Path) -> Iterator[int]:
    try:
        inode = index.stat().st_ino
        lines = (proc / "locks").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        match = _LINE.match(line)
        if match is None or int(match[2]) != inode or int(match[1]) <= 0:
            continue
        last = _LAST_BYTE if match[4] == "EOF" else int(match[4])
        if int(match[3]) <= _LAST_BYTE and last >= _FIRST_BYTE:
            yield int(match[1])


def _named(pid: int, proc: Path) -> str:
    """Return name, pid and uid; a process chooses its own name, so it is filtered."""
    try:
        name = (proc / str(pid) / "comm").read_bytes().decode(errors="replace").rstrip("\n")
        owner = (proc / str(pid)).stat().st_uid
    except OSError:
        return f"pid {pid}"
    return f"{_UNPRINTABLE.sub('?', name)} (pid {pid}, uid {owner})"
