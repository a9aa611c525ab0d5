# SPDX-License-Identifier: GPL-2.0-only
"""How urgent the daemon's threads are. I/O: their scheduling class.

While a gate is open in a gap, users may return at any moment and then wait until it is closed: the
loop's thread takes the lowest real-time priority, as multipathd has it, before the kernel threads
that destage at full speed. So does every thread that may hold the interpreter's lock meanwhile.
While users are there nothing is urgent, and a tick at real-time priority would keep them waiting:
then they are ordinary threads.
"""

from __future__ import annotations

import os

_REALTIME = (os.SCHED_RR, os.sched_param(1))
_ORDINARY = (os.SCHED_OTHER, os.sched_param(0))


class Priority:
    """Of these threads (kernel ids; 0: the caller's). One that refuses is left as it is."""

    def __init__(self, *threads: int) -> None:
        self._threads = list(threads)
        self._urgent: bool | None = None

    @property
    def urgent(self) -> bool:
        """As it was set last."""
        return bool(self._urgent)

    def set(self, *, urgent: bool) -> None:
        """Change the class if it is another one than now."""
        if urgent is self._urgent:
            return
        self._urgent = urgent
        for thread in tuple(self._threads):
            try:
                os.sched_setscheduler(thread, *(_REALTIME if urgent else _ORDINARY))
            except OSError:
                # The right is lacking, or the thread is gone: the others still need their way back.
                self._threads.remove(thread)
