# SPDX-License-Identifier: GPL-2.0-only
"""Is there a daemon, and what did it last say? I/O: lock file and history, reads only."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ebbgate.cli.context import Context
from ebbgate.errors import PermissionDenied, Unavailable
from ebbgate.lock import holder
from ebbgate.model.decision import JournalEntry
from ebbgate.store import journal
from ebbgate.store.access import make_folder
from ebbgate.store.connection import NothingRecorded
from ebbgate.store.queries import History, Live
from ebbgate.units import NS_PER_S

# The daemon writes every second; five missed writes mean that it hangs.
STALE_NS = 5 * NS_PER_S
DAEMON = ""


@dataclass(frozen=True, slots=True)
class Link:
    """What is known of the daemon. `left_behind`: knobs that no running daemon looks after."""

    alive: bool
    pid: int | None
    said: Mapping[str, Live] = field(default_factory=dict)
    left_behind: tuple[JournalEntry, ...] = ()

    def volume(self, name: str, now_ns: int) -> Live | None:
        """What it says of a volume, if that is fresh."""
        live = self.said.get(name)
        fresh = live is not None and now_ns - live.at_unix_ns <= STALE_NS
        return live if self.alive and fresh else None


def look(context: Context) -> Link:
    """All that can be had without asking it. Raises PermissionDenied, Unavailable for damage."""
    pid = holder(context.config.lock_path)
    try:
        history = History.open(context.config.history_path)
    except NothingRecorded:
        return Link(pid is not None, pid)
    try:
        said = history.live()
    finally:
        history.close()
    return Link(pid is not None, pid, said, _left_behind(context) if pid is None else ())


def _left_behind(context: Context) -> tuple[JournalEntry, ...]:
    """Knobs that are not back; nothing for whoever may not read the journal, which only root may.

    Raises Unavailable for a damaged file.
    """
    try:
        return tuple(journal.read(context.config.journal_path, context.boot_id))
    except (NothingRecorded, PermissionDenied):
        return ()
    except sqlite3.Error as error:
        raise Unavailable(f"the journal cannot be read: {error}", "run ebbgate restore") from error


def need_daemon(context: Context) -> Link:
    """Raises Unavailable where no daemon runs."""
    link = look(context)
    if not link.alive:
        raise Unavailable("no daemon is running", "start it: systemctl start ebbgated")
    return link


@contextmanager
def no_daemon(lock: Path) -> Iterator[bool]:
    """Keeps a daemon from starting meanwhile; yields False, and keeps nothing, where one runs."""
    make_folder(lock.parent)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)
