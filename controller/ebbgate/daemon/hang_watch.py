# SPDX-License-Identifier: GPL-2.0-only
"""Logs which volume hangs in the kernel, while it hangs. I/O: a thread; the log.

A read or write of a bcache file waits for bcache's lock, which the kernel may hold for long while a
device is registered. A thread that waits there cannot log anything, nor can the event loop; and if
the watchdog ends the daemon for it, the cause would stay unknown.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from threading import Event, Thread
from typing import Final, NamedTuple

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.log_messages.volumes import HANG_CHECK_FAILED, KERNEL_CALL_HANGS, KERNEL_CALL_RETURNED
from ebbgate.units import NS_PER_S, format_ns

_LOG = logging.getLogger(__name__)
_EVERY_S: Final = 0.5
PATIENCE_NS: Final = 2 * NS_PER_S
"""Calls take microseconds; a loaded table takes a second or two."""


class Call(NamedTuple):
    """A kernel call that is under way. `what`: for people. `since_ns`: monotonic."""

    volume: str
    what: str
    since_ns: int


class HangWatch:
    """Looks at the calls that are under way and logs each that takes too long once."""

    def __init__(
        self,
        writers: Callable[[], Iterable[KnobWriter]],
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._writers = writers
        self._now_ns = now_ns
        self._logged: set[Call] = set()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="hang-watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Log what hangs, and what has returned."""
        now_ns, calls = self._now_ns(), set(_calls(self._writers()))
        for call in sorted(calls - self._logged):
            if now_ns - call.since_ns >= PATIENCE_NS:
                self._logged.add(call)
                lasts = format_ns(now_ns - call.since_ns)
                _LOG.error(KERNEL_CALL_HANGS, call.volume, call.what, lasts)
        for call in sorted(self._logged - calls):
            self._logged.discard(call)
            lasted = format_ns(now_ns - call.since_ns)
            _LOG.warning(KERNEL_CALL_RETURNED, call.volume, call.what, lasted)

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self.look()
            except Exception:
                _LOG.exception(HANG_CHECK_FAILED)


def _calls(writers: Iterable[KnobWriter]) -> Iterator[Call]:
    """Yield what is under way on each volume, on any thread."""
    for writer in writers:
        name, write, reading_ns = writer.volume.name, writer.current_write, writer.reading_since_ns
        if write is not None:
            yield Call(name, f"a write of {write[0]}", write[1])
        if reading_ns is not None:
            yield Call(name, "a read of its state", reading_ns)
