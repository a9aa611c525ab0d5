# SPDX-License-Identifier: GPL-2.0-only
"""When gaps are left alone, so that it shows how fast requests are that nothing delays. Pure.

What users felt of a gap is known only if like requests came while nothing of a gap was left
(`signals.disturbance`). A load of short bursts, a gap before each, has no such requests: all of
them may wait for a disk that writes out its own cache, and no measurement shows it. So after some
gaps without a comparison, write-back stops for a while, at most once in the time for which the
result is remembered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ebbgate.model.frame import Disturbance
from ebbgate.units import NS_PER_S

UNKNOWN_MIN: Final = 2
"""After one gap an unlike request may have come by chance."""
CALM_NS: Final = 10 * NS_PER_S
"""In this time a disk writes out a cache full of pieces of 64 KiB, and some bursts follow."""
AGAIN_NS: Final = 600 * NS_PER_S
"""Not more often, whatever was learned. So long `signals.disturbance` remembers it."""
WHY: Final = "left alone for some seconds, to learn how fast requests are that nothing delays"


@dataclass(frozen=True, slots=True)
class CalmTime:
    """What is known of it; times are 0 until the event has happened.

    - `judged_gap_ns`: the end of the last gap that was taken in.
    - `unknown`: gaps in a row of which nobody knows what was felt.
    - `since_ns`: when the last calm time began.
    """

    judged_gap_ns: int = 0
    unknown: int = 0
    since_ns: int = 0


def judge(calm: CalmTime, found: Disturbance, now_ns: int) -> CalmTime:
    """Take in what users felt of a gap; the same state for a gap that was taken in before."""
    if found.gap_end_ns <= calm.judged_gap_ns:
        return calm
    unknown = calm.unknown + 1 if found.felt_ns is None else 0
    calm = replace(calm, judged_gap_ns=found.gap_end_ns, unknown=unknown)
    lately = calm.since_ns > 0 and now_ns - calm.since_ns < AGAIN_NS
    if unknown < UNKNOWN_MIN or lately:
        return calm
    return replace(calm, unknown=0, since_ns=now_ns)


def lasts(calm: CalmTime, now_ns: int) -> bool:
    """Return whether gaps are left alone now."""
    return calm.since_ns > 0 and now_ns - calm.since_ns < CALM_NS
