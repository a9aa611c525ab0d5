# SPDX-License-Identifier: GPL-2.0-only
"""Originals that an earlier ebbgated left in the journal, in whatever state the file is.

I/O: SQLite. A full disk or a damaged file must not keep a knob from coming back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from ebbgate.errors import EbbgateError, Unavailable
from ebbgate.model.decision import JournalEntry
from ebbgate.store import journal_salvage
from ebbgate.store.connection import is_damage
from ebbgate.store.connection_manager import STORE_ERRORS
from ebbgate.store.journal import Journal
from ebbgate.store.last_written import LastWritten, Values

SettledEntry = tuple[str, str, str]
"""Volume, knob, and how it ended."""


class UnrestoredOriginals:
    """The open journal. `complaint`: why it could not be opened or brought up to date; `unremoved`:
    entries that are settled and could not be taken out.
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
        self.trouble: Exception | None = None
        self.complaint = ""
        self.unremoved: list[SettledEntry] = []
        self._removed: set[tuple[str, str]] = set()

    @classmethod
    def open(cls, path: Path, last_written: LastWritten | None, *, heal: bool) -> Self:
        """Through SQLite, or else whatever can still be read from the file.

        `last_written`: None where its file cannot be used. `heal`: move a damaged file aside and
        begin a new one. Raises Unavailable and PermissionDenied where nothing can be read.
        """
        try:
            journal = journal_salvage.open_or_renew(path) if heal else Journal.open(path)
        except STORE_ERRORS as error:
            return cls._salvaged(path, last_written, error)
        try:
            return cls(journal, journal.entries(), last_written)
        except sqlite3.Error as error:
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
        found.trouble = error
        found.complaint = _complaint(error, whole=whole)
        return found

    def entries(self, boot_id: str | None = None) -> Sequence[JournalEntry]:
        """Entries that were open, oldest first; of every boot without `boot_id`."""
        return [entry for entry in self._entries if boot_id in (None, entry.boot_id)]

    def values(self, entry: JournalEntry) -> Values | None:
        """What was last written to the knob, and before that; None where it is not known."""
        return self._last.values(entry) if self._last else None

    def remove(self, volume: str, knob: str, how: str) -> None:
        """Take out an entry that is settled, if that is possible."""
        self._removed.add((volume, knob))
        if self._journal is not None:
            try:
                self._journal.remove(volume, knob)
            except sqlite3.Error as error:
                self.complaint = f"the journal could not be brought up to date: {error}"
            else:
                return
        self.unremoved.append((volume, knob, how))

    def left(self) -> list[JournalEntry]:
        """Entries that are not settled."""
        return [entry for entry in self._entries if (entry.volume, entry.knob) not in self._removed]

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()


def _complaint(error: Exception, *, whole: bool) -> str:
    text = getattr(error, "message", str(error))
    if is_damage(error) and not whole:
        return f"{text}; some originals may be lost with it"
    return f"the journal could not be brought up to date: {text}"
