# SPDX-License-Identifier: GPL-2.0-only
"""How far a reader of the event stream has come; and the stream's own form. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

_TEXT: Final = re.compile(r"^\d{1,18}(\.\d{1,18}){5}$")
COMMENT: Final = b": alive\n\n"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last decision, knob write and request that were sent; the first request without an
    outcome (one more than the last where all have one); and a number that grows with each outcome.
    No part of it is a time, since clocks are set. These parts only grow within one file: `history`
    says which file it is, 0 where that is not said.
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
        """Was everything up to `other` sent, of the same file?"""
        if other.history not in (0, self.history):
            return False
        return all(ours >= theirs for ours, theirs in zip(self.parts, other.parts, strict=True))

    def beyond(self, other: Cursor) -> Cursor:
        """The farther of both, each part by itself."""
        return replace(
            Cursor(*map(max, self.parts, other.parts)),
            history=other.history or self.history,
        )


def parse(text: str) -> Cursor | None:
    """The cursor of a Last-Event-ID; None for what was none of ours."""
    return Cursor(*map(int, text.split("."))) if _TEXT.fullmatch(text) else None


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `data`: JSON on one line. `at`: what is told with it; parts that it says nothing
    of are 0. `newest`: a later one of its name makes it needless; `says`: what such a one says but
    for times, and who was told the same needs it not (None: it is told all the same). `restart`:
    from here on numbers are counted anew, as the history is another one.
    """

    name: str
    data: bytes
    at: Cursor = Cursor()
    newest: bool = False
    says: object = None
    restart: bool = False


def after(cursor: Cursor, event: Event) -> Cursor:
    """Where a reader is once it was told an event."""
    return event.at if event.restart else cursor.beyond(event.at)


def is_news(cursor: Cursor, told: Mapping[str, object], event: Event) -> bool:
    """Was it not told to a reader who is there? `told`: what the newest of each name said."""
    if event.newest:
        return event.says is None or event.says != told.get(event.name)
    return event.restart or not cursor.covers(event.at)


def encode(event: Event, cursor: Cursor) -> bytes:
    """The event as it goes over the wire, with how far its reader is then."""
    return b"event: %s\nid: %s\ndata: %s\n\n" % (
        event.name.encode(),
        str(cursor).encode(),
        event.data,
    )
