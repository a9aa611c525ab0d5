# SPDX-License-Identifier: GPL-2.0-only
"""The command line that asks a PostgreSQL for its catalogue. Pure.

A superuser may ask, in a database that belongs to somebody else. Its owner can make functions,
operators and tables with names of the catalogue, which would then run with the superuser's rights
(CVE-2018-1058). So names are looked up in the catalogue alone, whatever the database has set, and
nothing can be written.
"""

from __future__ import annotations

import re
from typing import Final

_CATALOGUE_ONLY: Final = "BEGIN READ ONLY; SET LOCAL search_path = pg_catalog; "
"""The end of the connection ends the transaction: psql before 15 prints only the last result, and
behind a pooler the setting must not stay.
"""
RELATION_NAME: Final = """
CASE WHEN relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname = 'public')
THEN quote_ident(relname) ELSE pg_class.oid::regclass::text END"""
"""Of a row of pg_class: with its schema, unless that is `public`."""


def psql_command(
    connection: str, database: str, query: str, connect_timeout_s: int
) -> tuple[str, ...]:
    """Return the command. `connection`: words such as `host=... port=...`, or empty."""
    quoted = re.sub(r"(['\\])", r"\\\1", database)
    target = f"{connection} dbname='{quoted}' connect_timeout={connect_timeout_s}".strip()
    options = ("-X", "-w", "-q", "-A", "-t")
    return ("psql", *options, "-d", target, "-c", _CATALOGUE_ONLY + query.strip())
