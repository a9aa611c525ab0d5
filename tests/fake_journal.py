# SPDX-License-Identifier: GPL-2.0-only
"""A journal of originals in memory, for writers and for restores."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from functools import cached_property

from ebbgate.model.decision import JournalEntry
from ebbgate.store.journal_claims import JournalClaims
from ebbgate.store.last_written import Values


class NoJournal:
    """A journal of one volume that keeps nothing."""

    @cached_property
    def claims(self) -> JournalClaims:
        return JournalClaims(self.values)

    def values(self, entry: JournalEntry) -> Values | None:
        return None

    def put(self, entry: JournalEntry) -> JournalEntry:
        return entry

    def replace(self, entry: JournalEntry, older: JournalEntry, values: tuple[str, str]) -> None:
        """Keep nothing."""

    def forget(self, older: JournalEntry) -> None:
        """Keep nothing."""

    def writing(self, entry: JournalEntry, new: str, before: str) -> None:
        """Keep nothing."""

    def close(self, volume: str, knob: str, how: str) -> None:
        self.claims.close(volume, knob)


class FakeJournal(NoJournal):
    """Keeps what the daemon's journal would keep. `broken`: it cannot be written.

    `all`: by volume and knob; `last`: what was written last; `closed`: knob and reason, in order.
    """

    def __init__(self, entries: Iterable[JournalEntry] = ()) -> None:
        self.broken = False
        self.all: dict[tuple[str, str], JournalEntry] = {}
        self.last: dict[str, Values] = {}
        self.closed: list[tuple[str, str]] = []
        for entry in entries:
            FakeJournal.put(self, entry)

    @property
    def open(self) -> dict[str, JournalEntry]:
        """Return the open entries by knob."""
        return {entry.knob: entry for entry in self.all.values()}

    def put(self, entry: JournalEntry) -> JournalEntry:
        if self.broken:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.all[entry.volume, entry.knob] = entry
        self.last[entry.knob] = Values(entry.last_written, entry.original)
        return entry

    def replace(self, entry: JournalEntry, older: JournalEntry, values: tuple[str, str]) -> None:
        assert self.all[older.volume, older.knob] == older
        self.put(entry)
        self.last[entry.knob] = Values(*values)

    def writing(self, entry: JournalEntry, new: str, before: str) -> None:
        if self.broken:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.last[entry.knob] = Values(new, before)

    def close(self, volume: str, knob: str, how: str) -> None:
        super().close(volume, knob, how)
        self.all.pop((volume, knob), None)
        self.closed.append((knob, how))

    def entries(self, boot_id: str | None = None) -> list[JournalEntry]:
        return [entry for entry in self.all.values() if boot_id in (None, entry.boot_id)]

    def values(self, entry: JournalEntry) -> Values | None:
        return self.last.get(entry.knob)

    def remove(self, volume: str, knob: str, how: str) -> None:
        self.close(volume, knob, how)
