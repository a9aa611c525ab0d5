# SPDX-License-Identifier: GPL-2.0-only
"""Sends several reads at once (asynchronous I/O of Linux, io_submit(2)).

bcache caches only the first part of a request that it does not have yet, so that a range of which
something is cached needs many small requests. Sent at once they cost the backing device no more
seeks than a single one. The extents of a scattered file need a request each, too: a disk that knows
only one of them at a time turns past the next. I/O: one file or volume.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from ebbgate.warm.buffer_ring import BufferRing
from ebbgate.warm.plan import Read

REQUESTS_MAX: Final = 128
_CALLS: Final = {
    "x86_64": {"io_setup": 206, "io_getevents": 208, "io_submit": 209},
    "aarch64": {"io_setup": 0, "io_submit": 2, "io_getevents": 4},
}
"""Numbers of the system calls; elsewhere one read follows the other."""
_IOCB: Final = struct.Struct("<QIiHhIQQqQII")
_EVENT: Final = struct.Struct("<QQqq")
_PREAD: Final = 0


class _Placed(NamedTuple):
    """A read, and the part of the buffer that it has. `number`: of that part."""

    read: Read
    number: int
    start: int


class ParallelReads:
    """Reads from a file that is open for direct I/O into a buffer, whose content is of no use.

    No two reads under way share a part of it: see `buffer_ring`. So as much as it holds may be
    under way.
    """

    def __init__(self, handle: int, buffer: memoryview) -> None:
        self._handle = handle
        self._buffer = buffer
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        self._calls = _CALLS.get(platform.machine(), {})
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._context = ctypes.c_ulong()
        self._ring = BufferRing(len(buffer))
        self._under_way: dict[int, int] = {}
        self._under_way_bytes = 0
        self._failure: OSError | EOFError | None = None
        with suppress(OSError, KeyError):
            self._call("io_setup", REQUESTS_MAX, ctypes.byref(self._context))

    def read(self, reads: Sequence[Read]) -> None:
        """Send all and wait until the last is done.

        Raises OSError if one of them has failed, EOFError if there was nothing to read.
        """
        self.send(reads)
        self.wait()

    def send(self, reads: Sequence[Read]) -> None:
        """Send all; `wait` raises what fails."""
        left = deque(reads)
        if not self._context.value:
            self._in_turn([_Placed(read, 0, 0) for read in left])
            return
        while left:
            self._take_ended(0)
            if found := self._placed(left):
                self._at_once(found)
            else:
                self._take_ended(1)

    def wait(self, left_bytes: int = 0) -> None:
        """Return when at most so many bytes are under way.

        Raises what the first that has failed since the last call did: OSError, EOFError.
        """
        while self._under_way_bytes > left_bytes:
            self._take_ended(1)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _placed(self, left: deque[Read]) -> list[_Placed]:
        """Take the first reads, as many as there is room for."""
        found: list[_Placed] = []
        while left and len(self._under_way) + len(found) < REQUESTS_MAX:
            part = self._ring.take(left[0].length_bytes)
            if part is None:
                break
            found.append(_Placed(left.popleft(), *part))
        return found

    def _at_once(self, reads: Sequence[_Placed]) -> None:
        blocks = [ctypes.create_string_buffer(self._iocb(each)) for each in reads]
        pointers = (ctypes.c_void_p * len(blocks))(*map(ctypes.addressof, blocks))
        sent = 0
        try:
            sent = self._call("io_submit", self._context, len(blocks), pointers)
            self._in_turn(reads[sent:])
        finally:
            for read, number, _ in reads[:sent]:
                self._under_way[number] = read.length_bytes
                self._under_way_bytes += read.length_bytes
            for each in reads[sent:]:
                self._ring.end(each.number)

    def _take_ended(self, least: int) -> None:
        """Take all that have ended, once there are so many."""
        events = ctypes.create_string_buffer(_EVENT.size * REQUESTS_MAX)
        try:
            count = self._call("io_getevents", self._context, least, REQUESTS_MAX, events, None)
        except InterruptedError:
            # The call returns early when a signal arrives.
            return
        for number, _, result, _ in _EVENT.iter_unpack(events.raw[: count * _EVENT.size]):
            self._under_way_bytes -= self._under_way.pop(number)
            self._ring.end(number)
            self._note(result)

    def _in_turn(self, reads: Sequence[_Placed]) -> None:
        for read, _, start in reads:
            place = self._buffer[start : start + read.length_bytes]
            try:
                self._note(os.preadv(self._handle, [place], read.offset_bytes))
            except OSError as error:
                self._failure = self._failure or error

    def _note(self, result: int) -> None:
        """Keep the first failure. `result`: of a read, its bytes or an error number below 0."""
        if result < 0:
            self._failure = self._failure or OSError(-result, os.strerror(-result))
        elif result == 0:
            self._failure = self._failure or EOFError()

    def _iocb(self, placed: _Placed) -> bytes:
        read, number, start = placed
        place = (self._address + start, read.length_bytes, read.offset_bytes)
        # The first field comes back with the event.
        return _IOCB.pack(number, 0, 0, _PREAD, 0, self._handle, *place, 0, 0, 0)

    def _call(self, name: str, *args: object) -> int:
        # ctypes passes ints as 32 bits unless told otherwise, and system calls take registers.
        words = [ctypes.c_long(each) if isinstance(each, int) else each for each in args]
        result: int = self._libc.syscall(ctypes.c_long(self._calls[name]), *words)
        if result < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return result
