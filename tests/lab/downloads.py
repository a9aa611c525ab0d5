# SPDX-License-Identifier: GPL-2.0-only
"""The folder of what outlives a run: kernels, the emulator, links to kept guests.

I/O: that folder, `$EBBGATE_CACHE`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """Where everything that outlives a run is kept: `$EBBGATE_CACHE` or ~/.cache/ebbgate."""
    path = Path(os.environ.get("EBBGATE_CACHE") or Path.home() / ".cache" / "ebbgate")
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Make a folder of the cache, and be the only one who fills it."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def made(final: Path) -> Iterator[Path]:
    """A scratch folder whose `root` becomes `final` if all goes well.

    One rename makes the finished folder appear at once: a broken-off run leaves nothing.
    """
    with tempfile.TemporaryDirectory(dir=final.parent) as scratch_name:
        scratch = Path(scratch_name)
        yield scratch
        shutil.rmtree(final, ignore_errors=True)
        (scratch / "root").rename(final)
