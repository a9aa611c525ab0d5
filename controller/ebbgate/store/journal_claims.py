# SPDX-License-Identifier: GPL-2.0-only
"""Keeps which volumes have changed each knob, and what each of them wants. No I/O.

All volumes of a cache set share its knobs, and those on one disk share the disk's. Of the values
that volumes of a cache set want for one knob, one is in force: the newest that a person has set
with ebbgate, or, without such a value, the newest of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from threading import Lock

from ebbgate.knobs.places import is_path_of
from ebbgate.model.decision import JournalEntry
from ebbgate.store.last_written import Values

_Key = tuple[str, int]
"""Path of a knob and instance of its device: one that is created again has values of its own."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A volume's claim on a knob.

    `wanted`: the value that the volume wants; None while the knob is only journalled. `by_person`:
    a person has set it.
    """

    entry: JournalEntry
    wanted: str | None = None
    by_person: bool = False


class JournalClaims:
    """The claims of all volumes. Any thread may call it."""

    def __init__(self, values: Callable[[JournalEntry], Values | None]) -> None:
        """`values`: returns the last values of an entry; None where they were lost."""
        self._values = values
        self._lock = Lock()
        self._turn = Lock()
        self._claims: dict[_Key, dict[str, _Claim]] = {}
        """By volume, the claim of each that has changed the knob, the newest last."""
        self._present: dict[_Key, tuple[str, ...]] = {}

    @property
    def turn(self) -> AbstractContextManager[object]:
        """Held while one volume compares, writes or restores a knob of a cache set.

        One for all sets: each such write takes bcache's global lock, too.
        """
        return self._turn

    def disclaim(self, entry: JournalEntry) -> bool:
        """Give up a claim; return whether another volume wants the same value and restores it."""
        with self._lock:
            claims = self._claims.setdefault(_key(entry), {})
            claims.pop(entry.volume, None)
            return any(self._same_value(entry, other.entry) for other in claims.values())

    def _same_value(self, entry: JournalEntry, other: JournalEntry) -> bool:
        """Return whether both were written with the same value; true where it is unknown."""
        mine, theirs = self._values(entry), self._values(other)
        return mine is None or theirs is None or mine.new == theirs.new

    def of_others(self, entry: JournalEntry) -> tuple[str, ...]:
        """Return what other volumes have written to the same knob of a disk, but the original."""
        with self._lock:
            claims = self._claims.get(_key(entry), {})
            found = [
                self._values(each.entry) for name, each in claims.items() if name != entry.volume
            ]
        return tuple(each.new for each in found if each and each.new != entry.original)

    def reclaim(self, entry: JournalEntry) -> None:
        """Claim a knob (again) for its volume."""
        with self._lock:
            claims = self._claims.setdefault(_key(entry), {})
            claims[entry.volume] = replace(claims.get(entry.volume, _Claim(entry)), entry=entry)

    def close(self, volume: str, knob: str) -> None:
        """Forget a volume's claim on a knob."""
        with self._lock:
            for key in [key for key in self._claims if is_path_of(knob, key[0])]:
                self._claims[key].pop(volume, None)
                if not self._claims[key]:
                    del self._claims[key]
                    self._present.pop(key, None)

    # ---- knobs of a cache set ------------------------------------------------------------------
    def want(self, entry: JournalEntry, value: str, *, by_person: bool) -> str:
        """Note what a volume wants from now on; call it in `turn`.

        Returns the volume whose value stays in force, which a person has set; empty where there is
        none: then the value is to be written.
        """
        with self._lock:
            claims = self._claims.setdefault(_key(entry), {})
            claims.pop(entry.volume, None)
            claims[entry.volume] = _Claim(entry, value, by_person)
            found = _in_force(claims.values())
            return "" if found is None or found.entry.volume == entry.volume else found.entry.volume

    def unpin(self, entry: JournalEntry) -> None:
        """Note that the override of a volume is over; its value stays wanted until released."""
        with self._lock:
            claims = self._claims.get(_key(entry), {})
            if entry.volume in claims:
                claims[entry.volume] = replace(claims[entry.volume], by_person=False)

    def replaced_by(self, entry: JournalEntry) -> str:
        """Return the volume of which a person has set this knob after this one's was set; empty
        where there is none.
        """
        with self._lock:
            claims = self._claims.get(_key(entry), {})
            mine, found = claims.get(entry.volume), _in_force(claims.values())
        if mine is None or not mine.by_person or found is None or found is mine:
            return ""
        return found.entry.volume

    def successor(self, entry: JournalEntry) -> tuple[JournalEntry, str] | None:
        """Return the entry and the value that are in force without this claim; None: the original.

        Call it in `turn`.
        """
        with self._lock:
            claims = self._claims.get(_key(entry), {})
            found = _in_force(each for name, each in claims.items() if name != entry.volume)
        if found is None or found.wanted is None:
            return None
        return found.entry, found.wanted

    def present(self, entry: JournalEntry) -> tuple[str, ...]:
        """Return the values that a knob may have if nobody else wrote it; empty if not written."""
        with self._lock:
            return self._present.get(_key(entry), ())

    def expect(self, entry: JournalEntry, values: Iterable[str]) -> None:
        """Note the values that a knob may have from now on, until somebody else writes it."""
        with self._lock:
            self._present[_key(entry)] = tuple(dict.fromkeys(values))


def _key(entry: JournalEntry) -> _Key:
    return entry.path, entry.instance


def _in_force(claims: Iterable[_Claim]) -> _Claim | None:
    """Return the claim whose value is in force; None where no volume wants any."""
    wanting = [each for each in claims if each.wanted is not None]
    by_person = [each for each in wanting if each.by_person]
    newest = (by_person or wanting)[-1:]
    return newest[0] if newest else None
