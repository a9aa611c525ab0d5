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
from fnmatch import fnmatchcase
from glob import has_magic
from itertools import count
from pathlib import Path
from typing import Final

from ebbgate.errors import UsageError

_FOLDERS_MAX: Final = 100_000
"""Folders that were found and not yet searched; each takes up to 4 KiB."""
_FOLDERS_A_LOOK: Final = 256
"""Folders between two looks at the clock."""
_ANY_DEPTH: Final = "**"

_Parts = tuple[str, ...]


def matches(pattern: Path, until_s: float = math.inf) -> Generator[str, None, None]:
    """Yield the paths that an absolute pattern matches, hidden ones, too, each once.

    A part `**` stands for any number of folders, but for no link to one; elsewhere `**` means `*`.
    Without a pattern in its last part a path is yielded even if it is missing. `until_s`: on
    CLOCK_MONOTONIC. Raises UsageError if there are too many folders, or if it takes longer.
    """
    parts = pattern.parts
    # The same place may be reached in many ways if there are several.
    found_before: set[tuple[str, _Parts]] | None = set() if parts.count(_ANY_DEPTH) > 1 else None
    todo = [(parts[0], parts[1:])]
    for number in count():
        if not todo:
            return
        if number % _FOLDERS_A_LOOK == _FOLDERS_A_LOOK - 1 and time.monotonic() > until_s:
            raise UsageError(f"the folders of {pattern} cannot be searched in time")
        with closing(_next(*todo.pop())) as found_now:
            for found in found_now:
                if found_before is not None:
                    if found in found_before:
                        continue
                    found_before.add(found)
                if found[1]:
                    todo.append(found)
                else:
                    yield found[0]
                if max(len(todo), len(found_before or ())) > _FOLDERS_MAX:
                    raise UsageError(f"{pattern} leads into more than {_FOLDERS_MAX} folders")


def _next(folder: str, parts: _Parts) -> Generator[tuple[str, _Parts], None, None]:
    """Yield what the first part matches in a folder, each with the parts that are left."""
    first, rest = parts[0], parts[1:]
    if first == _ANY_DEPTH:
        if rest:
            yield folder, rest
        for entry in _entries(folder):
            if _is_folder(entry, follow=False):
                yield entry.path, parts
    elif has_magic(first):
        for entry in _entries(folder):
            if fnmatchcase(entry.name, first) and (not rest or _is_folder(entry, follow=True)):
                yield entry.path, rest
    else:
        yield str(Path(folder, first)), rest


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
