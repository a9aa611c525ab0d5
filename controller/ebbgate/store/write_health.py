# SPDX-License-Identifier: GPL-2.0-only
"""Records when the history could not be written, why, and what was lost. Pure."""

from __future__ import annotations

from dataclasses import replace

from ebbgate.model.status import HistoryStatus, LogStatus, OutageStatus
from ebbgate.units import format_bytes


class WriteHealth:
    """Counts lost records; remembers the last outage. Only one thread changes it."""

    def __init__(self) -> None:
        self.dropped = 0
        self._last: OutageStatus | None = None
        self._before = 0

    @property
    def written(self) -> bool:
        """Whether the history can be written, as far as is known."""
        return self._last is None or self._last.until_unix_ns is not None

    def begin(self, why: str, wall_ns: int) -> bool:
        """Note that it could not be written; return True at the start of an outage."""
        if not self.written:
            return False
        self._last = OutageStatus(wall_ns, None, why)
        self._before = self.dropped
        return True

    def end(self, wall_ns: int) -> tuple[int, int] | None:
        """Note that it was written; at the end of an outage, return its length in ns and losses."""
        last = self._last
        if last is None or last.until_unix_ns is not None:
            return None
        lost = self.dropped - self._before
        self._last = replace(last, until_unix_ns=wall_ns, dropped=lost)
        return max(0, wall_ns - (last.since_unix_ns or wall_ns)), lost

    def status(self, log: LogStatus) -> HistoryStatus:
        """Return what the daemon's status says; `trouble`: the last outage, None without one."""
        last = self._last
        if last is not None and last.until_unix_ns is None:
            last = replace(last, dropped=self.dropped - self._before)
        return HistoryStatus(self.written, self.dropped, last, log)


def log_warning(log: LogStatus | None) -> str | None:
    """Return a warning if a reader keeps the log of the history from shrinking; else None."""
    if log is None or log.held_since_unix_ns is None:
        return None
    size = "an unknown size" if log.bytes is None else format_bytes(log.bytes)
    return f"{log.held_by} keeps reading the history: its log has grown to {size}. End that program"
