# SPDX-License-Identifier: GPL-2.0-only
"""A knob that ebbgate has written, and the journal that knows its original. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ebbgate.knobs.catalog import same_value
from ebbgate.model.decision import JournalEntry


class Journal(Protocol):
    """Where originals are kept: durable before `put` returns (store.journal_writer)."""

    def put(self, entry: JournalEntry) -> JournalEntry:
        """Keep an original; the entry that is in force. Raises OSError when it cannot be made
        durable.
        """

    def writing(self, entry: JournalEntry, new: str, before: str) -> None:
        """A value is about to be written. Raises OSError; then it must not be. Never waits."""

    def leave(self, entry: JournalEntry) -> bool:
        """Give a knob up: has another volume written it, too? Then that one puts it back."""

    def stay(self, entry: JournalEntry) -> None:
        """After all the knob is not given up."""

    def close(self, volume: str, knob: str, how: str) -> None:
        """The original is back, or must not be put back any more."""


@dataclass(slots=True)
class HeldKnob:
    """A knob that we wrote: its entry in the journal and our last value, in the unit in which it is
    taken.

    `tried`: a value whose write failed; the knob may have it nevertheless. `taken_ns`: when the
    original was journalled.
    """

    entry: JournalEntry
    written: str
    taken_ns: int
    tried: str | None = None

    @property
    def original(self) -> str:
        """What the knob had before us."""
        return self.entry.original

    @property
    def ours(self) -> tuple[str, ...]:
        """The values that the knob has if nobody else wrote it."""
        return (self.written,) if self.tried is None else (self.written, self.tried)

    def is_ours(self, value: str) -> bool:
        """Has nobody else written the knob, as far as its value tells?"""
        return any(same_value(self.entry.knob, each, value) for each in self.ours)
