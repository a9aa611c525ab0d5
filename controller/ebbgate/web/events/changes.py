# SPDX-License-Identifier: GPL-2.0-only
"""What has happened since a cursor, as events. I/O: SQLite, reads; any thread."""

from __future__ import annotations

from typing import Any

from ebbgate.errors import EbbgateError
from ebbgate.store.intent_rows import IntentRow
from ebbgate.units import NS_PER_S
from ebbgate.web import convert
from ebbgate.web.events.broadcaster import NEWS_MAX, RESET
from ebbgate.web.events.cursor import Cursor, Event
from ebbgate.web.models.base import to_json
from ebbgate.web.models.intents import Intent
from ebbgate.web.snapshot import Databases


def newest(databases: Databases) -> Cursor | None:
    """Where the databases are now; None where they cannot be read."""
    try:
        with databases.history() as history:
            decision, action = history.newest()
            return Cursor(decision, action, *history.intents.last(), history=history.identity())
    except EbbgateError:
        return None


def since(databases: Databases, cursor: Cursor) -> list[Event] | None:
    """What is new, in the order of its kind and time; one `reset` where it is too much, or where
    a database is another one. None where it cannot be read now.
    """
    now = newest(databases)
    if now is None:
        return None
    if now == cursor:
        return []
    if not now.covers(cursor):
        return [Event(RESET, b"{}", now, restart=True)]
    try:
        found = _since(databases, cursor)
    except EbbgateError:
        return None
    return found if len(found) <= NEWS_MAX else [Event(RESET, b"{}", now, restart=True)]


def _since(databases: Databases, cursor: Cursor) -> list[Event]:
    most = NEWS_MAX + 1
    with databases.history() as history:
        decisions = history.decisions_after(cursor.decision, most)
        actions = history.actions_after(cursor.action, most)
        of_decision: dict[int, list[dict[str, Any]]] = {}
        for row in actions:
            of_decision.setdefault(row["decision_id"], []).append(row)
        requests, last = history.intents.since(cursor.intent, cursor.pending, most)
    return [
        *(
            Event(
                "decision",
                to_json(convert.decision(row, of_decision.get(row["id"], ()))),
                Cursor(decision=row["id"]),
            )
            for row in decisions
        ),
        *(
            Event("action", to_json(convert.action(row)), Cursor(action=row["id"]))
            for row in actions
        ),
        *(Event("intent", to_json(intent(row)), Cursor(intent=row.id)) for row in requests[:-1]),
        # Not before the last one: a line that breaks between them leaves none untold.
        *(Event("intent", to_json(intent(row)), Cursor(0, 0, *last)) for row in requests[-1:]),
    ]


def intent(row: IntentRow) -> Intent:
    """A request as the API shows it."""
    resolved_ns = row.resolved_unix_ns
    return Intent(
        id=row.id,
        kind=row.kind,
        volume=row.volume,
        args=row.args,
        who=row.who,
        at_unix_s=row.at_unix_ns / NS_PER_S,
        resolved_unix_s=None if resolved_ns is None else resolved_ns / NS_PER_S,
        ok=row.ok,
        outcome=row.outcome,
    )
