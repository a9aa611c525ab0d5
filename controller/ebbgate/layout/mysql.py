# SPDX-License-Identifier: GPL-2.0-only
"""Finds the files of a table of MySQL or MariaDB. I/O: their client; files, reads only.

For each file in another folder (DATA DIRECTORY) MariaDB and MySQL 5.7 keep an .isl file. MySQL 8.0
and newer keep none, but list all files in information_schema.FILES. That table is empty in MariaDB,
and has only open files in MySQL 5.7.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ebbgate.errors import NotFound, PermissionDenied, Unavailable
from ebbgate.kernel.run import Completed, run
from ebbgate.layout.relation import Relation, last_line, split_name
from ebbgate.layout.small_file import read_begin
from ebbgate.text import clean_text

_CLIENTS: Final = ("mysql", "mariadb")
"""The first one that is installed. Of MariaDB 11 and newer the old name is in a package of its own
(mariadb-client-compat).
"""
_TIMEOUT_S: Final = 20.0
_DATA: Final = (".ibd", ".MYD", ".MYI", ".MAD", ".MAI")
"""InnoDB, MyISAM and Aria."""
_LINK: Final = ".isl"
"""Names the place of an .ibd in another folder."""
_LINK_BYTES_MAX: Final = 4096
_BY_NAME: Final = "name the file itself"
_FILES: Final = """/*!80000 SELECT HEX(FILE_NAME) FROM information_schema.FILES
WHERE TABLESPACE_NAME LIKE '%/%' AND HEX(
SUBSTRING_INDEX(SUBSTRING_INDEX(SUBSTRING_INDEX(FILE_NAME, '/', -2), '.', 1), '#', 1)) = '{}' */"""
"""The files of a table, which other servers than MySQL 8.0 and newer take for a comment.

A file is DATABASE/TABLE.ibd or DATABASE/TABLE#p#PARTITION.ibd, with the names as `_encoded` has
them; the name of a general tablespace has no `/`. HEX compares bytes, without a collation, and
leaves nothing to be quoted.
"""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_]")

Run = Callable[..., Completed]


def tables(asked: str, options_file: str = "", run_program: Run = run) -> tuple[Relation, ...]:
    """Return the table `DB.TABLE` with its partitions.

    `options_file`: of the client, with user and password; without it, root asks by the socket.
    Raises EbbgateError with the next step.
    """
    database, table = split_name(asked)
    server = _Server(options_file, run_program)
    data = server.data_folder()
    folder = data / _encoded(database)
    try:
        if not folder.is_dir():
            raise NotFound(f"no such database: {database}", f"looked for {folder}")
        elsewhere = server.files(data, f"{folder.name}/{_encoded(table)}")
        files = tuple(sorted({*_files(folder, _encoded(table)), *elsewhere}))
    except PermissionError as error:
        raise PermissionDenied(f"{folder} cannot be listed", "run this as root") from error
    except OSError as error:
        raise Unavailable(f"{error.filename} cannot be read: {error.strerror}", _BY_NAME) from error
    if not files:
        raise NotFound(
            f"{asked} has no file of its own",
            f"check the name; a table in a shared tablespace is in {data}/ibdata1, or it has a "
            "general tablespace or a DATA DIRECTORY: name that file itself",
        )
    return (Relation(asked, "table", files),)


class _Server:
    """Asks the server. `options_file`: as for `tables`."""

    def __init__(self, options_file: str, run_program: Run) -> None:
        self._options = [f"--defaults-extra-file={options_file}"] if options_file else []
        self._client = next(filter(shutil.which, _CLIENTS), _CLIENTS[0])
        self._run = run_program

    def data_folder(self) -> Path:
        """Return the folder of its data. Raises Unavailable if it is not on this machine."""
        done = self._ask("SELECT @@datadir")
        if done.exit_code:
            raise Unavailable(
                f"MySQL cannot be asked: {last_line(done)}",
                "start it, or say how to reach it: --mysql-options FILE, as for mysql "
                "--defaults-extra-file",
            )
        folder = Path(done.stdout.strip())
        if not folder.is_absolute() or not (folder / "mysql").is_dir():
            raise Unavailable(
                f"MySQL's folder is not on this machine: {clean_text(str(folder), 200)}",
                "run this where the server runs; for one in a container name the files themselves",
            )
        return folder

    def files(self, data: Path, table: str) -> list[Path]:
        """Return the files of `DATABASE/TABLE` that it tells of. Raises Unavailable.

        Without its answer files in other folders would be left out.
        """
        done = self._ask(_FILES.format(table.encode().hex().upper()))
        if done.exit_code:
            raise Unavailable(
                f"MySQL does not tell where the files of {table} are: {last_line(done)}",
                "the user needs the privilege PROCESS: GRANT PROCESS ON *.* TO ...",
            )
        return [data / os.fsdecode(bytes.fromhex(line)) for line in done.stdout.split()]

    def _ask(self, query: str) -> Completed:
        words = ["--batch", "--skip-column-names", "--connect-timeout=10", "-e", query]
        return self._run([self._client, *self._options, *words], timeout_s=_TIMEOUT_S, check=False)


def _files(folder: Path, table: str) -> Iterator[Path]:
    own = glob.escape(table)
    for pattern in (own, f"{own}#[pP]#*"):
        for ending in _DATA:
            yield from folder.glob(pattern + ending)
        for link in folder.glob(pattern + _LINK):
            found = read_begin(link, _LINK_BYTES_MAX)
            yield Path(found.decode(errors="replace").strip())


def _encoded(name: str) -> str:
    """As the server names files (tablename_to_filename): `@0024` for `$`.

    Some letters beyond ASCII have a shorter code. Raises Unavailable for them.
    """
    if not name.isascii():
        raise Unavailable(f"the file of {name} is not known by its name", _BY_NAME)
    return "".join(each if _PLAIN.match(each) else f"@{ord(each):04x}" for each in name)
