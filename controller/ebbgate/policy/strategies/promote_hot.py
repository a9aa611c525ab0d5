# SPDX-License-Identifier: GPL-2.0-only
"""Moves what users will miss into the cache before they do. Pure.

Based on Matsuzawa and Shinagawa, who score files by their misses and move the best ones each 30 s.
Here the chunks of a file are scored apart (promote_score), only those worth their cost are moved
(promote_choice), and what the moves bring is measured while they run (promote_benefit).

    unknown      misses are not known: nothing is moved
    learns       the first period
    moves        chunks of this period's list are moved
    rests        all of them are moved, or none is worth it
    stopped      something else needs the disks or the cache (promote_stop)
    stands down  moves have cost more than they brought; tried again after a while
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from ebbgate.model.frame import Frame
from ebbgate.model.heat import CHUNK_BYTES, HeatPeriod
from ebbgate.model.owners import NO_OWNERS, Owners, owners_of
from ebbgate.model.promotion import ChunksMoved, Promotion
from ebbgate.policy.strategies import promote_benefit, promote_score, promote_share, promote_stop
from ebbgate.policy.strategies.promote_benefit import (
    HORIZON_PERIODS,
    STAND_DOWN_PERIODS,
    Benefit,
    Costs,
)
from ebbgate.policy.strategies.promote_choice import Earlier, Plan, Room, Worth, choose
from ebbgate.policy.strategies.promote_score import ASYNC_WEIGHT, Groups, Scores
from ebbgate.policy.strategies.promote_share import TimeShare
from ebbgate.policy.strategies.promote_stop import PromoteParams, WriteBudget
from ebbgate.units import NS_PER_MS, NS_PER_S

_SERVICE_NS: Final = 8 * NS_PER_MS
"""Of a random read of a disk, until it was measured."""
_MOVE_NS: Final = 20 * NS_PER_MS
"""Of reading a chunk, until it was measured; it then counts like so many measured ones."""
_MOVES_ASSUMED: Final = 8
_BACKING_PATHS: Final = ("miss", "bypass", "writethrough")
_KEEP: Final = 0.5
"""Share that measured costs keep over a period."""
_WINDOW_SLACK_NS: Final = 2 * NS_PER_S
"""Windows do not end to the moment."""
_IN_CACHE_MAX: Final = 8192
_STOP_NS_MIN: Final = 5 * NS_PER_S
_RETRY_PERIODS: Final = 10
_RETRY_DOUBLINGS_MAX: Final = 5


class PromotePhase(StrEnum):
    """What promote_hot does."""

    UNKNOWN = "unknown"
    LEARN = "learns"
    MOVE = "moves"
    REST = "rests"
    STOP = "stopped"
    STAND_DOWN = "stands down"


@dataclass(frozen=True, slots=True)
class MeanTime:
    """`ns` of work for so many pieces of it, both decayed."""

    ns: float = 0.0
    count: float = 0.0

    def faded(self) -> MeanTime:
        """Return it with half of its weight."""
        return MeanTime(self.ns * _KEEP, self.count * _KEEP)


@dataclass(frozen=True, slots=True)
class PromoteState:
    """What promote_hot remembers.

    - `why`: of `unknown` and `stopped`. `stopped_ns`: when there was last a reason to stop.
    - `period`: the number of the present one; 0: the first, in which nothing is moved. `moved`:
      chunks that were read in it.
    - `in_cache`: moved of late, the oldest first.
    - `service`, `move`: disk time of users' requests there, and of moves.
    - `until_ns`: stands down until then, for the time `stand_downs` in a row.
    """

    phase: PromotePhase = PromotePhase.UNKNOWN
    why: str = "nothing was measured yet"
    stopped_ns: int = 0
    scores: Scores = field(default_factory=Scores)
    owners: Owners = NO_OWNERS
    plan: Plan = field(default_factory=Plan)
    benefit: Benefit = field(default_factory=Benefit)
    share: TimeShare = field(default_factory=TimeShare)
    budget: WriteBudget = field(default_factory=WriteBudget)
    period: int = 0
    moved: int = 0
    in_cache: Mapping[int, None] = field(default_factory=dict)
    service: MeanTime = field(default_factory=MeanTime)
    move: MeanTime = field(default_factory=MeanTime)
    until_ns: int = 0
    stand_downs: int = 0

    @property
    def promotion(self) -> Promotion | None:
        """What is to be moved now."""
        return self.plan.promotion if self.phase is PromotePhase.MOVE else None

    def costs(self, params: PromoteParams) -> Costs:
        """What misses and moves cost, as measured."""
        service, move = self.service, self.move
        return Costs(
            service_ns=service.ns / service.count if service.count else _SERVICE_NS,
            move_ns=(move.ns + _MOVES_ASSUMED * _MOVE_NS) / (move.count + _MOVES_ASSUMED),
            displaced_rate=self.scores.mean_rate,
            horizon_s=HORIZON_PERIODS * params.period_ns / NS_PER_S,
        )

    @property
    def key(self) -> tuple[object, ...]:
        """What makes a decision differ: not how far the moves of a period have come."""
        works = self.phase in (PromotePhase.MOVE, PromotePhase.REST)
        return (None if works else self.phase, self.period if self.plan.listed else None)


def on_frame(
    state: PromoteState, frame: Frame, params: PromoteParams, others: str = ""
) -> PromoteState:
    """Handle a tick. `others`: what else of ebbgate needs the disks now, or nothing."""
    if promote_share.is_due(state.share, frame):
        state = _sample(state, frame, params)
    if frame.heat is not None and frame.heat.ended_ns > state.scores.ended_ns:
        state = _add_window(state, frame, frame.heat, params)
    return _with_phase(state, frame, params, others)


def on_moved(state: PromoteState, report: ChunksMoved) -> PromoteState:
    """Handle a report of the mover."""
    plan, tried = state.plan.with_report(report), len(report.moved) + len(report.failed)
    ended = state.phase is PromotePhase.MOVE and plan.promotion is None
    return replace(
        state,
        phase=PromotePhase.REST if ended else state.phase,
        scores=promote_score.without(state.scores, report.moved),
        share=replace(state.share, busy_ns=state.share.busy_ns + report.busy_ns),
        move=MeanTime(state.move.ns + report.busy_ns, state.move.count + tried),
        plan=plan,
        moved=state.moved + tried,
        in_cache=_newest({**state.in_cache, **dict.fromkeys(report.moved)}, _IN_CACHE_MAX),
    )


def _sample(state: PromoteState, frame: Frame, params: PromoteParams) -> PromoteState:
    """Take in what the frame's window says of latency, disk time and writes to the cache."""
    service, busy = state.service, frame.backing_busy_foreground_ratio
    if busy is not None:
        ios = sum(each.ios for (_, path), each in frame.paths.items() if path in _BACKING_PATHS)
        service = MeanTime(service.ns + busy * frame.window_ns, service.count + ios)
    return replace(
        state,
        share=promote_share.sample(state.share, frame),
        budget=promote_stop.charge(state.budget, frame, params),
        service=service,
    )


