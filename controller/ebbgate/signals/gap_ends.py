# SPDX-License-Identifier: GPL-2.0-only
"""Predicts when a gap ends, from the lengths of recent ones. Pure.

Much of what disturbs an idle disk is periodic: a journal's commit, a poll, a scrape. Such gaps end
after about the same time, so write-back that stops a little earlier disturbs nobody. It also loses
drain time, in every gap that reaches the window. So of all windows between two recent lengths that
one is taken whose utility is highest, and none if it is not positive:

    U(from, until) = cost * gaps that end in it - drain time that all gaps lose in it

The same cost decides about the begin of write-back (see `gaps`). On the first hour of CloudPhysics
this disturbs a third fewer returns, for 9 % less drain time (`make bench S=trace-gaps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

MEMORY: Final = 32
"""Recent gaps that are remembered; twice as many predicted no better."""
ENDS_MIN: Final = 3
"""Fewer ends are chance."""
TOLERANCE: Final = 0.02
"""A periodic load that is itself delayed comes a little later, one that catches up a little
earlier.
"""


@dataclass(frozen=True, slots=True)
class EndWindow:
    """Between `first_ns` and `until_ns` gaps tend to end; write-back must stop at `from_ns`.

    All are idle times. `share`: of the recent gaps that had lasted as long, so many ended in it
    (0..1).
    """

    from_ns: int
    first_ns: int
    until_ns: int
    share: float = 1.0


def end_window(
    lengths_ns: Sequence[int], idle_ns: int, run_off_ns: int, cost_ns: int
) -> EndWindow | None:
    """Return when to stop in a gap that has lasted `idle_ns`; None: it is not worth it.

    - `run_off_ns`: how long what is under way goes on after the gate has closed.
    - `cost_ns`: the drain time that one disturbed return is worth.
    """
    ends = sorted(length for length in lengths_ns if length > idle_ns)
    sums = list(accumulate(ends, initial=0))
    best, found = 0.0, None
    for first in range(len(ends) - ENDS_MIN + 1):
        first_ns = round(ends[first] * (1 - TOLERANCE))
        from_ns = max(idle_ns, first_ns - run_off_ns)
        for last in range(first + ENDS_MIN - 1, len(ends)):
            until_ns = round(ends[last] * (1 + TOLERANCE))
            inside = last + 1 - first
            lost_ns = sums[last + 1] - sums[first] - inside * from_ns
            lost_ns += (len(ends) - inside - first) * (until_ns - from_ns)
            if inside * cost_ns - lost_ns > best:
                best = inside * cost_ns - lost_ns
                found = EndWindow(from_ns, first_ns, until_ns, inside / len(ends))
    return found


def remember(lengths_ns: tuple[int, ...], length_ns: int) -> tuple[int, ...]:
    """Return the recent lengths with one more, the newest last."""
    return (*lengths_ns, length_ns)[-MEMORY:]
