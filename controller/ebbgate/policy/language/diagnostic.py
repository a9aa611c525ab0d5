# SPDX-License-Identifier: GPL-2.0-only
"""Errors in a policy file, with their positions. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ebbgate import __version__

PROBLEMS_MAX: Final = 50
"""Of one file; the others are only counted."""
_QUOTED_MAX: Final = 40
RENAMED: Final = {
    "return_price": "disturbance_cost",
    "collect_share": "gc_share",
    "collect_interval": "gc_interval",
    "quiet": "idle_for",
}
"""Keys and signals that version 0.1 had under other names."""
REMOVED: Final = {
    "strategies.idle_destage.seep": "0.2",
    "strategies.idle_destage.leak_interval": "0.2",
}
"""Keys that nothing needs any more, and since which version. No file is refused for one."""
NARROWED: Final = {"queue_target": ("bcache", "0.2")}
"""Keys that have lost their effect on a kind of cache, and in which version."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Line and column, both from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """`FILE:LINE:COLUMN: key: what is wrong; what is expected; did you mean X?`"""

    file: str
    position: Position
    key: str
    what: str
    expected: str = ""
    nearest: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.position.line}:{self.position.column}: "
        key = f"{self.key}: " if self.key else ""
        expected = f"; {self.expected}" if self.expected else ""
        nearest = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{where}{key}{self.what}{expected}{nearest}"


@dataclass(frozen=True, slots=True)
class KindOnly:
    """A key that has an effect on one kind of cache only."""

    position: Position
    key: str
    kind: str


@dataclass(slots=True)
class Diagnostics:
    """Collects the problems of one file. `count`: how many were found in all.

    `kind_only`: the keys of the file that have an effect on one kind of cache only. `removed`:
    those of REMOVED, with their positions.
    """

    file: str
    problems: list[Diagnostic] = field(default_factory=list)
    count: int = 0
    kind_only: list[KindOnly] = field(default_factory=list)
    removed: list[tuple[Position, str]] = field(default_factory=list)

    def add(
        self, position: Position, key: str, what: str, expected: str = "", nearest: str = ""
    ) -> None:
        """Add a problem; it is dropped if there are too many."""
        self.count += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(Diagnostic(self.file, position, key, what, expected, nearest))


def without_effect(
    diagnostics: Diagnostics, matched: Iterable[str], every: Iterable[str]
) -> Iterator[Diagnostic]:
    """Yield a note on each key that has no effect, or none on the kinds that the policy is for.

    `matched`: the kinds that it names; without any it is for `every` kind.
    """
    for position, key in diagnostics.removed:
        what = f"has no effect any more since version {REMOVED[key]}"
        yield Diagnostic(diagnostics.file, position, key, what, "remove it")
    kinds = tuple(matched) or tuple(every)
    for each in diagnostics.kind_only:
        lost_on, since = NARROWED.get(each.key.rpartition(".")[2], ("", ""))
        if each.kind not in kinds:
            what = f"has no effect here: it is for {each.kind}, the policy for {', '.join(kinds)}"
        elif lost_on in kinds:
            what = f"has no effect on {lost_on} since version {since}"
        else:
            continue
        yield Diagnostic(diagnostics.file, each.position, each.key, what, "remove it")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that was probably meant; empty if none is similar."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1)
    return close[0] if close else ""


def known_words(what: str, known: Iterable[str], near: str) -> str:
    """List the known words, with the version where an unknown one is no misspelling of them.

    The file may have been written for a newer version.
    """
    where = "" if near else f" in ebbgate {__version__}"
    return f"known {what}{where}: {', '.join(known)}"


def new_name(word: str, known: Iterable[str]) -> str:
    """Return what to say about a former name of a known word; empty if it is none."""
    new = RENAMED.get(word, "")
    return f"`{word}` is now `{new}`" if new in known else ""


def quoted(text: str) -> str:
    """Return the text for a message: short, in quotes, without control characters."""
    short = text if len(text) <= _QUOTED_MAX else text[: _QUOTED_MAX - 3] + "..."
    return ascii(short) if not short.isprintable() else f"'{short}'"
