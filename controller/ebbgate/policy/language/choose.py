# SPDX-License-Identifier: GPL-2.0-only
"""Which document is for a volume, and which overlay for this hour. Pure."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass

from ebbgate.model.volume import Kind, Volume
from ebbgate.policy.language.document import ZERO, Entry, PolicyDocument


@dataclass(frozen=True, slots=True)
class LocalTime:
    """`minute` since midnight; `weekday`: 0 is Monday."""

    minute: int = 12 * 60
    weekday: int = 0


def choose(documents: Iterable[PolicyDocument], volume: Volume) -> PolicyDocument:
    """The first that matches, in the order of their file names; `adaptive` where none does."""
    return choose_by_name(documents, _names(volume), volume.kind)


def choose_by_name(
    documents: Iterable[PolicyDocument], names: Iterable[str], kind: Kind
) -> PolicyDocument:
    """The same for a volume of which only names and kind are known."""
    names = tuple(names)
    for document in sorted(documents, key=lambda each: each.file.rpartition("/")[2]):
        if matches_name(document, names, kind):
            return document
    return ZERO


def matches(document: PolicyDocument, volume: Volume) -> bool:
    """Is the document for this volume?"""
    return matches_name(document, _names(volume), volume.kind)


def _names(volume: Volume) -> set[str]:
    return {volume.name, volume.title, volume.kernel_name}


def matches_name(document: PolicyDocument, names: Iterable[str], kind: Kind) -> bool:
    """The same for a volume of which only names and kind are known, as of a recording."""
    wanted = document.match
    if wanted.kinds and kind not in wanted.kinds:
        return False
    if not wanted.volumes:
        return True
    names = tuple(names)
    return any(fnmatch.fnmatchcase(n, pattern) for pattern in wanted.volumes for n in names)


def entry_at(document: PolicyDocument, at: LocalTime) -> Entry | None:
    """The first entry of the schedule whose time it is."""
    return next((entry for entry in document.schedule if _covers(entry, at)), None)


def _covers(entry: Entry, at: LocalTime) -> bool:
    if entry.start_min < entry.end_min:
        return at.weekday in entry.days and entry.start_min <= at.minute < entry.end_min
    yesterday = (at.weekday - 1) % 7
    return (at.weekday in entry.days and at.minute >= entry.start_min) or (
        yesterday in entry.days and at.minute < entry.end_min
    )
