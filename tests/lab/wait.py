# SPDX-License-Identifier: GPL-2.0-only
"""Wait for a condition with a deadline, instead of sleeping and hoping.

I/O: the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tests.lab.errors import LabError

T = TypeVar("T")

PATIENCE = 3.0
"""Deadlines are written for the usual speed; a shared machine is three times slower for minutes."""
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.25


def wait_until(condition: Callable[[], T | None], timeout_s: float, what: str) -> T:
    """Ask until the answer is true and return it; LabError names `what` once `timeout_s` are over
    PATIENCE times.
    """
    deadline = time.monotonic() + PATIENCE * timeout_s
    pause_s = _FIRST_PAUSE_S
    while True:
        if answer := condition():
            return answer
        if time.monotonic() > deadline:
            raise LabError(f"waited {PATIENCE * timeout_s:g} s in vain for {what}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
