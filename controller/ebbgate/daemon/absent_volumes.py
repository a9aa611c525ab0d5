# SPDX-License-Identifier: GPL-2.0-only
"""Tells for which volumes something is kept that ebbgated does not find. Pure.

What is kept has an owner, as in chosen_rows: the uuid of a volume, or its name where the uuid is
unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ebbgate.daemon.chosen_modes import ChosenModes
from ebbgate.daemon.chosen_rows import Followed, stable_uuid, title
from ebbgate.errors import ActuationError, NotFound, Unavailable
from ebbgate.model.override import Override
from ebbgate.model.pin import Pin
from ebbgate.model.status import AbsentVolume, KeptChoice
from ebbgate.model.volume import Volume
from ebbgate.text import SHOWN_MAX, clean_text

_BCACHE: Final = re.compile(r"bcache[0-9]+")


@dataclass(frozen=True, slots=True)
class Presence:
    """What a look at all devices found.

    `without_cache`: uuids and names of volumes that are not followed since they have no cache.
    `dm_blocked`: why dm volumes cannot be found; empty if they can.
    """

    without_cache: frozenset[str] = frozenset()
    dm_blocked: str = ""


@dataclass(frozen=True, slots=True)
class _Kept:
    """One thing that is kept for the volume that had this name."""

    owner: str
    volume: str
    choice: KeptChoice


def presence(volumes: Iterable[Volume], dm_blocked: str) -> Presence:
    """Return what was found."""
    bare = (each for each in volumes if not each.cached)
    names = (name for each in bare for name in (stable_uuid(each), each.name) if name)
    return Presence(frozenset(names), dm_blocked)


def absent_volumes(
    modes: ChosenModes,
    overrides: Iterable[Override],
    pins: Iterable[Pin],
    present: Mapping[str, Followed],
    found: Presence,
) -> tuple[AbsentVolume, ...]:
    """Return the volumes that are not followed and for which something is kept, by name."""
    here = {stable_uuid(loop.volume) for loop in present.values()} | present.keys()
    kept: dict[str, list[_Kept]] = {}
    for each in _kept(modes, overrides, pins):
        if each.owner not in here:
            kept.setdefault(each.owner, []).append(each)
    volumes = (_absent(owner, each, present, found) for owner, each in kept.items())
    return tuple(sorted(volumes, key=lambda each: (each.volume, each.uuid)))


def _kept(
    modes: ChosenModes, overrides: Iterable[Override], pins: Iterable[Pin]
) -> Iterator[_Kept]:
    for owner, mode in modes.modes.items():
        choice = KeptChoice(f"mode {mode}", modes.times.get(owner))
        yield _Kept(owner, modes.volumes.get(owner, owner), choice)
    for row in overrides:
        yield _Kept(row.owner, row.volume, KeptChoice(title(row), row.at_unix_ns))
    for pin in pins:
        what = f"pin {pin.id}, {clean_text(pin.path, SHOWN_MAX)}"
        yield _Kept(pin.owner, pin.volume, KeptChoice(what, pin.at_unix_ns))


def _absent(
    owner: str, kept: list[_Kept], present: Mapping[str, Followed], found: Presence
) -> AbsentVolume:
    # All got the name that the volume had when it was seen last.
    name = kept[0].volume
    choices = tuple(each.choice for each in kept)
    return AbsentVolume(
        name, "" if owner == name else owner, _why(owner, name, present, found), choices
    )


def _why(owner: str, name: str, present: Mapping[str, Followed], found: Presence) -> str:
    if owner in found.without_cache:
        return "no cache is attached to it"
    if _may_be_hidden(name, found):
        return f"device-mapper cannot be queried ({found.dm_blocked}), so it may be here"
    if name in present:
        return f"another volume has the name {name} now"
    return "it is not found"


def _may_be_hidden(name: str, found: Presence) -> bool:
    """Return whether it may be a dm volume that is here: unknown is not gone."""
    return bool(found.dm_blocked) and not _BCACHE.fullmatch(name)


def named_absent(
    known: Iterable[AbsentVolume], named: str, present: Mapping[str, Followed], found: Presence
) -> AbsentVolume:
    """Return the volume that a person named by its uuid or last name, of which all may be dropped.

    Raises EbbgateError for any other one.
    """
    name, absent = clean_text(named, SHOWN_MAX), tuple(known)
    by_uuid = [each for each in absent if each.uuid == named]
    by_name = [each for each in absent if each.volume == named]
    if not by_uuid:
        _check_not_here(named, by_name, present)
    matching = by_uuid or by_name
    if not matching:
        raise NotFound(
            f"nothing is kept for a volume {name} that is not here", "see ebbgate status"
        )
    if len(matching) > 1:
        text = f"{name} was the name of {len(matching)} volumes that are not here"
        raise ActuationError(text, f"name one of them by its uuid: {_uuids(matching)}")
    (one,) = matching
    if _may_be_hidden(one.volume, found):
        raise Unavailable(f"{name}: {one.why}", "see ebbgate doctor")
    return one


def _check_not_here(
    named: str, by_name: list[AbsentVolume], present: Mapping[str, Followed]
) -> None:
    """Raises ActuationError for a volume that is here."""
    for loop in present.values():
        volume = loop.volume
        if volume.is_called(named) or stable_uuid(volume) == named:
            hint = f"to end what is in force: ebbgate release {volume.title}"
            if by_name:
                hint = f"for the one that had its name before: ebbgate forget {_uuids(by_name)}"
            raise ActuationError(f"{volume.title} is here, so nothing of it is dropped", hint)


def _uuids(volumes: Iterable[AbsentVolume]) -> str:
    return ", ".join(each.uuid or f"{each.volume} (uuid unknown)" for each in volumes)
