# SPDX-License-Identifier: GPL-2.0-only
"""Requests to the daemon, and their outcomes. I/O: HTTP."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Header
from starlette.responses import Response

from ebbgate.intents.protocol import LABEL_LENGTH_MAX
from ebbgate.web.errors import ApiError
from ebbgate.web.intent_service import IntentService, label_of
from ebbgate.web.models.intents import Intent, IntentList, NewIntent
from ebbgate.web.responses import reply
from ebbgate.web.routes.declare import (
    BEFORE,
    JSON_BODY,
    NUMBER,
    NUMBER_MAX,
    TOKEN,
    most_results,
    refusals,
    router,
)
from ebbgate.web.snapshot import Databases

_LIMIT: Final = most_results(50)
_WHO: Final[Any] = Header(
    "",
    alias="X-Ebbgate-Who",
    max_length=LABEL_LENGTH_MAX,
    description="The name of the person, for the record.",
)


def routes_intents(databases: Databases) -> APIRouter:
    """Return the routes."""
    routes = router("requests")
    service = IntentService(databases)

    @routes.get(
        "/intents", summary="Requests", response_model=IntentList, responses=refusals(422, 503)
    )
    def intents(limit: int = _LIMIT, before_id: int | None = BEFORE) -> Response:
        """Requests and their outcomes, newest first."""
        return reply(IntentList(intents=service.newest(limit, before_id or NUMBER_MAX)))

    @routes.get(
        "/intents/{number}",
        summary="One request",
        response_model=Intent,
        responses=refusals(404, 422, 503),
    )
    def intent(number: int = NUMBER) -> Response:
        """A request and its outcome."""
        found = service.get(number)
        if found is None:
            raise ApiError(404, f"no request {number}", "see /api/v1/intents")
        return reply(found)

    @routes.post(
        "/intents",
        summary="Make a request",
        status_code=202,
        response_model=Intent,
        responses=refusals(400, 401, 403, 404, 409, 413, 415, 422, 429, 503),
        dependencies=[TOKEN, JSON_BODY],
    )
    def add(request: NewIntent, who: str = _WHO) -> Response:
        """Answers once the daemon has accepted or refused the request, which is carried out within
        a second or two: follow it by its number, or on the event stream.
        """
        return reply(service.add(request, label_of(who)), 202)

    return routes
