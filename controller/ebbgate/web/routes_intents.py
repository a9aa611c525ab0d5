# SPDX-License-Identifier: GPL-2.0-only
"""Wishes of people: added, and followed until they are answered. I/O: HTTP, SQLite."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from ebbgate.store.connection import NothingRecorded
from ebbgate.web import intents as asked_for
from ebbgate.web.body import taking
from ebbgate.web.databases import Databases
from ebbgate.web.failure import ApiError
from ebbgate.web.models_intents import Intent, IntentList, NewIntent
from ebbgate.web.news import intent as shaped
from ebbgate.web.reply import reply
from ebbgate.web.route import NUMBER, NUMBER_MAX, answers

_LIMIT: Final[Any] = Query(50, ge=1, le=1000, description="At most so many.")
_BEFORE: Final[Any] = Query(
    None, ge=1, le=NUMBER_MAX, description="Only older ones than this number."
)
_WANTED: Final[Any] = Depends(taking(NewIntent))
_WHO: Final = {
    "name": "X-Ebbgate-Who",
    "in": "header",
    "required": False,
    "description": "Who sits before the page, for the record; at most 64 letters.",
    "schema": {"type": "string", "maxLength": asked_for.WHO_MAX},
}


def routes_intents(databases: Databases) -> APIRouter:
    """Their routes."""
    router = APIRouter(tags=["wishes"])
    adding = answers(Intent, 400, 401, 403, 404, 413, 415, 422, 503, takes=NewIntent, status=202)
    adding["openapi_extra"]["parameters"] = [_WHO]

    @router.get("/intents", summary="Wishes", **answers(IntentList, 422, 503))
    def intents(limit: int = _LIMIT, before_id: int | None = _BEFORE) -> Response:
        """What people wished, the newest first, and what became of it."""
        try:
            with databases.intents() as found:
                rows = found.newest(limit, NUMBER_MAX if before_id is None else before_id)
        except NothingRecorded:
            rows = []
        return reply(IntentList([shaped(row) for row in rows]))

    @router.get("/intents/{number}", summary="One wish", **answers(Intent, 404, 422, 503))
    def intent(number: int = NUMBER) -> Response:
        """What was wished, and what became of it."""
        try:
            with databases.intents() as found:
                row = found.get(number)
        except NothingRecorded:
            row = None
        if row is None:
            raise ApiError(404, f"there is no wish {number}", "see /api/v1/intents")
        return reply(shaped(row))

    @router.post("/intents", summary="Wish something", **adding)
    def add(request: Request, wanted: NewIntent = _WANTED) -> Response:
        """The daemon carries it out within a second or two: follow it by its number, or by the
        event stream. One that it finds more than five minutes later is not carried out any more.
        """
        who = asked_for.who_asked(request.headers.get("x-ebbgate-who"))
        return reply(asked_for.add(databases, wanted, who), 202)

    return router
