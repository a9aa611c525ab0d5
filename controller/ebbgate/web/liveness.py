# SPDX-License-Identifier: GPL-2.0-only
"""Whether the daemon runs, checked at most once a second. I/O: the control socket; any thread."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from ebbgate.errors import EbbgateError
from ebbgate.intents.client import Busy, NotAnswering, NotRunning, greet

_EVERY_S: Final = 1.0
_TIMEOUT_S: Final = 0.5
"""Readers wait meanwhile; a healthy daemon greets within a millisecond."""


@dataclass(frozen=True, slots=True)
class DaemonState:
    """`running`: None if this process may not ask. `why`: why no request can be made."""

    running: bool | None
    pid: int | None
    why: str | None


class Liveness:
    """Remembers the answer for a second, so that many readers cost one connection."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._known: DaemonState | None = None
        self._at_s = 0.0

    def now(self) -> DaemonState:
        """Return the state; never raises. Takes up to half a second if the daemon hangs."""
        with self._lock:
            if self._known is None or time.monotonic() - self._at_s >= _EVERY_S:
                self._known = _ask(self._path)
                self._at_s = time.monotonic()
            return self._known


def _ask(path: Path) -> DaemonState:
    try:
        greeting = greet(path, _TIMEOUT_S)
    except NotRunning as error:
        return DaemonState(False, None, error.message)
    except NotAnswering as error:
        # The kernel has connected us, so there is a process, which is busy or stopped.
        return DaemonState(True, error.pid, error.message)
    except Busy:
        # The daemon itself answered that all connections are in use.
        return DaemonState(True, None, None)
    except EbbgateError as error:
        return DaemonState(None, None, error.message)
    return DaemonState(True, greeting.pid, None)
