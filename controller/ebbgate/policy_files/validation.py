# SPDX-License-Identifier: GPL-2.0-only
"""Checks policies together with the files of their folder, and finds them by name.

I/O: reads policy files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ebbgate.errors import ConfigError, EbbgateError, NotFound
from ebbgate.model.volume import Kind
from ebbgate.policy.language.choose import choose_by_name
from ebbgate.policy.language.diagnostic import Diagnostic
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.link import link
from ebbgate.policy.language.parse import Parsed, parse
from ebbgate.policy_files import reader


@dataclass(frozen=True, slots=True)
class CheckedPolicy:
    """Either a linked document, or its problems. `notes`: keys of the document without effect."""

    document: PolicyDocument | None
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()


def check_in_folder(text: str | bytes, file: str, folder: Path) -> CheckedPolicy:
    """Check a text as if it were `file` of the folder, replacing it.

    The problems are those in the text and those that it would cause in other files, such as a
    duplicate name. Other errors in other files are ignored.
    """
    parsed = reader.parsed(text, file)
    if parsed.document is None:
        return CheckedPolicy(None, parsed.problems)
    texts = _texts(folder)
    linked, problems = _linked({**texts, file: text})
    wrong = tuple(each for each in _new(problems, texts) if each.file != file)
    wrong = (*(each for each in problems if each.file == file), *wrong)
    if wrong:
        return CheckedPolicy(None, wrong)
    return CheckedPolicy(linked[file], notes=parsed.notes)


def check_unsaved(text: str | bytes, file: str, folder: Path) -> CheckedPolicy:
    """Check a text that will not be saved: its name may be that of an existing file."""
    parsed = parse(text, file)
    if parsed.document is None:
        return CheckedPolicy(None, parsed.problems)
    others = [parse(other, name).document for name, other in _texts(folder).items()]
    beside = [each for each in others if each is not None and each.name != parsed.document.name]
    linked = link([parsed.document], _shipped(), beside)
    return (
        CheckedPolicy(None, linked.problems)
        if linked.problems
        else CheckedPolicy(linked.documents[0])
    )


def check_removal(file: str, folder: Path) -> tuple[Diagnostic, ...]:
    """Return the problems that removing this file would cause in others."""
    texts = _texts(folder)
    left = {name: text for name, text in texts.items() if name != file}
    return _new(_linked(left)[1], texts)


def neighbours(
    files: Iterable[Path], documents: Collection[PolicyDocument], policy_dir: Path | None = None
) -> list[PolicyDocument]:
    """Return the other readable policies in the folders of these files, which are `documents`.

    `policy_dir`: the daemon's folder, none of whose files it uses beyond its bounds. Another folder
    may have any files, and beyond these bounds only those that the documents may mean are parsed.
    Raises ConfigError.
    """
    if not documents:
        return []
    given = {_in_folder(path) for path in files}
    names = {each.name for each in documents}
    names |= {entry.use.text for each in documents for entry in each.schedule}
    found: dict[str, str | bytes] = {}
    for folder in {path.parent for path in given}:
        if policy_dir is not None and _is_same(folder, policy_dir):
            found |= _texts(folder)
        else:
            found |= _texts_beside(folder, given, names)
    parsed = (parse(text, name) for name, text in found.items() if Path(name) not in given)
    return [each.document for each in parsed if each.document is not None]


def _is_same(folder: Path, other: Path) -> bool:
    try:
        return folder.samefile(other)
    except OSError:
        return False


def by_folder(files: Iterable[Path]) -> list[list[Path]]:
    """Group files by their folder, whose files make one set of policies; each counts once."""
    found: dict[Path, dict[Path, Path]] = {}
    for path in files:
        place = _in_folder(path)
        found.setdefault(place.parent, {}).setdefault(place, path)
    return [list(each.values()) for each in found.values()]


def _in_folder(path: Path) -> Path:
    """Return the path without links in its folder's; as it is in a folder that was deleted.

    A file that is a link belongs to the folder that has the link.
    """
    try:
        return path.parent.resolve() / path.name
    except OSError:
        return path


def by_name(name: str, folder: Path | None = None) -> PolicyDocument:
    """Return a policy of the folder, or a shipped one, by its name. Raises NotFound, ConfigError.

    That of the folder comes first, as in schedules. The name is never used as a path.
    """
    known = {each.name: each for each in _shipped()}
    if folder is not None:
        ours, _ = _linked(_texts(folder))
        known |= {each.name: each for each in ours.values()}
    if name not in known:
        raise NotFound(f"unknown policy: {name}", f"give a file, or one of {', '.join(known)}")
    return known[name]


def named(name: str, folder: Path | None = None) -> PolicyDocument:
    """Return a policy by its name or its file. Raises NotFound, ConfigError."""
    try:
        return by_name(name, folder)
    except NotFound:
        if not _may_be_file(Path(name)):
            raise
    return of_file(Path(name))


def _may_be_file(path: Path) -> bool:
    """Return whether a path is a file; true if that cannot be known: reading it names the error."""
    try:
        return path.is_file()
    except OSError:
        return True


def of_file(path: Path) -> PolicyDocument:
    """Return the policy of a file, linked with its folder. Raises ConfigError, NotFound."""
    parsed = parse(reader.read_policy(path), str(path))
    problems = parsed.problems
    if parsed.document is not None:
        beside = neighbours([path], [parsed.document])
        linked = link([parsed.document], _shipped(), beside)
        problems = (*problems, *linked.problems)
        if not problems:
            return linked.documents[0]
    raise ConfigError(str(problems[0]), f"list all errors: ebbgate check-policy {path}")


def in_force(
    names: Iterable[str], kind: Kind, folder: Path, said: str | None = None
) -> PolicyDocument:
    """Return the policy that the files of the folder have for a volume of these names.

    `said`: the name of the policy, where the daemon has told it. Raises ConfigError if the files
    have errors: then the daemon uses an older state of them.
    """
    documents, problems = _linked(_texts(folder))
    if problems:
        raise ConfigError(str(problems[0]), "fix it first, or name a policy")
    known = {each.name: each for each in (*_shipped(), *documents.values())}
    return known.get(said or "") or choose_by_name(documents.values(), names, kind)


def problem_document(problem: Diagnostic) -> dict[str, str | int | None]:
    """Return a problem for JSON; `line` and `column` count from 1."""
    key = f"{problem.key}: " if problem.key else ""
    return {
        "file": problem.file,
        "line": problem.position.line,
        "column": problem.position.column,
        "message": f"{key}{problem.what}",
        "expected": problem.expected or None,
        "nearest": problem.nearest or None,
    }


def _new(
    problems: Iterable[Diagnostic], texts: Mapping[str, str | bytes]
) -> tuple[Diagnostic, ...]:
    """Return the problems that these texts do not have already."""
    # `expected` may list other policies, so it is not compared.
    before = {(each.file, each.position, each.what) for each in _linked(texts)[1]}
    return tuple(each for each in problems if (each.file, each.position, each.what) not in before)


@cache
def _shipped() -> tuple[PolicyDocument, ...]:
    """Return the shipped policies; they do not change while the process runs."""
    return reader.shipped()


def _linked(
    texts: Mapping[str, str | bytes],
) -> tuple[dict[str, PolicyDocument], tuple[Diagnostic, ...]]:
    """Return the valid documents by file, each linked by itself, and all problems."""
    parsed: list[Parsed] = [reader.parsed(text, file) for file, text in texts.items()]
    documents = [each.document for each in parsed if each.document is not None]
    shipped = _shipped()
    problems = [problem for each in parsed for problem in each.problems]
    problems += link(documents, shipped).problems
    wrong = {problem.file for problem in problems}
    right: dict[str, PolicyDocument] = {}
    for document in documents:
        if document.file not in wrong:
            others = [each for each in documents if each is not document]
            right[document.file] = link([document], shipped, others).documents[0]
    return right, tuple(problems)


def _texts(folder: Path) -> dict[str, str | bytes]:
    """Return the readable policy files of the folder, by path, in their order."""
    found: dict[str, str | bytes] = dict(_readable(_listed(folder)))
    reader.check_bounds(folder, {Path(path): len(text) for path, text in found.items()})
    return found


def _texts_beside(
    folder: Path, given: Collection[Path], names: Iterable[str]
) -> dict[str, str | bytes]:
    """Return the same without the given files. If that is beyond the bounds, return only the files
    with one of these names, since parsing takes long; raises ConfigError if these are beyond, too.
    """
    paths = [path for path in _listed(folder) if path not in given]
    if len(paths) <= reader.FILES_MAX and sum(map(_size_bytes, paths)) <= reader.TOTAL_BYTES_MAX:
        return dict(_readable(paths))
    words = "|".join(map(re.escape, names))
    named = re.compile(rf"""\bname["']?\s*:\s*["']?({words})\b""".encode())
    found: dict[str, str | bytes] = {}
    for path, text in _readable(paths):
        if named.search(text):
            found[path] = text
            reader.check_bounds(folder, {Path(each): len(found[each]) for each in found})
    return found


def _size_bytes(path: Path) -> int:
    """Return 0 for a file that is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _listed(folder: Path) -> list[Path]:
    """Return the policy files of the folder. Raises ConfigError."""
    try:
        return reader.policy_files(folder)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be read: {error.strerror}", "check its permissions"
        ) from error


def _readable(paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the text of each file that can be read."""
    for path in paths:
        try:
            text = reader.read_policy(path)
        except EbbgateError:
            continue
        yield str(path), text
