# SPDX-License-Identifier: GPL-2.0-only
"""Models of requests to the daemon. Pure data."""

from __future__ import annotations

from typing import Any

from pydantic import StrictStr

from ebbgate.intents import validation
from ebbgate.intents.protocol import NAME_LENGTH_MAX
from ebbgate.model.override import IntentKind
from ebbgate.web.models.base import Model, doc


def _args() -> str:
    """Describe the arguments of each kind."""
    parts = []
    for kind, spec in validation.INTENT_SPECS.items():
        args = "; ".join(
            f"{name}{'' if arg.required else '?'}: {arg.about}" for name, arg in spec.args.items()
        )
        parts.append(f"{kind} ({spec.about}): {args or 'none'}.")
    return " ".join(parts)


class Intent(Model):
    """A request of a person, and its outcome."""

    id: int = doc("Its number.")
    kind: str = doc("What was requested.", example="mode")
    volume: str | None = doc("The volume; null for all or none.")
    args: dict[str, Any] = doc("Its arguments; long texts are shortened.")
    who: str = doc("Who requested it: a user of the machine, and the name given on the page.")
    at_unix_s: float = doc("When.", "s since 1970")
    resolved_unix_s: float | None = doc(
        "When the outcome was known; null if it is not yet.", "s since 1970"
    )
    ok: bool | None = doc("Whether it was carried out; null if not yet known.")
    outcome: str | None = doc("The outcome in a sentence; null if not yet known.")


class IntentList(Model):
    """Requests, newest first."""

    intents: list[Intent] = doc("Newest first.")


class NewIntent(Model, extra="forbid"):
    """A request to the daemon, which carries it out within a second or two."""

    kind: IntentKind = doc("What is requested.", example="mode")
    volume: StrictStr | None = doc(
        "The volume; null for all, where that makes sense.",
        bounds={"maxLength": NAME_LENGTH_MAX},
        default=None,
    )
    # pydantic 1 would take a list of pairs for a dict; intent_service.py checks it.
    args: Any = doc(
        f"The arguments, by kind. {_args()}",
        example={"mode": "enforce"},
        bounds={"type": "object", "additionalProperties": True},
        default={},
    )


class TokenCheck(Model):
    """The answer to a valid token."""

    ok: bool = doc("Always true; an invalid token is an error.")
