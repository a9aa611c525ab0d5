# SPDX-License-Identifier: GPL-2.0-only
"""Keeps which volumes have changed each knob. No I/O.

All volumes of a cache set share its knobs, and those on one disk share the disk's.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from ebbgate.knobs.places import is_path_of
from ebbgate.model.decision import JournalEntry
from ebbgate.store.last_written import Values


class JournalClaims:
    """The claims of all volumes. Any thread may call it."""

    def __init__(self, values: Callable[[JournalEntry], Values | None]) -> None:
        """`values`: returns the last values of an entry; None where they were lost."""
        self._values = values
        self._lock = Lock()
        self._claims: dict[str, dict[str, JournalEntry]] = {}
        """Path of a knob -> by volume, the entry of each that has changed it."""

    def disclaim(self, entry: JournalEntry) -> bool:
        """Give up a claim; return whether another volume wants the same value and restores it."""
        with self._lock:
            claims = self._claims.setdefault(entry.path, {})
            claims.pop(entry.volume, None)
            return any(self._same_value(entry, other) for other in claims.values())

    def _same_value(self, entry: JournalEntry, other: JournalEntry) -> bool:
        """Return whether both were written with the same value; true where it is unknown."""
        mine, theirs = self._values(entry), self._values(other)
        return mine is None or theirs is None or mine.new == theirs.new

    def reclaim(self, entry: JournalEntry) -> None:
        """Claim a knob (again) for its volume."""
        with self._lock:
            self._claims.setdefault(entry.path, {})[entry.volume] = entry

    def close(self, volume: str, knob: str) -> None:
        """Forget a volume's claim on a knob."""
        with self._lock:
            for claims in [held for path, held in self._claims.items() if is_path_of(knob, path)]:
                claims.pop(volume, None)
