# SPDX-License-Identifier: GPL-2.0-only
"""Counts events by hour; the counts outlive the events. I/O: SQLite.

what      strategy   knob  outcome     count              amount
action    who        which what of it  knob writes        0
gap       -          -     -           gaps that ended    their length, ns
acted     who        -     its state   decisions for      0
                                       which it wrote
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable

from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.records import Edge, EdgeKind
from ebbgate.store.documents import to_json
from ebbgate.store.rollup import bucket_ns
from ebbgate.units import HOUR_NS

_ADD = """
    INSERT INTO tallies VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET count = count + excluded.count, amount = amount + excluded.amount
"""
_MARK = "UPDATE decisions SET acted = 1, stands = ? WHERE id = ?"


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
    """Mark a decision for which a knob was written; count it once for each strategy that wrote."""
    writers = {o.action.strategy for o in outcomes if o.kind is OutcomeKind.CHANGED}
    row = connection.execute(
        "SELECT volume, acted, stands FROM decisions WHERE id = ?", (decision_id,)
    ).fetchone()
    if not writers or row is None:
        return
    volume, acted, text = row
    states: dict[str, str] = json.loads(text)
    counted = {writer: states.pop(writer) for writer in sorted(writers) if writer in states}
    if counted or not acted:
        connection.execute(_MARK, (to_json(states), decision_id))
    hour_ns = bucket_ns(wall_ns, HOUR_NS)
    keys = [(volume, hour_ns, "acted", who, "", state) for who, state in counted.items()]
    connection.executemany(_ADD, [(*key, 1, 0) for key in keys])
