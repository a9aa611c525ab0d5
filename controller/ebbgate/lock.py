# SPDX-License-Identifier: GPL-2.0-only
"""The lock that only one daemon per state folder holds. I/O: one file."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO, Final

from ebbgate.errors import AlreadyRunning, PermissionDenied

_LOOKS_S: Final = 0.2
"""Whoever looks for the holder holds the lock itself, for some microseconds."""


class DaemonLock:
    """Only one daemon per state folder; the kernel drops the lock when the holder dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    def __enter__(self) -> None:
        self._file = self._path.open("a+")
        try:
            _take(self._file)
        except BlockingIOError as error:
            self._file.seek(0)
            pid = self._file.read().strip() or "unknown"
            raise AlreadyRunning(
                f"another ebbgated runs here (pid {pid})",
                "stop it with `systemctl stop ebbgated`, or use another --state-dir",
            ) from error
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def __exit__(self, *_: object) -> None:
        assert self._file is not None
        self._file.close()


def holder(lock: Path) -> int | None:
    """The process that holds the daemon's lock; 0 where it did not write its number yet."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise PermissionDenied(f"no access to {lock}", "run this as root") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(handle, 32).decode(errors="replace").strip()
        return int(text) if text.isdigit() else 0
    else:
        return None
    finally:
        os.close(handle)


def _take(file: IO[str]) -> None:
    """Raises BlockingIOError where somebody keeps it."""
    until_s = time.monotonic() + _LOOKS_S
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.005)
