# SPDX-License-Identifier: GPL-2.0-only
"""The modes that people chose, each for one volume whatever its name is by now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ebbgate.daemon.chosen_rows import Followed, is_held, stable_uuid
from ebbgate.model.volume import Mode, Volume


@dataclass(slots=True)
class ChosenModes:
    """`modes`: by the uuid of the volume, or by its name where that is unknown.

    `volumes`: the name that the volume of each has, or had when it was seen last. `times`: when it
    was chosen, where that is known. `moved`: the names that are not on the disk yet, by uuid.
    """

    modes: dict[str, Mode] = field(default_factory=dict)
    volumes: dict[str, str] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)

    def add_read(
        self, modes: Mapping[str, Mode], volumes: Mapping[str, str], times: Mapping[str, int]
    ) -> None:
        """Add what was read; what was chosen meanwhile holds."""
        self.modes = {**modes, **self.modes}
        self.volumes = {**volumes, **self.volumes}
        self.times = {**times, **self.times}

    def of(self, volume: Volume) -> Mode | None:
        """Return the mode of a volume; None if nobody chose one."""
        return self.modes.get(stable_uuid(volume)) or self.modes.get(volume.name)

    def choose(self, uuid: str, name: str, mode: Mode, wall_ns: int) -> None:
        """Take the mode that a person chose for a volume; `uuid`: empty if it has none."""
        owner = uuid or name
        self.drop(name)
        self.modes[owner], self.volumes[owner], self.times[owner] = mode, name, wall_ns

    def drop(self, owner: str) -> None:
        """Drop a mode, given by what it is kept under."""
        for each in (self.modes, self.volumes, self.times, self.moved):
            each.pop(owner, None)

    def place(self, volume: Volume, present: Mapping[str, Followed]) -> dict[str, str]:
        """Give a volume its mode; return what had another name, in words, with that name."""
        uuid, name = stable_uuid(volume), volume.name
        if not uuid:
            return {}
        by_name, at = self.modes.get(name), self.times.get(name)
        self.drop(name)
        if uuid not in self.modes:
            if by_name is not None:
                self.modes[uuid], self.volumes[uuid], self.moved[uuid] = by_name, name, name
            if at is not None:
                self.times[uuid] = at
            return {}
        was = self.volumes.get(uuid, name)
        if was == name or is_held(was, uuid, name, present):
            return {}
        self.volumes[uuid] = self.moved[uuid] = name
        return {f"mode {self.modes[uuid]}": was}

    def of_another(self, volume: Volume) -> list[str]:
        """Return the modes of other volumes that had this name, in words."""
        ours = (stable_uuid(volume), volume.name)
        return [
            f"mode {mode}"
            for owner, mode in self.modes.items()
            if owner not in ours and self.volumes.get(owner) == volume.name
        ]
