# SPDX-License-Identifier: GPL-2.0-only
"""How a route is declared: its answer, what it may be refused for, and its parameters. Pure.

FastAPI routes and checks parameters; the answers are described by `schema`, see there.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import Path, Query

from ebbgate.units import NS_PER_S
from ebbgate.web.errors import CODES, ApiError
from ebbgate.web.models.json_schema import REF

ANSWERS: Final[dict[str, type]] = {}
"""Every dataclass that a route answers with or takes, by name: the components of the document."""
TAKEN: Final[set[str]] = set()
"""Those that a route takes."""
_LATEST_S: Final = 9e9
"""The year 2255. In nanoseconds it is a number that SQLite can hold; later ones are not."""


def answers(
    answer: type, *refusals: int, takes: type | None = None, status: int = 200
) -> dict[str, Any]:
    """Keyword arguments of a route that answers with a dataclass. `refusals`: statuses of errors,
    beside those that any request may meet.
    """
    ANSWERS[answer.__name__] = answer
    responses: dict[str, Any] = {str(status): _described("The answer.", answer.__name__)}
    for each in sorted({*refusals, 421, 429, 500}):
        responses[str(each)] = _described(CODES[each].replace("_", " "), "Error")
    extra: dict[str, Any] = {"responses": responses}
    if takes is not None:
        ANSWERS[takes.__name__] = takes
        TAKEN.add(takes.__name__)
        content = {"application/json": {"schema": {"$ref": REF + takes.__name__}}}
        extra["requestBody"] = {"required": True, "content": content}
    return {"openapi_extra": extra, "response_model": None, "status_code": status}


def _described(text: str, name: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": REF + name}}}
    return {"description": text, "content": content}


def stretch_ns(
    since_unix_s: float | None, until_unix_s: float | None, now_ns: int, default_s: float
) -> tuple[int, int]:
    """The time that was asked for, `[since, until)` in Unix ns; without one the last `default_s`
    before now. Raises ApiError.
    """
    now_s = now_ns / NS_PER_S
    until_s = now_s if until_unix_s is None else until_unix_s
    since_s = until_s - default_s if since_unix_s is None else since_unix_s
    if since_s >= until_s:
        raise ApiError(422, "since_unix_s is not before until_unix_s", "swap them")
    return max(0, round(since_s * NS_PER_S)), max(0, round(until_s * NS_PER_S))


NUMBER_MAX: Final = (1 << 53) - 1
"""Larger ones are no exact numbers in a browser."""
VOLUME: Final[Any] = Path(
    ..., description="The name of a volume, as /api/v1/volumes has it.", max_length=128
)
NUMBER: Final[Any] = Path(..., description="Its number.", ge=1, le=NUMBER_MAX)
SINCE: Final[Any] = Query(
    None, ge=-_LATEST_S, le=_LATEST_S, description="From this time on. Unit: s since 1970."
)
UNTIL: Final[Any] = Query(
    None,
    ge=-_LATEST_S,
    le=_LATEST_S,
    description="Up to this time; now, if left out. Unit: s since 1970.",
)
