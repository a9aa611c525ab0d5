# SPDX-License-Identifier: GPL-2.0-only
"""The folder of a running guest, and the removal of those whose owner was killed.

I/O: folders below the system's temporary folder (TMPDIR moves it). Disk images live there, so it
needs a few GiB; the images are sparse.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "ebbgate-lab-"
# Until its lock is held; a folder of this name is never swept.
_NEW_PREFIX = "ebbgate-new-"
_LOCK = "lock"


class Workdir:
    """A new folder, held by a lock that ends with this process, however it ends."""

    def __init__(self) -> None:
        sweep()
        new = Path(tempfile.mkdtemp(prefix=_NEW_PREFIX)).resolve()
        self._lock = os.open(new / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Locked before others can find it: a sweep of theirs would take it for an orphan's.
        self.path = new.rename(new.with_name(_PREFIX + new.name.removeprefix(_NEW_PREFIX)))

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def sweep() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            continue  # being made or removed just now, or another user's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass  # in use
        finally:
            os.close(lock)
