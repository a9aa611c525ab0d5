# SPDX-License-Identifier: GPL-2.0-only
"""The page for Prometheus. I/O: HTTP, reads the history."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ebbgate.web.errors import ApiError
from ebbgate.web.metrics.page import render
from ebbgate.web.routes.declare import of_type, refusals, router
from ebbgate.web.snapshot import Databases

# Not prometheus_client's own constants: Debian 12's names a draft of OpenMetrics.
OPENMETRICS_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def routes_metrics(databases: Databases) -> APIRouter:
    """Return the route."""
    routes = router("metrics", prefix="")
    shown = of_type(
        "OpenMetrics, or the older text format where only that is accepted.",
        {"type": "string"},
        *(kind.partition(";")[0] for kind in (OPENMETRICS_TYPE, TEXT_TYPE)),
    )

    @routes.get(
        "/metrics",
        summary="For Prometheus",
        response_class=Response,
        responses=shown | refusals(503),
    )
    def metrics(request: Request) -> Response:
        """All volumes as they are now. If the history cannot be read the scrape fails, so that
        Prometheus notices; but if no daemon runs, there need not be one.
        """
        snapshot = databases.snapshot(0.25)
        if snapshot.why is not None and snapshot.alive is not False:
            raise ApiError(503, snapshot.why, "see /api/v1/health", retry_after_s=5)
        opened = wants_openmetrics(request.headers.get("accept", ""))
        files = databases.files()
        page = render(snapshot.live, snapshot.now_unix_ns, snapshot.alive, opened, files)
        # Not as `media_type`, to which starlette adds a charset of its own.
        kind = OPENMETRICS_TYPE if opened else TEXT_TYPE
        return Response(page, headers={"content-type": kind})

    return routes


def wants_openmetrics(accept: str) -> bool:
    """Return whether an Accept header prefers OpenMetrics; the older format is the default."""
    best = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for each in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in each.split(";"))
        if kind in best:
            best[kind] = max(best[kind], _weight(parameters))
    return best["application/openmetrics-text"] > best["text/plain"] or (
        best["application/openmetrics-text"] == best["text/plain"] > 0
    )


def _weight(parameters: list[str]) -> float:
    for each in parameters:
        if each.startswith("q="):
            try:
                return float(each[2:])
            except ValueError:
                return 0.0
    return 1.0
