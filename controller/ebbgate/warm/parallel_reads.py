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
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

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


class ParallelReads:
    """Reads from a file that is open for direct I/O into a buffer, whose content is of no use."""

    def __init__(self, handle: int, buffer: memoryview) -> None:
        self._handle = handle
        self._buffer = buffer
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        self._calls = _CALLS.get(platform.machine(), {})
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._context = ctypes.c_ulong()
        self._under_way = 0
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
        for start in range(0, len(reads), REQUESTS_MAX):
            part = reads[start : start + REQUESTS_MAX]
            if self._context.value:
                self._make_room(len(part))
                self._at_once(part)
            else:
                self._in_turn(part)

    def wait(self, left_bytes: int = 0) -> None:
        """Return when at most so many bytes are under way.

        Raises what the first that has failed since the last call did: OSError, EOFError.
        """
        while self._under_way_bytes > left_bytes:
            self._take_ended()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _make_room(self, count: int) -> None:
        while self._under_way + count > REQUESTS_MAX:
            self._take_ended()

    def _at_once(self, reads: Sequence[Read]) -> None:
        blocks = [
            ctypes.create_string_buffer(self._iocb(read, at))
            for read, at in zip(reads, self._places(reads), strict=True)
        ]
        pointers = (ctypes.c_void_p * len(blocks))(*map(ctypes.addressof, blocks))
        sent = self._call("io_submit", self._context, len(blocks), pointers)
        self._under_way += sent
        self._under_way_bytes += sum(read.length_bytes for read in reads[:sent])
        self._in_turn(reads[sent:])

    def _take_ended(self) -> None:
        """Wait until at least one has ended, and take all that have."""
        events = ctypes.create_string_buffer(_EVENT.size * self._under_way)
        try:
            count = self._call("io_getevents", self._context, 1, self._under_way, events, None)
        except InterruptedError:
            # The call returns early when a signal arrives.
            return
        ended = list(_EVENT.iter_unpack(events.raw[: count * _EVENT.size]))
        self._under_way -= count
        self._under_way_bytes -= sum(length for length, *_ in ended)
        for _, _, result, _ in ended:
            self._note(result)

    def _in_turn(self, reads: Sequence[Read]) -> None:
        for read in reads:
            place = self._buffer[: read.length_bytes]
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

    def _iocb(self, read: Read, at: int) -> bytes:
        place = (self._address + at, read.length_bytes, read.offset_bytes)
        # The first field comes back with the event.
        return _IOCB.pack(read.length_bytes, 0, 0, _PREAD, 0, self._handle, *place, 0, 0, 0)

    def _places(self, reads: Sequence[Read]) -> list[int]:
        """Return where in the buffer each may be written; they share it, since nobody looks."""
        room = len(self._buffer)
        found, at = [], 0
        for read in reads:
            at = 0 if at + read.length_bytes > room else at
            found.append(at)
            at += read.length_bytes
        return found

    def _call(self, name: str, *args: object) -> int:
        # ctypes passes ints as 32 bits unless told otherwise, and system calls take registers.
        words = [ctypes.c_long(each) if isinstance(each, int) else each for each in args]
        result: int = self._libc.syscall(ctypes.c_long(self._calls[name]), *words)
        if result < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return result
