# SPDX-License-Identifier: GPL-2.0-only
"""An nbdkit plugin: a sparse file that answers as slowly as a hard disk (hdd_model.py).

I/O: runs inside nbdkit (API: man nbdkit-python-plugin); keys: file, control, size, seed.

Requests may wait side by side, but the model lines them up behind its one head: each is given
its absolute time of completion when it arrives and is answered then. Sleeping longer than asked
delays that answer and nothing else.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import nbdkit  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.lab.hdd_control import HddControl
from tests.lab.hdd_model import HddModel

API_VERSION = 2

_PR_SET_TIMERSLACK = 29


class Disk:
    """The file and the model behind one export."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.size_bytes = int(settings["size"])
        self.file = os.open(settings["file"], os.O_RDWR)
        self._control = HddControl(Path(settings["control"]))
        self._model = HddModel(self.size_bytes, random.Random(settings["seed"]))
        self._lock = threading.Lock()

    def serve(self, offset_bytes: int, length_bytes: int, *, write: bool) -> None:
        """Queue a request behind the head and return once it would be done."""
        arrival_ns = time.monotonic_ns()
        with self._lock:
            self._model.scale = self._control.scale
            done_ns = self._model.finish_ns(arrival_ns, offset_bytes, length_bytes)
            self._count(length_bytes, write=write)
        left_ns = done_ns - time.monotonic_ns()
        if left_ns > 0:
            time.sleep(left_ns / 1e9)

    def _count(self, length_bytes: int, *, write: bool) -> None:
        seen = self._control.counters
        if write:
            seen = replace(
                seen, writes=seen.writes + 1, write_bytes=seen.write_bytes + length_bytes
            )
        else:
            seen = replace(seen, reads=seen.reads + 1, read_bytes=seen.read_bytes + length_bytes)
        self._control.counters = replace(seen, busy_ns=self._model.busy_ns)

    def count_flush(self) -> None:
        """A flush costs nothing here, since there is no write cache, but it is counted."""
        with self._lock:
            seen = self._control.counters
            self._control.counters = replace(seen, flushes=seen.flushes + 1)


_settings: dict[str, str] = {}
_disks: list[Disk] = []


def config(key: str, value: str) -> None:
    """Take one key=value of the command line."""
    _settings[key] = value


def thread_model() -> int:
    """Let requests wait side by side; the model does the lining up."""
    return int(nbdkit.THREAD_MODEL_PARALLEL)


def get_ready() -> None:
    """Open the disk once, for all connections."""
    # A sleep may end 50 us late by default, to save power. Threads inherit the setting.
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)
    _disks.append(Disk(_settings))


def open(_readonly: bool) -> Disk:
    """A connection; all share the one head."""
    return _disks[0]


def get_size(disk: Disk) -> int:
    """Bytes."""
    return disk.size_bytes


def can_multi_conn(_disk: Disk) -> bool:
    """All connections see the same file."""
    return True


def can_fua(_disk: Disk) -> int:
    """A write is on the platter when it is answered, so FUA costs nothing."""
    return int(nbdkit.FUA_NATIVE)


def pread(disk: Disk, buffer: bytearray, offset: int, _flags: int) -> None:
    """Read, at the model's pace."""
    disk.serve(offset, len(buffer), write=False)
    os.preadv(disk.file, [buffer], offset)


def pwrite(disk: Disk, buffer: bytes, offset: int, _flags: int) -> None:
    """Write, at the model's pace."""
    os.pwrite(disk.file, buffer, offset)
    disk.serve(offset, len(buffer), write=True)


def flush(disk: Disk, _flags: int) -> None:
    """Nothing is volatile."""
    disk.count_flush()
