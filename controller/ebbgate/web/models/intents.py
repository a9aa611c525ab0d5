# SPDX-License-Identifier: GPL-2.0-only
"""Requests of people over the API. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from ebbgate.intents import validation
from ebbgate.intents.protocol import NAME_LENGTH_MAX
from ebbgate.model.override import IntentKind
from ebbgate.web.models.field_doc import Of


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


@dataclass(frozen=True, slots=True)
class Intent:
    """A request of a person, and its outcome."""

    id: Annotated[int, Of("Its number.")]
    kind: Annotated[str, Of("What was asked for.", example="mode")]
    volume: Annotated[str | None, Of("For which volume; null: for all, or for none.")]
    args: Annotated[dict[str, Any], Of("The arguments of its kind; long texts are shortened.")]
    who: Annotated[str, Of("Who asked: a user of the machine, and who sits before the page.")]
    at_unix_s: Annotated[float, Of("When.", "s since 1970")]
    resolved_unix_s: Annotated[float | None, Of("When it got its outcome.", "s since 1970")]
    ok: Annotated[bool | None, Of("Was it carried out? Null: no outcome yet.")]
    outcome: Annotated[str | None, Of("The outcome in a sentence; null: none yet.")]


@dataclass(frozen=True, slots=True)
class IntentList:
    """Requests, the newest first."""

    intents: Annotated[list[Intent], Of("The newest first.")]


@dataclass(frozen=True, slots=True)
class NewIntent:
    """A request to the daemon, which carries it out within a second or two."""

    kind: Annotated[IntentKind, Of("What is asked for.", example="mode")]
    volume: Annotated[
        str | None,
        Of(
            "For which volume; null: for all, where that makes sense.",
            bounds={"maxLength": NAME_LENGTH_MAX},
        ),
    ] = None
    args: Annotated[
        dict[str, Any],
        Of(f"The arguments, by kind. {_args()}", example={"mode": "enforce"}),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokenRight:
    """The token is right."""

    ok: Annotated[bool, Of("Always true; a wrong token is an error.")]
