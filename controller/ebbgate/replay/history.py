# SPDX-License-Identifier: GPL-2.0-only
"""A dry run on the history of this machine, for the command line and the web. I/O: reads only."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ebbgate.errors import ConfigError, NotFound
from ebbgate.model.volume import Kind
from ebbgate.policy.engine import Policy
from ebbgate.policy.language.choose import LocalTime, entry_at
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy_files.validation import by_name, check_unsaved, in_force
from ebbgate.replay.compare import DryRun, PolicyAt, dry_run
from ebbgate.replay.history_events import HistoryWindow
from ebbgate.store.queries import read_window
from ebbgate.units import NS_PER_S

_MINUTE_S = 60


@dataclass(frozen=True, slots=True)
class Subject:
    """The volume of a dry run. `name`: by which the history has it; `title`: LVM's, or the same."""

    name: str
    title: str
    kind: Kind


def candidate(text: str, folder: Path) -> PolicyDocument:
    """A policy that is not kept anywhere. Raises ConfigError with everything that is wrong."""
    checked = check_unsaved(text, "the policy", folder)
    if checked.document is None:
        raise ConfigError("\n".join(map(str, checked.problems)), "see policies/README.md")
    return checked.document


def other(name: str | None, subject: Subject, folder: Path) -> PolicyDocument:
    """What to compare with: a policy by name, or the one that the volume is under now.

    Raises NotFound, ConfigError.
    """
    if name is not None:
        return by_name(name, folder)
    return in_force((subject.name, subject.title), subject.kind, folder)


def run(
    history: Path,
    subject: Subject,
    documents: tuple[PolicyDocument, PolicyDocument],
    since_unix_ns: int,
    until_unix_ns: int,
) -> DryRun:
    """The first of the documents beside the second, schedules included.

    Raises NotFound where the history has nothing of the volume in `[since, until)`, and what
    reading it raises.
    """
    rows, edges = read_window(history, subject.name, since_unix_ns, until_unix_ns)
    if not rows:
        raise NotFound(
            f"the history has nothing of {subject.title} in that time",
            "a running daemon records it: systemctl start ebbgated",
        )
    past = HistoryWindow(subject.name, subject.kind, since_unix_ns, until_unix_ns, rows, edges)
    policy, against = (policy_at(each, subject.kind) for each in documents)
    return dry_run(past, policy, against)


def policy_at(
    document: PolicyDocument, kind: Kind, local: Callable[[int], LocalTime] | None = None
) -> PolicyAt:
    """The policy by the hour, one object for each part of the schedule."""
    hour = local or _local
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


def _local(at_unix_ns: int) -> LocalTime:
    """The hour of this machine then."""
    then = time.localtime(at_unix_ns // NS_PER_S)
    return LocalTime(then.tm_hour * 60 + then.tm_min, then.tm_wday)
