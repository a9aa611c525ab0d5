# SPDX-License-Identifier: GPL-2.0-only
"""Sets the scheduling class of the daemon's threads. I/O: their scheduling class.

While a gate is open in a gap, users may return at any moment and then wait until it is closed. The
event loop's thread therefore takes the lowest real-time priority, as multipathd does, to run before
the kernel threads that destage at full speed. So does every thread that may hold the interpreter's
lock. Under load nothing is urgent, and a tick at real-time priority would delay users: then they
are ordinary threads.
"""

from __future__ import annotations

import os

_REALTIME = (os.SCHED_RR, os.sched_param(1))
_ORDINARY = (os.SCHED_OTHER, os.sched_param(0))


class Priority:
    """The class of these threads (kernel ids; 0: the caller's); one that refuses is left alone."""

    def __init__(self, *threads: int) -> None:
        self._threads = list(threads)
        self._urgent: bool | None = None

    def set(self, *, urgent: bool) -> None:
        """Change the class, if it differs."""
        if urgent is self._urgent:
            return
        self._urgent = urgent
        for thread in tuple(self._threads):
            try:
                os.sched_setscheduler(thread, *(_REALTIME if urgent else _ORDINARY))
            except OSError:
                # The right is lacking, or the thread is gone; the others are still changed back.
                self._threads.remove(thread)
