# SPDX-License-Identifier: GPL-2.0-only
"""`check-policy`: checks policy files. I/O: reads policy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ebbgate.cli.context import Context, Document, print_json, with_context
from ebbgate.errors import ConfigError
from ebbgate.policy.defaults import STRATEGIES
from ebbgate.policy.language.diagnostic import Diagnostic
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.link import link
from ebbgate.policy.language.parse import parse
from ebbgate.policy_files import reader
from ebbgate.policy_files.validation import neighbours
from ebbgate.text import clean_lines


@click.command("check-policy")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@with_context
def check_policy(context: Context, files: tuple[Path, ...]) -> None:
    """Check each policy FILE; print a summary, or all errors by line.

    Policies that FILE includes or uses are checked too; they may be shipped ones or other files in
    its folder. Changes nothing and needs no daemon.
    """
    parsed = [parse(reader.read_policy(path), str(path)) for path in files]
    documents = [each.document for each in parsed if each.document is not None]
    linked = link(documents, reader.shipped(), neighbours(files))
    problems = (*(problem for each in parsed for problem in each.problems), *linked.problems)
    good = [_document(each) for each in linked.documents]
    if context.json:
        print_json({"policies": good, "problems": [_problem(each) for each in problems]})
    else:
        # Not wrapped: editors expect `FILE:LINE:COLUMN:` at the start of a line.
        click.echo(clean_lines("\n".join([*map(_line, good), *map(str, problems)])))
    if problems:
        wrong = len({problem.file for problem in problems})
        errors = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
        raise ConfigError(
            f"{errors} in {wrong} of {len(files)} policy files",
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
        "text": str(problem),
    }


def _line(policy: Document) -> str:
    volumes = " or ".join(policy["volumes"]) or "every volume"
    kinds = f" of {' or '.join(policy['kinds'])}" if policy["kinds"] else ""
    strategies = ", ".join(policy["strategies"]) or "no strategy"
    rules = f"rules {', '.join(policy['rules'])}" if policy["rules"] else "no rules"
    times = f"; schedule {', '.join(policy['schedule'])}" if policy["schedule"] else ""
    return f"{policy['file']}: {policy['name']}: {volumes}{kinds}; {strategies}; {rules}{times}"
