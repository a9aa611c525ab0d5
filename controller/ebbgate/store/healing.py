# SPDX-License-Identifier: GPL-2.0-only
"""A history file that is damaged: found out, moved aside, begun anew. I/O: SQLite, renames.

Originals that are not back yet are read out of it as far as they can be: without them a knob could
not be put back.
"""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import Final

from ebbgate.model.decision import JournalEntry
from ebbgate.store import journal
from ebbgate.store.connection import Damaged, is_damage
from ebbgate.store.db import Store

_LOG = logging.getLogger(__name__)
_KEPT: Final = 3
"""Damaged files that are kept for whoever wants to know why: a bad disk makes one after another."""
_PARTS: Final = ("", "-wal", "-shm")


def open_healed(path: Path) -> Store:
    """The history, open for writing, a new one where the old one is damaged.

    Raises what Store.open raises, OSError and sqlite3.Error.
    """
    begun = _begun(path)
    if begun.exists() and not path.exists():
        # A crash came between the two renames.
        begun.rename(path)
    try:
        store = Store.open(path)
        try:
            store.journal_open()
        except BaseException:
            store.close()
            raise
    except (Damaged, sqlite3.DatabaseError) as error:
        if not is_damage(error):
            raise
        return renew(path, str(getattr(error, "message", error)))
    return store


def renew(path: Path, why: str) -> Store:
    """Move the file aside and begin a new one with the originals that are not back.

    The same errors; then the old file is where it was, since the new one was not whole.
    """
    entries, _ = salvage(path)
    begun = _begun(path)
    for part in _PARTS:
        begun.with_name(begun.name + part).unlink(missing_ok=True)
    store = Store.open(begun)
    try:
        for entry in entries:
            store.journal_put(entry)
    finally:
        # Folds the log into the file: there is one file to rename.
        store.close()
    aside = set_aside(path)
    begun.rename(path)
    _LOG.error(
        "the history is damaged (%s): moved to %s; a new one is begun with %d originals of knobs",
        why,
        aside,
        len(entries),
    )
    return Store.open(path)


def complaint(store: Store, patience_s: float) -> str:
    """What `PRAGMA quick_check` finds first; empty for a sound file.

    It reads the whole file: what takes longer than `patience_s` is not looked at, and a damage
    there shows when it is used.
    """
    timer = Timer(patience_s, store.interrupt)
    timer.daemon = True
    timer.start()
    try:
        found = store.quick_check()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            raise
        _LOG.info("the history is large: not all of it was checked in %g s", patience_s)
        return ""
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return str(error)
    finally:
        timer.cancel()
    return "" if found == "ok" else found


def salvage(path: Path) -> tuple[list[JournalEntry], bool]:
    """Originals that are not back yet, of every boot, and whether all could be read.

    With the log (WAL) first; without it where that cannot be read. What comes before a damage is
    read from the front, what comes after it from the back.
    """
    if not path.exists():
        return [], True
    found: dict[int, JournalEntry] = {}
    for query in ("mode=ro", "mode=ro&immutable=1"):
        whole = True
        for order in ("ASC", "DESC"):
            whole = _read_into(found, f"{path.absolute().as_uri()}?{query}", order)
            if whole:
                return list(found.values()), True
    return [found[number] for number in sorted(found)], False


def set_aside(path: Path) -> Path:
    """Rename the file and its log; returns the new name. Raises OSError."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    for part in _PARTS:
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
        if not each.name.endswith(("-wal", "-shm"))
    ]
    for old in sorted(aside, key=lambda each: each.stat().st_ctime_ns)[:-_KEPT]:
        for part in _PARTS:
            old.with_name(old.name + part).unlink(missing_ok=True)


def _read_into(found: dict[int, JournalEntry], uri: str, order: str) -> bool:
    """Add what can be read; True where nothing was in the way."""
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=1.0)) as connection:
            connection.row_factory = sqlite3.Row
            # Without it a file that is shorter than it says of itself is not looked into at all.
            connection.execute("PRAGMA writable_schema = ON")
            for number, entry in journal.scan(connection, order):
                found.setdefault(number, entry)
    except (sqlite3.Error, TypeError, ValueError):
        return False
    return True
