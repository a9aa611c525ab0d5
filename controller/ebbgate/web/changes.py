# SPDX-License-Identifier: GPL-2.0-only
"""Events since a cursor, and the format of the event stream. I/O: SQLite, reads; any thread."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from ebbgate.errors import EbbgateError
from ebbgate.store.intent_rows import IntentRow
from ebbgate.units import NS_PER_S
from ebbgate.web import convert
from ebbgate.web.models.base import to_json
from ebbgate.web.models.intents import Intent
from ebbgate.web.snapshot import Databases

_TEXT: Final = re.compile(r"^\d{1,18}(\.\d{1,18}){5}$")
NEWS_MAX: Final = 1000
"""Decisions, knob writes and requests that wait for one reader; all readers share their bytes."""
RESET: Final = "reset"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last decision, knob write and request that were sent; the first request without an
    outcome (one more than the last where all have one); and a number that grows with each outcome.
    No part is a time, since clocks are set. These parts only grow within one file, `history`; 0:
    any file.
    """

    decision: int = 0
    action: int = 0
    intent: int = 0
    pending: int = 0
    answered: int = 0
    history: int = 0

    def __str__(self) -> str:
        return ".".join(map(str, (*self.parts, self.history)))

    @property
    def parts(self) -> tuple[int, ...]:
        """The numbers that grow."""
        return self.decision, self.action, self.intent, self.pending, self.answered

    def covers(self, other: Cursor) -> bool:
        """Return whether everything up to `other` was sent, of the same file."""
        if other.history not in (0, self.history):
            return False
        return all(ours >= theirs for ours, theirs in zip(self.parts, other.parts, strict=True))

    def beyond(self, other: Cursor) -> Cursor:
        """Return the farther of both, part by part."""
        farther = Cursor(*map(max, self.parts, other.parts))
        return replace(farther, history=other.history or self.history)


def parse(text: str) -> Cursor | None:
    """Return the cursor of a Last-Event-ID; None for a malformed one."""
    return Cursor(*map(int, text.split("."))) if _TEXT.fullmatch(text) else None


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `data`: JSON on one line. `at`: the cursor parts that it moves; others are 0.
    `newest`: a later event of its name replaces it; `content_key`: its content without times, so
    that a reader gets the same content once (None: always send it). `restart`: the history was
    replaced, so numbers begin again.
    """

    name: str
    data: bytes
    at: Cursor = Cursor()
    newest: bool = False
    content_key: object = None
    restart: bool = False


def after(cursor: Cursor, event: Event) -> Cursor:
    """Return the cursor of a reader once it got an event."""
    return event.at if event.restart else cursor.beyond(event.at)


def is_news(cursor: Cursor, last_sent: Mapping[str, object], event: Event) -> bool:
    """Return whether a reader at `cursor` needs an event. `last_sent`: content keys by name."""
    if event.newest:
        return event.content_key is None or event.content_key != last_sent.get(event.name)
    return event.restart or not cursor.covers(event.at)


def encode(event: Event, cursor: Cursor) -> bytes:
    """Return an event in the format of the stream, with the cursor after it."""
    head = f"event: {event.name}\nid: {cursor}\ndata: "
    return head.encode() + event.data + b"\n\n"


def newest(databases: Databases) -> Cursor | None:
    """Return the cursor of the history now; None where it cannot be read."""
    try:
        with databases.history() as history:
            decision, action = history.newest()
            return Cursor(decision, action, *history.intents.last(), history=history.identity())
    except EbbgateError:
        return None


def since(databases: Databases, cursor: Cursor) -> list[Event] | None:
    """Return what is new, by kind and time; one `reset` if it is too much, or if the history was
    replaced. None where it cannot be read now.
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
    found = []
    for row in decisions:
        document = to_json(convert.decision(row, of_decision.get(row["id"], ())))
        found.append(Event("decision", document, Cursor(decision=row["id"])))
    for row in actions:
        document = to_json(convert.action(row))
        found.append(Event("action", document, Cursor(action=row["id"])))
    for request in requests:
        # Only the last one moves the cursor, so a connection that breaks between them skips none.
        at = Cursor(0, 0, *last) if request is requests[-1] else Cursor(intent=request.id)
        found.append(Event("intent", to_json(intent(request)), at))
    return found


def intent(row: IntentRow) -> Intent:
    """Return a request as the API shows it."""
    times = {
        "at_unix_s": row.at_unix_ns / NS_PER_S,
        "resolved_unix_s": convert.seconds(row.resolved_unix_ns),
    }
    return Intent.read({**asdict(row), **times})
