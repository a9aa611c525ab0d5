# SPDX-License-Identifier: GPL-2.0-only
"""The application: routes, pages, error handlers, lifetime. I/O: HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from anyio import to_thread
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from ebbgate import __version__
from ebbgate.config.settings import Config
from ebbgate.errors import EbbgateError
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.web import openapi, responses
from ebbgate.web.changes import Event
from ebbgate.web.errors import ApiError
from ebbgate.web.events import Broadcaster, Poller
from ebbgate.web.policy_service import DryRuns
from ebbgate.web.routes.declare import PREFIX
from ebbgate.web.routes.doctor import routes_doctor
from ebbgate.web.routes.history import routes_decisions, routes_history
from ebbgate.web.routes.intents import routes_intents
from ebbgate.web.routes.live import routes_events, routes_live
from ebbgate.web.routes.metrics import routes_metrics
from ebbgate.web.routes.policies import routes_policies
from ebbgate.web.security import Guard
from ebbgate.web.snapshot import Databases

_THREADS: Final = 10
"""Answers made at once: each may take some MiB, and more threads would not be faster."""


class Api:
    """The guarded application as ASGI."""

    def __init__(
        self,
        config: Config,
        wall_ns: Callable[[], int] = time.time_ns,
        sysfs: Sysfs | None = None,
        proc: Path = Path("/proc"),
    ) -> None:
        self.config = config
        self.broadcaster = Broadcaster()
        self.databases = Databases(config, wall_ns)
        self.dry_runs = DryRuns(self.databases)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._document = b""
        self.poller = Poller(self.databases, self.publish)
        self.app = FastAPI(
            title="ebbgate",
            version=__version__,
            description=openapi.ABOUT,
            # Without it there are no pages of FastAPI's own, either.
            openapi_url=None,
            exception_handlers={
                ApiError: responses.on_known,
                EbbgateError: responses.on_known,
                HTTPException: self._on_http,
                RequestValidationError: responses.on_validation,
                Exception: responses.on_bug,
            },
        )
        self._add_routes(sysfs or Sysfs(), proc)
        self._guarded = Guard(self.app, config.web)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # By hand: FastAPI 0.92 has no `lifespan`, and current versions drop `on_event`.
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._guarded(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._loop = asyncio.get_running_loop()
        to_thread.current_default_thread_limiter().total_tokens = _THREADS
        self.poller.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.close()
        await asyncio.to_thread(self.poller.stop)
        await send({"type": "lifespan.shutdown.complete"})

    def close(self) -> None:
        """End the requests that would keep the server from an orderly end."""
        self.broadcaster.close()
        self.dry_runs.close()

    def publish(self, events: list[Event]) -> None:
        """Publish events; runs in the poller's thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self.broadcaster.publish, events)

    def _add_routes(self, sysfs: Sysfs, proc: Path) -> None:
        for router in (
            routes_live(self.databases),
            routes_history(self.databases),
            routes_decisions(self.databases),
            routes_intents(self.databases),
            routes_policies(self.databases, self.dry_runs),
            routes_doctor(self.databases, sysfs, proc),
            routes_events(self.broadcaster, self.poller),
            routes_metrics(self.databases),
        ):
            # `include_router` would make each route again, which takes half of the start.
            self.app.router.routes.extend(router.routes)
        self.app.get(f"{PREFIX}/openapi.json", include_in_schema=False)(self._openapi)
        _add_pages(self.app, self.config.web.ui_dir)

    def _openapi(self) -> Response:
        installed = self.config.web.ui_dir / "openapi.json"
        if not self._document:
            found = installed.read_bytes() if installed.is_file() else b""
            self._document = found or openapi.text(self.app).encode()
        return Response(self._document, media_type="application/json")

    async def _on_http(self, request: Request, error: Exception) -> Response:
        """Handle HTTP errors. For a wrong method on a path of the API name all methods: the router
        names those of one route only, and passes the rest to the pages, which are mounted last.
        """
        # In a thread: pydantic 1 takes 0.3 s to make the document, once.
        document = await asyncio.to_thread(self.app.openapi)
        allowed = openapi.methods(document, request.url.path)
        if not allowed or request.method in allowed:
            return await responses.on_http(request, error)
        headers = {"allow": ", ".join(allowed)}
        return await responses.on_http(request, HTTPException(405, headers=headers))


_OF_A_FILE: Final = (200, 304)


class Pages(StaticFiles):
    """The built pages: the only answers that a browser may cache, with a check before each use."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file, whole: some versions of starlette take seconds for one header with
        thousands of ranges, while nobody else is answered. Raises HTTPException 404, also for names
        that no file system takes.
        """
        scope["headers"] = [each for each in scope["headers"] if each[0] != b"range"]
        try:
            found = await super().get_response(path, scope)
        except (OSError, ValueError) as error:
            raise HTTPException(404) from error
        if found.status_code in _OF_A_FILE:
            found.headers["cache-control"] = "no-cache"
            found.headers["accept-ranges"] = "none"
        return found


def _add_pages(app: FastAPI, folder: Path) -> None:
    """Mount the built pages; the API works without them."""
    if folder.is_dir():
        app.mount("/", Pages(directory=str(folder), html=True))
        return

    def missing() -> Response:
        text = f"no pages in {folder}"
        raise ApiError(404, text, "build them, or give --ui DIR; the API is at /api/v1/")

    app.get("/", include_in_schema=False)(missing)
