# SPDX-License-Identifier: GPL-2.0-only
"""The outer loop: how fast a gap may write back, from what users felt after the one before. Pure.

The queue shows pieces under way. A disk with a write cache answers them at once and writes them out
between the reads that come back; these show it, and how fast a gap begins does (`disk_cache`). At a
rate that the platters keep up with, the cache stays empty, whatever the disk, the pieces and the
scheduler are. On bcache the gate keeps the cap by rests. In a gap that outlives the recent ones the
cap doubles, again and again. No cap applies in a gap whose end is foreseen, if it is not a short
one: there `gap_use` rests before the end, the earlier the more users felt. Once any other gap:

    felt > target    cap = rate of the gap * clamp(target / felt, 0.5, 0.9), but not above the cap
    otherwise        cap * 1.3, but not beyond 0.9 of the rate that was felt

Requests of one burst may be slow by chance. So it takes two of three gaps, or one that was felt
twice as much as the target. In the first gap after that a disk may still write what its cache held
before; if it is felt it counts for nothing.

What a rate did a minute ago it does again; what it did long ago may be another load. So that bound
rises, ever faster: by a fifth in a minute and a half, to twice as much in three. Far beyond what
the disk does the cap is dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from ebbgate.model.frame import Disturbance
from ebbgate.units import KIB, NS_PER_S

CAP_MIN_BYTES_PER_S: Final = 256 * KIB
SLOWER_MIN, SLOWER_MAX, FASTER = 0.5, 0.9, 1.3
RECENT: Final = 3
FELT_MIN: Final = 2
"""Of the recent gaps so many must be felt."""
MUCH: Final = 2
"""Or one by so many times the target."""
_RETRY_NS: Final = 180 * NS_PER_S
_BEYOND: Final = 1.5


@dataclass(frozen=True, slots=True)
class DrainCap:
    """The cap, None for none, and what it was learned from.

    - `judged_gap_ns`: the end of the last gap that was judged.
    - `recent`: whether the last gaps were felt. Empty: the cap was lowered after the last one.
    - `calm`: a gap was not felt since the cap was lowered.
    - `bound_bytes_per_s`, `felt_at_ns`: what the cap comes back to, from the last gap that was felt
      after one that was not, and when that was.
    """

    bytes_per_s: float | None = None
    judged_gap_ns: int = 0
    recent: tuple[bool, ...] = (False,)
    calm: bool = True
    bound_bytes_per_s: float = 0.0
    felt_at_ns: int = 0


def judge(cap: DrainCap, found: Disturbance, target_ns: int, now_ns: int) -> DrainCap:
    """Return the cap after a gap; the same one for a gap that was judged before."""
    rate, felt_ns = found.destage_bytes_per_s, found.felt_ns
    if felt_ns is None or rate <= 0 or found.gap_end_ns <= cap.judged_gap_ns:
        return cap
    settling, over = not cap.recent, felt_ns > target_ns
    recent = (*cap.recent, over)[-RECENT:]
    cap = replace(cap, judged_gap_ns=found.gap_end_ns, recent=(False,) if settling else recent)
    if not over:
        return replace(cap, calm=True, bytes_per_s=_faster(cap, rate, now_ns))
    if settling or (sum(recent) < FELT_MIN and felt_ns < MUCH * target_ns):
        return cap
    share = min(SLOWER_MAX, max(SLOWER_MIN, target_ns / felt_ns))
    # A drain by a deadline may write far more than the cap.
    slower = min(share * rate, math.inf if cap.bytes_per_s is None else cap.bytes_per_s)
    cap = replace(cap, bytes_per_s=max(float(CAP_MIN_BYTES_PER_S), slower), recent=())
    if not cap.calm:
        return cap
    return replace(cap, calm=False, bound_bytes_per_s=SLOWER_MAX * rate, felt_at_ns=now_ns)


def _faster(cap: DrainCap, rate: float, now_ns: int) -> float | None:
    now = cap.bytes_per_s
    if now is None:
        return None
    # Bounded, since a float is.
    age = min(5.0, (now_ns - cap.felt_at_ns) / _RETRY_NS)
    bound = cap.bound_bytes_per_s * 2 ** (age * age)
    grown = max(now, min(FASTER * now, bound))
    return None if grown > _BEYOND * max(rate, cap.bound_bytes_per_s) else grown
