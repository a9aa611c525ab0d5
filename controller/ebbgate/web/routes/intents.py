# SPDX-License-Identifier: GPL-2.0-only
"""Requests of people: sent to the daemon, and followed to their outcome. I/O: HTTP."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from ebbgate.intents.protocol import LABEL_LENGTH_MAX
from ebbgate.web.errors import ApiError
from ebbgate.web.intent_service import Requests, label_of
from ebbgate.web.models.intents import Intent, IntentList, NewIntent
from ebbgate.web.responses import reply
from ebbgate.web.routes.declare import JSON_BODY, NUMBER, NUMBER_MAX, TOKEN, refusals
from ebbgate.web.snapshot import Databases

_LIMIT: Final[Any] = Query(50, ge=1, le=1000, description="At most so many.")
_BEFORE: Final[Any] = Query(
    None, ge=1, le=NUMBER_MAX, description="Only older ones than this number."
)
_WHO: Final[Any] = Header(
    "",
    alias="X-Ebbgate-Who",
    max_length=LABEL_LENGTH_MAX,
    description="Who sits before the page, for the record.",
)


def routes_intents(databases: Databases) -> APIRouter:
    """Their routes."""
    router = APIRouter(tags=["requests"])
    requests = Requests(databases)

    @router.get(
        "/intents", summary="Requests", response_model=IntentList, responses=refusals(422, 503)
    )
    def intents(limit: int = _LIMIT, before_id: int | None = _BEFORE) -> Response:
        """What people asked for, the newest first, and the outcomes."""
        before = NUMBER_MAX if before_id is None else before_id
        return reply(IntentList(intents=requests.newest(limit, before)))

    @router.get(
        "/intents/{number}",
        summary="One request",
        response_model=Intent,
        responses=refusals(404, 422, 503),
    )
    def intent(number: int = NUMBER) -> Response:
        """What was asked for, and its outcome."""
        found = requests.get(number)
        if found is None:
            raise ApiError(404, f"there is no request {number}", "see /api/v1/intents")
        return reply(found)

    @router.post(
        "/intents",
        summary="Ask for something",
        status_code=202,
        response_model=Intent,
        responses=refusals(400, 401, 403, 404, 409, 413, 415, 422, 429, 503),
        dependencies=[TOKEN, JSON_BODY],
    )
    def add(wanted: NewIntent, who: str = _WHO) -> Response:
        """Answered once the daemon has accepted or refused the request. It is carried out within a
        second or two: follow it by its number, or by the event stream.
        """
        return reply(requests.add(wanted, label_of(who)), 202)

    return router
