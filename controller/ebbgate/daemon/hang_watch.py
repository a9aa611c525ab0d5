# SPDX-License-Identifier: GPL-2.0-only
"""Says which volume hangs in the kernel, while it hangs. I/O: a thread; the log.

A read or write of a bcache file waits for bcache's lock, which the kernel may hold for long while a
device is registered. Whoever waits there can say nothing, the event loop included; and where the
watchdog ends the daemon for it, nobody would know afterwards what it was.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from threading import Event, Thread
from typing import Final, NamedTuple

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.units import NS_PER_S, format_ns

_LOG = logging.getLogger(__name__)
_EVERY_S: Final = 0.5
PATIENCE_NS: Final = 2 * NS_PER_S
"""Calls take microseconds; a loaded table takes a second or two."""


class Call(NamedTuple):
    """A call of the kernel that is under way. `what`: for people; `since_ns`: monotonic."""

    volume: str
    what: str
    since_ns: int


class HangWatch:
    """Looks at the calls that are under way; each that takes too long is said once."""

    def __init__(
        self,
        writers: Callable[[], Iterable[KnobWriter]],
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._writers = writers
        self._now_ns = now_ns
        self._said: set[Call] = set()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="hang-watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Say what hangs, and what does no more."""
        now_ns, calls = self._now_ns(), set(_calls(self._writers()))
        for call in sorted(calls - self._said):
            if now_ns - call.since_ns >= PATIENCE_NS:
                self._said.add(call)
                text = "%s: %s hangs in the kernel, for %s by now"
                _LOG.error(text, call.volume, call.what, format_ns(now_ns - call.since_ns))
        for call in sorted(self._said - calls):
            self._said.discard(call)
            lasted = format_ns(now_ns - call.since_ns)
            _LOG.warning("%s: %s has returned, after %s", call.volume, call.what, lasted)

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self.look()
            except Exception:
                _LOG.exception("calls that hang cannot be looked for")


def _calls(writers: Iterable[KnobWriter]) -> Iterator[Call]:
    """What is under way on each volume, on whichever thread."""
    for writer in writers:
        name, write, reading_ns = writer.volume.name, writer.current_write, writer.reading_since_ns
        if write is not None:
            yield Call(name, f"a write of {write[0]}", write[1])
        if reading_ns is not None:
            yield Call(name, "a look at it", reading_ns)
