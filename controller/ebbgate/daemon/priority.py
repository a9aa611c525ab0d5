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
from typing import Final

LOOP_PRIORITY: Final = 2
"""`LimitRTPRIO=` of the service allows this and no more."""
OTHERS_PRIORITY: Final = 1
_ORDINARY: Final = 0


def _running_threads() -> list[int]:
    """Return the kernel's ids of the threads that run Python code; one that starts has none yet."""
    return [each.native_id for each in threading.enumerate() if each.native_id is not None]


class Priority:
    """The class of all threads; one that refuses is left alone.

    `loop`: the kernel's id of the event loop's thread. `threads`: all ids. They are asked for each
    time, since a thread that starts has the class of the one that started it.
    """

    def __init__(self, loop: int, threads: Callable[[], Iterable[int]] = _running_threads) -> None:
        self._loop = loop
        self._threads = threads
        self._priorities: dict[int, int] = {}
        self._refusing: set[int] = set()

    def set(self, *, urgent: bool) -> None:
        """Change the class of each thread that has another one; call it at each edge and tick."""
        before, self._priorities = self._priorities, {}
        for thread in sorted(self._threads(), key=lambda each: each != self._loop):
            # Where the loop has no right to its priority, no other thread may run before it.
            if thread in self._refusing or self._loop in self._refusing:
                continue
            wanted = self._priority_of(thread) if urgent else _ORDINARY
            if before.get(thread) != wanted and not _change(thread, wanted):
                # The right is lacking; the others are still changed back.
                self._refusing.add(thread)
            self._priorities[thread] = wanted

    def _priority_of(self, thread: int) -> int:
        return LOOP_PRIORITY if thread == self._loop else OTHERS_PRIORITY


def _change(thread: int, priority: int) -> bool:
    """Return whether the kernel allows it; a thread that has ended is no refusal."""
    policy = os.SCHED_OTHER if priority == _ORDINARY else os.SCHED_RR
    try:
        os.sched_setscheduler(thread, policy, os.sched_param(priority))
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return True
