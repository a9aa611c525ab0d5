# SPDX-License-Identifier: GPL-2.0-only
"""The knobs of one volume: which of them ebbgate has written, and which somebody else has.

I/O: reads of sysfs and device-mapper. The writes are those of `actuators.knob_writer`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from ebbgate.actuators import ownership
from ebbgate.actuators.gate_plan import GatePlan, plan_for
from ebbgate.actuators.ownership import Found, Journal, OwnedKnob, loaded_table
from ebbgate.actuators.scheduler_settings import is_settings, read_settings
from ebbgate.actuators.scheduler_switch import is_length, no_switch
from ebbgate.actuators.table_threshold import came_with_table
from ebbgate.kernel.sysfs import Sysfs, is_gone
from ebbgate.knobs.catalog import TABLE, THRESHOLD, knob_row, same_value
from ebbgate.knobs.knob import parse_value
from ebbgate.knobs.places import knob_path
from ebbgate.model.decision import Action, JournalEntry, Outcome, OutcomeKind
from ebbgate.model.volume import NO_USERS, DiskUsers, Volume, VolumeState

STILL_USED: Final = "another volume of the disk still uses it"


@dataclass(slots=True)
class VolumeKnobs:
    """The knobs of one volume. `owned`: those that ebbgate has written and not put back.

    `manual`: knobs that somebody else wrote while they were owned; left alone until released.
    `pinned`: knobs that have the value that a person asked for; no strategy writes them.
    `lacking`: knobs that this kernel does not have or does not let anyone set. `lost`: entries of
    an earlier daemon of which the last written value is unknown. `disk_users`: what else is on the
    disks below the volume. `first_seen`: its state as it came.
    """

    sysfs: Sysfs
    volume: Volume
    journal: Journal
    boot_id: str
    now_ns: Callable[[], int] = time.monotonic_ns
    owned: dict[str, OwnedKnob] = field(default_factory=dict)
    manual: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)
    lacking: set[str] = field(default_factory=set)
    lost: dict[str, JournalEntry] = field(default_factory=dict)
    disk_users: DiskUsers = NO_USERS
    first_seen: VolumeState | None = None
    plan: GatePlan = field(init=False)
    _paths: dict[str, str | None] = field(default_factory=dict)
    _present: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plan = plan_for(self.volume)

    def read(self, knob: str) -> str | None:
        """Return the value; None where there is no such knob. Raises other OSErrors."""
        path = self._path(knob)
        if path is None:
            return None
        try:
            if is_settings(knob):
                return read_settings(self.sysfs, path)
            return parse_value(knob_row(knob).form, self.sysfs.read(path))
        except OSError as error:
            if not is_gone(error):
                raise
            return None

    def _path(self, knob: str) -> str | None:
        if knob not in self._paths:
            self._paths[knob] = knob_path(self.volume, knob)
        return self._paths[knob]

    @property
    def unrestored(self) -> list[JournalEntry]:
        """Return the entries of knobs whose originals are not back."""
        return [*(owned.entry for owned in list(self.owned.values())), *self.lost.values()]

    def adopt(self, entry: JournalEntry, values: tuple[str, str] | None) -> None:
        """Own a knob that an earlier daemon wrote. `values`: what that may have written last."""
        if values is None:
            self.lost[entry.knob] = entry
            return
        self.owned[entry.knob] = OwnedKnob(entry, values[0], self.now_ns(), values[1])
        if self.volume.mapping is not None:
            self.owned[entry.knob].table = self.volume.mapping.params

    def note_table(self, knob: str) -> None:
        """Keep which table the original of dm-cache's threshold belongs to. Raises OSError."""
        table = self._path(TABLE)
        if knob == THRESHOLD and table is not None:
            self.owned[knob].table = loaded_table(self.sysfs, table)

    def has_other_table(self, seen: Mapping[str, str]) -> bool:
        """Whether dm-cache's threshold has a value that came with another table.

        Call it only while no write is under way.
        """
        owned, value, table = self.owned.get(THRESHOLD), seen.get(THRESHOLD), self._path(TABLE)
        if owned is None or value is None or table is None or owned.is_ours(value):
            return False
        return came_with_table(self.sysfs, table, owned, value)

    def on_table_reload(self, seen: Mapping[str, str]) -> None:
        """Accept the values of another table, which has replaced what ebbgate wrote.

        A value that is neither ebbgate's nor the original came with that table and is the original
        from now on. Call it only while no write is under way.
        """
        for knob, owned in list(self.owned.items()):
            value = seen.get(knob, owned.written)
            if owned.is_ours(value) or same_value(knob, owned.original, value):
                owned.written, owned.tried = value, None
                continue
            self._disown(knob, f"another table was loaded: {value}")

    def clear_manual(self, knob: str | None = None) -> None:
        """Forget that a knob is manual; every knob without a name."""
        if knob is None:
            self.manual.clear()
        else:
            self.manual.discard(knob)

    def restore_manual(self, knob: str, value: str, last_seen: VolumeState | None) -> bool:
        """Mark the knob manual again after a restart, if it still has this value of somebody else.

        With another value it was given back, or the kernel has reset it. Reads nothing: on the
        event loop a read would wait for bcache's lock. Without any look the knob is left alone.
        """
        seen = last_seen or self.first_seen
        if seen is not None and seen.knobs.get(knob) != value:
            return False
        self.manual.add(knob)
        return True

    @property
    def gate_is_ours(self) -> bool:
        """May the gate be driven? Its knobs make sense only together."""
        return self.manual.isdisjoint(self.plan.knobs) and self.pinned.isdisjoint(self.plan.knobs)

    def check_manual(self, seen: Mapping[str, str]) -> list[str]:
        """Mark owned knobs manual whose value is not what ebbgate wrote; return their names.

        Nobody chose the value of a disk that was reset, or of a device that was made again. The
        kernel's own writes do not count. Call it only while no write is under way.
        """
        taken = []
        for knob, owned in list(self.owned.items()):
            value = seen.get(knob)
            row = knob_row(knob)
            ours = self._ours_at_look(owned) if row.set_wide or row.per_disk else owned.ours
            if row.kernel_writes or value is None:
                continue
            if any(same_value(knob, each, value) for each in ours):
                continue
            if ownership.was_reset(self.sysfs, owned.entry, value):
                self._disown(knob, "its device was reset")
                continue
            self.manual.add(knob)
            self._disown(knob, f"manual: found {value}")
            taken.append(knob)
        return taken

    # ---- knobs that volumes share --------------------------------------------------------------
    def _turn(self, knob: str) -> AbstractContextManager[object]:
        """Keep other volumes from writing the same knob. Not to be held while the journal is."""
        path = self._path(knob)
        if is_length(knob) and path is not None:
            return no_switch(path)
        return self.journal.claims.turn if knob_row(knob).set_wide else nullcontext()

    def _want(self, knob: str, value: str) -> str:
        """Note a value that is to be written now, in `_turn`.

        Returns why it must not be, since a person has set another one for another volume; empty
        where it may. It is then kept as if it had been written first.
        """
        if not knob_row(knob).set_wide:
            return ""
        owned, claims = self.owned[knob], self.journal.claims
        # Nothing may be written for a long time: the value may be there, or be another volume's.
        claims.expect(owned.entry, self._ours_now(owned))
        other = claims.want(owned.entry, value, by_person=knob in self.pinned)
        if other:
            owned.written, owned.tried = value, None
        return f"the override of {other} is in force" if other else ""

    def _ours_now(self, owned: OwnedKnob) -> tuple[str, ...]:
        """Return what a knob may have if nobody but ebbgate wrote it, for any volume."""
        if not knob_row(owned.entry.knob).set_wide:
            return owned.ours
        return self.journal.claims.present(owned.entry) or owned.ours

    def _has_written(self, owned: OwnedKnob) -> bool:
        """Is what this volume wrote last the last value that ebbgate wrote? In `_turn`."""
        return owned.tried is None and self._ours_now(owned) == (owned.written,)

    def _expect(self, action: Action, outcome: Outcome | None = None) -> None:
        """Note what a knob may have during a write, and after it: with the outcome. In `_turn`."""
        owned = self.owned.get(action.knob)
        if owned is None or not knob_row(action.knob).set_wide:
            return
        values: tuple[str, ...] = (*self._ours_now(owned), action.new)
        if outcome is not None and outcome.kind is OutcomeKind.CHANGED:
            values = (action.new,)
        elif outcome is not None and outcome.read_back is not None:
            values = (outcome.read_back,)
        self.journal.claims.expect(owned.entry, values)

    def _next_value(self, owned: OwnedKnob, found: Found) -> tuple[str, str] | None:
        """Return the volume of the cache set that still wants a value, and that value.

        None where there is none, or where somebody else has written the knob. Raises OSError.
        """
        if not knob_row(owned.entry.knob).set_wide or found.value not in self._ours_now(owned):
            return None
        after = self.journal.claims.successor(owned.entry)
        if after is not None:
            # Also of a value that is there already: this volume's entry is about to be closed.
            self.journal.writing(after[0], after[1], found.value)
        return None if after is None else (after[0].volume, after[1])

    def _ours_at_look(self, owned: OwnedKnob) -> tuple[str, ...]:
        """Return what a shared knob may have had at a look that began after the last one.

        Another volume may have written it since.
        """
        knob, claims = owned.entry.knob, self.journal.claims
        per_disk = knob_row(knob).per_disk
        present = self._of_others(owned) if per_disk else claims.present(owned.entry)
        before, self._present[knob] = self._present.get(knob, ()), present
        return (*owned.ours, *before, *present)

    def _of_others(self, owned: OwnedKnob) -> tuple[str, ...]:
        """Return what other volumes have written to a knob of a disk."""
        per_disk = knob_row(owned.entry.knob).per_disk
        return self.journal.claims.of_others(owned.entry) if per_disk else ()

    def _whose(self, knob: str, value: str) -> str:
        """Return why a value that this volume did not write is no person's; empty where it is."""
        if knob == TABLE:
            return ownership.OTHER_TABLE
        others = self._of_others(self.owned[knob])
        return STILL_USED if any(same_value(knob, each, value) for each in others) else ""

    def unpin(self, knob: str) -> None:
        """Note that a person's value is over: from now on another volume's may replace it."""
        self.pinned.discard(knob)
        owned = self.owned.get(knob)
        if owned is not None:
            self.journal.claims.unpin(owned.entry)

    def replaced_by(self, knob: str) -> str:
        """Return the volume for which a person has set this knob of the cache set since it was set
        for this one; empty where there is none.
        """
        owned = self.owned.get(knob)
        if owned is None or not knob_row(knob).set_wide:
            return ""
        return self.journal.claims.replaced_by(owned.entry)

    def _disown(self, knob: str, how: str) -> None:
        del self.owned[knob]
        self._present.pop(knob, None)
        self.journal.close(self.volume.name, knob, how)
