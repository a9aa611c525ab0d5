# SPDX-License-Identifier: GPL-2.0-only
"""Waits for the end of warm-ups. I/O: the control socket; the history."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ebbgate.cli import format
from ebbgate.cli.context import Context, print_note
from ebbgate.cli.daemon_status import Link, look
from ebbgate.errors import ActuationError, EbbgateError, Unavailable
from ebbgate.model.warm import JobState, JobStatus

_EVERY_S: Final = 1.0
_LOOKS_MAX: Final = 5
"""A status that does not have a job this many times in a row is not just late."""
_LATE_LOOKS_MAX: Final = 35
"""The same for a job whose target is not open yet: its request fails after 30 s."""
_HINT: Final = "list the jobs: ebbgate jobs"

FoundJob = tuple[str, JobStatus]
"""A job, and the name of its volume."""


@dataclass(slots=True)
class JobWatch:
    """Remembers jobs that it has seen to be over: ebbgated forgets them after a minute.

    `missed`: of each job that is not over, in how many looks in a row it was not there; it begins
    below 0 where the request is late.
    """

    context: Context
    found: dict[int, FoundJob] = field(default_factory=dict)
    missed: dict[int, int] = field(default_factory=dict)

    def add(self, number: int, *, late: bool = False) -> None:
        """Follow a job that was begun just now. `late`: its request has no outcome yet.

        Others may end while the next ones are begun, so that it looks at once.
        """
        self.missed[number] = _LOOKS_MAX - _LATE_LOOKS_MAX if late else 0
        with suppress(EbbgateError):
            # `wait` reports it.
            self._look((number,))

    def wait(self) -> list[EbbgateError]:
        """Wait for the end of all jobs; return an error for each that is not done."""
        shown = ""
        while left := [each for each in self.missed if self.missed[each] < _LOOKS_MAX]:
            if left[0] in self.found and not self.context.json:
                text = format.job(self.found[left[0]][1])
                if text != shown:
                    print_note(text)
                shown = text
            time.sleep(_EVERY_S)
            try:
                self._look(self.missed)
            except EbbgateError as error:
                return [error, *self._failures()]
        return self._failures()

    def jobs(self) -> Sequence[FoundJob]:
        """Return what is known of the jobs, oldest first."""
        return [job for _, job in sorted(self.found.items())]

    def done(self, number: int) -> bool:
        """Return whether a job has ended as it should."""
        return number in self.found and self.found[number][1].state is JobState.DONE

    def _look(self, counted: Collection[int]) -> None:
        """Remember the jobs. `counted`: of these it counts that they are not there.

        Raises EbbgateError if the jobs cannot be known.
        """
        link = look(self.context)
        if not link.alive:
            raise Unavailable("ebbgated has ended, and its jobs with it", "see ebbgate status")
        now_ns = self.context.wall_ns()
        now = {each[1].id: each for each in jobs_of(link, now_ns)}
        # A job of a volume whose status is late is not gone.
        late = bool(link.silent(now_ns))
        for number, missed in list(self.missed.items()):
            if number not in now:
                self.missed[number] = missed + (number in counted and not late)
                continue
            self.found[number], self.missed[number] = now[number], 0
            if now[number][1].state.over:
                del self.missed[number]

    def _failures(self) -> list[EbbgateError]:
        failed: list[EbbgateError] = [
            ActuationError(f"{volume}: {format.job(job)}", _HINT)
            for volume, job in self.jobs()
            if job.state.over and job.state is not JobState.DONE
        ]
        for number, missed in self.missed.items():
            if missed >= _LOOKS_MAX:
                text = f"job {number} is not known any more"
                failed.append(ActuationError(text, "see the log of ebbgated"))
        return failed


def jobs_of(link: Link, now_ns: int) -> list[FoundJob]:
    """Return the jobs of all volumes with a recent status, oldest first."""
    found = [(each.title, job) for each in link.volumes(now_ns) for job in each.jobs]
    return sorted(found, key=lambda each: each[1].id)
