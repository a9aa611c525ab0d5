# SPDX-License-Identifier: GPL-2.0-only
"""Chooses the document for a volume, and the schedule entry for a time. Pure."""

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
    """Return the first document, by file name, that matches; `adaptive` if none does."""
    return choose_by_name(documents, volume.names, volume.kind)


def choose_by_name(
    documents: Iterable[PolicyDocument], names: Iterable[str], kind: Kind
) -> PolicyDocument:
    """The same for a volume given by names and kind."""
    names = tuple(names)
    for document in sorted(documents, key=lambda each: each.file.rpartition("/")[2]):
        if matches_name(document, names, kind):
            return document
    return ZERO


def matches_name(document: PolicyDocument, names: Iterable[str], kind: Kind) -> bool:
    """The same for a volume given by names and kind, as in a recording."""
    wanted = document.match
    if wanted.kinds and kind not in wanted.kinds:
        return False
    if not wanted.volumes:
        return True
    names = tuple(names)
    return any(fnmatch.fnmatchcase(n, pattern) for pattern in wanted.volumes for n in names)


def entry_at(document: PolicyDocument, at: LocalTime) -> Entry | None:
    """Return the first entry of the schedule that is active at this time."""
    return next((entry for entry in document.schedule if _covers(entry, at)), None)


def _covers(entry: Entry, at: LocalTime) -> bool:
    if entry.start_min < entry.end_min:
        return at.weekday in entry.days and entry.start_min <= at.minute < entry.end_min
    yesterday = (at.weekday - 1) % 7
    return (at.weekday in entry.days and at.minute >= entry.start_min) or (
        yesterday in entry.days and at.minute < entry.end_min
    )
