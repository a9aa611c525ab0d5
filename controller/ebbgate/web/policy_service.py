# SPDX-License-Identifier: GPL-2.0-only
"""Policies: files, shipped ones, and what runs. I/O: reads policy files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbgate.errors import EbbgateError
from ebbgate.intents.validation import POLICY_NAME
from ebbgate.policy.language.diagnostic import Diagnostic
from ebbgate.policy.language.parse import parse
from ebbgate.policy_files import reader
from ebbgate.policy_files.validation import check_in_folder, problem_document
from ebbgate.store.queries import Live
from ebbgate.web.errors import ApiError
from ebbgate.web.models.policies import (
    EffectivePolicy,
    Policies,
    PolicyCheck,
    PolicyFile,
    PolicyProblem,
    ShippedPolicy,
)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was read; `marks`: of the files that it was read from."""

    marks: object
    files: list[PolicyFile]
    shipped: list[ShippedPolicy]
    names: Mapping[str, str]


class PolicyCatalog:
    """Every policy there is, checked anew only when a file has changed. Any thread may ask."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: _Found | None = None

    def now(self, live: Mapping[str, Live]) -> Policies:
        """Everything; a folder or a file that cannot be read is said so."""
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
                _effective(name, each.document, found.names)
                for name, each in sorted(live.items())
                if name
            ],
        )

    def _read(self, paths: list[Path]) -> _Found:
        ours = reader.policy_files(reader.shipped_folder())
        # Before the files are read: what changes meanwhile is seen at the next look.
        marks = [_mark(path) for path in (*paths, *ours)]
        known = self._found
        if known is not None and known.marks == marks:
            return known
        files = [_file(path, self._folder) for path in paths]
        self._found = _Found(marks, files, _shipped(), _names(paths))
        return self._found


def _mark(path: Path) -> tuple[object, ...]:
    """What differs once a file was written, replaced or given other rights."""
    try:
        found = path.stat()
    except OSError:
        return (str(path),)
    return str(path), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def check(name: str, text: str, folder: Path) -> PolicyCheck:
    """A text as if it were NAME.yaml of the folder. Raises ApiError for a name that is none."""
    if not POLICY_NAME.fullmatch(name):
        what = f"{name[:80]!r} is no name of a policy's file"
        raise ApiError(422, f"name: {what}", "a-z, 0-9 and -, at most 64 of them")
    checked = check_in_folder(text, str(folder / f"{name}.yaml"), folder)
    return PolicyCheck(ok=checked.document is not None, errors=_problems(checked.problems))


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
    """The file of each policy by the policy's own name."""
    found: dict[str, str] = {}
    for path in paths:
        try:
            document = parse(reader.read_policy(path), str(path)).document
        except EbbgateError:
            continue
        if document is not None:
            found.setdefault(document.name, str(path))
    return found


def _effective(
    volume: str, document: Mapping[str, Any], names: Mapping[str, str]
) -> EffectivePolicy:
    policy, title = str(document.get("policy")), str(document.get("title", volume))
    return EffectivePolicy(
        volume=volume,
        title=title,
        policy=policy,
        overlay=document.get("overlay"),
        file=names.get(policy),
    )


def _problems(problems: tuple[Diagnostic, ...]) -> list[PolicyProblem]:
    return [PolicyProblem.read(problem_document(each)) for each in problems]
