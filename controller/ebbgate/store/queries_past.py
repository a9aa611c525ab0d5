# SPDX-License-Identifier: GPL-2.0-only
"""All that is kept of one volume over a time, as finely as it is kept. I/O: SQLite, read-only."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from ebbgate.errors import Unavailable
from ebbgate.model.records import Edge, EdgeKind
from ebbgate.store import samples
from ebbgate.store.connection import open_reader
from ebbgate.store.queries import need_current
from ebbgate.store.rollup import MINUTE_NS, SECOND_NS, Row, bucket_ns
from ebbgate.store.schema import HISTORY

EDGES_MAX: Final = 20_000
"""The newest: one a second over the six hours for which they are kept, and as many as can be gone
through in seconds.
"""
_EDGES: Final = f"""
    SELECT kind, at_unix_ns - late_ns, length_ns FROM edges
    WHERE volume = ? AND at_unix_ns >= ? AND at_unix_ns < ?
    ORDER BY at_unix_ns DESC, id DESC LIMIT {EDGES_MAX}
"""


def read_past(
    path: Path, volume: str, since_unix_ns: int, until_unix_ns: int
) -> tuple[list[Row], list[Edge]]:
    """Samples of a second, and of a minute before the first of these; edges with Unix ns. Oldest
    first. Raises NothingRecorded, PermissionDenied, Unavailable.
    """
    connection = open_reader(path, HISTORY)
    try:
        need_current(connection)
        span = (since_unix_ns, until_unix_ns)
        seconds = samples.read(connection, volume, *span, SECOND_NS)
        first = bucket_ns(seconds[0]["at_unix_ns"], MINUTE_NS) if seconds else until_unix_ns
        minutes = samples.read(connection, volume, since_unix_ns, first, MINUTE_NS)
        rows = connection.execute(_EDGES, (volume, *span)).fetchall()
    except sqlite3.Error as error:
        raise Unavailable(f"the history cannot be read: {error}", "try it again") from error
    finally:
        connection.close()
    edges = [Edge(volume, at_ns, EdgeKind(kind), length) for kind, at_ns, length in reversed(rows)]
    return [*minutes, *seconds], edges
