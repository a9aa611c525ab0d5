# SPDX-License-Identifier: GPL-2.0-only
"""A journal that is damaged: its originals are read out of it, and a new file is begun with them.

I/O: SQLite, renames. Without its original a knob could not be put back.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from ebbgate.model.decision import JournalEntry
from ebbgate.store import journal
from ebbgate.store import salvage as history_salvage
from ebbgate.store.connection import Damaged, is_damage
from ebbgate.store.journal import Journal

_LOG = logging.getLogger(__name__)


def open_or_renew(path: Path) -> Journal:
    """The journal, open for writing, a new one where the old one is damaged.

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
    """Move the file aside and begin a new one with the originals in it, and those that are `known`.

    Raises OSError, EbbgateError and sqlite3.Error; then the old file is where it was.
    """
    entries, whole = salvage(path)
    begun = history_salvage.prepare_new_file(path)
    with closing(Journal.open(begun)) as new:
        for entry in (*entries, *known):
            new.put(entry)
        count = len(new.entries())
    aside = history_salvage.replace_file(begun, path)
    lost = "" if whole else "; others may be lost"
    text = "the journal is damaged (%s): moved to %s; a new one has %d originals of knobs%s"
    _LOG.error(text, why, aside, count, lost)
    return Journal.open(path)


def salvage(path: Path) -> tuple[list[JournalEntry], bool]:
    """Originals that are not back yet, of every boot, and whether all could be read.

    With the log (WAL) first; without it where that cannot be read. What comes before a damage is
    read from the front, what comes after it from the back.
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
    """Add what can be read; True where nothing was in the way."""
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=1.0)) as connection:
            connection.row_factory = sqlite3.Row
            # Without it a file that is shorter than it says of itself is not looked into at all.
            connection.execute("PRAGMA writable_schema = ON")
            for number, entry in journal.scan(connection, order):
                if _is_whole(entry):
                    found.setdefault(number, entry)
    except (sqlite3.Error, TypeError, ValueError):
        return False
    return True


def _is_whole(entry: JournalEntry) -> bool:
    """Has a damaged row left every value of the type that it must have?"""
    numbers = (entry.at_unix_ns, entry.instance)
    texts = (entry.volume, entry.knob, entry.path, entry.original, entry.last_written)
    more = (entry.boot_id, entry.by, entry.why, entry.device_uuid)
    return all(isinstance(number, int) for number in numbers) and all(
        isinstance(text, str) for text in (*texts, *more)
    )
