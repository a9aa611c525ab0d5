# SPDX-License-Identifier: GPL-2.0-only
"""A knob that ebbgate has written, and the journal that keeps its original. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ebbgate.knobs.catalog import same_value
from ebbgate.model.decision import JournalEntry


class Journal(Protocol):
    """Keeps originals (store.journal_writer)."""

    def put(self, entry: JournalEntry) -> JournalEntry:
        """Make an original durable and return the entry in force. Raises OSError."""

    def writing(self, entry: JournalEntry, new: str, before: str) -> None:
        """Record that a value is about to be written. Raises OSError: then do not write it. Never
        waits.
        """

    def disclaim(self, entry: JournalEntry) -> bool:
        """Give up a claim; true if another volume has one on the same knob and will restore it."""

    def reclaim(self, entry: JournalEntry) -> None:
        """Take back the claim that `disclaim` gave up."""

    def close(self, volume: str, knob: str, how: str) -> None:
        """Close the entry: the original is back, or must not be put back any more."""


@dataclass(slots=True)
class OwnedKnob:
    """A knob that ebbgate has written: its journal entry and the last value, in the kernel's unit.

    `tried`: a value whose write failed; the knob may have it nevertheless. `owned_since_ns`: when
    the original was journalled.
    """

    entry: JournalEntry
    written: str
    owned_since_ns: int
    tried: str | None = None

    @property
    def original(self) -> str:
        """The value that the knob had before ebbgate wrote it."""
        return self.entry.original

    @property
    def ours(self) -> tuple[str, ...]:
        """The values that the knob may have if nobody else wrote it."""
        return (self.written,) if self.tried is None else (self.written, self.tried)

    def is_ours(self, value: str) -> bool:
        """Is this a value that ebbgate wrote?"""
        return any(same_value(self.entry.knob, each, value) for each in self.ours)
