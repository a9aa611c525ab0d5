# SPDX-License-Identifier: GPL-2.0-only
"""Lists and drops what is kept for volumes that are not here.

I/O: `overrides.db`, through its writer. On the event loop; what takes long is awaited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ebbgate.daemon.absent_volumes import Presence, absent_volumes, named_absent
from ebbgate.daemon.override_registry import OverrideRegistry
from ebbgate.daemon.pin_registry import PinRegistry
from ebbgate.errors import Unavailable
from ebbgate.intents.database import Loaded
from ebbgate.intents.validation import Intent
from ebbgate.model.override import Override
from ebbgate.model.pin import Pin
from ebbgate.model.status import AbsentVolume

V = TypeVar("V")


@dataclass(slots=True)
class _Taken:
    """What was taken out. `moved`: the name of the mode that is not on the disk yet, or empty."""

    choices: Loaded
    pins: dict[int, Pin]
    moved: str


@dataclass(slots=True)
class AbsentChoices:
    """`presence`: returns what the last look at all devices found, None while it is not known."""

    registry: OverrideRegistry
    pins: PinRegistry
    presence: Callable[[], Presence | None]
    _dropping: asyncio.Lock = field(default_factory=asyncio.Lock)

    def volumes(self) -> tuple[AbsentVolume, ...] | None:
        """Return the volumes that are not here; None while that is not known."""
        found = self.presence()
        if found is None or not (self.registry.loaded and self.pins.loaded):
            return None
        registry = self.registry
        return absent_volumes(
            registry.chosen, self._rows(), self.pins.pins.values(), registry.volumes, found
        )

    async def forget(self, intent: Intent) -> str:
        """Drop all that is kept for a volume that is not here. Raises EbbgateError: nothing is
        dropped then.
        """
        await self.pins.load()
        async with self._dropping:
            found, known = self.presence(), self.volumes()
            if found is None or known is None:
                raise Unavailable(
                    "it is not known yet which volumes are here", "try again in a moment"
                )
            volume = named_absent(known, intent.args.absent, self.registry.volumes, found)
            # Taken out at once: a volume that comes while the disk is slow must not get it.
            taken = self._take_out(volume.owner)
            try:
                await self._drop(volume.owner, taken, f"{intent.who} dropped it")
            except BaseException:
                self._put_back(volume.owner, taken)
                raise
        name = f"{volume.volume} ({volume.uuid})" if volume.uuid else volume.volume
        return f"{name}: dropped {volume.kept_text}"

    def _rows(self) -> list[Override]:
        active = self.registry.active.values()
        return [*(each.override for each in active), *self.registry.manual.values()]

    def _take_out(self, owner: str) -> _Taken:
        registry, chosen = self.registry, self.registry.chosen
        rows = tuple(row for row in self._rows() if row.owner == owner)
        pins = {pin.id: pin for pin in self.pins.pins.values() if pin.owner == owner}
        choices = Loaded(
            rows,
            modes=_only(chosen.modes, owner),
            mode_volumes=_only(chosen.volumes, owner),
            mode_times=_only(chosen.times, owner),
        )
        taken = _Taken(choices, pins, chosen.moved.get(owner, ""))
        for row in rows:
            registry.active.pop(row.id, None)
            registry.manual.pop(row.id, None)
        for number in pins:
            del self.pins.pins[number]
        chosen.drop(owner)
        return taken

    async def _drop(self, owner: str, taken: _Taken, why: str) -> None:
        """Raises EbbgateError."""
        ended = dict.fromkeys((row.id for row in taken.choices.overrides), why)
        pins, wall = dict.fromkeys(taken.pins, why), self.registry.wall_ns()
        # A mode whose uuid is not on the disk yet has the name there.
        owners = (owner, taken.moved or owner)
        writing = self.registry.writer.submit(
            lambda database: database.forget(ended, pins, owners, wall)
        )
        await asyncio.wrap_future(writing)

    def _put_back(self, owner: str, taken: _Taken) -> None:
        self.pins.pins = taken.pins | self.pins.pins
        if taken.moved:
            self.registry.chosen.moved[owner] = taken.moved
        self.registry.take_up(taken.choices)


def _only(found: Mapping[str, V], owner: str) -> dict[str, V]:
    return {owner: found[owner]} if owner in found else {}
