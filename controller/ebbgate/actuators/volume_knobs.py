# SPDX-License-Identifier: GPL-2.0-only
"""The knobs of one volume: which of them ebbgate has written, and which somebody else has.

I/O: reads of sysfs and device-mapper. The writes are those of `actuators.knob_writer`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ebbgate.actuators import ownership
from ebbgate.actuators.gate_plan import GatePlan, plan_for
from ebbgate.actuators.ownership import Journal, OwnedKnob, loaded_table
from ebbgate.actuators.scheduler_settings import is_settings, read_settings
from ebbgate.actuators.table_threshold import came_with_table
from ebbgate.kernel.sysfs import Sysfs, is_gone
from ebbgate.knobs.catalog import TABLE, THRESHOLD, knob_row, same_value
from ebbgate.knobs.knob import parse_value
from ebbgate.knobs.places import knob_path
from ebbgate.model.decision import JournalEntry
from ebbgate.model.volume import NO_USERS, DiskUsers, Volume


@dataclass(slots=True)
class VolumeKnobs:
    """The knobs of one volume. `owned`: those that ebbgate has written and not put back.

    `manual`: knobs that somebody else wrote while they were owned; left alone until released.
    `pinned`: knobs that have the value that a person asked for; no strategy writes them.
    `lacking`: knobs that this kernel does not have or does not let anyone set. `lost`: entries of
    an earlier daemon of which the last written value is unknown. `disk_users`: what else is on the
    disks below the volume.
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
    plan: GatePlan = field(init=False)
    _paths: dict[str, str | None] = field(default_factory=dict)

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

    def restore_manual(self, knob: str, value: str) -> bool:
        """Mark the knob manual again after a restart, if it still has this value of somebody else.

        With another value it was given back, or the kernel has reset it.
        """
        path = self._path(knob)
        text = self.sysfs.read_text(path) if path else None
        if text is None or parse_value(knob_row(knob).form, text) != value:
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
            if row.kernel_writes or value is None or owned.is_ours(value):
                continue
            if ownership.was_reset(self.sysfs, owned.entry, value):
                self._disown(knob, "its device was reset")
                continue
            self.manual.add(knob)
            self._disown(knob, f"manual: found {value}")
            taken.append(knob)
        return taken

    def _disown(self, knob: str, how: str) -> None:
        del self.owned[knob]
        self.journal.close(self.volume.name, knob, how)
