# SPDX-License-Identifier: GPL-2.0-only
"""Sets the scheduling class of the daemon's threads. I/O: their scheduling class.

While a gate is open in a gap, users may return at any moment and then wait until it is closed. The
event loop's thread therefore takes a real-time priority, as multipathd does, to run before the
kernel threads that destage at full speed. All other threads take the one below: any of them may
hold the interpreter's lock when a request arrives, and without a processor it could not release
the lock to the loop. Under load nothing is urgent, and a tick at real-time priority would delay
users: then all are ordinary threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

LOOP_PRIORITY: Final = 2
"""`LimitRTPRIO=` of the service allows this and no more."""
OTHERS_PRIORITY: Final = 1


def _running_threads() -> list[int]:
    """Return the kernel's ids of the threads that run Python code."""
    return [thread.native_id or 0 for thread in threading.enumerate()]


class Priority:
    """The class of all threads; one that refuses is left alone.

    `loop`: the kernel's id of the event loop's thread. `threads`: all ids, asked for at each
    change, since a thread that starts has the class of the one that started it.
    """

    def __init__(self, loop: int, threads: Callable[[], Iterable[int]] = _running_threads) -> None:
        self._loop = loop
        self._threads = threads
        self._refusing: set[int] = set()
        self._urgent: bool | None = None

    def set(self, *, urgent: bool) -> None:
        """Change the class, if it differs."""
        if urgent is self._urgent:
            return
        self._urgent = urgent
        for thread in self._threads():
            if thread in self._refusing:
                continue
            with suppress(ProcessLookupError):
                try:
                    os.sched_setscheduler(thread, *self._class_of(thread, urgent=urgent))
                except PermissionError:
                    # The right is lacking; the others are still changed back.
                    self._refusing.add(thread)

    def _class_of(self, thread: int, *, urgent: bool) -> tuple[int, os.sched_param]:
        if not urgent:
            return os.SCHED_OTHER, os.sched_param(0)
        priority = LOOP_PRIORITY if thread == self._loop else OTHERS_PRIORITY
        return os.SCHED_RR, os.sched_param(priority)
