# SPDX-License-Identifier: GPL-2.0-only
"""Carries out a cleaning: loads the cleaner (or flushes), watches it, loads the old table again.

I/O: through the driver. The event loop calls it; it never blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ebbgate.actuators.reason import Reason
from ebbgate.control.knob_driver import KnobDriver
from ebbgate.errors import ActuationError
from ebbgate.knobs.catalog import TABLE
from ebbgate.log_messages.volumes import CLEANING_ENDED
from ebbgate.model.decision import CLEAN
from ebbgate.model.dm import CLEANER, CacheStatus, WritecacheStatus
from ebbgate.model.volume import Kind, Volume, VolumeState
from ebbgate.policy.cleaning import Cleaning, ending, why_not_clean
from ebbgate.units import NS_PER_S, format_bytes, format_ns

_LOG = logging.getLogger(__name__)
_AGAIN_NS: Final = 10 * NS_PER_S
"""The kernel logs each table that it refuses, and the history keeps each try."""


class Cleaner:
    """At most one cleaning of one volume."""

    def __init__(self, volume: Volume, driver: KnobDriver, now_ns: Callable[[], int]) -> None:
        self.cleaning: Cleaning | None = None
        self._volume = volume
        self._driver = driver
        self._now_ns = now_ns
        self._again_ns = 0

    def begin(self, seen: VolumeState | None, within_ns: int, who: str) -> str:
        """Load the cleaner, for at most `within_ns`; return what is done, in words.

        Raises ActuationError if it cannot begin.
        """
        title = self._volume.title
        why_not = "a cleaning is under way" if self.cleaning else why_not_clean(self._volume, seen)
        if why_not or seen is None:
            raise ActuationError(f"{title}: {why_not}", "see ebbgate status")
        now_ns, dirty = self._now_ns(), seen.dirty_bytes or 0
        self.cleaning = Cleaning(now_ns, now_ns + within_ns, who, dirty)
        within = format_ns(within_ns)
        reason = Reason(CLEAN, f"requested by {who}, within {within}")
        if self._volume.kind is Kind.DM_WRITECACHE:
            self._driver.flush(reason)
        else:
            self._driver.clean(reason)
        return f"{title}: cleans {format_bytes(dirty)}, for {within} at most"

    def watch(self, seen: VolumeState) -> None:
        """End the cleaning when it is over, and load the old table again. `seen`: the last look."""
        cleaning = self.cleaning
        if cleaning is None:
            return
        if self._seen(seen):
            self.cleaning = cleaning = replace(cleaning, seen=True)
        why = cleaning.ended or ending(cleaning, seen, self._now_ns())
        if not why:
            return
        if not cleaning.ended:
            _LOG.info(CLEANING_ENDED, self._volume.title, why)
            self.cleaning = replace(cleaning, ended=why)
            self._again_ns = 0
        if TABLE in self._driver.writer.owned:
            # Repeated if it failed: until the table is back, no other knob can be set.
            if self._driver.worker.idle and self._now_ns() >= self._again_ns:
                self._again_ns = self._now_ns() + _AGAIN_NS
                self._driver.end_cleaning(why)
        elif self._driver.worker.idle or self._volume.kind is Kind.DM_WRITECACHE:
            self.cleaning = None

    def _seen(self, seen: VolumeState) -> bool:
        """Whether the cleaner is loaded, or the flush has returned."""
        if isinstance(seen.dm, WritecacheStatus):
            return self._driver.worker.idle
        return isinstance(seen.dm, CacheStatus) and seen.dm.policy == CLEANER
