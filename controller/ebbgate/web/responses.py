# SPDX-License-Identifier: GPL-2.0-only
"""Responses: models as JSON, errors in their one shape. I/O: HTTP."""

from __future__ import annotations

import logging
import math
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ebbgate.errors import EbbgateError
from ebbgate.log_messages.service import WEB_REQUEST_FAILED
from ebbgate.web.errors import CODES, ApiError, Place, api_error
from ebbgate.web.models.base import to_json

_LOG = logging.getLogger(__name__)


def reply(value: Any, status: int = 200) -> Response:
    """Return a response with a model as JSON."""
    return as_json(to_json(value), status)


def as_json(body: bytes, status: int = 200) -> Response:
    """Return a response with encoded JSON. It holds for a moment only, so nobody may cache it."""
    headers = {"cache-control": "no-store"}
    return Response(body, status, headers, media_type="application/json")


def refusal(error: ApiError) -> Response:
    """Return the response for an error."""
    answer = reply(error.body, error.status)
    if error.retry_after_s is not None:
        answer.headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    return answer


async def on_known(_: Request, error: Exception) -> Response:
    """Handle an error of this API or of a lower module."""
    assert isinstance(error, ApiError | EbbgateError)
    return refusal(error if isinstance(error, ApiError) else api_error(error))


async def on_http(request: Request, error: Exception) -> Response:
    """Handle an unknown path or method."""
    assert isinstance(error, HTTPException)
    status = error.status_code if error.status_code in CODES else 400
    path = request.url.path[:200]
    texts = {
        404: (f"no such path: {path}", "see /api/v1/openapi.json for all paths"),
        405: (f"{path} does not take {request.method}", "see /api/v1/openapi.json"),
    }
    message, hint = texts.get(status, (str(error.detail), ""))
    answer = refusal(ApiError(status, message, hint))
    answer.headers.update(error.headers or {})
    return answer


async def on_validation(_: Request, error: Exception) -> Response:
    """Handle an invalid parameter or body."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    part, *rest = first["loc"]
    if part == "body" and "json" in first["type"]:
        # pydantic 1 calls it value_error.jsondecode, pydantic 2 json_invalid.
        return refusal(_not_json(str(error.body), int(rest[0])))
    name = ".".join(map(str, rest)) or f"the {part}"
    message = f"{name}: {first['msg']}"
    return refusal(ApiError(422, message, "see /api/v1/openapi.json for what is allowed"))


def _not_json(body: str, at: int) -> ApiError:
    before = body[:at].split("\n")
    place = Place(file="body", line=len(before), column=len(before[-1]) + 1)
    return ApiError(400, "the body is not JSON", "send valid JSON", place=place)


async def on_bug(request: Request, error: Exception) -> Response:
    """Handle a bug. The server logs it with its stack."""
    _LOG.error(WEB_REQUEST_FAILED, request.method, request.url.path, error)
    hint = "see its log: journalctl -u ebbgate-web"
    return refusal(ApiError(500, "internal error in ebbgate-web", hint))
