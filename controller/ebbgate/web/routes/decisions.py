# SPDX-License-Identifier: GPL-2.0-only
"""Decisions and their explanations. I/O: HTTP, reads the history."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Query
from starlette.responses import Response

from ebbgate.store.queries_web import DecisionFilter
from ebbgate.units import NS_PER_S
from ebbgate.web import convert
from ebbgate.web.errors import ApiError
from ebbgate.web.models.history import Decisions, ExplainedDecision
from ebbgate.web.responses import reply
from ebbgate.web.routes.declare import NUMBER, NUMBER_MAX, SINCE, UNTIL, refusals, stretch_ns
from ebbgate.web.snapshot import Databases

_LIMIT: Final[Any] = Query(100, ge=1, le=1000, description="At most so many.")
_BEFORE: Final[Any] = Query(
    None, ge=1, le=NUMBER_MAX, description="Only older ones than this number."
)


def _only(what: str) -> Any:
    return Query(None, max_length=128, description=f"Only of this {what}.")


_OF_VOLUME: Final = _only("volume")
_OF_KNOB: Final = _only("knob")
_OF_STRATEGY: Final = _only("strategy")
_OF_OUTCOME: Final = _only("outcome of a knob write")


def routes_decisions(databases: Databases) -> APIRouter:
    """Their routes."""
    router = APIRouter(tags=["history"])

    @router.get(
        "/decisions",
        summary="Decisions",
        response_model=Decisions,
        responses=refusals(422, 503),
    )
    def decisions(
        volume: str | None = _OF_VOLUME,
        knob: str | None = _OF_KNOB,
        strategy: str | None = _OF_STRATEGY,
        outcome: str | None = _OF_OUTCOME,
        since_unix_s: float | None = SINCE,
        until_unix_s: float | None = UNTIL,
        before_id: int | None = _BEFORE,
        limit: int = _LIMIT,
    ) -> Response:
        """The newest first, of all that is kept; `before_id` turns the page."""
        now_ns = databases.wall_ns()
        since_s = 0.0 if since_unix_s is None else since_unix_s
        stretch = stretch_ns(since_s, until_unix_s, now_ns + NS_PER_S, 0.0)
        before = {} if before_id is None else {"before_id": before_id}
        wanted = DecisionFilter(
            volume, knob, strategy, outcome, *stretch, limit=limit + 1, **before
        )
        with databases.history() as history:
            rows = history.filtered_decisions(wanted)
            page = rows[:limit]
            writes = history.actions_of(row["id"] for row in page)
        found = [convert.decision(row, writes.get(row["id"], ())) for row in page]
        older = found[-1].id if len(rows) > limit else None
        return reply(Decisions(decisions=found, next_before_id=older))

    @router.get(
        "/decisions/{number}",
        summary="One decision, explained",
        response_model=ExplainedDecision,
        responses=refusals(404, 422, 503),
    )
    def decision(number: int = NUMBER) -> Response:
        """All that was compared for it, also by those that did not win."""
        with databases.history() as history:
            row = history.decision(number)
            if row is None:
                text = f"there is no decision {number}, or not any more"
                raise ApiError(404, text, "decisions without a knob write are kept for a day")
            writes = history.actions_of([number])
        return reply(convert.explained(row, writes.get(number, ())))

    return router
