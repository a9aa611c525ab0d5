# SPDX-License-Identifier: GPL-2.0-only
"""A policy that a person names: a shipped one, or a file. I/O: reads policy files."""

from __future__ import annotations

from pathlib import Path

from ebbgate import policy_files
from ebbgate.errors import ConfigError, NotFound
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.link import link
from ebbgate.policy.language.parse import parse


def named(name: str) -> PolicyDocument:
    """The policy; its schedule is left out, since a recording has no hour.

    Raises NotFound for what is neither shipped nor a file, ConfigError for a file that is not
    right.
    """
    shipped = policy_files.shipped()
    for document in shipped:
        if document.name == name:
            return document
    path = Path(name)
    if not path.exists():
        known = ", ".join(document.name for document in shipped)
        raise NotFound(f"no policy {name}", f"name a file, or one of {known}")
    parsed = parse(policy_files.read_policy(path), name)
    problems = parsed.problems
    if parsed.document is not None:
        linked = link([parsed.document], shipped)
        problems = (*problems, *linked.problems)
        if not problems:
            return linked.documents[0]
    raise ConfigError(str(problems[0]), f"see all of it: ebbgate check-policy {name}")
