# SPDX-License-Identifier: GPL-2.0-only
"""Live data as server-sent events. I/O: HTTP."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ebbgate.web.errors import ApiError
from ebbgate.web.events.broadcaster import Hub
from ebbgate.web.events.poller import Poller
from ebbgate.web.events.sse import EventStream
from ebbgate.web.routes.declare import of_type, refusals
from ebbgate.web.security import client_of
from ebbgate.web.snapshot import Databases

_EVENT: Final = {
    "type": "object",
    "required": ["event", "id", "data"],
    "properties": {
        "event": {"enum": ["volumes", "health", "decision", "action", "intent", "reset"]},
        "id": {"type": "string", "description": "To be sent back as Last-Event-ID."},
        "data": {"type": "string", "description": "JSON on one line."},
    },
}


def routes_events(databases: Databases, hub: Hub, poller: Poller) -> APIRouter:
    """`poller`: who looks while anybody is there to be told."""
    router = APIRouter(tags=["now"])
    shown = of_type(
        "Events: `volumes` and `health` (as their routes answer), `decision`, `action`, `intent`"
        " (one of each), and `reset` (too much was missed: read everything again).",
        _EVENT,
        "text/event-stream",
    )

    @router.get(
        "/events",
        summary="Live data",
        response_class=Response,
        responses=shown | refusals(503),
    )
    async def events(request: Request) -> Response:
        """Server-sent events. A browser that comes back with Last-Event-ID is told what it missed,
        up to a thousand events. A comment each 15 s says that the line is alive.
        """
        reader = hub.join(client_of(request.scope))
        if reader is None:
            text = f"too many event streams are open ({len(hub)} in all)"
            raise ApiError(503, text, "close a page, or wait", retry_after_s=10)
        poller.want(True)
        last_id = request.headers.get("last-event-id")

        def left() -> None:
            poller.want(bool(len(hub)))

        return EventStream(hub, reader, databases, last_id, poller.begin, left)

    return router
