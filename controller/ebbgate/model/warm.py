# SPDX-License-Identifier: GPL-2.0-only
"""Warm-up jobs: what people see of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

JOBS_MAX: Final = 128
"""Jobs that wait or read at one time, of all volumes: a file of each GiB of a table is one."""


class JobState(StrEnum):
    """`waiting`: stands back for users, or for the cache. `checking`: reads a sample again."""

    READING = "reading"
    CHECKING = "checking"
    WAITING = "waiting"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


class JobAction(StrEnum):
    """What a person may do with a job."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A warm-up job of a volume.

    - `target`: the path, or the range of the volume.
    - `read_bytes`: in the pass under way; `total_bytes`: of each pass.
    - `hit_ratio`: share of a sample that was read from the cache again; None before the check.
    - `left_out`: bytes that cannot be warmed, by reason.
    - `why`: why it waits or has failed, or the result.
    - `other_promotions`: what users' misses have brought into a dm-cache since it began, in cache
      blocks; None where the kernel counts none. `promotion_holds`: how often it waited because
      more of these came while it read.
    """

    id: int
    target: str
    state: JobState
    who: str = ""
    why: str = ""
    read_bytes: int = 0
    total_bytes: int = 0
    bandwidth_bytes_per_s: int | None = None
    hit_ratio: float | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    since_unix_ns: int = 0
    ended_unix_ns: int | None = None
    other_promotions: int | None = None
    promotion_holds: int = 0
