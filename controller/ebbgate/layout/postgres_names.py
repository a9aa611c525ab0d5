# SPDX-License-Identifier: GPL-2.0-only
"""Names the relation of a file of PostgreSQL. I/O: psql; files, reads only; the clock.

The name is only for people and for grouping: without an answer of the server a relation is called
by its first file. Indexes are relations of their own. A file in a tablespace is
`TABLESPACE/PG_15_202209061/DATABASE/FILE`; which server it belongs to is only known where
TABLESPACE is the link to it in the data folder (`pg_tblspc/OID`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ebbgate.errors import Unavailable
from ebbgate.kernel.run import Completed, run
from ebbgate.layout.psql import RELATION_NAME, psql_command
from ebbgate.layout.small_file import read_begin

_FILE: Final = re.compile(r"(\d+)(_fsm|_vm|_init)?(\.\d+)?")
"""Relation, fork, segment of 1 GiB."""
_DATABASE: Final = re.compile(r"\d+")
_OF_VERSION: Final = re.compile(r"PG_[\w.]+_\d+")
"""The folder of a server in a tablespace."""
_PID_LINES: Final = 5
_PID_BYTES_MAX: Final = 4096
_PORT_LINE: Final = 3
_SOCKET_LINE: Final = 4
_TIMEOUT_S: Final = 5.0
_ALL_S: Final = 10.0
"""For all servers together: anybody may run one that does not answer."""
_CONNECT_TIMEOUT_S: Final = 2
_DATABASES: Final = "SELECT json_object_agg(oid, datname) FROM pg_database WHERE datallowconn"
_RELATIONS: Final = f"""
SELECT json_object_agg(pg_relation_filepath(oid::regclass), {RELATION_NAME})
FROM pg_class WHERE pg_relation_filepath(oid::regclass) IS NOT NULL"""
"""By the path in the data folder: numbers of files repeat in other tablespaces."""
_NO_PASSWORD: Final = "passfile=/nonexistent"
"""Anybody may make a folder that looks like a server's, and listen: no password of root's own file
(~/.pgpass) must go there. psql is let in without one, or not at all.
"""
_AS_POSTGRES: Final = ("runuser", "-u", "postgres", "--")

Run = Callable[..., Completed]
Names = Mapping[str, str]


@dataclass(slots=True)
class _Server:
    """The server of a data folder. `prefix`: the words before psql that it lets in; None: none.

    `answers`: False once it did not in time. `relations`: names by the path of the first file, by
    the number of the database.
    """

    place: str
    prefix: tuple[str, ...] | None = None
    answers: bool = True
    databases: Names = field(default_factory=dict)
    relations: dict[str, Names] = field(default_factory=dict)


class RelationNames:
    """Asks each server once for each of its databases.

    Once that has taken too long, files have their paths as names.
    """

    def __init__(self, run_program: Run = run) -> None:
        self._run = run_program
        self._left_s = _ALL_S
        self._servers: dict[Path, _Server] = {}

    def name_of(self, path: Path) -> str:
        """Return `DATABASE.TABLE`, or the path of any other file."""
        found, place = _FILE.fullmatch(path.name), path.parent.parent
        if not found or not _DATABASE.fullmatch(path.parent.name):
            return str(path)
        first = path.with_name(found[1])
        if place.name == "base":
            return self._known(place.parent, first) or str(first)
        if not _OF_VERSION.fullmatch(place.name):
            return str(path)
        links = place.parent.parent
        known = self._known(links.parent, first) if links.name == "pg_tblspc" else ""
        return known or str(first)

    def _known(self, folder: Path, first: Path) -> str:
        """Return the name by the server of a data folder; empty if it has none."""
        if folder not in self._servers:
            self._servers[folder] = self._connected(folder)
        server, database = self._servers[folder], first.parent.name
        relation = self._relations(server, database).get(str(first.relative_to(folder)))
        return f"{server.databases[database]}.{relation}" if relation else ""

    def _connected(self, folder: Path) -> _Server:
        """Find out as which user the server can be asked: the own one, or postgres."""
        server = _Server(_place(folder))
        for prefix in ((), _AS_POSTGRES) if server.place else ():
            if not server.answers:
                break
            server.prefix = prefix
            if databases := self._asked(server, "postgres", _DATABASES):
                server.databases = databases
                return server
        server.prefix = None
        return server

    def _relations(self, server: _Server, database: str) -> Names:
        if server.prefix is None or database not in server.databases:
            return {}
        if database not in server.relations:
            name = server.databases[database]
            server.relations[database] = self._asked(server, name, _RELATIONS)
        return server.relations[database]

    def _asked(self, server: _Server, database: str, query: str) -> Names:
        if self._left_s <= 0 or not server.answers:
            return {}
        psql = psql_command(server.place, database, query, _CONNECT_TIMEOUT_S)
        timeout_s, began_s = min(_TIMEOUT_S, self._left_s), time.monotonic()
        try:
            done = self._run((*(server.prefix or ()), *psql), timeout_s=timeout_s, check=False)
            found = json.loads(done.stdout) if done.exit_code == 0 else {}
        except Unavailable:
            server.answers = False
            return {}
        except (ValueError, RecursionError):
            return {}
        finally:
            self._left_s -= time.monotonic() - began_s
        if not isinstance(found, dict):
            return {}
        return {number: name for number, name in found.items() if isinstance(name, str)}


def _place(folder: Path) -> str:
    """Return where the server of a data folder listens, by its lock file; empty without one."""
    try:
        found = read_begin(folder / "postmaster.pid", _PID_BYTES_MAX)
    except OSError:
        return ""
    lines = found.decode(errors="replace").splitlines()
    if len(lines) < _PID_LINES:
        return ""
    port, socket = lines[_PORT_LINE].strip(), lines[_SOCKET_LINE].strip()
    if not port.isdigit() or not socket.startswith("/") or re.search(r"['\\]", socket):
        return ""
    return f"host='{socket}' port={port} {_NO_PASSWORD}{_peer(folder)}"


def _peer(folder: Path) -> str:
    """Return that the server must run as the owner of its data folder, if that has a name."""
    try:
        owner = folder.owner()
    except (OSError, KeyError):
        return ""
    return "" if re.search(r"['\\]", owner) else f" requirepeer='{owner}'"
