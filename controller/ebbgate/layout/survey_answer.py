# SPDX-License-Identifier: GPL-2.0-only
"""Checks what the process says that reads the layout of a volume (`survey`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ebbgate.errors import Unavailable
from ebbgate.layout.chunk_owners import RUNS_MAX
from ebbgate.model.attribution import FileId
from ebbgate.model.heat import ChunkRun
from ebbgate.text import clean_text

FILES_MAX: Final = 10_000
NAME_CHARS_MAX: Final = 256
TEXT_CHARS_MAX: Final = 300
REASONS_MAX: Final = 16
"""Why files are left out: names of devices are among them, so that they are bounded."""
_NUMBER_MAX: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The whole answer.

    - `inodes`: the group of each file that is one itself.
    - `left_out`: files of which nothing is known, by reason; `error`: the first of them, and why.
    - `changed`: a device was another one at the end, so that nothing of it may be used.
    """

    groups: tuple[str, ...]
    runs: tuple[ChunkRun, ...]
    inodes: Mapping[FileId, int]
    files: int
    known_bytes: int
    left_out: Mapping[str, int]
    error: str
    changed: bool


@dataclass(slots=True)
class SurveyAnswer:
    """Takes the answer line by line. `chunks`: of the volume."""

    chunks: int
    _groups: list[str] = field(default_factory=list)
    _runs: list[ChunkRun] = field(default_factory=list)
    _inodes: dict[FileId, int] = field(default_factory=dict)

    def take(self, event: Mapping[str, Any]) -> Surveyed | None:
        """Take a line; return the answer once it is whole. Raises Unavailable."""
        try:
            return self._take(event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Unavailable(
                "what the reading process says of the layout cannot be used",
                "please report it with the daemon's log",
            ) from error

    def _take(self, event: Mapping[str, Any]) -> Surveyed | None:
        name = event["event"]
        if name == "failed":
            text, hint = (
                clean_text(str(event.get(key, "")), TEXT_CHARS_MAX) for key in ("text", "hint")
            )
            raise Unavailable(text, hint)
        if name == "groups":
            self._groups += [_text(each, NAME_CHARS_MAX) for each in event["names"]]
            _bounded(len(self._groups), FILES_MAX)
        elif name == "runs":
            for each in event["runs"]:
                self._add_run(*each)
            _bounded(len(self._runs), RUNS_MAX)
        elif name == "inodes":
            for each in event["inodes"]:
                self._add_inode(*each)
        elif name == "surveyed":
            return self._whole(event)
        else:
            raise ValueError(name)
        return None

    def _add_run(self, first: object, end: object, group: object) -> None:
        run = ChunkRun(_number(first), _number(end), _number(group))
        last = self._runs[-1].end if self._runs else 0
        if not last <= run.first < run.end <= self.chunks or run.group >= len(self._groups):
            raise ValueError(run)
        self._runs.append(run)

    def _add_inode(self, dev: object, inode: object, group: object) -> None:
        found = _number(group)
        if found >= len(self._groups):
            raise ValueError(group)
        self._inodes[FileId(_number(dev), _number(inode, 1 << 64))] = found
        _bounded(len(self._inodes), FILES_MAX)

    def _whole(self, event: Mapping[str, Any]) -> Surveyed:
        left_out = {
            _text(why, TEXT_CHARS_MAX): _number(count) for why, count in event["left_out"].items()
        }
        _bounded(len(left_out), REASONS_MAX)
        return Surveyed(
            tuple(self._groups),
            tuple(self._runs),
            self._inodes,
            _number(event["files"]),
            _number(event["bytes"]),
            left_out,
            _text(event["error"], TEXT_CHARS_MAX),
            event["changed"] is not False,
        )


def _text(value: object, chars_max: int) -> str:
    if not isinstance(value, str) or len(value) > chars_max or value != clean_text(value):
        raise ValueError(value)
    return value


def _number(value: object, end: int = _NUMBER_MAX) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < end:
        raise ValueError(value)
    return value


def _bounded(count: int, count_max: int) -> None:
    if count > count_max:
        raise ValueError(count)
