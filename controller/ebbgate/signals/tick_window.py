# SPDX-License-Identifier: GPL-2.0-only
"""The time that rates and latencies of a frame cover. Pure.

It is that from one recorded sample to the next, so that the samples together have each request
once, whatever the distance of ticks.
"""

from __future__ import annotations

from typing import Final

from ebbgate.model.records import Tick
from ebbgate.units import NS_PER_MS, NS_PER_S

WINDOW_NS: Final = NS_PER_S
"""Long enough to be steady, short enough to react."""
EARLY_NS: Final = 50 * NS_PER_MS
"""Ticks come a little early or late; no more than half of their distance."""
_LONGEST_NS: Final = 2 * WINDOW_NS
"""Of several ticks."""
_BETWEEN_TICKS_NS: Final = 25 * NS_PER_MS
"""Half of the shortest distance."""


def last_window(ticks: tuple[Tick, ...]) -> tuple[Tick, ...]:
    """Return the last ticks over the shortest time that is a window.

    Where that is too long, as after a pause, or where no ticks go back so far: all that are within
    a window; where ticks are further apart, the last two.
    """
    *before, last = ticks
    ages_ns = [last.at_ns - tick.at_ns for tick in before]
    early_ns = min(EARLY_NS, ages_ns[-1] // 2)
    over = sum(age_ns >= WINDOW_NS - early_ns for age_ns in ages_ns)
    if over and ages_ns[over - 1] <= _LONGEST_NS:
        return ticks[over - 1 :]
    return ticks[min(over, len(before) - 1) :]


def follows(end_ns: int, window_ns: int, last_end_ns: int) -> bool:
    """Return whether a window, or a whole one in place of a shorter one, begins after the last."""
    begin_ns = end_ns - max(window_ns, WINDOW_NS - EARLY_NS)
    return begin_ns >= last_end_ns - _BETWEEN_TICKS_NS


def gap_destage(before: tuple[int, ...], last: Tick, tick: Tick) -> tuple[int, ...]:
    """Add what was written back in gaps until a tick.

    That is all between two ticks of which one is in a gap: what a gap began is finished after it.
    """
    done_bytes = max(0, tick.destage_done.bytes - last.destage_done.bytes)
    return (*before, before[-1] + (done_bytes if last.idle or tick.idle else 0))
