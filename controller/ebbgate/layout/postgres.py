# SPDX-License-Identifier: GPL-2.0-only
"""Finds the files of a PostgreSQL relation, by its catalogue. I/O: psql; files, reads only."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ebbgate.errors import NotFound, PermissionDenied, Unavailable, UsageError
from ebbgate.kernel.run import Completed, run
from ebbgate.layout.psql import RELATION_NAME, psql_command
from ebbgate.layout.relation import Relation, last_line, split_name
from ebbgate.text import clean_text

_TIMEOUT_S: Final = 20.0
_CONNECT_TIMEOUT_S: Final = 10
_NOT_CONNECTED: Final = 2
"""psql's exit code."""
_AS_IN_SQL: Final = (
    """put a name with capitals or other signs in quotes, as in SQL: 'shop."My-Orders"'"""
)
_FILE: Final = re.compile(r"(base|global|pg_tblspc)(/[A-Za-z0-9_]+)+")
_SEGMENTS_MAX: Final = 1 << 15
"""Of 1 GiB: the largest relation has 32 TiB."""
_KINDS: Final = {
    "r": "table",
    "m": "materialized view",
    "i": "index",
    "t": "TOAST table",
    "S": "sequence",
}
# The table with its partitions, their TOAST tables, and the indexes of all. A setting that this
# user may not read is missing in pg_settings, where current_setting() would fail. The name goes in
# as hexadecimal digits, so that no quoting is needed.
_QUERY: Final = """
WITH written AS (SELECT convert_from(decode('{name}', 'hex'), 'UTF8') AS name),
asked AS (SELECT to_regclass(CASE WHEN array_length(parse_ident(name), 1) = 1
                             THEN 'public.' || name ELSE name END) AS oid FROM written),
tables AS (SELECT oid FROM asked UNION SELECT relid FROM asked, pg_partition_tree(asked.oid)),
parts AS (SELECT oid FROM tables UNION
          SELECT reltoastrelid FROM pg_class JOIN tables USING (oid) WHERE reltoastrelid <> 0),
whole AS (SELECT oid FROM parts UNION
          SELECT indexrelid FROM pg_index JOIN parts ON indrelid = parts.oid)
SELECT json_build_object(
  'known', (SELECT oid IS NOT NULL FROM asked),
  'folder', (SELECT setting FROM pg_settings WHERE name = 'data_directory'),
  'relations', (SELECT coalesce(json_agg(json_build_object(
      'name', {relation}, 'kind', relkind, 'file', pg_relation_filepath(oid::regclass))
      ORDER BY oid), '[]'::json)
    FROM whole JOIN pg_class USING (oid)
    WHERE pg_relation_filepath(oid::regclass) IS NOT NULL))
"""

Run = Callable[..., Completed]


def relations(asked: str, connection: str = "", run_program: Run = run) -> tuple[Relation, ...]:
    """Return the relation `DB.TABLE` or `DB.SCHEMA.TABLE` with its partitions, TOAST and indexes.

    Without a schema it is one of `public`. `connection`: `host=... user=...`; without it, root asks
    as the user postgres. Raises EbbgateError with the next step.
    """
    database, table = split_name(asked)
    if "://" in connection:
        raise UsageError("a connection is given by words", "such as 'host=/run/postgresql user=me'")
    query = _QUERY.format(name=table.encode().hex(), relation=RELATION_NAME)
    done = run_program(_command(database, connection, query), timeout_s=_TIMEOUT_S, check=False)
    if done.exit_code:
        raise _refused(done, database)
    return _parsed(asked, done.stdout)


def _command(database: str, connection: str, query: str) -> Sequence[str]:
    psql = psql_command(connection, database, query, _CONNECT_TIMEOUT_S)
    as_postgres = not connection and os.geteuid() == 0
    return ("runuser", "-u", "postgres", "--", *psql) if as_postgres else psql


def _refused(done: Completed, database: str) -> Unavailable:
    why = last_line(done)
    if done.exit_code == _NOT_CONNECTED:
        return Unavailable(
            f"PostgreSQL cannot be asked about {database}: {why}",
            "start it, or say how to reach it: --postgres 'host=... port=... user=...'",
        )
    hint = f"{_AS_IN_SQL}; PostgreSQL 12 or newer is needed"
    return Unavailable(f"PostgreSQL refuses the query: {why}", hint)


def _parsed(asked: str, text: str) -> tuple[Relation, ...]:
    """Check what the server says: it is another program, and its paths are used by root."""
    try:
        document = json.loads(text)
        known, folder = document["known"], document["folder"]
        rows = [(row["name"], row["kind"], row["file"]) for row in document["relations"]]
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(
            "PostgreSQL's answer cannot be read", "is psql from PostgreSQL?"
        ) from error
    if known is not True:
        hint = f"write DATABASE.SCHEMA.TABLE if need be; {_AS_IN_SQL}"
        raise NotFound(f"no such relation: {asked}", hint)
    if not isinstance(folder, str):
        raise PermissionDenied(
            "this user of PostgreSQL may not see where the data is",
            "GRANT pg_read_all_settings TO it, or run this as root or postgres",
        )
    try:
        if not (Path(folder) / "PG_VERSION").is_file():
            raise Unavailable(
                f"PostgreSQL's folder is not on this machine: {clean_text(folder, 200)}",
                "run this where the server runs; for one in a container name the files themselves",
            )
        return tuple(_relation(Path(folder), row) for row in rows)
    except PermissionError as error:
        why = f"PostgreSQL's files cannot be listed: {clean_text(folder, 200)}"
        raise PermissionDenied(why, "run this as root") from error


def _relation(folder: Path, row: Sequence[object]) -> Relation:
    name, kind, file = row
    if not (isinstance(name, str) and isinstance(file, str) and _FILE.fullmatch(file)):
        raise Unavailable(f"PostgreSQL names a file that is none of its own: {str(file)[:80]!r}")
    first = folder / file
    files = [first]
    for number in range(1, _SEGMENTS_MAX):
        segment = first.with_name(f"{first.name}.{number}")
        if not segment.exists():
            break
        files.append(segment)
    return Relation(clean_text(name, 200), _KINDS.get(str(kind), "relation"), tuple(files))
