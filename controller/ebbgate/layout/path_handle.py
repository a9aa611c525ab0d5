# SPDX-License-Identifier: GPL-2.0-only
"""Looks at a path and opens what was seen, nothing else. I/O: opens files.

A user may put a link to a device in place of a file between two calls, and the open of a device by
root may start something, such as a watchdog, or rewind a tape.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def path_handle(path: Path) -> Iterator[int]:
    """Yield a handle that shows the status of what the path leads to. It opens neither devices nor
    pipes. Raises OSError.
    """
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def reopened(handle: int) -> int:
    """Open for reading what such a handle shows; a pipe does not block. Raises OSError."""
    return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
