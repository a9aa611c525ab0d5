# SPDX-License-Identifier: GPL-2.0-only
"""Reads originals that an earlier ebbgated left in the journal, even from a damaged file.

I/O: SQLite. Neither a full disk nor a damaged file may keep a knob from being restored.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.model.decision import JournalEntry
from ebbgate.store import journal_salvage
from ebbgate.store.connection import Damaged, is_damage
from ebbgate.store.connection_manager import STORE_ERRORS
from ebbgate.store.journal import Journal
from ebbgate.store.last_written import LastWritten, Values

SettledEntry = tuple[str, str, str]
"""Volume, knob and how its entry was settled."""


class UnrestoredOriginals:
    """The open journal and the entries that it had when it was opened.

    `warning`: why the journal could not be opened or updated; `unremoved`: settled entries that
    could not be removed.
    """

    def __init__(
        self,
        journal: Journal | None,
        entries: Sequence[JournalEntry],
        last_written: LastWritten | None,
    ) -> None:
        self._journal = journal
        self._last = last_written
        self._entries = entries
        self.error: Exception | None = None
        self.warning = ""
        self.unremoved: list[SettledEntry] = []
        self._removed: set[tuple[str, str]] = set()

    @classmethod
    def open(cls, path: Path, last_written: LastWritten | None, *, renew: bool) -> Self:
        """Open the journal; where SQLite cannot, read what is still readable.

        `last_written`: None where its file cannot be used. `renew`: replace a damaged file by a new
        one. Raises Unavailable and PermissionDenied where nothing can be read.
        """
        try:
            journal = journal_salvage.open_or_renew(path) if renew else Journal.open(path)
        except STORE_ERRORS as error:
            return cls._salvaged(path, last_written, error)
        try:
            return cls(journal, journal.entries(), last_written)
        except (sqlite3.Error, Damaged) as error:
            journal.close()
            return cls._salvaged(path, last_written, error)

    @classmethod
    def _salvaged(cls, path: Path, last: LastWritten | None, error: Exception) -> Self:
        entries, whole = journal_salvage.salvage(path)
        if not entries and not whole:
            if isinstance(error, EbbgateError):
                raise error
            raise Unavailable(f"{path} cannot be used: {error}", "see the system's log") from error
        found = cls(None, entries, last)
        found.error = error
        found.warning = _warning(error, whole=whole)
        return found

    def entries(self, boot_id: str | None = None) -> Sequence[JournalEntry]:
        """Return the entries, oldest first; of every boot without `boot_id`."""
        return [entry for entry in self._entries if boot_id in (None, entry.boot_id)]

    def values(self, entry: JournalEntry) -> Values | None:
        """Return the last two values written to the knob; None where they are not known."""
        return self._last.values(entry) if self._last else None

    def writing(self, entry: JournalEntry, new: str, before: str) -> None:
        """Record what a knob may have from now on, where its last values are known.

        Raises OSError.
        """
        if self._last is not None and self.values(entry) is not None:
            self._last.writing(entry, Values(new, before))

    def remove(self, volume: str, knob: str, how: str) -> None:
        """Remove a settled entry; one that cannot be removed is added to `unremoved`."""
        self._removed.add((volume, knob))
        if self._journal is not None:
            try:
                self._journal.remove(volume, knob)
            except sqlite3.Error as error:
                self.warning = f"the journal could not be brought up to date: {error}"
            else:
                return
        self.unremoved.append((volume, knob, how))

    def left(self) -> list[JournalEntry]:
        """Return the entries that are not settled."""
        return [entry for entry in self._entries if (entry.volume, entry.knob) not in self._removed]

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()


def _warning(error: Exception, *, whole: bool) -> str:
    text = getattr(error, "message", str(error))
    if is_damage(error) and not whole:
        return f"{text}; some originals may be lost with it"
    return f"the journal could not be brought up to date: {text}"
