# SPDX-License-Identifier: GPL-2.0-only
"""Which share of time the mover may read, learned from what users feel of it. Pure.

The p95 of users' reads while the mover reads is compared with that of the seconds before: where
users feel it, the share is halved, otherwise it grows. Reads from the cache and from the disk are
compared apart. What users read after the last move says nothing: the moves have put it into the
cache, and the clients who waited for the disk then no longer do.

A second of moves that spares the disk three may make users wait longer than one that spares it
nothing, so the bound depends on the measured gain. So does the step: what is to be moved takes the
same time with any share, and the sooner it is over, the sooner it pays.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
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
_REST_WINDOWS_MAX: Final = 5
"""So many windows of a rest are compared with the moves that follow."""
_MOVING_MIN: Final = 0.2
"""The mover reads in a window if it is busy for this share of it: a p95 tells of a twentieth of the
reads, and the shortest burst, half a second, may lie in two windows.
"""


class ReadKind(StrEnum):
    """What a read waits for."""

    CACHE = "the cache"
    DISK = "the disk"


Reads = Mapping[ReadKind, Histogram]
_NO_READS: Final[Reads] = dict.fromkeys(ReadKind, ())


@dataclass(frozen=True, slots=True)
class Comparison:
    """The p95 of reads of a kind. `factor`: users feel the mover if it is so many times as high."""

    kind: ReadKind
    moving_ns: int
    resting_ns: int
    factor: float

    @property
    def most_ns(self) -> float:
        """The highest p95 during moves that users do not feel."""
        return self.factor * self.resting_ns

    @property
    def felt(self) -> bool:
        """Whether users feel the mover."""
        return self.moving_ns > self.most_ns


@dataclass(frozen=True, slots=True)
class TimeShare:
    """The share, and the latency of users' reads by which it is judged next.

    - `sampled_ns`: the end of the last window that was counted; `busy_ns`: of the mover since then.
    - `before_busy`: whether the mover was busy in the window before.
    - `moving`, `resting`: reads that are to be compared.
    - `rest`: the last windows in which the mover rested, which count once it reads again.
    - `last`: of the last period that had enough reads, the kind that felt the mover most.
    """

    share: float = _SHARE_FIRST
    sampled_ns: int = 0
    busy_ns: int = 0
    before_busy: bool = False
    moving: Reads = field(default_factory=lambda: _NO_READS)
    resting: Reads = field(default_factory=lambda: _NO_READS)
    rest: tuple[Reads, ...] = ()
    last: Comparison | None = None


def is_due(share: TimeShare, frame: Frame) -> bool:
    """Return whether the frame's window is over that began with the last one counted."""
    return frame.window_ns > 0 and frame.at_ns - share.sampled_ns >= frame.window_ns


def sample(share: TimeShare, frame: Frame) -> TimeShare:
    """Count the reads of the frame's window as those of a moving or a resting mover."""
    moves = share.busy_ns >= _MOVING_MIN * frame.window_ns
    # A report may come after the window that it is about.
    rests = share.busy_ns == 0 and not share.before_busy
    share = replace(share, sampled_ns=frame.at_ns, busy_ns=0, before_busy=share.busy_ns > 0)
    if rests:
        return replace(share, rest=(*share.rest, _reads(frame))[-_REST_WINDOWS_MAX:])
    if not moves:
        return share
    return replace(
        share,
        moving=_sum((share.moving, _reads(frame))),
        resting=_sum((share.resting, *share.rest)),
        rest=(),
    )


def _reads(frame: Frame) -> Reads:
    found = {kind: list[int]() for kind in ReadKind}
    for (direction, path), latency in frame.paths.items():
        if direction is Direction.READ and latency.ios:
            kind = ReadKind.CACHE if path == "hit" else ReadKind.DISK
            found[kind] = add(found[kind], latency.counts)
    return {kind: tuple(counts) for kind, counts in found.items()}


def _sum(parts: Iterable[Reads]) -> Reads:
    found = _NO_READS
    for part in parts:
        found = {kind: tuple(add(found[kind], part[kind])) for kind in ReadKind}
    return found


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
    share = replace(share, share=_within(share.share, share_max))
    if not moved:
        return share
    moving, resting = _count(share.moving), _count(share.resting)
    compared = [kind for kind in ReadKind if min(moving[kind], resting[kind]) >= _READS_MIN]
    found = [_compare(share, kind, ratio) for kind in compared]
    # Moves were over within a moment, or a large share has left few rests: counted on.
    unknown = any(moving[kind] >= _READS_MIN for kind in ReadKind if kind not in compared)
    share = replace(
        share,
        moving=_without(share.moving, compared),
        resting=_without(share.resting, compared),
        last=max(found, key=lambda each: each.moving_ns / max(1, each.most_ns), default=share.last),
    )
    if any(each.felt for each in found):
        return replace(share, share=_within(share.share / 2, share_max))
    if unknown or (not found and _has_users(share)):
        return share
    return replace(share, share=_within(share.share + step(ratio), share_max))


def _has_users(share: TimeShare) -> bool:
    """Return whether there is anyone to disturb."""
    reads = _count(_sum((share.moving, share.resting, *share.rest)))
    return max(reads.values()) >= _READS_MIN


def _count(reads: Reads) -> Mapping[ReadKind, int]:
    return {kind: sum(counts) for kind, counts in reads.items()}


def _without(reads: Reads, kinds: Container[ReadKind]) -> Reads:
    return {kind: () if kind in kinds else counts for kind, counts in reads.items()}


def _compare(share: TimeShare, kind: ReadKind, ratio: float) -> Comparison:
    moving = latency_percentile_ns(share.moving[kind], 0.95) or 0
    resting = latency_percentile_ns(share.resting[kind], 0.95) or 0
    return Comparison(kind, moving, resting, felt_factor(ratio))


def _within(share: float, share_max: float) -> float:
    return min(max(share, SHARE_MIN), max(share_max, SHARE_MIN))
