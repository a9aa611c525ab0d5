# SPDX-License-Identifier: GPL-2.0-only
"""Finds what a pattern of paths matches. I/O: folders, reads only; the clock.

Whoever may write to one of these folders chooses names, links and their number. So nothing that a
folder contains raises or ends the search, and no link leads back into a tree that is searched.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path
from typing import Final

from ebbgate.errors import UsageError

_FOLDERS_MAX: Final = 100_000
"""Folders that were found and not yet searched; each takes up to 4 KiB."""
_FOLDERS_A_LOOK: Final = 256
_NAMES_A_LOOK: Final = 256
"""Folders, and names in them, between two looks at the clock. The caller may look at each file that
is yielded, which takes some ms where the disk has to seek for it.
"""
_ANY_DEPTH: Final = "**"

_Parts = tuple[str, ...]
_Next = frozenset[int]
"""Numbers of the parts that may match below a path. That of no part: the path is a match."""


@dataclass(slots=True)
class _Clock:
    """Ends a search that takes too long. `until_s`: on CLOCK_MONOTONIC."""

    pattern: Path
    until_s: float
    folders: int = 0
    names: int = 0

    def count_folder(self) -> None:
        """Count a folder. Raises UsageError if it is too late."""
        self.folders += 1
        if self.folders % _FOLDERS_A_LOOK == 0:
            self._look()

    def count_name(self) -> None:
        """Count a name in a folder. Raises UsageError if it is too late."""
        self.names += 1
        if self.names % _NAMES_A_LOOK == 0:
            self._look()

    def _look(self) -> None:
        if time.monotonic() > self.until_s:
            raise UsageError(f"the folders of {self.pattern} cannot be searched in time")


def matches(pattern: Path, until_s: float = math.inf) -> Generator[str, None, None]:
    """Yield the paths that an absolute pattern matches, hidden ones, too, each once.

    A part `**` stands for any number of folders, but for no link to one, at the end for all that is
    below; elsewhere `**` means `*`.
    Without a pattern in its last part a path is yielded even if it is missing. `until_s`: on
    CLOCK_MONOTONIC. Raises UsageError if there are too many folders, or if it takes longer.
    """
    root, parts = pattern.parts[0], pattern.parts[1:]
    if parts[-1:] == (_ANY_DEPTH,):
        parts = (*parts, "*")
    # A folder is searched once, for all parts that may match there: with several `**` there are
    # many ways to each.
    todo, clock = [(root, _with_skipped({0}, parts))], _Clock(pattern, until_s)
    while todo:
        clock.count_folder()
        with closing(_search(*todo.pop(), parts, clock)) as found:
            for path, following in found:
                if len(parts) in following:
                    yield path
                if following := following - {len(parts)}:
                    todo.append((path, following))
                if len(todo) > _FOLDERS_MAX:
                    raise UsageError(f"{pattern} leads into more than {_FOLDERS_MAX} folders")


def _search(
    folder: str, numbers: _Next, parts: _Parts, clock: _Clock
) -> Generator[tuple[str, _Next], None, None]:
    """Yield each path in a folder that one of these parts matches, and what may match below it."""
    patterns: list[int] = []
    names: dict[str, set[int]] = {}
    for number in numbers:
        if has_magic(parts[number]):
            patterns.append(number)
        else:
            names.setdefault(parts[number], set()).add(number + 1)
    if patterns:
        for entry in _entries(folder):
            clock.count_name()
            found = names.pop(entry.name, set())
            found.update(*(_following(entry, number, parts) for number in patterns))
            if found:
                yield entry.path, _with_skipped(found, parts)
    for name, found in names.items():
        # Also in a folder that may not be listed.
        yield str(Path(folder, name)), _with_skipped(found, parts)


def _following(entry: os.DirEntry[str], number: int, parts: _Parts) -> tuple[int, ...]:
    """Return the part that may match below an entry, if this one matches it."""
    if parts[number] == _ANY_DEPTH:
        return (number,) if _is_folder(entry, follow=False) else ()
    if not fnmatchcase(entry.name, parts[number]):
        return ()
    is_last = number + 1 == len(parts)
    return (number + 1,) if is_last or _is_folder(entry, follow=True) else ()


def _with_skipped(numbers: set[int], parts: _Parts) -> _Next:
    """Add the parts behind each `**`, which may stand for no folder."""
    found = set(numbers)
    for number, part in enumerate(parts[:-1]):
        if part == _ANY_DEPTH and number in found:
            found.add(number + 1)
    return frozenset(found)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder; nothing of one that is missing or cannot be read."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except (OSError, ValueError):
        return


def _is_folder(entry: os.DirEntry[str], *, follow: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:
        # A link to a name that is too long, among others.
        return False
