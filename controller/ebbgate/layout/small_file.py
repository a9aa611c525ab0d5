# SPDX-License-Identifier: GPL-2.0-only
"""Reads the beginning of a file whose name anybody may have given. I/O: one file, reads only."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_begin(path: Path, bytes_max: int) -> bytes:
    """Return at most so many bytes of a regular file. Raises OSError for anything else.

    A pipe would let the reader wait for ever, and a link would lead to a file of somebody else.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        return os.read(handle, bytes_max)
    finally:
        os.close(handle)
