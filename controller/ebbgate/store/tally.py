# SPDX-License-Identifier: GPL-2.0-only
"""What happened, counted by hour: outlives the events that it counts. I/O: SQLite.

what      strategy   knob  outcome     count              amount
action    who        which what of it  knob writes        0
gap       -          -     -           gaps that ended    their length, ns
acted     who        -     the stand   decisions that     0
                                       wrote a knob
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable

from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.records import Edge, EdgeKind
from ebbgate.store.rollup import HOUR_NS, bucket_ns

_ADD = """
    INSERT INTO tallies VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET count = count + excluded.count, amount = amount + excluded.amount
"""
_MARK = """
    UPDATE decisions SET acted = 1 WHERE id = ? AND acted = 0
    RETURNING volume, gate_strategy, coalesce(stand, '')
"""


def add_outcomes(connection: sqlite3.Connection, outcomes: Iterable[Outcome], wall_ns: int) -> None:
    """Count knob writes by who, which and what became of them."""
    hour_ns = bucket_ns(wall_ns, HOUR_NS)
    counts = Counter(
        (o.action.volume, hour_ns, "action", o.action.strategy, o.action.knob, str(o.kind))
        for o in outcomes
    )
    connection.executemany(_ADD, [(*key, count, 0) for key, count in counts.items()])


def add_edge(connection: sqlite3.Connection, edge: Edge, wall_ns: int) -> None:
    """Count a gap when it ends."""
    if edge.kind is EdgeKind.BUSY:
        key = (edge.volume, bucket_ns(wall_ns, HOUR_NS), "gap", "", "", "")
        connection.execute(_ADD, (*key, 1, edge.length_ns))


def mark_acted(
    connection: sqlite3.Connection, decision_id: int, outcomes: Iterable[Outcome], wall_ns: int
) -> None:
    """A decision for which a knob was really written counts once, and is kept longer."""
    if not any(outcome.kind is OutcomeKind.CHANGED for outcome in outcomes):
        return
    for volume, strategy, stand in connection.execute(_MARK, (decision_id,)).fetchall():
        hour_ns = bucket_ns(wall_ns, HOUR_NS)
        connection.execute(_ADD, (volume, hour_ns, "acted", strategy, "", stand, 1, 0))
