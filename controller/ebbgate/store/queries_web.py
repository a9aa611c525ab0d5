# SPDX-License-Identifier: GPL-2.0-only
"""Queries of the history for the web. I/O: SQLite, read-only.

A query that takes too long is interrupted, so that no client keeps the disk busy.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from ebbgate.model.decision import OutcomeKind
from ebbgate.store import samples
from ebbgate.store.connection import identity_of, open_reader
from ebbgate.store.documents import Document, current_row, old_strategy_name
from ebbgate.store.queries import History
from ebbgate.store.queries_intents import IntentHistory
from ebbgate.store.rollup import SECOND_NS, Row, bucket_ns, merge
from ebbgate.store.schema import HISTORY
from ebbgate.units import HOUR_NS, INT64_MAX, MINUTE_NS

PATIENCE_S: Final = 5.0
_STEPS: Final = 20_000
"""Steps of SQLite between two looks at the clock: some milliseconds."""

_DECISION: Final = "SELECT id, volume, at_unix_ns, acted, document FROM decisions"
_FITTING: Final = """
    at_unix_ns >= :since_unix_ns AND at_unix_ns < :until_unix_ns
    AND (:strategy IS NULL OR gate_strategy IN (:strategy, :old_strategy)
         OR cutoff_strategy IN (:strategy, :old_strategy) OR id IN
         (SELECT decision_id FROM actions WHERE strategy IN (:strategy, :old_strategy)))
    AND (:knob IS NULL AND :outcome IS NULL OR id IN
         (SELECT decision_id FROM actions WHERE (:knob IS NULL OR knob = :knob)
          AND (:outcome IS NULL OR outcome = :outcome)))
"""
_OF_ALL: Final = f"{_DECISION} WHERE id < :before_id AND {_FITTING} ORDER BY id DESC LIMIT :limit"
# The + makes SQLite use the index by volume and time instead of scanning all decisions by id.
_OF_VOLUME: Final = f"""
    {_DECISION} WHERE id IN (
        SELECT id FROM decisions WHERE volume = :volume AND +id < :before_id AND {_FITTING}
        ORDER BY +id DESC LIMIT :limit)
    ORDER BY id DESC
"""
_PATHS: Final = """
    SELECT at_unix_ns, paths FROM samples WHERE volume = ? AND span_ns = ?
    AND at_unix_ns >= ? AND at_unix_ns < ? ORDER BY at_unix_ns
"""
_OLDEST: Final = "SELECT min(at_unix_ns) FROM samples WHERE volume = ? AND span_ns = ?"


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Selects decisions; None: any. Times: Unix ns, `[since, until)`."""

    volume: str | None = None
    knob: str | None = None
    strategy: str | None = None
    outcome: str | None = None
    since_unix_ns: int = 0
    until_unix_ns: int = INT64_MAX
    before_id: int = INT64_MAX
    limit: int = 100


