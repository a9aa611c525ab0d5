# SPDX-License-Identifier: GPL-2.0-only
"""Keeps the paths of the cgroups that missed the cache, by id. I/O: cgroupfs, on a thread.

On the event loop.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.text import clean_text
from ebbgate.units import NS_PER_S

PERIOD_NS: Final = 30 * NS_PER_S
"""The shortest time between two looks at all cgroups: ids that are not found have been removed."""
_FOLDERS_MAX: Final = 10_000
"""Users may make as many as they like in their own part of the hierarchy."""
_FOLDER_CHARS_MAX: Final = 1000
_PATH_CHARS_MAX: Final = 200


class CgroupNames:
    """Reads the names when a volume has misses of a cgroup without one. `root`: of cgroupfs."""

    def __init__(
        self,
        volumes: Mapping[str, VolumeLoop],
        root: Path = Path("/sys/fs/cgroup"),
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._volumes = volumes
        self._root = root
        self._now_ns = now_ns
        self._worker = BackgroundWorker("cgroups", jobs_max=1)
        self._answer: Future[dict[int, str]] | None = None
        self._asked_ns: int | None = None
        self._names: dict[int, str] = {}

    def poll(self) -> None:
        """Take what was read, and read again once that is due; returns at once."""
        if self._answer is not None and self._answer.done():
            if self._answer.exception() is None:
                self._names = self._answer.result()
            self._answer = None
        for loop in self._volumes.values():
            loop.signals.cgroups = self._names
        if self._answer is None and self._is_due():
            self._asked_ns = self._now_ns()
            self._answer = self._worker.submit(lambda: read_names(self._root))

    def _is_due(self) -> bool:
        if self._asked_ns is not None and self._now_ns() - self._asked_ns < PERIOD_NS:
            return False
        return any(
            loop.signals.missed_cgroups() - self._names.keys() for loop in self._volumes.values()
        )


def read_names(root: Path) -> dict[int, str]:
    """Return the path of each cgroup that I/O is charged to, by its id. Raises OSError.

    Of more than 10,000 cgroups, those nearest to the root have one.
    """
    top = _charged(root)
    found = {top.stat().st_ino: "/"}
    for inode, path in islice(_folders(top), _FOLDERS_MAX):
        found[inode] = clean_text(path, _PATH_CHARS_MAX)
    return found


def _folders(top: Path) -> Iterator[tuple[int, str]]:
    """Yield the inode and the path of each folder below, the nearest first."""
    waiting = deque([""])
    while waiting:
        folder = waiting.popleft()
        # It may be removed meanwhile.
        with suppress(OSError), os.scandir(f"{top}{folder}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    path = f"{folder}/{entry.name}"
                    yield entry.inode(), path
                    if len(path) < _FOLDER_CHARS_MAX:
                        waiting.append(path)


def _charged(root: Path) -> Path:
    """Return the hierarchy that has the I/O controller: version 2, or that of version 1."""
    controllers = root / "cgroup.controllers"
    if controllers.exists() and "io" in controllers.read_text().split():
        return root
    old = root / "blkio"
    return old if old.is_dir() else root
