# SPDX-License-Identifier: GPL-2.0-only
"""How far a reader of the event stream has come; and the stream's own form. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_TEXT: Final = re.compile(r"^(\d{1,18})\.(\d{1,18})\.(\d{1,18})\.(\d{1,19})$")
COMMENT: Final = b": alive\n\n"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last decision, knob write and wish that were told, and when a wish was last answered."""

    decision: int = 0
    action: int = 0
    intent: int = 0
    resolved_unix_ns: int = 0

    def __str__(self) -> str:
        return f"{self.decision}.{self.action}.{self.intent}.{self.resolved_unix_ns}"

    def covers(self, other: Cursor) -> bool:
        """Was everything up to `other` told?"""
        return (
            other.decision <= self.decision
            and other.action <= self.action
            and other.intent <= self.intent
            and other.resolved_unix_ns <= self.resolved_unix_ns
        )

    def beyond(self, other: Cursor) -> Cursor:
        """The farther of both, each part by itself."""
        return Cursor(
            max(self.decision, other.decision),
            max(self.action, other.action),
            max(self.intent, other.intent),
            max(self.resolved_unix_ns, other.resolved_unix_ns),
        )


def parse(text: str) -> Cursor | None:
    """The cursor of a Last-Event-ID; None for what was none of ours."""
    match = _TEXT.match(text.strip())
    return Cursor(*map(int, match.groups())) if match else None


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `data`: JSON on one line. `at`: what is told with it; parts that it says nothing
    of are 0. `newest`: a later one of its name makes it needless. `restart`: from here on numbers
    are counted anew, as the history is another one.
    """

    name: str
    data: bytes
    at: Cursor = Cursor()
    newest: bool = False
    restart: bool = False


def after(cursor: Cursor, event: Event) -> Cursor:
    """Where a reader is once it was told an event."""
    return event.at if event.restart else cursor.beyond(event.at)


def encode(event: Event, cursor: Cursor) -> bytes:
    """The event as it goes over the wire, with how far its reader is then."""
    return b"event: %s\nid: %s\ndata: %s\n\n" % (
        event.name.encode(),
        str(cursor).encode(),
        event.data,
    )
