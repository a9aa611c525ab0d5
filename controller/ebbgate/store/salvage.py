# SPDX-License-Identifier: GPL-2.0-only
"""Detects a damaged history file, moves it aside and starts a new one. I/O: SQLite, renames."""

from __future__ import annotations

import logging
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import Final

from ebbgate.log_messages.history import HISTORY_DAMAGED, HISTORY_PARTLY_CHECKED
from ebbgate.store.connection import Damaged, is_damage
from ebbgate.store.db import Store

_LOG = logging.getLogger(__name__)
_KEPT: Final = 3
"""Damaged files to keep for analysis; a bad disk produces one after another."""
_OF_THE_LOG: Final = ("-wal", "-shm")
PARTS: Final = ("", *_OF_THE_LOG)
"""The suffixes of the files of one SQLite database."""


def open_or_renew(path: Path) -> Store:
    """Open the history for writing; replaces a damaged one.

    Raises what Store.open raises, OSError and sqlite3.Error.
    """
    finish_renewal(path)
    try:
        store = Store.open(path)
        try:
            store.look()
        except BaseException:
            store.close()
            raise
    except (Damaged, sqlite3.DatabaseError) as error:
        if not is_damage(error):
            raise
        return renew(path, str(getattr(error, "message", error)))
    return store


def renew(path: Path, why: str) -> Store:
    """Move the file aside and start a new one.

    Raises the same errors; then the old file is still in place.
    """
    begun = prepare_new_file(path)
    # Closing checkpoints the log into the file, so that there is one file to rename.
    Store.open(begun).close()
    aside = replace_file(begun, path)
    _LOG.error(HISTORY_DAMAGED, why, aside)
    return Store.open(path)


def find_damage(store: Store, patience_s: float) -> str:
    """Return the first fault that `PRAGMA quick_check` finds; empty for a sound file.

    The check stops after `patience_s`; damage beyond that shows when it is used.
    """
    timer = Timer(patience_s, store.interrupt)
    timer.daemon = True
    timer.start()
    try:
        found = store.quick_check()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            raise
        _LOG.info(HISTORY_PARTLY_CHECKED, patience_s)
        return ""
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return str(error)
    finally:
        timer.cancel()
    return "" if found == "ok" else found


# ---- of any database -----------------------------------------------------------------------------
def prepare_new_file(path: Path) -> Path:
    """Return the name of the file that will replace a damaged one; removes an earlier attempt."""
    begun = _begun(path)
    for part in PARTS:
        begun.with_name(begun.name + part).unlink(missing_ok=True)
    return begun


def replace_file(begun: Path, path: Path) -> Path:
    """Move the damaged file aside and the new one to its place; return the damaged one's name."""
    aside = move_aside(path)
    begun.rename(path)
    return aside


def finish_renewal(path: Path) -> None:
    """Complete a `replace_file` that was interrupted between its two renames."""
    begun = _begun(path)
    if begun.exists() and not path.exists():
        # SQLite would apply a log that was not moved aside to the new file.
        for part in _OF_THE_LOG:
            path.with_name(path.name + part).unlink(missing_ok=True)
        begun.rename(path)


def move_aside(path: Path) -> Path:
    """Rename the file and its log; return the new name. Raises OSError."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    for part in PARTS:
        source = path.with_name(path.name + part)
        if source.exists():
            source.rename(aside.with_name(aside.name + part))
    _forget_older(path)
    return aside


def _begun(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _forget_older(path: Path) -> None:
    aside = [
        each
        for each in path.parent.glob(f"{path.name}.damaged-*")
        if not each.name.endswith(_OF_THE_LOG)
    ]
    for old in sorted(aside, key=lambda each: each.stat().st_ctime_ns)[:-_KEPT]:
        for part in PARTS:
            old.with_name(old.name + part).unlink(missing_ok=True)
