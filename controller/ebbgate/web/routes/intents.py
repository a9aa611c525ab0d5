# SPDX-License-Identifier: GPL-2.0-only
"""Requests of people: sent to the daemon, and followed to their outcome. I/O: HTTP."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from ebbgate.intents.protocol import LABEL_LENGTH_MAX
from ebbgate.web.errors import ApiError
from ebbgate.web.intent_service import Requests, label_of
from ebbgate.web.models.intents import Intent, IntentList, NewIntent
from ebbgate.web.request_body import taking
from ebbgate.web.responses import reply
from ebbgate.web.routes.declare import NUMBER, NUMBER_MAX, answers
from ebbgate.web.snapshot import Databases

_LIMIT: Final[Any] = Query(50, ge=1, le=1000, description="At most so many.")
_BEFORE: Final[Any] = Query(
    None, ge=1, le=NUMBER_MAX, description="Only older ones than this number."
)
_WANTED: Final[Any] = Depends(taking(NewIntent))
_WHO: Final = {
    "name": "X-Ebbgate-Who",
    "in": "header",
    "required": False,
    "description": "Who sits before the page, for the record; at most 64 characters.",
    "schema": {"type": "string", "maxLength": LABEL_LENGTH_MAX},
}


def routes_intents(databases: Databases) -> APIRouter:
    """Their routes."""
    router = APIRouter(tags=["requests"])
    requests = Requests(databases)
    adding = answers(
        Intent, 400, 401, 403, 404, 409, 413, 415, 422, 503, takes=NewIntent, status=202
    )
    adding["openapi_extra"]["parameters"] = [_WHO]

    @router.get("/intents", summary="Requests", **answers(IntentList, 422, 503))
    def intents(limit: int = _LIMIT, before_id: int | None = _BEFORE) -> Response:
        """What people asked for, the newest first, and the outcomes."""
        before = NUMBER_MAX if before_id is None else before_id
        return reply(IntentList(requests.newest(limit, before)))

    @router.get("/intents/{number}", summary="One request", **answers(Intent, 404, 422, 503))
    def intent(number: int = NUMBER) -> Response:
        """What was asked for, and its outcome."""
        found = requests.get(number)
        if found is None:
            raise ApiError(404, f"there is no request {number}", "see /api/v1/intents")
        return reply(found)

    @router.post("/intents", summary="Ask for something", **adding)
    def add(request: Request, wanted: NewIntent = _WANTED) -> Response:
        """Answered once the daemon has accepted or refused the request. It is carried out within a
        second or two: follow it by its number, or by the event stream.
        """
        label = label_of(request.headers.get("x-ebbgate-who"))
        return reply(requests.add(wanted, label), 202)

    return router
