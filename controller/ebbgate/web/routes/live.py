# SPDX-License-Identifier: GPL-2.0-only
"""Volumes and health now, and as a stream of events. I/O: HTTP, reads the history."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from ebbgate.web import convert
from ebbgate.web.errors import ApiError
from ebbgate.web.events import Broadcaster, EventStream, Poller
from ebbgate.web.models.intents import TokenCheck
from ebbgate.web.models.live import Health, Volume, Volumes
from ebbgate.web.responses import as_json, reply
from ebbgate.web.routes.declare import TOKEN, VOLUME, of_type, refusals, router
from ebbgate.web.security import TOKEN_RECHECK, client_of
from ebbgate.web.snapshot import Databases

_AGE_S: Final = 0.25
"""So 200 readers at once cost one snapshot."""
_EVENT: Final = {
    "type": "object",
    "required": ["event", "id", "data"],
    "properties": {
        "event": {"enum": ["volumes", "health", "decision", "action", "intent", "reset"]},
        "id": {"type": "string", "description": "To be sent back as Last-Event-ID."},
        "data": {"type": "string", "description": "JSON on one line."},
    },
}


def routes_live(databases: Databases) -> APIRouter:
    """Return the routes."""
    routes = router("now")

    @routes.get("/health", summary="Health", response_model=Health)
    def health() -> Response:
        """What works and what does not. Always answers: a missing, locked or damaged database and a
        dead daemon are data.
        """
        return as_json(databases.snapshot(_AGE_S).health_json)

    @routes.get("/volumes", summary="All volumes", response_model=Volumes)
    def volumes() -> Response:
        """All volumes that the daemon follows; none, and why, if the history cannot be read."""
        return as_json(databases.snapshot(_AGE_S).volumes_json)

    @routes.get(
        "/volumes/{volume}",
        summary="One volume",
        response_model=Volume,
        responses=refusals(404, 422, 503),
    )
    def volume(volume: str = VOLUME) -> Response:
        """One volume as it is now."""
        snapshot = databases.snapshot(_AGE_S)
        if snapshot.why is not None:
            raise ApiError(503, snapshot.why, "see /api/v1/health", retry_after_s=2)
        live = snapshot.live.volumes.get(volume)
        if live is None:
            raise ApiError(404, f"the daemon does not follow {volume}", "see /api/v1/volumes")
        try:
            hit = snapshot.hits.get(volume)
            found = convert.volume(live, hit, snapshot.now_unix_ns, snapshot.alive)
        except ValidationError as error:
            text = f"the status of {volume} was written by another version: {error}"
            hint = "install both from the same release and restart both"
            raise ApiError(503, text, hint) from error
        return reply(found)

    @routes.get(
        "/token",
        summary="Check the token",
        response_model=TokenCheck,
        responses=refusals(401, 503),
        dependencies=[TOKEN],
    )
    def token() -> Response:
        """Answers only with a valid token."""
        return reply(TokenCheck(ok=True))

    return routes


def routes_events(broadcaster: Broadcaster, poller: Poller) -> APIRouter:
    """Return the route of the event stream."""
    routes = router("now")
    shown = of_type(
        "Events: `volumes` and `health` (as their routes answer), `decision`, `action`, `intent`"
        " (one of each), and `reset` (too much was missed: read everything again).",
        _EVENT,
        "text/event-stream",
    )

    @routes.get(
        "/events", summary="Live data", response_class=Response, responses=shown | refusals(503)
    )
    async def events(request: Request) -> Response:
        """Server-sent events. A browser that returns with Last-Event-ID gets what it missed, up to
        1000 events. A comment every 15 s shows that the connection is alive. Where reading needs
        the token, the stream ends within half a minute after another one was made.
        """
        reader = broadcaster.join(client_of(request.scope))
        if reader is None:
            text = f"too many event streams are open ({len(broadcaster)} in all)"
            raise ApiError(503, text, "close a page, or wait", retry_after_s=10)
        poller.want(True)
        last_id = request.headers.get("last-event-id")
        recheck = request.scope.get(TOKEN_RECHECK)
        return EventStream(broadcaster, reader, poller, last_id, recheck)

    return routes