class WebHistory(History):
    """The history, open for one answer. One thread only."""

    @classmethod
    def open(cls, path: Path, patience_s: float = PATIENCE_S) -> Self:
        """Raises NothingRecorded, PermissionDenied, Unavailable for a bad or an older file."""
        connection = open_reader(path, HISTORY)
        deadline = time.monotonic() + patience_s
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        return cls(connection)

    def is_volume(self, volume: str) -> bool:
        """Return whether there are samples of a volume of this name."""
        spans = (SECOND_NS, MINUTE_NS, HOUR_NS)
        return any(self.oldest_sample_ns(volume, span) is not None for span in spans)

    def oldest_sample_ns(self, volume: str, span_ns: int) -> int | None:
        """Return the time of the oldest sample of a span."""
        row = self._connection.execute(_OLDEST, (volume, span_ns)).fetchone()
        found: int | None = row[0]
        return found

    def rows(self, volume: str, since_unix_ns: int, until_unix_ns: int, span_ns: int) -> list[Row]:
        """Return samples of one span in `[since, until)`, oldest first.

        The present minute or hour, which is not rolled up yet, is rolled up here.
        """
        found = samples.read(self._connection, volume, since_unix_ns, until_unix_ns, span_ns)
        if span_ns == SECOND_NS:
            return found
        end_ns = found[-1]["at_unix_ns"] + span_ns if found else since_unix_ns
        finer_ns = MINUTE_NS if span_ns == HOUR_NS else SECOND_NS
        rest: dict[int, list[Row]] = defaultdict(list)
        for row in self.rows(volume, end_ns, until_unix_ns, finer_ns):
            rest[bucket_ns(row["at_unix_ns"], span_ns)].append(row)
        return found + [merge(rows, at_ns, span_ns) for at_ns, rows in sorted(rest.items())]

    def hit_ratio(self, volume: str, since_unix_ns: int, until_unix_ns: int) -> float | None:
        """Return the share of reads with all data in the cache; None without reads.

        By whole minutes where there are any, then by seconds.
        """
        minutes = self._paths(volume, MINUTE_NS, since_unix_ns, until_unix_ns)
        rest_ns = minutes[-1][0] + MINUTE_NS if minutes else since_unix_ns
        seconds = self._paths(volume, SECOND_NS, rest_ns, until_unix_ns)
        return samples.hit_ratio([text for _, text in (*minutes, *seconds)])

    def _paths(
        self, volume: str, span_ns: int, since_unix_ns: int, until_unix_ns: int
    ) -> list[tuple[int, str]]:
        cursor = self._connection.cursor()
        cursor.row_factory = None
        return cursor.execute(_PATHS, (volume, span_ns, since_unix_ns, until_unix_ns)).fetchall()

    def filtered_decisions(self, wanted: DecisionFilter) -> list[Document]:
        """Return the matching decisions, the newest first."""
        rows = self._connection.execute(
            _OF_ALL if wanted.volume is None else _OF_VOLUME,
            {**asdict(wanted), "old_strategy": old_strategy_name(wanted.strategy)},
        )
        return [_decision(row) for row in rows]

    def decision(self, number: int) -> Document | None:
        """Return one decision."""
        row = self._connection.execute(f"{_DECISION} WHERE id = ?", (number,)).fetchone()
        return None if row is None else _decision(row)

    def actions_between(
        self,
        volume: str,
        since_unix_ns: int,
        until_unix_ns: int,
        limit: int,
        outcomes: Collection[OutcomeKind] = (),
    ) -> list[Document]:
        """Return knob writes of a volume in `[since, until)`, the newest first.

        `outcomes`: only with one of these; any, without one.
        """
        wanted = set(outcomes)
        only = f"AND outcome IN ({', '.join('?' * len(wanted))})" if wanted else ""
        rows = self._connection.execute(
            f"""SELECT * FROM actions WHERE volume = ? AND at_unix_ns >= ? AND at_unix_ns < ? {only}
                ORDER BY at_unix_ns DESC, id DESC LIMIT ?""",
            (volume, since_unix_ns, until_unix_ns, *wanted, limit),
        )
        return [current_row(row) for row in rows]

    def actions_of(self, decisions: Iterable[int]) -> dict[int, list[Document]]:
        """Return knob writes by decision, the oldest first."""
        numbers = list(decisions)
        marks = ", ".join("?" * len(numbers))
        rows = self._connection.execute(
            f"SELECT * FROM actions WHERE decision_id IN ({marks}) ORDER BY id", numbers
        )
        found: dict[int, list[Document]] = defaultdict(list)
        for row in rows:
            found[row["decision_id"]].append(current_row(row))
        return found

    @property
    def intents(self) -> IntentHistory:
        """The requests in the same file, on the same connection."""
        return IntentHistory(self._connection)

    # ---- news ----------------------------------------------------------------------------------
    def identity(self) -> int:
        """Return the number that identifies this file."""
        return identity_of(self._connection)

    def newest(self) -> tuple[int, int]:
        """Return the last decision and the last knob write; 0 without any."""
        row = self._connection.execute(
            "SELECT (SELECT max(id) FROM decisions), (SELECT max(id) FROM actions)"
        ).fetchone()
        return row[0] or 0, row[1] or 0

    def decisions_after(self, number: int, limit: int) -> list[Document]:
        """Return those with larger numbers, the oldest first."""
        rows = self._connection.execute(
            f"{_DECISION} WHERE id > ? ORDER BY id LIMIT ?", (number, limit)
        )
        return [_decision(row) for row in rows]

    def actions_after(self, number: int, limit: int) -> list[Document]:
        """Return those with larger numbers, the oldest first."""
        rows = self._connection.execute(
            "SELECT * FROM actions WHERE id > ? ORDER BY id LIMIT ?", (number, limit)
        )
        return [current_row(row) for row in rows]


def _decision(row: sqlite3.Row) -> Document:
    head = {key: row[key] for key in ("id", "volume", "at_unix_ns", "acted")}
    return {**current_row(json.loads(row["document"])), **head}
