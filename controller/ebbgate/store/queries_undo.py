# SPDX-License-Identifier: GPL-2.0-only
"""What a knob was before one recorded write of it. I/O: SQLite, read-only."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbgate.errors import Unavailable
from ebbgate.store.connection import open_reader
from ebbgate.store.schema import HISTORY

_BEFORE: Final = """
    SELECT volume, at_unix_ns, knob, new, strategy, outcome, old FROM actions WHERE id = ?
"""


@dataclass(frozen=True, slots=True)
class Written:
    """One knob write. `old`: as the kernel takes it; None where nobody knows it any more."""

    volume: str
    at_unix_ns: int
    knob: str
    new: str
    strategy: str
    outcome: str
    old: str | None


def written(history: Path, number: int) -> Written | None:
    """The write of this number; None where none is kept.

    Raises NothingRecorded, PermissionDenied, Unavailable.
    """
    connection = open_reader(history, HISTORY)
    try:
        row = connection.execute(_BEFORE, (number,)).fetchone()
    except sqlite3.Error as error:
        raise Unavailable(f"the history cannot be read: {error}", "try it again") from error
    finally:
        connection.close()
    return Written(**dict(row)) if row else None
