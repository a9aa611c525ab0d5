# SPDX-License-Identifier: GPL-2.0-only
"""What readers ask of the history: the command line now, the web later. I/O: SQLite, read-only."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from ebbgate.errors import Unavailable
from ebbgate.model.records import Direction
from ebbgate.store import samples
from ebbgate.store.connection import open_reader
from ebbgate.store.documents import Document
from ebbgate.store.migrations import version
from ebbgate.store.queries_latency import LatencyGrid, latency_grid
from ebbgate.store.rollup import HOUR_NS, MINUTE_NS, SECOND_NS
from ebbgate.store.schema import HISTORY

_OLDEST: Final = {
    "seconds": f"SELECT min(at_unix_ns) FROM samples WHERE span_ns = {SECOND_NS}",
    "minutes": f"SELECT min(at_unix_ns) FROM samples WHERE span_ns = {MINUTE_NS}",
    "hours": f"SELECT min(at_unix_ns) FROM samples WHERE span_ns = {HOUR_NS}",
    "decisions": "SELECT min(at_unix_ns) FROM decisions",
    "actions": "SELECT min(at_unix_ns) FROM actions",
    "edges": "SELECT min(at_unix_ns) FROM edges",
}


@dataclass(frozen=True, slots=True)
class Live:
    """What the daemon last said of a volume (or, under the empty name, of itself)."""

    volume: str
    at_unix_ns: int
    document: Document


class History:
    """The history database, open for reading. One thread only."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Raises NothingRecorded, PermissionDenied without access, Unavailable for a bad file."""
        return cls(open_reader(path, HISTORY))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def live(self) -> dict[str, Live]:
        """All live documents by volume."""
        rows = self._connection.execute("SELECT volume, at_unix_ns, document FROM live")
        return {
            row["volume"]: Live(row["volume"], row["at_unix_ns"], json.loads(row["document"]))
            for row in rows
        }

    def decisions(self, volume: str | None, limit: int) -> list[Document]:
        """The newest decisions first, of one volume or of all, each with its explanation."""
        rows = self._connection.execute(
            """SELECT id, at_unix_ns, document FROM decisions
               WHERE ?1 IS NULL OR volume = ?1 ORDER BY at_unix_ns DESC, id DESC LIMIT ?2""",
            (volume, limit),
        )
        return [
            {"id": row["id"], "at_unix_ns": row["at_unix_ns"], **json.loads(row["document"])}
            for row in rows
        ]

    def actions(
        self, volume: str | None, limit: int, decision_id: int | None = None
    ) -> list[Document]:
        """The newest knob writes first; of one decision where `decision_id` is given."""
        rows = self._connection.execute(
            """SELECT * FROM actions
               WHERE (?1 IS NULL OR volume = ?1) AND (?3 IS NULL OR decision_id = ?3)
               ORDER BY at_unix_ns DESC, id DESC LIMIT ?2""",
            (volume, limit, decision_id),
        )
        return [_document(row) for row in rows]

    def samples(
        self, volume: str, since_unix_ns: int, until_unix_ns: int, span_ns: int
    ) -> list[Document]:
        """The volume's samples of one span in `[since, until)`, oldest first.

        As `store.rollup` has them.
        """
        need_current(self._connection)
        return samples.read(self._connection, volume, since_unix_ns, until_unix_ns, span_ns)

    def latency_grid(
        self, volume: str, op: Direction, since_unix_ns: int, until_unix_ns: int, points: int
    ) -> LatencyGrid:
        """How long requests took, by time: see `store.queries_latency`."""
        need_current(self._connection)
        return latency_grid(self._connection, volume, op, (since_unix_ns, until_unix_ns), points)

    def oldest_ns(self) -> dict[str, int]:
        """When what is kept of each kind begins; without what there is nothing of."""
        found = {
            what: self._connection.execute(query).fetchone()[0] for what, query in _OLDEST.items()
        }
        return {what: at_ns for what, at_ns in found.items() if at_ns is not None}


def need_current(connection: sqlite3.Connection) -> None:
    """Raises Unavailable for a file of an older version, which only a writer may change."""
    found = version(connection)
    if found < len(HISTORY):
        raise Unavailable(
            f"the history has schema {found}, and {len(HISTORY)} is needed for this",
            "start the daemon, which brings it up to date: systemctl start ebbgated",
        )


def _document(row: sqlite3.Row) -> dict[str, Any]:
    return dict(row)
