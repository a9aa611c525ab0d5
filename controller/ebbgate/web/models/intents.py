# SPDX-License-Identifier: GPL-2.0-only
"""Requests of people over the API. Pure data."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import StrictStr

from ebbgate.intents import validation
from ebbgate.intents.protocol import NAME_LENGTH_MAX
from ebbgate.model.override import IntentKind
from ebbgate.web.models.base import Model, doc


def _args() -> str:
    """What each kind takes, for the reader of the document."""
    parts = []
    for kind, request in validation.REQUESTS.items():
        words = "; ".join(
            f"{name}{'' if word.required else '?'}: {word.about}"
            for name, word in request.words.items()
        )
        parts.append(f"{kind} ({request.about}): {words or 'nothing'}.")
    return " ".join(parts)


class Intent(Model):
    """A request of a person, and its outcome."""

    id: Annotated[int, doc("Its number.")]
    kind: Annotated[str, doc("What was asked for.", example="mode")]
    volume: Annotated[str | None, doc("For which volume; null: for all, or for none.")]
    args: Annotated[dict[str, Any], doc("The arguments of its kind; long texts are shortened.")]
    who: Annotated[str, doc("Who asked: a user of the machine, and who sits before the page.")]
    at_unix_s: Annotated[float, doc("When.", "s since 1970")]
    resolved_unix_s: Annotated[float | None, doc("When it got its outcome.", "s since 1970")]
    ok: Annotated[bool | None, doc("Was it carried out? Null: no outcome yet.")]
    outcome: Annotated[str | None, doc("The outcome in a sentence; null: none yet.")]


class IntentList(Model):
    """Requests, the newest first."""

    intents: Annotated[list[Intent], doc("The newest first.")]


class NewIntent(Model, extra="forbid"):
    """A request to the daemon, which carries it out within a second or two."""

    kind: Annotated[IntentKind, doc("What is asked for.", example="mode")]
    volume: Annotated[
        StrictStr | None,
        doc(
            "For which volume; null: for all, where that makes sense.",
            bounds={"maxLength": NAME_LENGTH_MAX},
        ),
    ] = None
    args: Annotated[
        # pydantic 1 would take a list of pairs for a dict; intent_service.py checks it.
        Any,
        doc(
            f"The arguments, by kind. {_args()}",
            example={"mode": "enforce"},
            bounds={"type": "object", "additionalProperties": True},
        ),
    ] = {}  # noqa: RUF012 - pydantic copies it


class TokenRight(Model):
    """The token is right."""

    ok: Annotated[bool, doc("Always true; a wrong token is an error.")]
