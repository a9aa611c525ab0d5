# SPDX-License-Identifier: GPL-2.0-only
"""`check-policy`: checks policy files. I/O: reads policy files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from ebbgate.cli.context import Context, Document, print_json, with_context
from ebbgate.config.settings import DEFAULT_POLICY_DIR
from ebbgate.errors import ConfigError, EbbgateError
from ebbgate.policy.defaults import STRATEGIES
from ebbgate.policy.language.diagnostic import Diagnostic
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.link import Linked, link, names_taken
from ebbgate.policy.language.parse import Parsed, parse
from ebbgate.policy_files import reader
from ebbgate.policy_files.validation import by_folder, neighbours
from ebbgate.text import clean_lines


@click.command("check-policy")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, readable=False),
    metavar="FILE...",
)
@with_context
def check_policy(context: Context, files: tuple[Path, ...]) -> None:
    """Check each policy FILE; print a summary, or all errors by line.

    A valid key without effect is named in a note, which is no error: it may be for another kind of
    cache than the policy, or have lost its effect in this version.

    Policies that FILE includes or uses are checked too; they may be shipped ones or other files in
    its folder, none of which may have its name. Files of different folders are different sets.
    Changes nothing and needs no daemon.

    With --json, for scripts: one document on the standard output, with all errors of all files.
    `exit_code` is that of the command: 0 if `valid`, 78 for an error in a policy, 66 for a missing
    file. `line` and `column` count from 1, and are null for a file or a folder that cannot be read.

    \b
      valid, exit_code
      policies[]: file, name, why, volumes, kinds, strategies, rules, schedule
      problems[]: file, line, column, key, message, next_step, text
      notes[]: the same, of keys without effect
    """
    folders = by_folder(files)
    parsed, unread = _parsed(path for folder in folders for path in folder)
    linked, closed = _all_linked(folders, parsed, _policy_dir(context))
    unread = {**unread, **closed}
    problems = [problem for each in parsed.values() for problem in each.problems]
    problems += [problem for each in linked for problem in each.problems]
    notes = [note for each in parsed.values() for note in each.notes]
    good = [_document(document) for each in linked for document in each.documents]
    error = next(iter(unread.values()), None) or _error(problems, sum(map(len, folders)))
    if context.json:
        unreadable = [_unreadable(str(path), each) for path, each in unread.items()]
        print_json(
            {
                "valid": error is None,
                "exit_code": 0 if error is None else error.exit_code,
                "policies": good,
                "problems": [*map(_problem, problems), *unreadable],
                "notes": [*map(_problem, notes)],
            }
        )
    else:
        # Not wrapped: editors expect `FILE:LINE:COLUMN:` at the start of a line.
        more = [each.message for each in unread.values() if each is not error]
        lines = [*map(_line, good), *map(str, (*problems, *notes)), *more]
        if lines:
            click.echo(clean_lines("\n".join(lines)))
    if error is not None:
        raise error


def _policy_dir(context: Context) -> Path:
    """Return the daemon's folder; the default one where the settings have an error."""
    try:
        return context.config.policy_dir
    except ConfigError:
        return DEFAULT_POLICY_DIR


def _all_linked(
    folders: Iterable[list[Path]], parsed: Mapping[Path, Parsed], policy_dir: Path
) -> tuple[list[Linked], dict[Path, EbbgateError]]:
    """Link the files of each folder; return also why the others of a folder cannot be read."""
    linked: list[Linked] = []
    closed: dict[Path, EbbgateError] = {}
    for folder in folders:
        try:
            linked.append(_linked(folder, parsed, policy_dir))
        except ConfigError as error:
            closed[folder[0].parent] = error
    return linked, closed


def _linked(folder: Iterable[Path], parsed: Mapping[Path, Parsed], policy_dir: Path) -> Linked:
    """Link the files of a folder that could be read. Raises ConfigError."""
    readable = [path for path in folder if path in parsed]
    found = [each for path in readable if (each := parsed[path].document) is not None]
    # The folder of one that cannot be read may not be readable either.
    others = neighbours(readable, found, policy_dir)
    linked = link(found, reader.shipped(), others)
    # A copy with another suffix, to be renamed over its original, may have the name of that one.
    counted = [each for each in found if Path(each.file).suffix in reader.SUFFIXES]
    taken = tuple(names_taken(counted, others))
    return Linked((), (*linked.problems, *taken)) if taken else linked


def _parsed(files: Iterable[Path]) -> tuple[dict[Path, Parsed], dict[Path, EbbgateError]]:
    """Return the parsed files, and why the others cannot be read."""
    parsed: dict[Path, Parsed] = {}
    unread: dict[Path, EbbgateError] = {}
    for path in files:
        try:
            parsed[path] = parse(reader.read_policy(path), str(path))
        except EbbgateError as error:
            unread[path] = error
    return parsed, unread


def _error(problems: Collection[Diagnostic], count: int) -> ConfigError | None:
    """Return the error for problems in some of `count` files; None without any."""
    if not problems:
        return None
    wrong = len({problem.file for problem in problems})
    errors = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
    return ConfigError(
        f"{errors} in {wrong} of {count} policy files",
        "policies/README.md lists every key; a running daemon keeps its last valid policies",
    )


def _document(document: PolicyDocument) -> dict[str, Any]:
    uses = document.strategies
    return {
        "file": document.file,
        "name": document.name,
        "why": document.why,
        "volumes": list(document.match.volumes),
        "kinds": [str(kind) for kind in document.match.kinds],
        "strategies": list(STRATEGIES) if uses is None else [u.name for u in uses],
        "rules": [rule.name for rule in document.rules],
        "schedule": [entry.name for entry in document.schedule],
    }


def _problem(problem: Diagnostic) -> dict[str, Any]:
    return {
        "file": problem.file,
        "line": problem.position.line,
        "column": problem.position.column,
        "key": problem.key,
        "message": problem.what,
        "next_step": _next_step(problem),
        "text": str(problem),
    }


def _next_step(problem: Diagnostic) -> str:
    meant = f"did you mean {problem.nearest}?" if problem.nearest else ""
    return "; ".join(filter(None, (problem.expected, meant))) or "see ebbgate-policy(5)"


def _unreadable(file: str, error: EbbgateError) -> dict[str, Any]:
    nowhere = {"file": file, "line": None, "column": None, "key": ""}
    message = error.message.removeprefix(f"{file}: ")
    return {**nowhere, "message": message, "next_step": error.hint, "text": error.message}


def _line(policy: Document) -> str:
    volumes = " or ".join(policy["volumes"]) or "every volume"
    kinds = f" of {' or '.join(policy['kinds'])}" if policy["kinds"] else ""
    strategies = ", ".join(policy["strategies"]) or "no strategy"
    rules = f"rules {', '.join(policy['rules'])}" if policy["rules"] else "no rules"
    times = f"; schedule {', '.join(policy['schedule'])}" if policy["schedule"] else ""
    return f"{policy['file']}: {policy['name']}: {volumes}{kinds}; {strategies}; {rules}{times}"
