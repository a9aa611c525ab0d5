# SPDX-License-Identifier: GPL-2.0-only
"""Live data as server-sent events. I/O: HTTP."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ebbgate.web.errors import ApiError
from ebbgate.web.events.broadcaster import Hub
from ebbgate.web.events.poller import Poller
from ebbgate.web.events.sse import EventStream
from ebbgate.web.models.json_schema import REF
from ebbgate.web.models.live import StreamEvent
from ebbgate.web.routes.declare import answers
from ebbgate.web.security import client_of
from ebbgate.web.snapshot import Databases


def routes_events(databases: Databases, hub: Hub, poller: Poller) -> APIRouter:
    """`poller`: who looks while anybody is there to be told."""
    router = APIRouter(tags=["now"])
    about = answers(StreamEvent, 503)
    about["openapi_extra"]["responses"]["200"] = {
        "description": (
            "`volumes` and `health` (as their routes answer), `decision`, `action` and `intent`"
            " (one of each), `reset`: too much was missed, read all anew. The schema is that of one"
            " event, since OpenAPI 3.1 has no word for a stream of them."
        ),
        "content": {"text/event-stream": {"schema": {"$ref": f"{REF}StreamEvent"}}},
    }

    @router.get("/events", summary="Live data", **about)
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
