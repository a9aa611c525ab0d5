# SPDX-License-Identifier: GPL-2.0-only
"""A volume's layout, prepared for questions about single chunks and groups. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ebbgate.model.heat import ChunkRun, VolumeLayout

NO_GROUP: Final = -1
"""The group of chunks that belong to no known file."""


@dataclass(frozen=True, slots=True)
class Owners:
    """Which group owns which chunks. `firsts`: of the layout's runs; `runs`: by group."""

    layout: VolumeLayout
    firsts: tuple[int, ...]
    runs: Mapping[int, tuple[ChunkRun, ...]]

    def group_of(self, chunk: int) -> int:
        """Return the number of a chunk's group, or `NO_GROUP`."""
        index = bisect_right(self.firsts, chunk) - 1
        if index < 0 or chunk >= self.layout.runs[index].end:
            return NO_GROUP
        return self.layout.runs[index].group

    def name_of(self, group: int) -> str:
        """Return the name of a group; empty for `NO_GROUP`."""
        return "" if group == NO_GROUP else self.layout.groups[group]

    def chunks_of(self, group: int) -> Iterator[int]:
        """Yield the chunks of a group, ascending."""
        for run in self.runs.get(group, ()):
            yield from range(run.first, run.end)

    def size_of(self, group: int) -> int:
        """Return how many chunks a group has; 0 for `NO_GROUP`."""
        return sum(run.end - run.first for run in self.runs.get(group, ()))


NO_OWNERS: Final = Owners(VolumeLayout(0), (), {})


def owners_of(before: Owners, layout: VolumeLayout | None) -> Owners:
    """Return the owners in this layout; the same as before unless it was read again."""
    if layout is None:
        return NO_OWNERS
    if layout is before.layout:
        return before
    runs: dict[int, list[ChunkRun]] = {}
    for run in layout.runs:
        runs.setdefault(run.group, []).append(run)
    firsts = tuple(run.first for run in layout.runs)
    return Owners(layout, firsts, {group: tuple(found) for group, found in runs.items()})
