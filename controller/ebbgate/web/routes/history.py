# SPDX-License-Identifier: GPL-2.0-only
"""Samples and knob writes. I/O: HTTP, reads the history."""

from __future__ import annotations

from typing import Any, Final, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from ebbgate.model.records import Direction
from ebbgate.store.queries_latency import LatencyGrid
from ebbgate.store.queries_web import WebHistory
from ebbgate.store.rollup import HOUR_NS, MINUTE_NS, SECOND_NS
from ebbgate.units import NS_PER_S
from ebbgate.web import convert, time_series
from ebbgate.web.errors import ApiError
from ebbgate.web.models.history import Actions, Latency, Samples
from ebbgate.web.responses import reply
from ebbgate.web.routes.declare import SINCE, UNTIL, VOLUME, refusals, stretch_ns
from ebbgate.web.snapshot import Databases
from ebbgate.web.time_series import Grid

_POINTS_MAX: Final = 5000
_DAY_S: Final = 86_400.0
_POINTS: Final[Any] = Query(
    600, ge=1, le=_POINTS_MAX, description="At most so many points. Unit: points."
)
_CELLS: Final[Any] = Query(300, ge=1, le=2000, description="At most so many points. Unit: points.")
_OP: Final[Any] = Query("read", description="Of reads, or of writes.")
_WRITES: Final[Any] = Query(500, ge=1, le=5000, description="At most so many.")


def routes_history(databases: Databases) -> APIRouter:
    """Their routes."""
    router = APIRouter(tags=["history"], responses=refusals(404, 422, 503))

    @router.get(
        "/volumes/{volume}/samples", summary="The course of a volume", response_model=Samples
    )
    def samples(
        volume: str = VOLUME,
        since_unix_s: float | None = SINCE,
        until_unix_s: float | None = UNTIL,
        points: int = _POINTS,
    ) -> Response:
        """Columns on a regular grid of seconds, minutes or hours; without a time the last hour.
        Nothing is interpolated: a hole in the history is null in every column.
        """
        stretch = stretch_ns(since_unix_s, until_unix_s, databases.wall_ns(), 3600.0)
        with databases.history() as history:
            need_volume(history, volume)
            grid = grid_of(history, volume, stretch, points)
            # A sample of before the first point may still stand for it.
            early_ns = 30 * NS_PER_S if grid.span_ns == SECOND_NS else 0
            rows = history.rows(volume, grid.since_ns - early_ns, grid.until_ns, grid.span_ns)
        return reply(time_series.samples(volume, rows, grid))

    @router.get("/volumes/{volume}/latency", summary="Latencies", response_model=Latency)
    def latency(
        volume: str = VOLUME,
        op: Literal["read", "write"] = _OP,
        since_unix_s: float | None = SINCE,
        until_unix_s: float | None = UNTIL,
        points: int = _CELLS,
    ) -> Response:
        """How long requests took, as a heat map; without a time the last hour."""
        stretch = stretch_ns(since_unix_s, until_unix_s, databases.wall_ns(), 3600.0)
        with databases.history() as history:
            need_volume(history, volume)
            found = history.latency_grid(volume, Direction(op), *stretch, points)
        return reply(_latency(volume, op, found))

    @router.get("/volumes/{volume}/actions", summary="Knob writes", response_model=Actions)
    def actions(
        volume: str = VOLUME,
        since_unix_s: float | None = SINCE,
        until_unix_s: float | None = UNTIL,
        limit: int = _WRITES,
    ) -> Response:
        """Knob writes of a volume, the newest first; without a time those of the last day."""
        stretch = stretch_ns(since_unix_s, until_unix_s, databases.wall_ns(), _DAY_S)
        with databases.history() as history:
            need_volume(history, volume)
            rows = history.actions_between(volume, *stretch, limit)
        return reply(Actions(actions=[convert.action(row) for row in rows]))

    return router


def _latency(volume: str, op: str, grid: LatencyGrid) -> Latency:
    return Latency.unchecked(
        volume=volume,
        op=op,
        span_s=grid.span_s,
        at_unix_s=grid.at_unix_s,
        edges_s=grid.edges_s,
        counts=grid.counts,
    )


def need_volume(history: WebHistory, volume: str) -> None:
    """Raises ApiError for a name of which nothing is kept."""
    if not history.is_volume(volume):
        raise ApiError(404, f"nothing was ever recorded of {volume}", "see /api/v1/volumes")


def grid_of(history: WebHistory, volume: str, stretch: tuple[int, int], points: int) -> Grid:
    """The grid for a time, of minutes or hours where seconds or minutes are not kept that long.

    Raises ApiError.
    """
    since_ns, until_ns = stretch
    finest_ns = SECOND_NS
    for finer_ns, span_ns in ((SECOND_NS, MINUTE_NS), (MINUTE_NS, HOUR_NS)):
        finer = history.oldest_sample_ns(volume, finer_ns)
        coarser = history.oldest_sample_ns(volume, span_ns)
        gone = finer is None or since_ns < finer - span_ns
        if gone and coarser is not None and (finer is None or coarser < finer - span_ns):
            finest_ns = span_ns
    found = time_series.grid(since_ns, until_ns, points, finest_ns)
    if found is None:
        hours = (until_ns - since_ns) / HOUR_NS
        text = f"{hours:.0f} hours do not fit in {points} points, since none is longer than an hour"
        raise ApiError(422, text, "ask for more points, or for a shorter time")
    return found
