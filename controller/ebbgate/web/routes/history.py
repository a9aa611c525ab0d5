# SPDX-License-Identifier: GPL-2.0-only
"""Samples, knob writes and decisions of the past. I/O: HTTP, reads the history."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from ebbgate.model.decision import OutcomeKind
from ebbgate.model.records import Direction
from ebbgate.store.queries_web import DecisionFilter, WebHistory
from ebbgate.store.rollup import SECOND_NS
from ebbgate.units import HOUR_NS, MINUTE_NS, NS_PER_S
from ebbgate.web import convert, time_series
from ebbgate.web.errors import ApiError
from ebbgate.web.models.history import Actions, Decisions, ExplainedDecision, Latency, Samples
from ebbgate.web.responses import reply
from ebbgate.web.routes.declare import (
    BEFORE,
    LATEST_S,
    NUMBER,
    NUMBER_MAX,
    SINCE,
    UNTIL,
    VOLUME,
    most_results,
    refusals,
    router,
    stretch_ns,
    time_of,
)
from ebbgate.web.snapshot import Databases
from ebbgate.web.time_series import Grid

_DAY_S: Final = 86_400.0


def _points(default: int, most: int) -> Any:
    return Query(default, ge=1, le=most, description="Largest number of points. Unit: points.")


def _only_of(what: str) -> Any:
    return Query(None, max_length=128, description=f"Only of this {what}.")


_POINTS: Final = _points(600, 5000)
_CELLS: Final = _points(300, 2000)
_OP: Final[Any] = Query("read", description="Reads or writes.")
_WRITES: Final = most_results(500, 5000)
_LIMIT: Final = most_results(100)
_UNTIL_ANY: Final = time_of("Up to this time; without a limit, if left out.")
_OF_VOLUME: Final = _only_of("volume")
_OF_KNOB: Final = _only_of("knob")
_OF_STRATEGY: Final = _only_of("strategy")
_OF_OUTCOME: Final = _only_of("outcome of a write")
_OUTCOMES: Final[Any] = Query(
    None, description="Only with this outcome; given several times, with any of them."
)


def routes_history(databases: Databases) -> APIRouter:
    """Return the routes."""
    routes = router("history", 404, 422, 503)

    @routes.get("/volumes/{volume}/samples", summary="History of a volume", response_model=Samples)
    def samples(
        volume: str = VOLUME,
        since_unix_s: float | None = SINCE,
        until_unix_s: float | None = UNTIL,
        points: int = _POINTS,
    ) -> Response:
        """Columns on a regular grid of seconds, minutes or hours; by default the last hour.
        Nothing is interpolated: a hole in the history is null in every column.
        """
        stretch = stretch_ns(since_unix_s, until_unix_s, databases.wall_ns(), 3600.0)
        with databases.history() as history:
            need_volume(history, volume)
            grid = grid_of(history, volume, stretch, points)
            # A sample from before the first point may still cover it.
            early_ns = 30 * NS_PER_S if grid.span_ns == SECOND_NS else 0
            rows = history.rows(volume, grid.since_ns - early_ns, grid.until_ns, grid.span_ns)
        return reply(time_series.samples(volume, rows, grid))

    @routes.get("/volumes/{volume}/latency", summary="Latencies", response_model=Latency)
    def latency(
        volume: str = VOLUME,
        op: Literal["read", "write"] = _OP,
        since_unix_s: float | None = SINCE,
        until_unix_s: float | None = UNTIL,
        points: int = _CELLS,
    ) -> Response:
        """Latencies of requests as a heat map; by default of the last hour."""
        stretch = stretch_ns(since_unix_s, until_unix_s, databases.wall_ns(), 3600.0)
        with databases.history() as history:
            need_volume(history, volume)
            found = history.latency_grid(volume, Direction(op), *stretch, points)
        # Not with `asdict`, which would copy each of many figures.
        figures = {each.name: getattr(found, each.name) for each in fields(found)}
        return reply(Latency.unchecked(volume=volume, op=op, **figures))

    @routes.get("/volumes/{volume}/actions", summary="Knob writes", response_model=Actions)
    def actions(
        volume: str = VOLUME,
        since_unix_s: float | None = SINCE,
        until_unix_s: float | None = UNTIL,
        limit: int = _WRITES,
        outcome: list[OutcomeKind] | None = _OUTCOMES,
    ) -> Response:
        """Knob writes of a volume, newest first; by default of the last day."""
        stretch = stretch_ns(since_unix_s, until_unix_s, databases.wall_ns(), _DAY_S)
        with databases.history() as history:
            need_volume(history, volume)
            rows = history.actions_between(volume, *stretch, limit, outcome or ())
        return reply(Actions(actions=[convert.action(row) for row in rows]))

    return routes


def routes_decisions(databases: Databases) -> APIRouter:
    """Return the routes."""
    routes = router("history")

    @routes.get(
        "/decisions", summary="Decisions", response_model=Decisions, responses=refusals(422, 503)
    )
    def decisions(
        volume: str | None = _OF_VOLUME,
        knob: str | None = _OF_KNOB,
        strategy: str | None = _OF_STRATEGY,
        outcome: str | None = _OF_OUTCOME,
        since_unix_s: float | None = SINCE,
        until_unix_s: float | None = _UNTIL_ANY,
        before_id: int | None = BEFORE,
        limit: int = _LIMIT,
    ) -> Response:
        """All recorded decisions, newest first; `before_id` turns the page."""
        since_s = 0.0 if since_unix_s is None else since_unix_s
        # Not up to now: some are later where the clock was set back.
        until_s = LATEST_S if until_unix_s is None else until_unix_s
        stretch = stretch_ns(since_s, until_s, databases.wall_ns(), 0.0)
        before = before_id or NUMBER_MAX
        wanted = DecisionFilter(volume, knob, strategy, outcome, *stretch, before, limit + 1)
        with databases.history() as history:
            rows = history.filtered_decisions(wanted)
            page = rows[:limit]
            writes = history.actions_of(row["id"] for row in page)
        found = [convert.decision(row, writes.get(row["id"], ())) for row in page]
        older = found[-1].id if len(rows) > limit else None
        return reply(Decisions(decisions=found, next_before_id=older))

    @routes.get(
        "/decisions/{number}",
        summary="One decision, explained",
        response_model=ExplainedDecision,
        responses=refusals(404, 422, 503),
    )
    def decision(number: int = NUMBER) -> Response:
        """A decision with all comparisons, also of strategies that did not decide."""
        with databases.history() as history:
            row = history.decision(number)
            if row is None:
                text = f"no decision {number}, or it is no longer kept"
                raise ApiError(404, text, "decisions without a knob write are kept for a day")
            writes = history.actions_of([number])
        return reply(convert.explained(row, writes.get(number, ())))

    return routes


def need_volume(history: WebHistory, volume: str) -> None:
    """Raises ApiError for a volume without any record."""
    if not history.is_volume(volume):
        raise ApiError(404, f"no record of {volume}", "see /api/v1/volumes")


def grid_of(history: WebHistory, volume: str, stretch: tuple[int, int], points: int) -> Grid:
    """Return the grid for a time, of minutes or hours where finer samples are not kept that long.

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
        raise ApiError(422, text, "request more points, or a shorter time")
    return found
