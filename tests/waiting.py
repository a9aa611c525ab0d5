# SPDX-License-Identifier: GPL-2.0-only
"""Wait for a condition with a deadline. I/O: the clock."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(holds: Callable[[], object], what: str = "a condition", within_s: float = 20.0) -> None:
    """Return once the condition holds. Raises AssertionError after `within_s`."""
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, f"never: {what}"
        time.sleep(0.001)
