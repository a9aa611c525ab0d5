# SPDX-License-Identifier: GPL-2.0-only
"""Queries of the history for the command line, and a base for those of the web.

I/O: SQLite, read-only.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Generic, NamedTuple, Self, TypeVar

from ebbgate.errors import Unavailable
from ebbgate.model.records import Direction, Edge, EdgeKind
from ebbgate.model.status import DAEMON, STATUS_STALE_NS, DaemonStatus, VolumeStatus
from ebbgate.model.status_json import status_from_text
from ebbgate.store import samples
from ebbgate.store.connection import open_reader
from ebbgate.store.documents import Document, current_row
from ebbgate.store.queries_latency import LatencyGrid, latency_grid
from ebbgate.store.rollup import SECOND_NS, Row, bucket_ns
from ebbgate.store.schema import HISTORY
from ebbgate.units import MINUTE_NS

_S = TypeVar("_S")
_MISSED_TICKS: Final = 3
"""A status is written at ticks, which may be further apart than `STATUS_STALE_NS`."""
EDGES_MAX: Final = 20_000
"""Of a window, the newest: about one a second over the six hours for which edges are kept."""
_EDGES: Final = f"""
    SELECT kind, at_unix_ns - late_ns, length_ns FROM edges
    WHERE volume = ? AND at_unix_ns >= ? AND at_unix_ns < ?
    ORDER BY at_unix_ns DESC, id DESC LIMIT {EDGES_MAX}
"""
_UNREADABLE: Final = (sqlite3.Error, json.JSONDecodeError)
"""The second one for a bit error in a document, which SQLite does not notice."""
_KNOB_WRITE: Final = """
    SELECT volume, at_unix_ns, knob, new, strategy, outcome, old FROM actions WHERE id = ?
"""


@dataclass(frozen=True, slots=True)
class KnobWrite:
    """One recorded knob write. `old`: in the kernel's form; None where it is not known."""

    volume: str
    at_unix_ns: int
    knob: str
    new: str
    strategy: str
    outcome: str
    old: str | None


class LiveRow(NamedTuple):
    """The newest status of a volume (or, under the empty name, of the daemon), not parsed."""

    volume: str
    at_unix_ns: int
    text: str


def stale_after_ns(tick_ns: int | None) -> int:
    """Return after which time a status of a daemon with this period is old."""
    return max(STATUS_STALE_NS, _MISSED_TICKS * (tick_ns or 0))


@dataclass(frozen=True, slots=True)
class TimedStatus(Generic[_S]):
    """A status, when the daemon wrote it, and after which time it is old."""

    at_unix_ns: int
    status: _S
    stale_after_ns: int = STATUS_STALE_NS

    @classmethod
    def read(cls, status: type[_S], row: LiveRow) -> Self:
        """Parse a row; what another version wrote is read as far as possible."""
        return cls(row.at_unix_ns, status_from_text(status, row.text))

    def fresh(self, now_unix_ns: int) -> bool:
        """Whether the daemon wrote it within the last seconds, as it does while it runs.

        One from the future is of before the clock was set back: a running daemon writes a new one.
        """
        return abs(now_unix_ns - self.at_unix_ns) <= self.stale_after_ns


@dataclass(frozen=True, slots=True)
class Statuses:
    """The newest statuses of the daemon, None if it never wrote one, and of volumes by name."""

    daemon: TimedStatus[DaemonStatus] | None = None
    volumes: Mapping[str, TimedStatus[VolumeStatus]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        daemon: TimedStatus[DaemonStatus] | None,
        volumes: Mapping[str, TimedStatus[VolumeStatus]],
    ) -> Self:
        """Return them; the period of the daemon, which its status has, tells which are old."""
        after_ns = stale_after_ns(daemon.status.tick_ns if daemon else None)
        return cls(
            daemon and replace(daemon, stale_after_ns=after_ns),
            {name: replace(each, stale_after_ns=after_ns) for name, each in volumes.items()},
        )


