# SPDX-License-Identifier: GPL-2.0-only
"""Policies: files, shipped ones, what runs, dry runs. I/O: reads policy files and the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.concurrency import run_in_threadpool

from ebbgate.errors import EbbgateError
from ebbgate.intents.arguments import POLICY_NAME
from ebbgate.policy.language.diagnostic import Diagnostic
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.parse import parse
from ebbgate.policy_files import reader
from ebbgate.policy_files.validation import check_in_folder, check_unsaved, problem_document
from ebbgate.replay import compare, history
from ebbgate.replay.history import Subject
from ebbgate.store.queries import Statuses
from ebbgate.units import HOUR_NS
from ebbgate.web.errors import ApiError, Place
from ebbgate.web.models.policies import (
    HOURS_MAX,
    DryRunRequest,
    DryRunResult,
    EffectivePolicy,
    Policies,
    PolicyCheck,
    PolicyFile,
    PolicyProblem,
    ShippedPolicy,
)
from ebbgate.web.places import Turns
from ebbgate.web.snapshot import Databases

RUN_S: Final = 120.0
"""How long a dry run may take. One of 24 h takes about a minute on a slow machine."""
WAIT_S: Final = RUN_S + 10.0
"""How long it may wait for its turn: until the one before it must be over."""
_FILE: Final = "the policy"


@dataclass(frozen=True, slots=True)
class _Checked:
    """The policies of the files with these `marks`."""

    marks: object
    files: list[PolicyFile]
    shipped: list[ShippedPolicy]
    names: Mapping[str, str]


class PolicyCatalog:
    """Every policy there is, checked anew only when a file has changed. Any thread may ask."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._checked: _Checked | None = None

    def now(self, live: Statuses) -> Policies:
        """Return all policies, and why a folder or a file cannot be read."""
        why = None
        paths: list[Path] = []
        try:
            paths = reader.policy_files(self._folder)
        except OSError as error:
            why = f"{self._folder}: {error.strerror}"
        found = self._read(paths)
        return Policies(
            folder=str(self._folder),
            folder_why=why,
            files=found.files,
            shipped=found.shipped,
            effective=[
                EffectivePolicy(
                    volume=name,
                    title=each.status.title or name,
                    policy=str(each.status.policy),
                    overlay=each.status.overlay,
                    file=found.names.get(str(each.status.policy)),
                )
                for name, each in sorted(live.volumes.items())
            ],
        )

    def _read(self, paths: list[Path]) -> _Checked:
        ours = reader.policy_files(reader.shipped_folder())
        # Before the files are read, so a change meanwhile is seen the next time.
        marks = [_mark(path) for path in (*paths, *ours)]
        known = self._checked
        if known is not None and known.marks == marks:
            return known
        files = [_file(path, self._folder) for path in paths]
        self._checked = _Checked(marks, files, _shipped(), _names(paths))
        return self._checked


def _mark(path: Path) -> tuple[object, ...]:
    """Return what changes when a file is written, replaced or given other rights."""
    try:
        found = path.stat()
    except OSError:
        return (str(path),)
    return str(path), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def check(name: str, text: str, folder: Path) -> PolicyCheck:
    """Check a text as if it were NAME.yaml in the folder. Raises ApiError for an invalid name."""
    if not POLICY_NAME.fullmatch(name):
        what = f"{name[:80]!r} is not a valid policy name"
        raise ApiError(422, f"name: {what}", "a-z, 0-9 and -, at most 64 of them")
    checked = check_in_folder(text, str(folder / f"{name}.yaml"), folder)
    return PolicyCheck(
        ok=checked.document is not None,
        errors=_problems(checked.problems),
        notes=_problems(checked.notes),
    )


@dataclass(frozen=True, slots=True)
class _DryRun:
    """A dry run that can be carried out. `documents`: the policy, and the one to compare with."""

    subject: Subject
    documents: tuple[PolicyDocument, PolicyDocument]
    hours: float


class DryRuns:
    """Runs dry runs, one at a time, since each takes a processor for up to minutes."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._turns = Turns("dry runs", WAIT_S)

    def close(self) -> None:
        """Refuse those that wait, as the server ends."""
        self._turns.close()

    async def run(self, request: DryRunRequest, client: str) -> DryRunResult:
        """Run one when its turn comes. Raises ApiError and EbbgateError."""
        # What is invalid waits for nobody.
        wanted = await run_in_threadpool(self._checked, request)
        async with self._turns.hold(client):
            return await run_in_threadpool(self._run, wanted)

    def _checked(self, request: DryRunRequest) -> _DryRun:
        if not 0 < request.hours <= HOURS_MAX:
            # Not as `g`: it fails for a whole number that no float can hold.
            text = f"hours: {str(request.hours)[:20]} is not in 0..{HOURS_MAX:g}"
            raise ApiError(422, text, "for example 24")
        subject = self._subject(request.volume)
        folder = self._databases.config.policy_dir
        documents = (
            self._candidate(request.text),
            history.compared_with(request.against, subject, folder),
        )
        return _DryRun(subject, documents, request.hours)

    def _run(self, wanted: _DryRun) -> DryRunResult:
        until_ns = self._databases.wall_ns()
        since_ns = until_ns - round(wanted.hours * HOUR_NS)
        path = self._databases.config.history_path
        found = history.run(path, wanted.subject, wanted.documents, since_ns, until_ns, RUN_S)
        return DryRunResult.read(compare.dry_run_to_json(found))

    def _subject(self, volume: str) -> Subject:
        """Return the volume as the daemon last described it."""
        snapshot = self._databases.snapshot()
        if snapshot.why is not None:
            raise ApiError(503, snapshot.why, "see /api/v1/health", retry_after_s=2)
        live = snapshot.live.volumes.get(volume)
        if live is None or live.status.kind is None:
            raise ApiError(404, f"the daemon does not follow {volume[:128]}", "see /api/v1/volumes")
        status = live.status
        # Policies may choose the volume by its uuid, which only the daemon knows.
        return Subject(volume, status.title or volume, live.status.kind, policy=status.policy)

    def _candidate(self, text: str) -> PolicyDocument:
        checked = check_unsaved(text, _FILE, self._databases.config.policy_dir)
        if checked.document is None:
            first = checked.problems[0]
            place = Place(file=first.file, line=first.position.line, column=first.position.column)
            raise ApiError(422, str(first), "see all of it: /api/v1/policies/check", place=place)
        return checked.document


def _file(path: Path, folder: Path) -> PolicyFile:
    try:
        data = reader.read_policy(path)
    except EbbgateError as error:
        problem = PolicyProblem(
            file=str(path), line=1, column=1, message=error.message, expected=None, nearest=None
        )
        problems, text = [problem], None
    else:
        problems = _problems(check_in_folder(data, str(path), folder).problems)
        text = data.decode(errors="replace")
    return PolicyFile(name=path.stem, path=str(path), ok=not problems, errors=problems, text=text)


def _shipped() -> list[ShippedPolicy]:
    found = []
    for document in reader.shipped():
        text = reader.read_policy(Path(document.file)).decode()
        found.append(ShippedPolicy(name=document.name, why=document.why, text=text))
    return found


def _names(paths: list[Path]) -> dict[str, str]:
    """Return the file of each policy by the policy's own name."""
    found: dict[str, str] = {}
    for path in paths:
        try:
            document = parse(reader.read_policy(path), str(path)).document
        except EbbgateError:
            continue
        if document is not None:
            found.setdefault(document.name, str(path))
    return found


def _problems(problems: tuple[Diagnostic, ...]) -> list[PolicyProblem]:
    return [PolicyProblem.read(problem_document(each)) for each in problems]
