# SPDX-License-Identifier: GPL-2.0-only
"""The body of a request as the dataclass that its route takes. I/O: HTTP."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from starlette.requests import Request

from ebbgate.web.errors import ApiError, Place
from ebbgate.web.models.codec import Mismatch, build


def taking(cls: type) -> Callable[[Request], Awaitable[Any]]:
    """A dependency that reads the body. It raises ApiError with the place of what is wrong."""

    async def read(request: Request) -> Any:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise ApiError(415, "the body must be JSON", "send Content-Type: application/json")
        return parsed(cls, await request.body())

    return read


def parsed(cls: type, body: bytes) -> Any:
    """The value that a body says. Raises ApiError."""
    try:
        document = json.loads(body.decode(), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place = Place("body", error.lineno, error.colno)
        raise ApiError(400, f"the body is no JSON: {error.msg}", place=place) from error
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is no JSON: {error}") from error
    try:
        return build(cls, document, strict=True)
    except Mismatch as error:
        hint = f"see {cls.__name__} in /api/v1/openapi.json"
        raise ApiError(422, f"the body: {error}", hint) from error


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")
