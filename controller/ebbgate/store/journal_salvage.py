# SPDX-License-Identifier: GPL-2.0-only
"""Reads the originals out of a damaged journal and starts a new file with them.

I/O: SQLite, renames. A knob without its original cannot be restored.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from ebbgate.log_messages.history import JOURNAL_DAMAGED
from ebbgate.model.decision import JournalEntry
from ebbgate.store import journal
from ebbgate.store import salvage as history_salvage
from ebbgate.store.connection import Damaged, is_damage
from ebbgate.store.journal import Journal

_LOG = logging.getLogger(__name__)


def open_or_renew(path: Path) -> Journal:
    """Open the journal for writing; replaces a damaged one.

    Raises what Journal.open raises, OSError and sqlite3.Error.
    """
    history_salvage.finish_renewal(path)
    try:
        opened = Journal.open(path)
    except Damaged as error:
        return renew(path, error.message)
    try:
        found = opened.quick_check()
        opened.entries()
    except BaseException as error:
        opened.close()
        if not is_damage(error):
            raise
        return renew(path, str(error))
    if found == "ok":
        return opened
    opened.close()
    return renew(path, found)


def renew(path: Path, why: str, known: Iterable[JournalEntry] = ()) -> Journal:
    """Move the file aside and start a new one with its originals and the `known` ones.

    Raises OSError, EbbgateError and sqlite3.Error; then the old file is in place.
    """
    entries, whole = salvage(path)
    begun = history_salvage.prepare_new_file(path)
    with closing(Journal.open(begun)) as new:
        for entry in (*entries, *known):
            new.put(entry)
        count = len(new.entries())
    aside = history_salvage.replace_file(begun, path)
    lost = "" if whole else "; others may be lost"
    _LOG.error(JOURNAL_DAMAGED, why, aside, count, lost)
    return Journal.open(path)


def salvage(path: Path) -> tuple[list[JournalEntry], bool]:
    """Return originals of every boot that are not restored, and whether all could be read.

    Reads with the log (WAL) first, and without it where that fails; forwards up to the damage, then
    backwards up to it.
    """
    if not path.exists():
        return [], True
    found: dict[int, JournalEntry] = {}
    for query in ("mode=ro", "mode=ro&immutable=1"):
        for order in ("ASC", "DESC"):
            if _read_into(found, f"{path.absolute().as_uri()}?{query}", order):
                return [found[number] for number in sorted(found)], True
    return [found[number] for number in sorted(found)], False


def _read_into(found: dict[int, JournalEntry], uri: str, order: str) -> bool:
    """Add what can be read; return whether that was everything."""
    whole = True
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=1.0)) as connection:
            connection.row_factory = sqlite3.Row
            # Without it SQLite does not open a truncated file at all.
            connection.execute("PRAGMA writable_schema = ON")
            for number, entry in journal.scan(connection, order):
                if entry is None:
                    whole = False
                else:
                    found.setdefault(number, entry)
    except (sqlite3.Error, TypeError, ValueError):
        return False
    return whole
