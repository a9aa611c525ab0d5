# SPDX-License-Identifier: GPL-2.0-only
"""How fast a cache fills and drains, over a flush of the page cache. Pure.

Buffered writes reach a volume in bursts, every 5 s (vm.dirty_writeback_centisecs). In the second of
a burst they come several times as fast as on average, and in the others none do.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ebbgate.model.frame import FlowRates
from ebbgate.model.records import Direction, Tick
from ebbgate.units import NS_PER_MS, NS_PER_S

SPAN_NS: Final = 5 * NS_PER_S
_LATE_NS: Final = 50 * NS_PER_MS
"""Ticks come a little early or late."""


class FlowPoint(NamedTuple):
    """What had become dirty, was written through and was written back at a time; cumulative."""

    at_ns: int
    dirtied_bytes: int
    through_bytes: int
    drained_bytes: int


def add(points: tuple[FlowPoint, ...], tick: Tick) -> tuple[FlowPoint, ...]:
    """Return the points of the span that ends with this tick, the newest last.

    None where the probe does not measure the paths of writes. Where ticks are further apart the
    span is the last interval.
    """
    if not tick.paths:
        return ()
    new = FlowPoint(
        tick.at_ns,
        _written_bytes(tick, "writeback"),
        _written_bytes(tick, "writethrough"),
        tick.destage_done.bytes,
    )
    recent = tuple([each for each in points if tick.at_ns - each.at_ns <= SPAN_NS + _LATE_NS])
    return (*(recent or points[-1:]), new)


def rates(points: tuple[FlowPoint, ...]) -> FlowRates | None:
    """Return the mean rates from the first point to the last; None with fewer than two."""
    if points[1:] == ():
        return None
    first, last = points[0], points[-1]
    seconds = (last.at_ns - first.at_ns) / NS_PER_S
    return FlowRates(
        (last.dirtied_bytes - first.dirtied_bytes) / seconds,
        (last.through_bytes - first.through_bytes) / seconds,
        (last.drained_bytes - first.drained_bytes) / seconds,
    )


def _written_bytes(tick: Tick, path: str) -> int:
    flow = tick.paths.get((Direction.WRITE, path))
    return flow.bytes if flow else 0
