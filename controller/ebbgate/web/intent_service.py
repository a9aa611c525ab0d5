# SPDX-License-Identifier: GPL-2.0-only
"""Sends requests to the daemon. I/O: the control socket; any thread.

A request is in the history a second after the daemon accepted it; until then it is remembered
here.
"""

from __future__ import annotations

import os
import pwd
import time
from collections import OrderedDict
from threading import BoundedSemaphore, Lock
from typing import Final

from ebbgate.intents import validation
from ebbgate.intents.client import Busy, ControlClient, NotAnswering, NotRunning, Refused
from ebbgate.store.connection import NothingRecorded
from ebbgate.units import NS_PER_S
from ebbgate.web.changes import intent
from ebbgate.web.errors import ApiError
from ebbgate.web.models.intents import Intent, NewIntent
from ebbgate.web.snapshot import Databases

_TIMEOUT_S: Final = 3.0
"""From connecting to the daemon's answer, without waiting for the outcome."""
_AT_ONCE: Final = 4
"""How many requests may wait for the daemon, so that threads are left for readers."""
REMEMBERED_MAX: Final = 256
_REMEMBERED_S: Final = 60.0
_NO_SUCH_VOLUME: Final = "no such volume"


class IntentService:
    """Requests made through this process, and those in the history."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._places = BoundedSemaphore(_AT_ONCE)
        self._lock = Lock()
        self._accepted: OrderedDict[int, tuple[float, Intent]] = OrderedDict()

    def add(self, request: NewIntent, label: str) -> Intent:
        """Send it; return it once the daemon has accepted it. Raises ApiError and EbbgateError."""
        if not isinstance(request.args, dict):
            raise ApiError(422, "args: must be an object")
        validation.check_intent(request.kind, request.volume, request.args)
        if not self._places.acquire(blocking=False):
            text = f"{_AT_ONCE} requests wait for the daemon already"
            raise ApiError(503, text, "try again in a moment", retry_after_s=2)
        try:
            number = self._send(request, label)
        except (NotRunning, NotAnswering) as error:
            code = "no_daemon" if isinstance(error, NotRunning) else ""
            raise ApiError(503, error.message, error.hint, code=code, retry_after_s=5) from error
        except Busy as error:
            raise ApiError(429, error.message, error.hint, retry_after_s=1) from error
        except Refused as error:
            status = 404 if error.message.startswith(_NO_SUCH_VOLUME) else 409
            raise ApiError(status, error.message, error.hint) from error
        finally:
            self._places.release()
        accepted = self._as_accepted(number, request, label)
        self._remember(accepted)
        return accepted

    def newest(self, limit: int, before_id: int) -> list[Intent]:
        """Return requests, newest first. Raises EbbgateError if the history cannot be read."""
        try:
            with self._databases.history() as history:
                rows = [intent(row) for row in history.intents.newest(limit, before_id)]
        except NothingRecorded:
            rows = []
        newest = rows[0].id if rows else 0
        fresh = [each for each in self._remembered() if newest < each.id < before_id]
        return [*sorted(fresh, key=lambda each: -each.id), *rows][:limit]

    def get(self, number: int) -> Intent | None:
        """Return one request as it is now. Raises EbbgateError if the history cannot be read."""
        try:
            with self._databases.history() as history:
                row = history.intents.get(number)
        except NothingRecorded:
            row = None
        if row is not None:
            return intent(row)
        return next((each for each in self._remembered() if each.id == number), None)

    def _send(self, request: NewIntent, label: str) -> int:
        deadline_s = time.monotonic() + _TIMEOUT_S
        path = self._databases.config.socket_path
        with ControlClient.connect(path, _TIMEOUT_S) as client:
            left_s = max(0.0, deadline_s - time.monotonic())
            return client.send(request.kind, request.volume, request.args, label, left_s)

    def _as_accepted(self, number: int, request: NewIntent, label: str) -> Intent:
        return Intent(
            id=number,
            kind=request.kind,
            volume=request.volume,
            args=request.args,
            who=f"{_user()} ({label})" if label else _user(),
            at_unix_s=self._databases.wall_ns() / NS_PER_S,
            resolved_unix_s=None,
            ok=None,
            outcome=None,
        )

    def _remember(self, intent: Intent) -> None:
        # A policy's text may be long; the history shortens it, too.
        args = {k: _short(v) for k, v in intent.args.items()}
        kept = Intent(**{**vars(intent), "args": args})
        with self._lock:
            self._accepted[intent.id] = (time.monotonic(), kept)
            self._accepted.move_to_end(intent.id)
            while len(self._accepted) > REMEMBERED_MAX:
                self._accepted.popitem(last=False)

    def _remembered(self) -> list[Intent]:
        since_s = time.monotonic() - _REMEMBERED_S
        with self._lock:
            while self._accepted and next(iter(self._accepted.values()))[0] < since_s:
                self._accepted.popitem(last=False)
            return [intent for _, intent in self._accepted.values()]


def label_of(header: str) -> str:
    """Return the name of the person at the page, which the page sends. Raises ApiError."""
    name = header.strip()
    if not name.isprintable():
        raise ApiError(422, "X-Ebbgate-Who is not printable")
    return name


def _short(value: object) -> object:
    return f"{value[:256]}..." if isinstance(value, str) and len(value) > 256 else value  # noqa: PLR2004


def _user() -> str:
    """Return this process's user, as the daemon sees it on the socket."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"
