# SPDX-License-Identifier: GPL-2.0-only
"""What routes share: refusals, parameters, dependencies. Pure."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends, Path, Query, Security
from fastapi.security import HTTPBearer
from starlette.requests import Request

from ebbgate.units import NS_PER_S
from ebbgate.web.errors import CODES, ApiError, Error

PREFIX: Final = "/api/v1"
LATEST_S: Final = 9e9
"""The year 2255. In nanoseconds it is a number that SQLite can hold; later ones are not."""


def router(tag: str, *statuses: int, prefix: str = PREFIX) -> APIRouter:
    """Make a router. `statuses`: of the errors that all its routes have."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        responses=refusals(421, 500, *statuses),
        generate_unique_id_function=lambda route: route.name,
    )


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe errors of a route."""
    return {
        each: {"model": Error, "description": CODES[each].replace("_", " ")} for each in statuses
    }


def of_type(
    description: str, schema: dict[str, Any], *media_types: str
) -> dict[int | str, dict[str, Any]]:
    """Describe an answer that is not JSON of a model."""
    content = {each: {"schema": schema} for each in media_types}
    return {200: {"description": description, "content": content}}


def stretch_ns(
    since_unix_s: float | None, until_unix_s: float | None, now_ns: int, default_s: float
) -> tuple[int, int]:
    """Return the requested time, `[since, until)` in Unix ns; without one the last `default_s`
    before now. Raises ApiError.
    """
    now_s = now_ns / NS_PER_S
    until_s = now_s if until_unix_s is None else until_unix_s
    since_s = until_s - default_s if since_unix_s is None else since_unix_s
    if since_s >= until_s:
        raise ApiError(422, "since_unix_s is not before until_unix_s", "swap them")
    return max(0, round(since_s * NS_PER_S)), max(0, round(until_s * NS_PER_S))


def _json_only(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(415, "the body must be JSON", "send Content-Type: application/json")


JSON_BODY: Final[Any] = Depends(_json_only)
# For the document alone: security.py looks at the token before any route is called.
TOKEN: Final[Any] = Security(
    HTTPBearer(auto_error=False, scheme_name="token", description="The token of this machine.")
)


def most_results(default: int, most: int = 1000) -> Any:
    """Declare the parameter of how many results are wanted."""
    return Query(default, ge=1, le=most, description="Largest number of results.")


def time_of(description: str) -> Any:
    """Declare the parameter of a time."""
    text = f"{description} Unit: s since 1970."
    return Query(None, ge=-LATEST_S, le=LATEST_S, description=text)


NUMBER_MAX: Final = (1 << 53) - 1
"""Larger ones are no exact numbers in a browser."""
VOLUME: Final[Any] = Path(
    ..., description="The name of a volume, as in /api/v1/volumes.", max_length=128
)
BEFORE: Final[Any] = Query(
    None, ge=1, le=NUMBER_MAX, description="Only those with a smaller number."
)
NUMBER: Final[Any] = Path(..., description="Its number.", ge=1, le=NUMBER_MAX)
SINCE: Final = time_of("From this time on.")
UNTIL: Final = time_of("Up to this time; now, if left out.")
