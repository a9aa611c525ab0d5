# SPDX-License-Identifier: GPL-2.0-only
"""A table or index of a database, and its files. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ebbgate.errors import UsageError
from ebbgate.kernel.run import Completed
from ebbgate.text import clean_text

_WHY_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, an index or the like, and the files of its data."""

    name: str
    kind: str
    files: tuple[Path, ...]


def split_name(asked: str) -> tuple[str, str]:
    """Return database and table of `DB.TABLE`. Raises UsageError."""
    database, _, table = asked.partition(".")
    if not database or not table or "\0" in asked:
        raise UsageError(f"not a table: {asked}", "write DATABASE.TABLE, such as shop.orders")
    return database, table


def last_line(done: Completed) -> str:
    """Return the last line of what a client says of its failure."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return clean_text(lines[-1] if lines else f"exit code {done.exit_code}", _WHY_CHARS_MAX)
