# SPDX-License-Identifier: GPL-2.0-only
"""The lock that only one daemon per state folder holds. I/O: one file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from ebbgate.errors import AlreadyRunning


class DaemonLock:
    """Only one daemon per state folder; the kernel drops the lock when the holder dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    def __enter__(self) -> None:
        self._file = self._path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
