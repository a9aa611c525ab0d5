# SPDX-License-Identifier: GPL-2.0-only
"""Finds out whether a daemon runs, and its last status. I/O: the control socket; the history."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ebbgate.cli.context import Context
from ebbgate.errors import PermissionDenied, Unavailable
from ebbgate.intents.client import Busy, NotAnswering, NotRunning, greet
from ebbgate.model.decision import JournalEntry
from ebbgate.model.status import DAEMON, STATUS_STALE_NS
from ebbgate.store import journal
from ebbgate.store.connection import NothingRecorded
from ebbgate.store.queries import History, Live

_GREET_S = 1.0


@dataclass(frozen=True, slots=True)
class Link:
    """What is known of the daemon.

    `answers`: False where it runs but does not answer. `left_behind`: knobs that no running daemon
    looks after.
    """

    alive: bool
    pid: int | None
    answers: bool = True
    said: Mapping[str, Live] = field(default_factory=dict)
    left_behind: tuple[JournalEntry, ...] = ()

    def volume(self, name: str, now_ns: int) -> Live | None:
        """What it says of a volume, if that is fresh."""
        live = self.said.get(name)
        fresh = live is not None and now_ns - live.at_unix_ns <= STATUS_STALE_NS
        return live if self.alive and fresh else None


def look(context: Context) -> Link:
    """All that can be had without a request.

    Whether the daemon runs is decided by its greeting on the control socket, and by how fresh the
    history is where this process has no right to the socket. Raises PermissionDenied where it has
    no right to the history, either, and Unavailable for damage.
    """
    link = _greeted(context)
    try:
        history = History.open(context.config.history_path)
    except NothingRecorded:
        return link or Link(alive=False, pid=None)
    try:
        said = history.live()
        link = link or _by_freshness(said, context.wall_ns())
    finally:
        history.close()
    left = () if link.alive else _left_behind(context)
    return replace(link, said=said, left_behind=left)


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


def need_daemon(context: Context) -> None:
    """Raises Unavailable where no daemon runs, PermissionDenied without a right to ask it."""
    greet(context.config.socket_path, context.answer_timeout_s)


def _greeted(context: Context) -> Link | None:
    """By the socket; None without a right to it."""
    try:
        greeting = greet(context.config.socket_path, _GREET_S)
    except NotRunning:
        return Link(alive=False, pid=None)
    except NotAnswering as error:
        return Link(alive=True, pid=error.pid, answers=False)
    except Busy:
        # All connections are in use: whoever says so is alive.
        return Link(alive=True, pid=None)
    except PermissionDenied:
        return None
    return Link(alive=True, pid=greeting.pid)


def _by_freshness(said: Mapping[str, Live], now_ns: int) -> Link:
    """By what the daemon last said of itself."""
    live = said.get(DAEMON)
    if live is None or now_ns - live.at_unix_ns > STATUS_STALE_NS:
        return Link(alive=False, pid=None)
    return Link(alive=True, pid=live.document.get("pid"))
