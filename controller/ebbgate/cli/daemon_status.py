# SPDX-License-Identifier: GPL-2.0-only
"""Finds out whether a daemon runs, and its last status. I/O: the control socket; the history."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field, replace

from ebbgate.cli.context import Context
from ebbgate.errors import PermissionDenied, Unavailable
from ebbgate.intents.client import Busy, NotAnswering, NotRunning, greet
from ebbgate.model.decision import JournalEntry
from ebbgate.model.status import DaemonStatus, VolumeStatus
from ebbgate.store import journal
from ebbgate.store.connection import NothingRecorded
from ebbgate.store.queries import History, Statuses, TimedStatus

_GREET_S = 1.0


@dataclass(frozen=True, slots=True)
class Link:
    """The state of the daemon and its last statuses.

    `alive`: None if that is unknown without root. `answers`: False if it runs but does not answer.
    `statuses`: as they were at `now_ns` (Unix).
    `left_behind`: knobs that were changed and that no running daemon manages;
    `left_behind_known`: False if only root can know them.
    """

    alive: bool | None
    pid: int | None
    answers: bool = True
    statuses: Statuses = field(default_factory=Statuses)
    now_ns: int = 0
    left_behind: tuple[JournalEntry, ...] = ()
    left_behind_known: bool = True

    @property
    def daemon(self) -> DaemonStatus | None:
        """The own status of a daemon that runs; None if it has not written one."""
        return self.statuses.daemon.status if self.alive and self.statuses.daemon else None

    @property
    def age_ns(self) -> int | None:
        """The age of the daemon's own last status; None without one."""
        own = self.statuses.daemon
        return None if own is None else abs(self.now_ns - own.at_unix_ns)

    @property
    def lags(self) -> bool:
        """Whether the daemon answers, but no longer updates the statuses that it has written."""
        own, volumes = self.statuses.daemon, self.statuses.volumes.values()
        fresh = any(each.fresh(self.now_ns) for each in (own, *volumes) if each is not None)
        return bool(self.alive) and self.answers and own is not None and not fresh

    def volume(self, name: str, now_ns: int) -> TimedStatus[VolumeStatus] | None:
        """Return the status of a volume if it is recent."""
        live = self.statuses.volumes.get(name)
        return live if self.alive and live and live.fresh(now_ns) else None

    def owners_known(self, name: str) -> bool:
        """Whether it is known which knobs ebbgate has set, of a volume without a recent status."""
        if self.alive:
            return self.answers and not self.lags and name not in self.statuses.volumes
        return self.alive is not None and self.left_behind_known

    def volumes(self, now_ns: int) -> list[VolumeStatus]:
        """Return the statuses of all volumes that have a recent one."""
        found = (self.volume(name, now_ns) for name in self.statuses.volumes)
        return [each.status for each in found if each]

    def silent(self, now_ns: int) -> list[str]:
        """Return the titles of volumes whose status is old although the daemon runs."""
        found = self.statuses.volumes.items() if self.alive else ()
        return [live.status.title or name for name, live in found if not live.fresh(now_ns)]


def look(context: Context) -> Link:
    """Return the state of the daemon without sending a request.

    The daemon runs if it greets on the control socket or, without access to the socket, if its
    status is recent. Raises PermissionDenied without access to the history, and Unavailable for
    damage.
    """
    greeted, statuses = _greeted(context), _statuses(context)
    now_ns = context.wall_ns()
    link = greeted or _by_freshness(statuses, now_ns)
    left = () if link.alive else _left_behind(context)
    return replace(
        link,
        statuses=statuses,
        now_ns=now_ns,
        left_behind=left or (),
        left_behind_known=left is not None,
    )


def look_as_far_as_allowed(context: Context) -> Link:
    """Return the same; what this process may not read is unknown. Raises Unavailable."""
    try:
        return look(context)
    except PermissionDenied:
        link = _greeted(context) or Link(alive=None, pid=None)
        return replace(link, left_behind_known=False)


def _statuses(context: Context) -> Statuses:
    """Return the daemon's last statuses. Raises PermissionDenied and Unavailable."""
    try:
        with History.open(context.config.history_path) as history:
            return history.statuses()
    except NothingRecorded:
        return Statuses()


def _left_behind(context: Context) -> tuple[JournalEntry, ...] | None:
    """Return knobs that are not restored; None unless root, who alone may read the journal.

    Raises Unavailable for a damaged file.
    """
    try:
        return tuple(journal.read(context.config.journal_path, context.boot_id))
    except NothingRecorded:
        return ()
    except PermissionDenied:
        return None
    except sqlite3.Error as error:
        raise Unavailable(f"the journal cannot be read: {error}", "run ebbgate restore") from error


def need_daemon(context: Context) -> None:
    """Raises Unavailable if no daemon runs, PermissionDenied without access to its socket."""
    greet(context.config.socket_path, context.answer_timeout_s)


def _greeted(context: Context) -> Link | None:
    """Return the state from the socket; None without access to it."""
    try:
        greeting = greet(context.config.socket_path, _GREET_S)
    except NotRunning:
        return Link(alive=False, pid=None)
    except NotAnswering as error:
        return Link(alive=True, pid=error.pid, answers=False)
    except Busy:
        # All connections are in use, so it is alive.
        return Link(alive=True, pid=None)
    except PermissionDenied:
        return None
    return Link(alive=True, pid=greeting.pid)


def _by_freshness(statuses: Statuses, now_ns: int) -> Link:
    """Return the state from the age of the daemon's last status."""
    live = statuses.daemon
    if live is None or not live.fresh(now_ns):
        return Link(alive=False, pid=None)
    return Link(alive=True, pid=live.status.pid)
