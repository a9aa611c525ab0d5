# SPDX-License-Identifier: GPL-2.0-only
"""Records when the history could not be written, why, and what was lost. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ebbgate.units import format_bytes

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Outage:
    since_unix_ns: int
    why: str
    until_unix_ns: int | None = None
    dropped: int = 0


class WriteHealth:
    """Counts lost records; remembers the last outage. Only one thread changes it."""

    def __init__(self) -> None:
        self.dropped = 0
        self._last: _Outage | None = None
        self._before = 0

    @property
    def written(self) -> bool:
        """Whether the history can be written, as far as is known."""
        return self._last is None or self._last.until_unix_ns is not None

    def begin(self, why: str, wall_ns: int) -> bool:
        """Note that it could not be written; return True at the start of an outage."""
        if not self.written:
            return False
        self._last = _Outage(wall_ns, why)
        self._before = self.dropped
        return True

    def end(self, wall_ns: int) -> tuple[int, int] | None:
        """Note that it was written; at the end of an outage, return its length in ns and losses."""
        last = self._last
        if last is None or last.until_unix_ns is not None:
            return None
        lost = self.dropped - self._before
        self._last = _Outage(last.since_unix_ns, last.why, wall_ns, lost)
        return max(0, wall_ns - last.since_unix_ns), lost

    def document(self) -> Document:
        """Return the document; `trouble`: the last outage, None without one."""
        last = self._last
        trouble: Document | None = None
        if last is not None:
            ongoing = last.until_unix_ns is None
            trouble = {
                "since_unix_ns": last.since_unix_ns,
                "until_unix_ns": last.until_unix_ns,
                "why": last.why,
                "dropped": self.dropped - self._before if ongoing else last.dropped,
            }
        return {"written": self.written, "dropped": self.dropped, "trouble": trouble}


def log_warning(history: Mapping[str, Any]) -> str | None:
    """Return a warning about the log of the history, from the daemon's document; or None."""
    log = history.get("log") or {}
    if log.get("held_since_unix_ns") is None:
        return None
    return (
        f"{log.get('held_by')} keeps reading the history: its log has grown to"
        f" {format_bytes(log.get('bytes') or 0)}. End that program"
    )
