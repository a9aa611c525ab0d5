# SPDX-License-Identifier: GPL-2.0-only
"""Opens the databases, for writing and for reading. I/O: SQLite.

WAL mode: readers never wait for the daemon and the daemon never waits for them.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ebbgate.errors import PermissionDenied, Unavailable
from ebbgate.store import access
from ebbgate.store.limits import LOG_BYTES
from ebbgate.store.migrations import NewerSchema, check_version, migrate, version
from ebbgate.store.schema import Schema

BUSY_TIMEOUT_S: Final = 5.0
"""Another writer's transaction takes milliseconds; a stuck one must be noticed, not waited for."""
READ_TIMEOUT_S: Final = 1.0
_RETRY_S: Final = 0.01
_START: Final = "start the daemon: systemctl start ebbgated"


NOT_UTF8: Final = "\ufffd"
"""Stands in a text for bytes that are not UTF-8 (`allow_any_text`)."""
_CODE_MASK: Final = 0xFF
"""SQLite's extended result codes have the plain one in the lowest byte."""
_OF_A_FULL_DISK: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_OF_THE_RECORD: Final = (
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_MISUSE,
)
_FULL_BYTES: Final = 64 * 1024
"""With less than this no database can be opened for writing."""


class NothingRecorded(Unavailable):
    """There is no history yet; not an error for a reader."""


class Damaged(Unavailable):
    """The file is damaged: opening it again will not help."""


def code_of(error: sqlite3.Error) -> int | None:
    """Return SQLite's plain result code; None for an error of Python's module."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _CODE_MASK


def is_damage(error: BaseException) -> bool:
    """Return whether an error means that the file itself is damaged."""
    if isinstance(error, sqlite3.Error):
        return code_of(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return isinstance(error, Damaged)


def is_record_error(error: sqlite3.Error) -> bool:
    """Return whether one record is at fault rather than the file."""
    code = code_of(error)
    return code is None or code in _OF_THE_RECORD


def open_writer(
    path: Path, schema: Schema, mode: int = access.READ_MODE, advice: str = ""
) -> sqlite3.Connection:
    """Open a database in autocommit mode, with the current schema; makes a missing file.

    `mode`: of a new file, see `store.access`. `advice`: the next step where the file cannot be
    used; by default, to move it away. Any thread may use the connection, one at a time.
    Raises PermissionDenied and Unavailable.
    """
    with _explained(path, advice):
        access.make_folder(path.parent)
        access.make_file(path, mode)
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            if not connection.execute("PRAGMA page_count").fetchone()[0]:
                # Cannot be switched on later without rebuilding the whole file.
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            _use_log(connection)
            connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            migrate(connection, schema, path.name)
        except BaseException:
            connection.close()
            raise
    connection.row_factory = sqlite3.Row
    return connection


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to WAL; here SQLite does not wait by itself for another program making the file."""
    until_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= until_s:
                raise
            time.sleep(_RETRY_S)
        else:
            return


def allow_any_text(connection: sqlite3.Connection) -> None:
    """Read bytes that are not UTF-8 as `NOT_UTF8`; by default such a value is an error."""
    connection.text_factory = lambda data: data.decode(errors="replace")


def identity_of(connection: sqlite3.Connection) -> int:
    """Return the random number that the file got when it was made (store.migrations)."""
    found: int = connection.execute("PRAGMA application_id").fetchone()[0]
    return found


def device_and_inode(path: Path) -> tuple[int, int] | None:
    """Return what identifies a file under any name; None where it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_reader(path: Path, schema: Schema, advice: str = "") -> sqlite3.Connection:
    """Open a database read-only. Raises NothingRecorded where the file does not exist yet."""
    with _explained(path, advice):
        if not _is_file(path):
            raise NothingRecorded(f"nothing was recorded yet: {path} does not exist", _START)
        connection = sqlite3.connect(_reading(path), uri=True, timeout=READ_TIMEOUT_S)
        try:
            connection.execute("PRAGMA query_only = ON")
            check_version(connection, schema, path.name)
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise NothingRecorded(f"{path} is empty", _START)
            if version(connection) < schema.version:
                raise Unavailable(
                    f"{path.name} has schema {version(connection)}, and {schema.version} is needed",
                    "start the daemon, which brings it up to date: systemctl start ebbgated",
                )
        except BaseException:
            connection.close()
            raise
    connection.row_factory = sqlite3.Row
    return connection


def set_busy_timeout(connection: sqlite3.Connection, timeout_s: float) -> None:
    """Set how long SQLite waits for a lock that another program holds."""
    connection.execute(f"PRAGMA busy_timeout = {round(timeout_s * 1000)}")


def fold_log(connection: sqlite3.Connection, timeout_s: float) -> bool:
    """Copy the log (WAL) into the file and truncate it.

    Returns False where another program reads an older state of the file for longer than
    `timeout_s`; the log then keeps its length. Raises sqlite3.Error.
    """
    before_ms: int = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    set_busy_timeout(connection, timeout_s)
    try:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if code_of(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise
        return False
    finally:
        set_busy_timeout(connection, before_ms / 1000)
    return not busy


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run the body in one transaction that takes the write lock at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def durable(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run the body in one transaction that survives a power cut.

    WAL with `synchronous=NORMAL` may lose the last transactions in a power cut, which is acceptable
    for samples; `FULL` adds the fsync that settings of a person need.
    """
    connection.execute("PRAGMA synchronous = FULL")
    try:
        with transaction(connection):
            yield connection
    finally:
        connection.execute("PRAGMA synchronous = NORMAL")


def _reading(path: Path) -> str:
    """Return the URI for reading a file that another program may be writing."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    # A reader without write access cannot create the log; `immutable` tells SQLite that it needs
    # none, which is true while no program has the file open. A daemon that starts at this moment
    # spoils one answer at most.
    made = os.access(path.parent, os.W_OK) or Path(f"{path}-wal").exists()
    return uri if made else f"{uri}&immutable=1"


def _is_file(path: Path) -> bool:
    """Return whether the file exists; raises PermissionError where its folder may not be read."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _explained(path: Path, advice: str = "") -> Iterator[None]:
    """Turn errors of SQLite and the kernel into errors that name the next step."""
    away = f"move it away (mv {path} {path}.damaged) and restart ebbgated; its history is lost"
    try:
        yield
    except NewerSchema as error:
        if advice:
            error.hint = f"install the newer ebbgate again; {advice}"
        raise
    except PermissionError as error:
        raise PermissionDenied(f"no access to {path}", "run this as root") from error
    except OSError as error:
        raise Unavailable(
            f"{path}: {error.strerror}", "check that the folder can be used"
        ) from error
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "readonly" in text or "unable to open" in text:
            raise PermissionDenied(f"no access to {path} ({text})", "run this as root") from error
        if code_of(error) in _OF_A_FULL_DISK and _is_full(path.parent):
            hint = f"free space on the disk of {path.parent}"
            raise Unavailable(f"{path} cannot be used: its disk is full", hint) from error
        kind = Damaged if is_damage(error) else Unavailable
        raise kind(f"{path} cannot be used: {text}", advice or away) from error


def _is_full(folder: Path) -> bool:
    """Return whether a disk has no space left; SQLite reports that as an I/O error at times."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _FULL_BYTES
