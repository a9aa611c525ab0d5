# SPDX-License-Identifier: GPL-2.0-only
"""Finds the files of a table of MySQL or MariaDB. I/O: the client `mysql`; files, reads only."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ebbgate.errors import NotFound, PermissionDenied, Unavailable
from ebbgate.kernel.run import Completed, run
from ebbgate.layout.relation import Relation, last_line, split_name
from ebbgate.layout.small_file import read_begin
from ebbgate.text import clean_text

_TIMEOUT_S: Final = 20.0
_DATA: Final = (".ibd", ".MYD", ".MYI", ".MAD", ".MAI")
"""InnoDB, MyISAM and Aria."""
_LINK: Final = ".isl"
"""Names the place of an .ibd in another folder (DATA DIRECTORY)."""
_LINK_BYTES_MAX: Final = 4096
_BY_NAME: Final = "name the file itself"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_]")

Run = Callable[..., Completed]


def tables(asked: str, options_file: str = "", run_program: Run = run) -> tuple[Relation, ...]:
    """Return the table `DB.TABLE` with its partitions.

    `options_file`: of the client, with user and password; without it, root asks by the socket.
    Raises EbbgateError with the next step.
    """
    database, table = split_name(asked)
    folder = _data_folder(options_file, run_program) / _encoded(database)
    try:
        if not folder.is_dir():
            raise NotFound(f"no such database: {database}", f"looked for {folder}")
        files = tuple(sorted(set(_files(folder, _encoded(table)))))
    except PermissionError as error:
        raise PermissionDenied(f"{folder} cannot be listed", "run this as root") from error
    except OSError as error:
        raise Unavailable(f"{error.filename} cannot be read: {error.strerror}", _BY_NAME) from error
    if not files:
        raise NotFound(
            f"{asked} has no file of its own",
            f"check the name; a table in a shared tablespace is in {folder.parent}/ibdata1",
        )
    return (Relation(asked, "table", files),)


def _data_folder(options_file: str, run_program: Run) -> Path:
    options = [f"--defaults-extra-file={options_file}"] if options_file else []
    words = ["--batch", "--skip-column-names", "--connect-timeout=10", "-e", "SELECT @@datadir"]
    done = run_program(["mysql", *options, *words], timeout_s=_TIMEOUT_S, check=False)
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
