# SPDX-License-Identifier: GPL-2.0-only
"""Learns from idle gaps how long to wait before destage starts. Pure.

Nishina et al. destage after a fixed idle time, which starves if a small periodic access keeps
resetting it. Here the wait is chosen from the measured gaps. Opening after a wait w gains the rest
of every gap that lasts at least w, and costs one disturbed return for each:

    U(w) = sum over gaps of (gap - w)+   -   cost * number of gaps >= w

At the maximum the hazard of the gap's end is 1/cost: destage starts once a gap that has lasted this
long is expected to go on for longer than a disturbed return costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ebbgate.signals.histogram import count_beyond
from ebbgate.units import NS_PER_MS, NS_PER_S, NS_PER_US

_TRACE = 0.01
"""A decayed count below this counts as 0."""


@dataclass(frozen=True, slots=True)
class WaitParams:
    """Bounds of the learned wait.

    - `disturbance_cost_ns`: the drain time that one disturbed return is worth.
    - `gaps_min`: with fewer gaps in memory (decayed count) the wait is `default_ns`.
    """

    min_ns: int = 30 * NS_PER_MS
    max_ns: int = 5 * NS_PER_S
    default_ns: int = 300 * NS_PER_MS
    disturbance_cost_ns: int = 250 * NS_PER_MS
    gaps_min: float = 3.0


@dataclass(frozen=True, slots=True)
class Wait:
    """The wait, and how many gaps it was learned from (decayed)."""

    wait_ns: int
    learned: bool
    gaps: float


def bucket_edges_ns(bucket: int) -> tuple[int, int]:
    """Return the edges of a gap bucket: [2^i, 2^(i+1)) microseconds."""
    return (1 << bucket) * NS_PER_US, (2 << bucket) * NS_PER_US


def reaching(counts: Sequence[float], wait_ns: int) -> float:
    """Return how many of the gaps lasted at least `wait_ns`; linear inside a bucket."""
    return count_beyond(counts, wait_ns, NS_PER_US)


def likely_until_ns(counts: Sequence[float], idle_ns: int, share: float) -> int:
    """Return how long a gap that has lasted `idle_ns` will last in `share` (0..1) of the cases.

    That is `idle_ns` itself if no measured gap lasted as long, and once it has reached the bucket
    in which they end; otherwise gaps of one length would seem likely to last up to their very end.
    Exact to a bucket, in which gaps are assumed to be spread evenly.
    """
    left = share * reaching(counts, idle_ns)
    if left <= _TRACE:
        return idle_ns
    for bucket in range(len(counts)):
        low, high = bucket_edges_ns(bucket)
        if high <= idle_ns or reaching(counts, high) >= left:
            continue
        if low < idle_ns:
            return idle_ns
        at_low = reaching(counts, low)
        return low + round((high - low) * (at_low - left) / (at_low - reaching(counts, high)))
    return bucket_edges_ns(len(counts))[0]


def learn_wait(counts: Sequence[float], params: WaitParams) -> Wait:
    """Return the smallest wait of highest utility, from the decayed gap histogram."""
    gaps = reaching(counts, params.min_ns)
    if gaps < params.gaps_min:
        return Wait(params.default_ns, False, gaps)
    best_ns, best = params.min_ns, float("-inf")
    # This runs often, so buckets that no candidate reaches are left out.
    spread = tuple(
        (*bucket_edges_ns(bucket), count)
        for bucket, count in enumerate(counts)
        if count and bucket_edges_ns(bucket)[1] > params.min_ns
    )
    for wait_ns in _candidates(params.min_ns, params.max_ns):
        utility = _utility(spread, wait_ns, params.disturbance_cost_ns)
        if utility > best + 1e-6 * params.disturbance_cost_ns:
            best_ns, best = wait_ns, utility
    return Wait(best_ns, True, gaps)


def _utility(
    spread: Sequence[tuple[int, int, float]], wait_ns: int, disturbance_cost_ns: int
) -> float:
    """Return U(w) of (low, high, count) buckets; linear inside a bucket."""
    total = 0.0
    for low, high, count in spread:
        if wait_ns <= low:
            total += count * ((low + high) / 2 - wait_ns - disturbance_cost_ns)
        elif wait_ns < high:
            left_ns = high - wait_ns
            total += count * left_ns * (left_ns / 2 - disturbance_cost_ns) / (high - low)
    return total


@cache
def _candidates(min_ns: int, max_ns: int) -> tuple[int, ...]:
    """Return waits from the minimum in quarter octaves, so that one is at most 19 % too long."""
    found = []
    wait = float(min_ns)
    while wait <= max_ns:
        found.append(int(wait))
        wait *= 2**0.25
    return tuple(found)
