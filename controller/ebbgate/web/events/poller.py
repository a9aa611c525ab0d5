# SPDX-License-Identifier: GPL-2.0-only
"""One look at the databases for all streams, about twice a second. I/O: SQLite, in a thread.

A thread, since a locked database answers only after a while, and the event loop must not wait.
Without a reader it does not look.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event as Flag
from threading import Lock, Thread
from typing import Final

from ebbgate.web.events import changes
from ebbgate.web.events.cursor import Cursor, Event, after
from ebbgate.web.snapshot import Databases, Look

_LOG = logging.getLogger(__name__)
_EACH_S: Final = 0.5
_HEALTH_S: Final = 5.0
"""So often the health is told although nothing changed but times."""

Publish = Callable[[list[Event]], None]


class Poller:
    """`publish`: gives events to the hub, from this thread."""

    def __init__(self, databases: Databases, publish: Publish) -> None:
        self._databases = databases
        self._publish = publish
        self._wanted = Flag()
        self._stop = Flag()
        self._thread = Thread(target=self._run, name="poller", daemon=True)
        self._beginning = Lock()
        self._cursor: Cursor | None = None
        self._told: object = None
        self._health: object = None
        self._health_s = 0.0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a look that is under way is waited for."""
        self._stop.set()
        self._wanted.set()
        self._thread.join(10.0)

    def want(self, on: bool) -> None:
        """Is anybody there to be told?"""
        if on:
            self._wanted.set()
        else:
            self._wanted.clear()

    def begin(self) -> None:
        """From now on nothing is missed. To be called by each new reader, once it is `want`ed and
        before it looks where it stands; from any thread.
        """
        with self._beginning:
            if self._cursor is None:
                self._cursor = changes.newest(self._databases)

    def _run(self) -> None:
        while not self._stop.is_set():
            if not self._wanted.is_set():
                self._forget()
                self._wanted.wait()
                continue
            try:
                events = self.look()
            except Exception:
                # The streams live on: the next look may go well.
                _LOG.exception("a look at the databases failed")
                events = []
            if events:
                self._publish(events)
            self._stop.wait(_EACH_S)

    def _forget(self) -> None:
        """What comes until the next reader is its own to catch up."""
        with self._beginning:
            if not self._wanted.is_set():
                self._cursor = self._told = self._health = None

    def look(self) -> list[Event]:
        """What is new since the last look."""
        found = [*self._documents(self._databases.look())]
        self.begin()
        if self._cursor is None:
            return found
        fresh = changes.since(self._databases, self._cursor) or []
        for event in fresh:
            self._cursor = after(self._cursor, event)
        return [*fresh, *found]

    def _documents(self, look: Look) -> list[Event]:
        found = []
        if look.essence != self._told:
            self._told = look.essence
            found.append(volumes_event(look))
        health = health_event(look)
        now_s = time.monotonic()
        if health.says != self._health:
            self._health, self._health_s = health.says, now_s
            found.append(health)
        elif now_s - self._health_s >= _HEALTH_S:
            self._health_s = now_s
            found.append(replace(health, says=None))
        return found


def volumes_event(look: Look) -> Event:
    """As `GET /api/v1/volumes` answers."""
    return Event("volumes", look.volumes_json, newest=True, says=look.essence)


def health_event(look: Look) -> Event:
    """As `GET /api/v1/health` answers."""
    health = look.health()
    # Times alone are no news.
    daemon = {**vars(health.daemon), "at_unix_s": None, "age_s": None}
    essence = {**vars(health), "now_unix_s": None, "daemon": daemon}
    return Event("health", look.health_json, newest=True, says=essence)
