# SPDX-License-Identifier: GPL-2.0-only
"""Keeps the active policies up to date with their files. I/O: reads the policy folder."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ebbgate.errors import EbbgateError
from ebbgate.log_messages.service import (
    POLICIES_LOADED,
    POLICIES_REFUSED,
    POLICY_ERROR,
    POLICY_NOTE,
)
from ebbgate.model.status import PolicyFilesStatus
from ebbgate.model.volume import Volume
from ebbgate.policy.defaults import Policy
from ebbgate.policy.language.choose import LocalTime, choose, entry_at
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.diagnostic import Diagnostic
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.link import link
from ebbgate.policy_files import reader
from ebbgate.units import NS_PER_S

_LOG = logging.getLogger(__name__)
_PROBLEMS_MAX = 20
_OBSERVE = "observe-only"

Fingerprint = tuple[tuple[str, int, int, int], ...]
"""Of each file: path, inode, size, time of the last change (ns)."""


def local_time(at_unix_ns: int | None = None) -> LocalTime:
    """Return the local time of this machine, for schedules; without a time it is the present."""
    # The C library reads the time zone once; this makes it look whether somebody has changed it.
    time.tzset()
    then = time.localtime(None if at_unix_ns is None else at_unix_ns // NS_PER_S)
    return LocalTime(then.tm_hour * 60 + then.tm_min, then.tm_wday)


@dataclass(frozen=True, slots=True)
class FolderContent:
    """What was read from a folder: documents, or problems if any of them has an error.

    `notes`: keys of the documents that have no effect.
    """

    fingerprint: Fingerprint | None
    documents: tuple[PolicyDocument, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()


class ActivePolicies:
    """Follows a policy folder; a change with an error is ignored as a whole.

    Until all files were valid once, nothing is tuned (`observe-only`): the administrator may have
    wanted to forbid something. `generation`: how often the policies have changed.
    """

    def __init__(self, folder: Path, now: Callable[[], LocalTime] = local_time) -> None:
        self._folder = folder
        self._now = now
        self._shipped = reader.shipped()
        self._documents: tuple[PolicyDocument, ...] = ()
        self._fingerprint: Fingerprint | None = None
        self._loaded = False
        self.generation = 0
        self.problems: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.look()

    def look(self, *, again: bool = False) -> None:
        """Read the files if one of them has changed; `again`: in any case.

        This may take seconds. With an event loop, call `read` in a thread and `take` in the loop.
        """
        self.take(self.read(again=again))

    def read(self, *, again: bool = False) -> FolderContent | None:
        """Return the content of the folder; None if it has not changed. For any thread."""
        try:
            reader.check_links(self._folder)
            paths = reader.policy_files(self._folder)
            fingerprint = tuple(_stat_of(path) for path in paths)
            if fingerprint == self._fingerprint and not again:
                return None
            reader.check_bounds(self._folder, {Path(p): size for p, _, size, _ in fingerprint})
            texts = reader.read_all(paths)
        except (OSError, EbbgateError) as error:
            # Without a fingerprint it is read again: new rights do not change the time of a file.
            return FolderContent(None, (), (str(error),))
        parsed = [reader.parsed(text, file) for file, text in texts.items()]
        documents = [each.document for each in parsed if each.document is not None]
        linked = link(documents, self._shipped)
        problems = [problem for each in parsed for problem in each.problems]
        problems += linked.problems
        notes = _first([note for each in parsed for note in each.notes], "keys without effect")
        return FolderContent(fingerprint, linked.documents, _first(problems), notes)

    def take(self, content: FolderContent | None) -> None:
        """Use what was read, or keep the last valid policies if it has errors."""
        if content is None:
            return
        self._fingerprint = content.fingerprint
        if content.problems:
            self._refuse(content.problems)
            return
        self._loaded = True
        if content.documents != self._documents or self.problems:
            self._announce(content)
        self._documents, self.problems, self.notes = content.documents, (), content.notes

    def policy_of(self, volume: Volume) -> Policy:
        """Return the present policy of a volume."""
        document, at = self._document(volume), self._now()
        return compile_policy(document, volume.kind, at)

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return self._folder

    def file_of(self, volume: Volume) -> str:
        """Return the file of the volume's policy; empty for a shipped one."""
        return self._document(volume).file if self._documents and self._loaded else ""

    def key_of(self, volume: Volume) -> tuple[object, ...]:
        """Return a key that changes whenever the result of `policy_of` may change."""
        entry = entry_at(self._document(volume), self._now())
        return self.generation, None if entry is None else entry.name

    def status(self) -> PolicyFilesStatus:
        """Return the policies for the daemon's status."""
        names = tuple(document.name for document in self._documents)
        return PolicyFilesStatus(str(self._folder), names, self.problems, self._loaded, self.notes)

    def _document(self, volume: Volume) -> PolicyDocument:
        if self._loaded:
            return choose(self._documents, volume)
        return next(each for each in self._shipped if each.name == _OBSERVE)

    def _refuse(self, problems: tuple[str, ...]) -> None:
        if problems == self.problems:
            return
        for problem in problems:
            _LOG.error(POLICY_ERROR, problem)
        effect = (
            "the last valid ones apply" if self._loaded else "nothing is tuned until they are fixed"
        )
        _LOG.error(POLICIES_REFUSED, self._folder, effect)
        self.problems = problems

    def _announce(self, content: FolderContent) -> None:
        self.generation += 1
        names = ", ".join(document.name for document in content.documents)
        _LOG.info(POLICIES_LOADED, names or "no files; adaptive for every volume")
        for note in content.notes:
            _LOG.warning(POLICY_NOTE, note)


def _first(problems: Sequence[Diagnostic], what: str = "errors") -> tuple[str, ...]:
    """Return the first problems as text: they are logged and shown by `status`."""
    first = tuple(map(str, problems[:_PROBLEMS_MAX]))
    more = len(problems) - len(first)
    return (*first, f"and {more} more {what}: see ebbgate check-policy") if more else first


def _stat_of(path: Path) -> tuple[str, int, int, int]:
    state = path.stat()
    return str(path), state.st_ino, state.st_size, state.st_mtime_ns