class HistoryReader:
    """The history database, open for reading. One thread only.

    As a context it is closed at the end, and what cannot be read there raises Unavailable.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Raises NothingRecorded, PermissionDenied without access, Unavailable for a bad file."""
        return cls(open_reader(path, HISTORY))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if isinstance(error, _UNREADABLE):
            raise _unreadable(error) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class History(HistoryReader):
    """Its queries for the command line, and a base for those of the web."""

    def live_rows(self) -> list[LiveRow]:
        """Return all statuses, not parsed."""
        rows = self._connection.execute("SELECT volume, at_unix_ns, document FROM live")
        return [LiveRow(*row) for row in rows]

    def statuses(self) -> Statuses:
        """Return all statuses."""
        rows = {row.volume: row for row in self.live_rows()}
        daemon = rows.pop(DAEMON, None)
        return Statuses.of(
            daemon and TimedStatus.read(DaemonStatus, daemon),
            {name: TimedStatus.read(VolumeStatus, row) for name, row in rows.items()},
        )

    def decisions(self, volume: str | None, limit: int) -> list[Document]:
        """Return the newest decisions first, of one volume or of all.

        In the order in which they were made: their times go back where the clock was set back.
        """
        rows = self._connection.execute(
            """SELECT id, at_unix_ns, document FROM decisions
               WHERE ?1 IS NULL OR volume = ?1 ORDER BY id DESC LIMIT ?2""",
            (volume, limit),
        )
        return [
            {
                "id": row["id"],
                "at_unix_ns": row["at_unix_ns"],
                **current_row(json.loads(row["document"])),
            }
            for row in rows
        ]

    def samples(
        self, volume: str, since_unix_ns: int, until_unix_ns: int, span_ns: int
    ) -> list[Document]:
        """Return the volume's samples of one span in `[since, until)`, oldest first."""
        return samples.read(self._connection, volume, since_unix_ns, until_unix_ns, span_ns)

    def latency_grid(
        self, volume: str, op: Direction, since_unix_ns: int, until_unix_ns: int, points: int
    ) -> LatencyGrid:
        """Return how long requests took, by time (`store.queries_latency`)."""
        return latency_grid(self._connection, volume, op, (since_unix_ns, until_unix_ns), points)


def read_window(
    path: Path, volume: str, since_unix_ns: int, until_unix_ns: int
) -> tuple[list[Row], list[Edge]]:
    """Return samples and edges of one volume in `[since, until)`, oldest first.

    Samples of a second, and of a minute before the first of these; edges carry Unix ns. Raises
    NothingRecorded, PermissionDenied, Unavailable.
    """
    with _reading(path) as connection:
        window = (since_unix_ns, until_unix_ns)
        seconds = samples.read(connection, volume, *window, SECOND_NS)
        first = bucket_ns(seconds[0]["at_unix_ns"], MINUTE_NS) if seconds else until_unix_ns
        minutes = samples.read(connection, volume, since_unix_ns, first, MINUTE_NS)
        rows = connection.execute(_EDGES, (volume, *window)).fetchall()
    edges = [Edge(volume, at_ns, EdgeKind(kind), length) for kind, at_ns, length in reversed(rows)]
    return [*minutes, *seconds], edges


def read_knob_write(path: Path, number: int) -> KnobWrite | None:
    """Return the knob write of this number; None where none is kept.

    Raises NothingRecorded, PermissionDenied, Unavailable.
    """
    with _reading(path) as connection:
        row = connection.execute(_KNOB_WRITE, (number,)).fetchone()
    return KnobWrite(**current_row(row)) if row else None


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    connection = open_reader(path, HISTORY)
    try:
        yield connection
    except _UNREADABLE as error:
        raise _unreadable(error) from error
    finally:
        connection.close()


def _unreadable(error: Exception) -> Unavailable:
    return Unavailable(
        f"the history cannot be read: {error}",
        "try it again; if it is damaged, stop ebbgated, move history.db away, and start ebbgated",
    )
