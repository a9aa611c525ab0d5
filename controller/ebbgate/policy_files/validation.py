# SPDX-License-Identifier: GPL-2.0-only
"""Is a policy right, alone and among the files of a folder? And which one is meant by a name?

I/O: reads policy files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ebbgate.errors import ConfigError, EbbgateError, NotFound
from ebbgate.model.volume import Kind
from ebbgate.policy.language.choose import choose_by_name
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.link import link
from ebbgate.policy.language.parse import Parsed, parse
from ebbgate.policy.language.problem import Diagnostic
from ebbgate.policy_files import reader


@dataclass(frozen=True, slots=True)
class Judged:
    """Either the document of one text, with nothing left to look up, or what is wrong."""

    document: PolicyDocument | None
    problems: tuple[Diagnostic, ...] = ()


def judge(text: str | bytes, file: str, folder: Path) -> Judged:
    """A text as if it were `file` of the folder, whatever is there under this name now.

    Wrong is what is wrong in it, and what it would make wrong in its neighbours: a name that is
    there twice, or one that they use and that is gone. What is wrong with them already is not its
    matter.
    """
    parsed = reader.parsed(text, file)
    if parsed.document is None:
        return Judged(None, parsed.problems)
    texts = _texts(folder)
    linked, problems = _linked({**texts, file: text})
    wrong = tuple(each for each in _new(problems, texts) if each.file != file)
    wrong = (*(each for each in problems if each.file == file), *wrong)
    if wrong:
        return Judged(None, wrong)
    return Judged(linked[file])


def judge_alone(text: str | bytes, file: str, folder: Path) -> Judged:
    """A text that is not to be kept, so that it may have the name of one that is."""
    parsed = parse(text, file)
    if parsed.document is None:
        return Judged(None, parsed.problems)
    others = [parse(other, name).document for name, other in _texts(folder).items()]
    beside = [each for each in others if each is not None and each.name != parsed.document.name]
    linked = link([parsed.document], _shipped(), beside)
    return Judged(None, linked.problems) if linked.problems else Judged(linked.documents[0])


def judge_removal(file: str, folder: Path) -> tuple[Diagnostic, ...]:
    """What of the folder would be wrong without this file, and is right with it."""
    texts = _texts(folder)
    left = {name: text for name, text in texts.items() if name != file}
    return _new(_linked(left)[1], texts)


def neighbours(files: Iterable[Path]) -> list[PolicyDocument]:
    """What else is in the folders of these files, as far as it can be read."""
    given = {path.resolve() for path in files}
    folders = {path.resolve().parent for path in files}
    found = {name: text for folder in folders for name, text in _texts(folder).items()}
    parsed = (parse(text, name) for name, text in found.items() if Path(name) not in given)
    return [each.document for each in parsed if each.document is not None]


def by_name(name: str, folder: Path | None = None) -> PolicyDocument:
    """A shipped policy, or one of the folder, by its own name; its schedule with it.

    Raises NotFound. It opens nothing that the name may lead to.
    """
    known = {each.name: each for each in _shipped()}
    if name not in known and folder is not None:
        ours, _ = _linked(_texts(folder))
        known |= {each.name: each for each in ours.values()}
    if name not in known:
        raise NotFound(f"no policy {name}", f"name a file, or one of {', '.join(known)}")
    return known[name]


def named(name: str, folder: Path | None = None) -> PolicyDocument:
    """The same, or a file, for whoever may read it. Raises NotFound, ConfigError."""
    try:
        return by_name(name, folder)
    except NotFound:
        if not Path(name).is_file():
            raise
    return of_file(Path(name))


def of_file(path: Path) -> PolicyDocument:
    """The policy of a file, with its neighbours. Raises ConfigError, NotFound."""
    parsed = parse(reader.read_policy(path), str(path))
    problems = parsed.problems
    if parsed.document is not None:
        linked = link([parsed.document], _shipped(), neighbours([path]))
        problems = (*problems, *linked.problems)
        if not problems:
            return linked.documents[0]
    raise ConfigError(str(problems[0]), f"see all of it: ebbgate check-policy {path}")


def in_force(names: Iterable[str], kind: Kind, folder: Path) -> PolicyDocument:
    """The policy that the files of the folder have now for a volume of these names.

    Raises ConfigError where they are not right: then an older state of them is followed.
    """
    documents, problems = _linked(_texts(folder))
    if problems:
        raise ConfigError(str(problems[0]), "make it right first, or name a policy")
    return choose_by_name(documents.values(), names, kind)


def problem_document(problem: Diagnostic) -> dict[str, Any]:
    """A problem with its place; `line` and `column` from 1, null for what is not known."""
    key = f"{problem.key}: " if problem.key else ""
    return {
        "file": problem.file,
        "line": problem.place.line,
        "column": problem.place.column,
        "message": f"{key}{problem.what}",
        "expected": problem.expected or None,
        "nearest": problem.nearest or None,
    }


def _new(
    problems: Iterable[Diagnostic], texts: Mapping[str, str | bytes]
) -> tuple[Diagnostic, ...]:
    """Those that these texts do not have already."""
    # What is expected instead names what else is there, and so may differ.
    before = {(each.file, each.place, each.what) for each in _linked(texts)[1]}
    return tuple(each for each in problems if (each.file, each.place, each.what) not in before)


@cache
def _shipped() -> tuple[PolicyDocument, ...]:
    """They change with an installation only."""
    return reader.shipped()


def _linked(
    texts: Mapping[str, str | bytes],
) -> tuple[dict[str, PolicyDocument], tuple[Diagnostic, ...]]:
    """The right ones by file, each alone with its neighbours, and all problems."""
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
    """The policy files of the folder that can be read, by path, in their order."""
    found: dict[str, str | bytes] = {}
    try:
        paths = reader.policy_files(folder)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror}") from error
    for path in paths:
        try:
            found[str(path)] = reader.read_policy(path)
        except EbbgateError:
            continue
    reader.check_bounds(folder, {Path(path): len(text) for path, text in found.items()})
    return found
