# SPDX-License-Identifier: GPL-2.0-only
"""An nbdkit plugin: a sparse file that answers as slowly as a hard disk (hdd_queue.py).

I/O: runs inside nbdkit (API: man nbdkit-python-plugin); keys: file, control, size, seed.

Each request waits in a thread of nbdkit's; one thread of the plugin's moves the head. The model
has absolute times, so sleeping longer than asked delays one answer and does not make the disk
slower. The file always has the newest data: reads need nothing else, and a power cut writes back
what the platter holds.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbdkit  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.lab.hdd_control import HddControl, HddCounters
from tests.lab.hdd_model import HddModel
from tests.lab.hdd_queue import HddQueue, Kind, Operation, Request

API_VERSION = 2

_PR_SET_TIMERSLACK = 29
# How late an idle disk may notice that its power is cut.
_POLL_S = 0.05


@dataclass(slots=True)
class Answer:
    """When a request is answered; `known` is set as soon as that is certain."""

    known: threading.Event = field(default_factory=threading.Event)
    at_ns: int = 0
    failed: bool = False

    def tell(self, at_ns: int, *, failed: bool = False) -> None:
        """Let the thread of the request go on."""
        self.at_ns, self.failed = at_ns, failed
        self.known.set()


class Disk:
    """The file and the model behind one export."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.size_bytes = int(settings["size"])
        self.file = os.open(settings["file"], os.O_RDWR)
        self._control = HddControl(Path(settings["control"]))
        model = HddModel(self.size_bytes, random.Random(settings["seed"]))
        self._queue = HddQueue(model, self._control.features)
        self._lock = threading.Lock()
        self._work = threading.Event()
        self._answers: dict[Request, Answer] = {}
        self._seen = HddCounters()

    def read(self, offset_bytes: int, buffer: bytearray) -> None:
        """Read, at the model's pace."""
        self._serve(Request(Kind.READ, time.monotonic_ns(), offset_bytes, len(buffer)))
        os.preadv(self.file, [buffer], offset_bytes)

    def write(self, offset_bytes: int, data: bytes | bytearray, *, fua: bool) -> None:
        """Write, at the model's pace."""
        now_ns = time.monotonic_ns()
        self._serve(Request(Kind.WRITE, now_ns, offset_bytes, len(data), fua), data)

    def flush(self) -> None:
        """Bring all that is cached to the platter."""
        self._serve(Request(Kind.FLUSH, time.monotonic_ns()))

    def move_head(self) -> None:
        """Serve requests for ever."""
        while True:
            with self._lock:
                self._take_commands()
                self._start()
                operation = self._queue.current
                self._work.clear()
            if operation is None:
                self._work.wait(_POLL_S)
                continue
            _sleep_until(operation.end_ns)
            with self._lock:
                # A power cut loses what the head was writing, too.
                if not self._take_commands():
                    self._finish(operation)

    def _serve(self, request: Request, data: bytes | bytearray = b"") -> None:
        """Queue a request and return once it is answered."""
        with self._lock:
            self._adopt_settings()
            self._store(request, data)
            at_ns = self._queue.submit(request)
            self._count(request)
            if at_ns is None:
                self._answers[request] = answer = Answer()
                self._start()
        self._work.set()
        if at_ns is not None:
            _sleep_until(at_ns)
            return
        answer.known.wait()
        _sleep_until(answer.at_ns)
        if answer.failed:
            nbdkit.set_error(errno.EIO)
            raise OSError(errno.EIO, "the disk lost its power")

    def _store(self, request: Request, data: bytes | bytearray) -> None:
        if data:
            if self._queue.caches_writes:
                request.before = os.pread(self.file, len(data), request.offset_bytes)
            os.pwrite(self.file, data, request.offset_bytes)

    def _start(self) -> None:
        """Begin the next movement of the head; its request learns at once when it ends."""
        operation = self._queue.start(time.monotonic_ns())
        if operation is not None:
            if operation.request is not None:
                self._answers[operation.request].tell(operation.end_ns)
            self._publish()

    def _finish(self, operation: Operation) -> None:
        for request in self._queue.finish():
            answer = self._answers.pop(request)
            if operation.request is None:
                answer.tell(operation.end_ns)
        self._publish()

    def _adopt_settings(self) -> None:
        self._queue.model.scale = self._control.scale
        self._queue.features = self._control.features

    def _take_commands(self) -> bool:
        """Cut the power if asked to; return whether that was so."""
        asked, done = self._control.cuts
        if asked == done:
            return False
        cut = self._queue.cut_power()
        for extent in cut.extents:
            os.pwrite(self.file, extent.before, extent.offset_bytes)
        for request in cut.requests:
            self._answers.pop(request).tell(time.monotonic_ns(), failed=True)
        lost_bytes = sum(extent.length_bytes for extent in cut.extents)
        self._seen = replace(self._seen, lost_bytes=self._seen.lost_bytes + lost_bytes)
        self._publish()
        self._control.cuts = asked, asked
        return True

    def _count(self, request: Request) -> None:
        seen, length_bytes = self._seen, request.length_bytes
        match request.kind:
            case Kind.READ:
                read_bytes = seen.read_bytes + length_bytes
                self._seen = replace(seen, reads=seen.reads + 1, read_bytes=read_bytes)
            case Kind.WRITE:
                write_bytes = seen.write_bytes + length_bytes
                self._seen = replace(seen, writes=seen.writes + 1, write_bytes=write_bytes)
            case Kind.FLUSH:
                self._seen = replace(seen, flushes=seen.flushes + 1)
        self._publish()

    def _publish(self) -> None:
        self._control.counters = replace(self._seen, busy_ns=self._queue.model.busy_ns)
        depth_max = max(self._control.depth_max, self._queue.depth(time.monotonic_ns()))
        self._control.gauges = self._queue.cache.used_bytes, depth_max


def _sleep_until(at_ns: int) -> None:
    left_ns = at_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / 1e9)


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


def after_fork() -> None:
    """Start the thread that moves the head."""
    threading.Thread(target=_disks[0].move_head, daemon=True).start()


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
    """The write cache honours it."""
    return int(nbdkit.FUA_NATIVE)


def pread(disk: Disk, buffer: bytearray, offset: int, _flags: int) -> None:
    """Read, at the model's pace."""
    disk.read(offset, buffer)


def pwrite(disk: Disk, buffer: bytearray, offset: int, flags: int) -> None:
    """Write, at the model's pace."""
    disk.write(offset, buffer, fua=bool(flags & nbdkit.FLAG_FUA))


def flush(disk: Disk, _flags: int) -> None:
    """Bring the write cache to the platter."""
    disk.flush()
