# SPDX-License-Identifier: GPL-2.0-only
"""Writes the history: samples, decisions, outcomes, status documents. I/O: SQLite.

Any thread may call it; a lock admits one at a time. Nothing else writes the history.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Final, Self

from ebbgate.model.decision import Decision, Outcome
from ebbgate.model.frame import Frame, Rates
from ebbgate.model.records import Direction, Edge
from ebbgate.store import hourly_counts, retention
from ebbgate.store import intent_rows as intents
from ebbgate.store.connection import fold_log, open_writer, set_busy_timeout, transaction
from ebbgate.store.documents import (
    SAMPLE_SPAN_NS,
    decision_document,
    gate_text,
    hit_ratio,
    path_figures,
    strategy_states,
    to_json,
)
from ebbgate.store.intent_rows import IntentRow
from ebbgate.store.latency import frame_latency
from ebbgate.store.maintenance import Maintenance
from ebbgate.store.rollup import MEASURED, bucket_ns
from ebbgate.store.schema import HISTORY
from ebbgate.units import MINUTE_NS

_ADD_SAMPLE: Final = f"""
    INSERT OR REPLACE INTO samples ({", ".join(MEASURED)})
    VALUES ({", ".join("?" * len(MEASURED))})
"""
_ADD_DUE: Final = "INSERT OR IGNORE INTO rollup_due (span_ns, at_unix_ns, volume) VALUES (?, ?, ?)"
_ADD_DECISION: Final = """
    INSERT INTO decisions (volume, at_unix_ns, at_ns, gate, gate_strategy, sequential_cutoff_bytes,
                           cutoff_strategy, document, stands)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# A decision that stood for long may have been deleted: it is older than what came of it.
_ADD_ACTION: Final = """
    INSERT INTO actions (decision_id, at_unix_ns, latency_ns, volume, at_ns, knob, old, new,
                         strategy, reason, outcome, read_back, error)
    VALUES ((SELECT id FROM decisions WHERE id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_EDGE: Final = """
    INSERT INTO edges (volume, at_unix_ns, kind, length_ns, late_ns) VALUES (?, ?, ?, ?, ?)
"""
_SET_LIVE: Final = """
    INSERT INTO live (volume, at_unix_ns, document) VALUES (?, ?, ?)
    ON CONFLICT (volume)
    DO UPDATE SET at_unix_ns = excluded.at_unix_ns, document = excluded.document