def _add_window(
    state: PromoteState, frame: Frame, window: HeatPeriod, params: PromoteParams
) -> PromoteState:
    # Other modes write to the backing device anyway.
    write_weight = ASYNC_WEIGHT if frame.cache_mode in (None, "writeback") else 0.0
    unseen_ns = max(0, window.started_ns - (state.scores.ended_ns or window.started_ns))
    benefit = promote_benefit.observe(state.benefit, window, write_weight, unseen_ns)
    ended = state.phase in (PromotePhase.MOVE, PromotePhase.REST)
    state = replace(
        state,
        scores=promote_score.add_window(state.scores, window, params.period_ns // 2, write_weight),
        benefit=promote_benefit.watch(benefit, state.plan.to_watch(window.ended_ns, ended=ended)),
    )
    if window.ended_ns - benefit.began_ns >= params.period_ns - _WINDOW_SLACK_NS:
        state = _close_period(state, window.ended_ns, params)
    return _plan(state, frame, window.ended_ns, params)


def _close_period(state: PromoteState, now_ns: int, params: PromoteParams) -> PromoteState:
    costs, before = state.costs(params), state.benefit
    benefit = promote_benefit.close_period(before, costs, now_ns)
    state = replace(
        state,
        period=state.period + 1,
        moved=0,
        benefit=benefit,
        share=promote_share.close_period(
            state.share,
            params.time_share_max,
            promote_share.return_ratio(benefit.gain_ns, benefit.cost_ns),
            moved=state.moved > 0,
        ),
        service=state.service.faded(),
        move=state.move.faded(),
    )
    if now_ns < state.until_ns:
        return state
    if state.until_ns:
        return replace(state, until_ns=0, benefit=promote_benefit.start_again(benefit))
    if benefit.under >= STAND_DOWN_PERIODS:
        return _stand_down(state, now_ns, params)
    if benefit.last is not before.last and benefit.under == 0:
        return replace(state, stand_downs=0)
    return state


def _stand_down(state: PromoteState, now_ns: int, params: PromoteParams) -> PromoteState:
    doublings = min(state.stand_downs, _RETRY_DOUBLINGS_MAX)
    until_ns = now_ns + params.period_ns * (_RETRY_PERIODS << doublings)
    return replace(state, until_ns=until_ns, stand_downs=state.stand_downs + 1)


def _newest(chunks: Mapping[int, None], most: int) -> Mapping[int, None]:
    over = len(chunks) - most
    return dict(list(chunks.items())[over:]) if over > 0 else chunks


def _plan(state: PromoteState, frame: Frame, now_ns: int, params: PromoteParams) -> PromoteState:
    """Choose what is moved next."""
    if state.until_ns or not state.period:
        return replace(state, plan=Plan())
    scores = promote_score.with_layout(state.scores, frame.layout)
    state = replace(state, scores=scores, owners=owners_of(state.owners, frame.layout))
    plan = choose(
        now_ns,
        Groups(scores, state.owners),
        Worth(state.costs(params), state.benefit.ratio),
        Room(chunks_max(state, frame, params), state.share.share),
        Earlier(state.benefit.chunks, state.in_cache, state.plan.listed),
    )
    return replace(state, plan=plan)


def chunks_max(state: PromoteState, frame: Frame, params: PromoteParams) -> int:
    """Return how many more chunks may be moved in this period."""
    room = params.cache_ratio_max * (frame.cache_bytes or 0) - state.moved * CHUNK_BYTES
    if state.budget.left_bytes is not None:
        room = min(room, state.budget.left_bytes)
    return max(0, int(room / CHUNK_BYTES))


def _with_phase(
    state: PromoteState, frame: Frame, params: PromoteParams, others: str
) -> PromoteState:
    phase, why = _phase(state, frame, params, others)
    if phase is PromotePhase.STOP:
        return replace(state, phase=phase, why=why, stopped_ns=frame.at_ns)
    held = frame.at_ns - state.stopped_ns < _STOP_NS_MIN
    if state.phase is PromotePhase.STOP and held and phase is not PromotePhase.UNKNOWN:
        return state
    if (phase, why) == (state.phase, state.why):
        return state
    return replace(state, phase=phase, why=why)


def _phase(
    state: PromoteState, frame: Frame, params: PromoteParams, others: str
) -> tuple[PromotePhase, str]:
    if frame.heat is None:
        return PromotePhase.UNKNOWN, frame.missing.get("heat", "no record of misses yet")
    if state.until_ns:
        return PromotePhase.STAND_DOWN, ""
    if not state.period:
        return PromotePhase.LEARN, ""
    why = promote_stop.full_or_spent(frame, params, state.budget)
    if state.plan.promotion is not None:
        why = why or others or promote_stop.slow_users(frame, params)
    if why:
        return PromotePhase.STOP, why
    return (PromotePhase.MOVE if state.plan.promotion else PromotePhase.REST), ""
