# SPDX-License-Identifier: GPL-2.0-only
"""The policies in force on a machine: read anew when their files change, the last good ones kept.

I/O: the folder of policies (`policies.d`), read-only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbgate.errors import EbbgateError
from ebbgate.model.volume import Volume
from ebbgate.policy.defaults import Policy
from ebbgate.policy.language.choose import LocalTime, choose, entry_at
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.link import link
from ebbgate.policy.language.problem import Diagnostic
from ebbgate.policy_files import reader

_LOG = logging.getLogger(__name__)
_PROBLEMS_MAX = 20
_OBSERVE = "observe-only"

Print = tuple[tuple[str, int, int, int], ...]
"""Of each file: path, inode, size, time of the last change (ns)."""


def local_time() -> LocalTime:
    """The hour of this machine, for schedules."""
    now = time.localtime()
    return LocalTime(now.tm_hour * 60 + now.tm_min, now.tm_wday)


@dataclass(frozen=True, slots=True)
class Looked:
    """What was read of a folder: documents, or problems where one of them is wrong."""

    seen: Print | None
    documents: tuple[PolicyDocument, ...]
    problems: tuple[str, ...]


class PolicyBook:
    """All files of the folder, or none of a change: a bad file never replaces a good policy.

    Where there never was a good one, nothing is tuned until there is (`observe-only`): what the
    administrator wanted to forbid is not known. `generation`: how often the policies have changed.
    """

    def __init__(self, folder: Path, now: Callable[[], LocalTime] = local_time) -> None:
        self._folder = folder
        self._now = now
        self._shipped = reader.shipped()
        self._documents: tuple[PolicyDocument, ...] = ()
        self._seen: Print | None = None
        self._loaded = False
        self.generation = 0
        self.problems: tuple[str, ...] = ()
        self.look()

    def look(self, *, again: bool = False) -> None:
        """Read the files if one of them has changed; `again`: in any case. May take seconds: where
        an event loop runs, `read` is for another thread and `take` for the loop.
        """
        self.take(self.read(again=again))

    def read(self, *, again: bool = False) -> Looked | None:
        """What the folder holds now; None where that has not changed. On any thread."""
        seen: Print | None = None
        try:
            paths = reader.policy_files(self._folder)
            seen = tuple(_print(path) for path in paths)
            if seen == self._seen and not again:
                return None
            reader.check_bounds(self._folder, {Path(p): size for p, _, size, _ in seen})
            texts = reader.read_all(paths)
        except (OSError, EbbgateError) as error:
            return Looked(seen, (), (str(error),))
        parsed = [reader.parsed(text, file) for file, text in texts.items()]
        documents = [each.document for each in parsed if each.document is not None]
        linked = link(documents, self._shipped)
        problems = [problem for each in parsed for problem in each.problems]
        problems += linked.problems
        return Looked(seen, linked.documents, _first(problems))

    def take(self, looked: Looked | None) -> None:
        """Follow what was read, or keep the last good policies where it is wrong."""
        if looked is None:
            return
        self._seen = looked.seen
        if looked.problems:
            self._refuse(looked.problems)
            return
        self._loaded = True
        if looked.documents != self._documents or self.problems:
            self._say(looked.documents)
        self._documents, self.problems = looked.documents, ()

    def policy_of(self, volume: Volume) -> Policy:
        """The policy of a volume at this hour."""
        document, at = self._document(volume), self._now()
        return compile_policy(document, volume.kind, volume.backing.scheduler, at)

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._folder

    def file_of(self, volume: Volume) -> str:
        """The file whose policy the volume is under; empty for one that is shipped."""
        return self._document(volume).file if self._documents and self._loaded else ""

    def key_of(self, volume: Volume) -> tuple[object, ...]:
        """Another one where `policy_of` may have another answer."""
        entry = entry_at(self._document(volume), self._now())
        return self.generation, None if entry is None else entry.name

    def told(self) -> dict[str, Any]:
        """What `status` shows."""
        return {
            "folder": str(self._folder),
            "names": [document.name for document in self._documents],
            "problems": list(self.problems),
            "kept": self._loaded,
        }

    def _document(self, volume: Volume) -> PolicyDocument:
        if self._loaded:
            return choose(self._documents, volume)
        return next(each for each in self._shipped if each.name == _OBSERVE)

    def _refuse(self, problems: tuple[str, ...]) -> None:
        if problems == self.problems:
            return
        for problem in problems:
            _LOG.error("%s", problem)
        kept = "the last good policies stay" if self._loaded else "nothing is tuned until it is"
        _LOG.error("the policies in %s are not right: %s", self._folder, kept)
        self.problems = problems

    def _say(self, documents: tuple[PolicyDocument, ...]) -> None:
        self.generation += 1
        names = ", ".join(document.name for document in documents)
        _LOG.info("policies: %s", names or "none in the folder: adaptive for every volume")


def _first(problems: Sequence[Diagnostic]) -> tuple[str, ...]:
    """They are logged one by one and shown by `status`: so many of them and no more."""
    said = tuple(map(str, problems[:_PROBLEMS_MAX]))
    more = len(problems) - len(said)
    return (*said, f"and {more} more problems: see ebbgate check-policy") if more else said


def _print(path: Path) -> tuple[str, int, int, int]:
    state = path.stat()
    return str(path), state.st_ino, state.st_size, state.st_mtime_ns
