# SPDX-License-Identifier: GPL-2.0-only
"""Tells of which volume a saved choice of a person is. Pure.

bcache numbers its devices in the order of registration, so a name may be another volume's at the
next boot. A choice follows the uuid of its volume. One without a uuid, of an older release or of a
dm device that has none, goes by the name, and gets the uuid once its volume is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from ebbgate.intents.row_values import InvalidRow, uuid_value
from ebbgate.model.override import Override, OverrideKind
from ebbgate.model.pin import Pin
from ebbgate.model.volume import Volume

R = TypeVar("R", Override, Pin)
K = TypeVar("K")
V = TypeVar("V")


class Followed(Protocol):
    """What is followed: a loop (control.volume_loop)."""

    volume: Volume


def stable_uuid(volume: Volume) -> str:
    """Return the uuid of a volume as a row may have it; empty where there is none."""
    try:
        return uuid_value(volume.uuid)
    except InvalidRow:
        # A dm uuid is any text: its row would be invalid after a restart, and the name is stable.
        return ""


def is_of(override: Override, volume: Volume) -> bool:
    """Return whether an override of the name of a volume is of this volume."""
    return override.volume == volume.name and override.device_uuid in ("", stable_uuid(volume))


@dataclass(slots=True)
class Placement:
    """What is of a volume that has come.

    - `moved`: overrides that got its name or its uuid just now.
    - `followed`: those that had another name, in a few words, with that name.
    - `twice`: those by the name alone, beside one that is surely of the volume.
    - `of_another`: in a few words, those of another volume that had this name.
    """

    moved: list[Override] = field(default_factory=list)
    followed: dict[str, str] = field(default_factory=dict)
    twice: list[Override] = field(default_factory=list)
    of_another: list[str] = field(default_factory=list)


def place_all(
    rows: Iterable[Override], volume: Volume, present: Mapping[str, Followed]
) -> Placement:
    """Find the overrides of a volume, whatever name they have."""
    found, known = Placement(), set[tuple[OverrideKind, str]]()
    # Those that are surely of the volume come first.
    for row in sorted(rows, key=lambda row: not row.device_uuid):
        new = placed(row, volume, present)
        if new is None:
            if row.volume == volume.name:
                found.of_another.append(title(row))
            continue
        if (row.kind, row.knob) in known:
            found.twice.append(row)
            continue
        known.add((row.kind, row.knob))
        if new != row:
            found.moved.append(new)
        if new.volume != row.volume:
            found.followed[title(row)] = row.volume
    return found


def placed(row: R, volume: Volume, present: Mapping[str, Followed]) -> R | None:
    """Return a row with the name and the uuid of its volume; None if it is of another one."""
    uuid = stable_uuid(volume)
    if not row.device_uuid:
        return replace(row, device_uuid=uuid) if row.volume == volume.name else None
    if row.device_uuid != uuid or is_held(row.volume, uuid, volume.name, present):
        return None
    return replace(row, volume=volume.name)


def is_held(was: str, uuid: str, name: str, present: Mapping[str, Followed]) -> bool:
    """Return whether the volume that had a choice is still there: `name` is a copy of it."""
    loop = present.get(was)
    return was != name and loop is not None and stable_uuid(loop.volume) == uuid


def title(override: Override) -> str:
    """Return an override in a few words."""
    if override.kind is OverrideKind.SET:
        return f"{override.knob} {override.value}"
    if override.kind is OverrideKind.MANUAL:
        return f"{override.knob} left alone"
    return f"the {override.kind}"


def forget_written(waiting: dict[K, V], written: Mapping[K, V]) -> None:
    """Forget what was written, unless it has changed since."""
    for key, value in written.items():
        if waiting.get(key) == value:
            del waiting[key]
