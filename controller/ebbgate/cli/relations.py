# SPDX-License-Identifier: GPL-2.0-only
"""Options that name tables of databases, and the files of these tables. I/O: see `layout`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import click

from ebbgate.cli.context import Command
from ebbgate.layout import mysql, postgres
from ebbgate.layout.relation import Relation

_OPTIONS: Final = (
    click.option(
        "--relation",
        "relations",
        multiple=True,
        metavar="DB.TABLE",
        help="A table of PostgreSQL (also DB.SCHEMA.TABLE), with its partitions and TOAST tables.",
    ),
    click.option(
        "--postgres",
        "connection",
        default="",
        metavar="WORDS",
        help="How psql reaches PostgreSQL, such as 'host=/run/postgresql port=5433 user=me'; "
        "by default as the user postgres.",
    ),
    click.option(
        "--mysql-table",
        "mysql_tables",
        multiple=True,
        metavar="DB.TABLE",
        help="A table of MySQL or MariaDB, with its partitions.",
    ),
    click.option(
        "--mysql-options",
        default="",
        metavar="FILE",
        help="The file from which mysql takes user and password; by default root uses the socket.",
    ),
)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that the command line names, and how to reach their databases."""

    relations: tuple[str, ...] = ()
    connection: str = ""
    mysql_tables: tuple[str, ...] = ()
    mysql_options: str = ""

    def __bool__(self) -> bool:
        """Whether a table is named."""
        return bool(self.relations or self.mysql_tables)

    def each(self) -> Iterator[tuple[str, Callable[[], tuple[Relation, ...]]]]:
        """Yield each name, with what asks its database for its relations."""
        for name in self.relations:
            yield name, partial(postgres.relations, name, self.connection)
        for name in self.mysql_tables:
            yield name, partial(mysql.tables, name, self.mysql_options)


def table_options(command: Command) -> Command:
    """Add the options whose values `Tables` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
