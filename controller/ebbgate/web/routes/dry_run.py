# SPDX-License-Identifier: GPL-2.0-only
"""A dry run for a page: one at a time, since it takes a processor for seconds. I/O: reads."""

from __future__ import annotations

from threading import Lock
from typing import Final

from ebbgate.model.volume import Kind
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy_files.validation import check_unsaved
from ebbgate.replay import compare, history
from ebbgate.replay.history import Subject
from ebbgate.units import NS_PER_S
from ebbgate.web.errors import ApiError, Place
from ebbgate.web.models.policies import HOURS_MAX, DryRunRequest, DryRunResult
from ebbgate.web.snapshot import Databases

_HOUR_S: Final = 3600
_FILE: Final = "the policy"


class DryRuns:
    """All dry runs of this process."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._one = Lock()

    def run(self, asked: DryRunRequest) -> DryRunResult:
        """Raises ApiError, and what reading the history and the policies raises."""
        if not 0 < asked.hours <= HOURS_MAX:
            # Not as `g`: it fails for a whole number that no float can hold.
            text = f"hours: {str(asked.hours)[:20]} is not in 0..{HOURS_MAX:g}"
            raise ApiError(422, text, "for example 24")
        subject = self._subject(asked.volume)
        folder = self._databases.config.policy_dir
        documents = (
            self._candidate(asked.text),
            history.compared_with(asked.against, subject, folder),
        )
        until_ns = self._databases.wall_ns()
        since_ns = until_ns - round(asked.hours * _HOUR_S * NS_PER_S)
        if not self._one.acquire(blocking=False):
            raise ApiError(503, "another dry run is under way", "wait for it", retry_after_s=3)
        try:
            path = self._databases.config.history_path
            found = history.run(path, subject, documents, since_ns, until_ns)
        finally:
            self._one.release()
        return DryRunResult.read(compare.dry_run_to_json(found))

    def _subject(self, volume: str) -> Subject:
        """As the daemon last named it."""
        look = self._databases.snapshot()
        if look.why is not None:
            raise ApiError(503, look.why, "see /api/v1/health", retry_after_s=2)
        live = look.live.get(volume)
        kind = None if live is None or not volume else live.document.get("kind")
        if live is None or kind not in tuple(Kind):
            raise ApiError(404, f"the daemon does not follow {volume[:128]}", "see /api/v1/volumes")
        return Subject(volume, str(live.document.get("title") or volume), Kind(kind))

    def _candidate(self, text: str) -> PolicyDocument:
        checked = check_unsaved(text, _FILE, self._databases.config.policy_dir)
        if checked.document is None:
            first = checked.problems[0]
            place = Place(file=first.file, line=first.position.line, column=first.position.column)
            raise ApiError(422, str(first), "see all of it: /api/v1/policies/check", place=place)
        return checked.document
