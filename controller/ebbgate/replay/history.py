# SPDX-License-Identifier: GPL-2.0-only
"""Runs a comparison of policies on this machine's history. I/O: reads only."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

from ebbgate.errors import NotFound, UsageError
from ebbgate.model.volume import Kind, Volume
from ebbgate.policy.engine import Policy
from ebbgate.policy.language.choose import LocalTime, entry_at
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy_files.active import local_time
from ebbgate.policy_files.validation import by_name, in_force
from ebbgate.replay.compare import DryRun, PolicyAt, dry_run
from ebbgate.replay.history_events import HistorySample, HistoryWindow
from ebbgate.store.queries import read_window
from ebbgate.units import NS_PER_S

_MINUTE_S = 60


@dataclass(frozen=True, slots=True)
class Subject:
    """The volume of a dry run.

    `name`: in the history; `title`: LVM's name, or the same. `names`: all of its names, by which
    policies choose it; empty where no others are known. `policy`: the name of the one in force, as
    the daemon tells it; None: by the names.
    """

    name: str
    title: str
    kind: Kind
    names: tuple[str, ...] = ()
    policy: str | None = None

    @classmethod
    def of(cls, volume: Volume) -> Self:
        """Return a volume that is here."""
        return cls(volume.name, volume.title, volume.kind, volume.names)


def compared_with(name: str | None, subject: Subject, folder: Path) -> PolicyDocument:
    """Return the policy to compare with: by name, or the one in force for the volume.

    Raises NotFound, ConfigError.
    """
    if name is not None:
        return by_name(name, folder)
    names = subject.names or (subject.name, subject.title)
    return in_force(names, subject.kind, folder, subject.policy)


def run(
    history: Path,
    subject: Subject,
    documents: tuple[PolicyDocument, PolicyDocument],
    since_unix_ns: int,
    until_unix_ns: int,
    limit_s: float = math.inf,
) -> DryRun:
    """Compare the first document with the second, including their schedules.

    Raises NotFound if the history has nothing on the volume in `[since, until)`, UsageError if it
    takes longer than `limit_s`, and what reading the history raises.
    """
    deadline_s = time.monotonic() + limit_s
    rows, edges = read_window(history, subject.name, since_unix_ns, until_unix_ns)
    if not rows:
        raise NotFound(
            f"the history has nothing on {subject.title} for that time",
            "a running daemon records it: systemctl start ebbgated",
        )
    # SQLite's rows have no types; their columns are those of the table.
    samples = cast(list[HistorySample], rows)
    past = HistoryWindow(subject.name, subject.kind, since_unix_ns, until_unix_ns, samples, edges)
    policy, against = (
        _until(deadline_s, limit_s, policy_at(each, subject.kind)) for each in documents
    )
    return dry_run(past, policy, against)


def _until(deadline_s: float, limit_s: float, policy: PolicyAt) -> PolicyAt:
    """Return the policy by time, which is asked for at each sample. Raises UsageError at the end
    of the time.
    """

    def at(at_unix_ns: int) -> Policy:
        if time.monotonic() > deadline_s:
            raise UsageError(
                f"the policies cannot be compared within {limit_s:g} s",
                "compare them on fewer hours, or with fewer rules",
            )
        return policy(at_unix_ns)

    return at


def policy_at(
    document: PolicyDocument, kind: Kind, local: Callable[[int], LocalTime] | None = None
) -> PolicyAt:
    """Return the policy by time, one object for each entry of the schedule."""
    hour = local or local_time
    compiled: dict[str, Policy] = {}
    by_minute: dict[int, Policy] = {}

    def at(at_unix_ns: int) -> Policy:
        minute = at_unix_ns // (_MINUTE_S * NS_PER_S)
        found = by_minute.get(minute)
        if found is None:
            now = hour(minute * _MINUTE_S * NS_PER_S)
            entry = entry_at(document, now)
            name = "" if entry is None else entry.name
            if name not in compiled:
                compiled[name] = compile_policy(document, kind, at=now)
            found = by_minute[minute] = compiled[name]
        return found

    return at
