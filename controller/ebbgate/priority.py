# SPDX-License-Identifier: GPL-2.0-only
"""How urgent the daemon's main thread is. I/O: its scheduling class.

While a gate is open in a gap, users may return at any moment and then wait until it is closed: the
thread takes the lowest real-time priority, as multipathd has it, before the kernel threads that
destage at full speed. While users are there nothing is urgent, and a tick at real-time priority
would keep them waiting: then it is an ordinary thread.
"""

from __future__ import annotations

import os

_REALTIME = (os.SCHED_RR, os.sched_param(1))
_ORDINARY = (os.SCHED_OTHER, os.sched_param(0))


class Priority:
    """Of the thread that calls it. Where the right is lacking it does nothing."""

    def __init__(self) -> None:
        self._urgent: bool | None = None
        self._allowed = True

    def set(self, *, urgent: bool) -> None:
        """Change the class if it is another one than now."""
        if urgent is self._urgent or not self._allowed:
            return
        self._urgent = urgent
        try:
            os.sched_setscheduler(0, *(_REALTIME if urgent else _ORDINARY))
        except OSError:
            self._allowed = False
