# SPDX-License-Identifier: GPL-2.0-only
"""Keeps the power state of a volume's disks, read on a thread now and then. I/O: that thread."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Final

from ebbgate.background import BackgroundWorker
from ebbgate.model.power import NOT_ASKED, DiskPower, PowerState
from ebbgate.probes.disk_power import DiskPowerReader
from ebbgate.units import NS_PER_S

PERIOD_NS: Final = 30 * NS_PER_S
"""The shortest time between two questions."""
_HANGS_NS: Final = 30 * NS_PER_S


class PowerWatch:
    """Reads at most every 30 s; a disk that hangs delays nobody and is asked no second time."""

    def __init__(self, name: str, reader: DiskPowerReader) -> None:
        self._reader = reader
        self._worker = BackgroundWorker(f"power-{name}", jobs_max=1)
        self._answer: Future[DiskPower] | None = None
        self._asked_ns: int | None = None
        self._last = NOT_ASKED

    def look(self, now_ns: int) -> DiskPower:
        """Return the last answer, and ask again once that is due; returns at once."""
        if self._answer is not None and self._answer.done():
            self._last, self._answer = _result(self._answer), None
        asked_ns = self._asked_ns
        if self._answer is not None and asked_ns is not None and now_ns - asked_ns >= _HANGS_NS:
            why = f"the disk has not answered for {(now_ns - asked_ns) // NS_PER_S} s"
            return DiskPower(PowerState.UNKNOWN, why)
        if self._answer is None and (asked_ns is None or now_ns - asked_ns >= PERIOD_NS):
            self._asked_ns = now_ns
            self._answer = self._worker.submit(self._reader.read)
        return self._last

    def end(self) -> None:
        """End the thread."""
        self._worker.end()


def _result(answer: Future[DiskPower]) -> DiskPower:
    error = answer.exception()
    return DiskPower(PowerState.UNKNOWN, str(error)) if error else answer.result()
