# SPDX-License-Identifier: GPL-2.0-only
"""Which share of time the mover may read, learned from what users feel of it. Pure.

The p95 of users' reads while the mover reads is compared with that of the rest of the time, over a
period, or over as many as it takes until both have enough reads: where users feel it, the share is
halved, otherwise it grows. A second of moves that spares the disk three may make users wait longer
than one that spares it nothing, so the bound depends on the measured gain. So does the step: what
is to be moved takes the same time with any share, and the sooner it is over, the sooner it pays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ebbgate.model.frame import Frame
from ebbgate.model.records import Direction, Histogram
from ebbgate.signals.histogram import add, latency_percentile_ns

SHARE_MIN: Final = 0.05
FELT_FACTOR_MIN: Final = 1.25
FELT_FACTOR_MAX: Final = 3.0
"""Users feel the mover where their p95 is more than a factor between these times the other p95."""
_SHARE_FIRST: Final = 0.4
_STEP: Final = 0.05
_STEP_FACTOR_MAX: Final = 4.0
"""The step is so many times as large where moves bring so many times their cost."""
_READS_MIN: Final = 50
"""With fewer reads a p95 says nothing."""
_MOVING_MIN: Final = 0.5
"""The mover reads in a window if it is busy for more than this share of it."""


@dataclass(frozen=True, slots=True)
class TimeShare:
    """The share, and the latency of users' reads by which it is judged next.

    - `sampled_ns`: the end of the last window that was counted; `busy_ns`: of the mover since then.
    - `before_busy`: whether the mover was busy in the window before.
    - `p95_*`: of the last period that had enough reads; `felt_factor`: its bound.
    """

    share: float = _SHARE_FIRST
    sampled_ns: int = 0
    busy_ns: int = 0
    before_busy: bool = False
    moving: Histogram = ()
    resting: Histogram = ()
    p95_moving_ns: int | None = None
    p95_resting_ns: int | None = None
    felt_factor: float = FELT_FACTOR_MIN


def is_due(share: TimeShare, frame: Frame) -> bool:
    """Return whether the frame's window is over that began with the last one counted."""
    return frame.window_ns > 0 and frame.at_ns - share.sampled_ns >= frame.window_ns


def sample(share: TimeShare, frame: Frame) -> TimeShare:
    """Count the reads of the frame's window as those of a moving or a resting mover."""
    moves = share.busy_ns >= _MOVING_MIN * frame.window_ns
    # A report may come after the window that it is about.
    rests = share.busy_ns == 0 and not share.before_busy
    share = replace(share, sampled_ns=frame.at_ns, busy_ns=0, before_busy=share.busy_ns > 0)
    if not moves and not rests:
        return share
    counts: list[int] = []
    for (direction, _), path in frame.paths.items():
        if direction is Direction.READ and path.ios:
            counts = add(counts, path.counts)
    if rests:
        return replace(share, resting=tuple(add(share.resting, counts)))
    return replace(share, moving=tuple(add(share.moving, counts)))


def return_ratio(gain_ns: float | None, cost_ns: float | None) -> float:
    """Return how much disk time a second of moves spares; 1 before anything was measured."""
    return gain_ns / cost_ns if gain_ns is not None and cost_ns else 1.0


def felt_factor(ratio: float) -> float:
    """Return how many times as long users may wait while the mover reads.

    A share s of time in which they wait f times as long costs them s x (f - 1), and spares the disk
    s x `ratio` (see `return_ratio`).
    """
    return min(max(1.0 + ratio, FELT_FACTOR_MIN), FELT_FACTOR_MAX)


def step(ratio: float) -> float:
    """Return how much the share grows where users do not feel the mover. `ratio`: as above."""
    return _STEP * min(max(ratio, 1.0), _STEP_FACTOR_MAX)


def close_period(share: TimeShare, share_max: float, ratio: float, *, moved: bool) -> TimeShare:
    """Return the share for the next period.

    `ratio`: see `return_ratio`; `moved`: whether anything was moved in this period.
    """
    share = replace(share, share=min(share.share, max(share_max, SHARE_MIN)))
    found = replace(share, moving=(), resting=())
    if not moved:
        return found
    few = [sum(each) < _READS_MIN for each in (share.moving, share.resting)]
    if all(few):
        # There are hardly any users to disturb.
        return replace(found, share=_within(found.share + step(ratio), share_max))
    if any(few):
        # Moves were over within a moment, or a large share has left few rests: counted on.
        return share
    moving = latency_percentile_ns(share.moving, 0.95) or 0
    resting = latency_percentile_ns(share.resting, 0.95) or 0
    factor = felt_factor(ratio)
    felt = moving > factor * resting
    wanted = found.share / 2 if felt else found.share + step(ratio)
    return replace(
        found,
        share=_within(wanted, share_max),
        p95_moving_ns=moving,
        p95_resting_ns=resting,
        felt_factor=factor,
    )


def _within(share: float, share_max: float) -> float:
    return min(max(share, SHARE_MIN), max(share_max, SHARE_MIN))