"""


class Store:
    """The history database, open for writing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = RLock()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or make the file (`history.db`). Raises PermissionDenied and Unavailable."""
        return cls(open_writer(path, HISTORY))

    def close(self) -> None:
        """Checkpoint the log and close it."""
        with self._lock:
            self._connection.close()

    def quick_check(self) -> str:
        """Return `ok`, or the first fault that SQLite finds; reads the whole file."""
        with self._lock:
            found = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        return str(found[0])

    def set_busy_timeout(self, timeout_s: float) -> None:
        """Set how long a call waits for a lock that another program holds."""
        with self._lock:
            set_busy_timeout(self._connection, timeout_s)

    def file_bytes(self) -> int:
        """Return the size that the file has once the log is checkpointed into it."""
        with self._lock:
            pages: int = self._connection.execute("PRAGMA page_count").fetchone()[0]
            return pages * retention.page_bytes(self._connection)

    def fold_log(self, timeout_s: float) -> bool:
        """Checkpoint the log; False where a reader prevents it for `timeout_s`."""
        with self._lock:
            return fold_log(self._connection, timeout_s)

    def look(self) -> None:
        """Read a little, so that a file that is no database is found. Raises sqlite3.Error."""
        with self._lock:
            self._connection.execute("SELECT count(*) FROM live").fetchone()

    def interrupt(self) -> None:
        """Interrupt the statement of another thread, which fails."""
        self._connection.interrupt()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Make all calls inside one transaction. Other threads wait meanwhile."""
        with self._write():
            yield

    # ---- events --------------------------------------------------------------------------------
    def add_samples(self, samples: Sequence[tuple[Frame, int]], mode: str | None = None) -> None:
        """Add frames, each with its wall-clock time, as samples of one second.

        `mode`: ebbgate's mode of the volume at that time, where known.
        """
        rows = [
            (*_sample_row(frame, at), mode, _latency(frame), frame.gap_destage_bytes)
            for frame, at in samples
        ]
        due = {(MINUTE_NS, bucket_ns(at, MINUTE_NS), frame.volume) for frame, at in samples}
        with self._write() as open_:
            open_.executemany(_ADD_SAMPLE, rows)
            open_.executemany(_ADD_DUE, due)

    def add_decision(self, decision: Decision, wall_ns: int) -> int:
        """Add a decision with its explanation; return its number for `add_outcomes`."""
        row = (
            decision.volume,
            wall_ns,
            decision.at_ns,
            gate_text(decision.gate),
            decision.gate_strategy,
            decision.sequential_cutoff_bytes,
            decision.cutoff_strategy,
            to_json(decision_document(decision)),
            to_json(strategy_states(decision)),
        )
        with self._write() as open_:
            number = open_.execute(_ADD_DECISION, row).lastrowid
        assert number is not None
        return number

    def add_outcomes(
        self,
        outcomes: Sequence[Outcome],
        decision_id: int | None,
        wall_ns: int,
        latency_ns: int | None = None,
    ) -> None:
        """Add outcomes; `latency_ns`: from the edge that caused them to the last write."""
        rows = [(decision_id, wall_ns, latency_ns, *_action_row(outcome)) for outcome in outcomes]
        with self._write() as open_:
            open_.executemany(_ADD_ACTION, rows)
            hourly_counts.add_outcomes(open_, outcomes, wall_ns)
            if decision_id is not None:
                hourly_counts.mark_acted(open_, decision_id, outcomes, wall_ns)

    def add_edge(self, edge: Edge, late_ns: int, wall_ns: int) -> None:
        """Add an edge; `late_ns`: from when it was due to when it was handled."""
        row = (edge.volume, wall_ns, str(edge.kind), edge.length_ns, late_ns)
        with self._write() as open_:
            open_.execute(_ADD_EDGE, row)
            hourly_counts.add_edge(open_, edge, wall_ns)

    # ---- requests of people --------------------------------------------------------------------
    def add_intent(self, intent: IntentRow) -> None:
        """Add an accepted request; its number is the daemon's."""
        with self._write() as open_:
            intents.add(open_, intent)

    def resolve_intent(self, number: int, wall_ns: int, ok: bool, outcome: str) -> None:
        """Set the outcome of a request, a sentence for the person who made it."""
        with self._write() as open_:
            intents.resolve(open_, number, wall_ns, ok, outcome)

    def abandon_intents(self, below: int, wall_ns: int, outcome: str) -> None:
        """Set one outcome for all pending requests with a number below `below`."""
        with self._write() as open_:
            intents.abandon(open_, below, wall_ns, outcome)

    def maintain(self, maintenance: Maintenance, wall_ns: int, mono_ns: int) -> bool:
        """Run one small step of maintenance; False when there is nothing to do for now."""
        with self._lock:
            return maintenance.step(self._connection, wall_ns, mono_ns)

    # ---- status ---------------------------------------------------------------------------------
    def set_live(self, volume: str, document: Mapping[str, object], wall_ns: int) -> None:
        """Set the status document of a volume; the empty name is the daemon itself."""
        with self._write() as open_:
            open_.execute(_SET_LIVE, (volume, wall_ns, to_json(document)))

    def drop_live(self, volume: str) -> None:
        """Remove the status document of a volume."""
        with self._write() as open_:
            open_.execute("DELETE FROM live WHERE volume = ?", (volume,))

    def clear_live(self) -> None:
        """Remove all status documents."""
        with self._write() as open_:
            open_.execute("DELETE FROM live")

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction, or use the batch that this thread is in."""
        with self._lock:
            if self._connection.in_transaction:
                yield self._connection
            else:
                with transaction(self._connection) as open_:
                    yield open_


def _sample_row(frame: Frame, wall_ns: int) -> tuple[object, ...]:
    read_iops, read_bytes = _rates(frame, Direction.READ)
    write_iops, write_bytes = _rates(frame, Direction.WRITE)
    return (
        frame.volume,
        SAMPLE_SPAN_NS,
        wall_ns,
        str(frame.regime),
        frame.idle,
        read_iops,
        read_bytes,
        write_iops,
        write_bytes,
        hit_ratio(frame),
        sum(frame.bypass_bytes.values()) if frame.bypass_bytes else None,
        frame.destage_bytes_per_s,
        frame.dirty_in_bytes_per_s,
        frame.dirty_bytes,
        frame.cache_bytes,
        frame.in_use_ratio,
        frame.backing_depth_ios,
        frame.time_to_full_s,
        frame.time_to_clean_s,
        to_json(path_figures(frame)),
        to_json(dict(frame.missing)),
    )


def _latency(frame: Frame) -> str | None:
    found = frame_latency(frame)
    return None if found is None else to_json(found)


def _rates(frame: Frame, direction: Direction) -> tuple[float | None, float | None]:
    rates: Rates | None = (frame.foreground or {}).get(direction)
    return (rates.iops, rates.bytes_per_s) if rates else (None, None)


def _action_row(outcome: Outcome) -> tuple[object, ...]:
    action = outcome.action
    return (
        action.volume,
        outcome.at_ns,
        action.knob,
        action.old,
        action.new,
        action.strategy,
        action.reason,
        str(outcome.kind),
        outcome.read_back,
        outcome.error,
    )
