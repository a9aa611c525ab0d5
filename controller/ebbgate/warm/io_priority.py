# SPDX-License-Identifier: GPL-2.0-only
"""The I/O priority by which the probe knows ebbgate's own reads. I/O: one system call."""

from __future__ import annotations

import ctypes
import platform
from typing import Final

_IOPRIO: Final = 0x6005
"""Idle class, with a level that no tool gives: EB_WARM_IOPRIO of the probe (bpf/record.h)."""
_IOPRIO_SET: Final = {"x86_64": 251, "aarch64": 30}
"""Number of the system call."""
_WHO_PROCESS: Final = 1
"""With 0 as the process: the calling thread, and threads that it starts later."""


def set_for_thread() -> bool:
    """Give the reads of this thread a priority with which they are no load of users.

    Return False where that is not possible: then they would count as load.
    """
    number = _IOPRIO_SET.get(platform.machine())
    if number is None:
        return False
    return bool(ctypes.CDLL(None).syscall(number, _WHO_PROCESS, 0, _IOPRIO) == 0)
