# SPDX-License-Identifier: GPL-2.0-only
"""Restores again what failed to be restored as its volume went away. I/O: on a thread.

The disks of a volume stay when its cache goes, and a write to one of them may fail.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, wait
from typing import Final

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.knobs.catalog import knob_row
from ebbgate.log_messages.volumes import KNOB_JOB_FAILED
from ebbgate.model.decision import JournalEntry
from ebbgate.units import NS_PER_S

_LOG = logging.getLogger("ebbgated")
_AGAIN_NS: Final = 10 * NS_PER_S
"""The kernel may log each refusal."""


class UnrestoredVolumes:
    """The loops of such volumes, by name; their own threads have ended."""

    def __init__(self) -> None:
        self._loops: dict[str, VolumeLoop] = {}
        self._worker = BackgroundWorker("restore-gone")
        self._trying: Future[None] | None = None
        self._due_ns = 0

    @property
    def names(self) -> list[str]:
        """The volumes of which something is not restored."""
        return [name for name, loop in self._loops.items() if loop.writer.unrestored]

    def keep(self, loop: VolumeLoop) -> None:
        """Keep a loop whose thread has ended, if something is left of it."""
        if loop.writer.unrestored:
            self._loops[loop.volume.name] = loop
            _want_nothing(loop)

    def may_write(self, name: str) -> bool:
        """Return whether a try for this volume is under way: no other loop may follow it then."""
        return name in self._loops and self._trying is not None and not self._trying.done()

    def hand_over(self, name: str) -> list[JournalEntry]:
        """Return what is not restored: another loop follows a volume of this name from now on."""
        loop = self._loops.pop(name, None)
        return [] if loop is None else loop.writer.unrestored

    def try_when_due(self, now_ns: int) -> None:
        """Begin to try again; returns at once."""
        if self._trying is not None and not self._trying.done():
            return
        for name in self._loops.keys() - self.names:
            del self._loops[name]
        if self._loops and now_ns >= self._due_ns:
            self._due_ns = now_ns + _AGAIN_NS
            self._try("the volume is gone or changed")

    def try_at_end(self, timeout_s: float) -> None:
        """Try once more before the daemon ends."""
        if self.names:
            wait([self._try("ebbgated stops")], timeout_s)

    def _try(self, why: str) -> Future[None]:
        loops = list(self._loops.values())

        def work() -> None:
            for loop in loops:
                try:
                    loop.driver.release_what_is_left(why)
                    _want_nothing(loop)
                except Exception:
                    # A bug with one volume must not keep the others from being restored.
                    _LOG.exception(KNOB_JOB_FAILED, loop.volume.name)

        self._trying = self._worker.submit(work)
        return self._trying


def _want_nothing(loop: VolumeLoop) -> None:
    """Let other volumes of the cache set restore its knobs: this one needs no value any more.

    A knob of a disk is still claimed, so that other volumes take its original from this one.
    """
    for entry in loop.writer.unrestored:
        if knob_row(entry.knob).set_wide:
            loop.writer.journal.claims.disclaim(entry)
