# SPDX-License-Identifier: GPL-2.0-only
"""What rules for opening the gate would have got out of the gaps of a trace. Pure.

Opening after a wait w in a gap drains for gap - w seconds and disturbs the request that ends it,
which counts as 0.25 s less. A gap runs from one arrival to the next (arrivals only: a trace does
not tell when a request ended), and as in the probe, one under a millisecond is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ebbgate.signals import frame
from ebbgate.signals.gaps import WaitParams, learn_wait
from ebbgate.units import NS_PER_MS, NS_PER_S, NS_PER_US
from tests.builders import tick

PARAMS = WaitParams()
COST_NS = PARAMS.disturbance_cost_ns
GAP_MIN_NS = NS_PER_MS
_BUCKETS = 32
_TICK_NS = NS_PER_S
"""The wait is learned once a second."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without requests."""

    at_ns: int
    length_ns: int


@dataclass(frozen=True, slots=True)
class Gain:
    """What a rule got: the time drained, and how many requests found the gate open."""

    drained_ns: int = 0
    disturbed: int = 0

    @property
    def utility_ns(self) -> int:
        """The time drained, less the cost of each disturbed request."""
        return self.drained_ns - COST_NS * self.disturbed

    def __add__(self, other: Gain) -> Gain:
        return Gain(self.drained_ns + other.drained_ns, self.disturbed + other.disturbed)


Rule = Callable[[Sequence[Gap]], Iterable[int | None]]
"""Return the wait of each gap; None: the gate stays closed."""


def gaps_of(arrivals_ns: Iterable[int]) -> tuple[Gap, ...]:
    """Return the gaps between requests."""
    pairs = pairwise(sorted(arrivals_ns))
    return tuple(Gap(a, b - a) for a, b in pairs if b - a >= GAP_MIN_NS)


def gain(gaps: Sequence[Gap], rule: Rule) -> Gain:
    """Return what a rule gets out of the gaps."""
    total = Gain()
    for gap, wait_ns in zip(gaps, rule(gaps), strict=True):
        if wait_ns is not None and gap.length_ns > wait_ns:
            total += Gain(gap.length_ns - wait_ns, 1)
    return total


def fixed(wait_ns: int) -> Rule:
    """Return the rule that always waits as long."""
    return lambda gaps: [wait_ns] * len(gaps)


def oracle(gaps: Sequence[Gap]) -> Iterator[int | None]:
    """Open at once in each gap that is worth a disturbed request."""
    for gap in gaps:
        yield 0 if gap.length_ns > COST_NS else None


def learned(gaps: Sequence[Gap]) -> Iterator[int]:
    """Wait as ebbgate has learned by the beginning of each gap, by its own code."""
    empty = tick(ns=0)
    state = frame.on_tick(frame.FrameState(), empty)
    counts = [0] * _BUCKETS
    now_ns, wait_ns, counted = gaps[0].at_ns if gaps else 0, PARAMS.default_ns, 0
    for gap in gaps:
        while now_ns + _TICK_NS <= gap.at_ns:
            now_ns += _TICK_NS
            while _end_ns(gaps[counted]) <= now_ns:
                counts[min(_bucket(gaps[counted]), _BUCKETS - 1)] += 1
                counted += 1
            state = frame.on_tick(state, replace(empty, at_ns=now_ns, gap_counts=tuple(counts)))
            wait_ns = learn_wait(state.gap_counts, PARAMS).wait_ns
        yield wait_ns


def _end_ns(gap: Gap) -> int:
    return gap.at_ns + gap.length_ns


def _bucket(gap: Gap) -> int:
    return (gap.length_ns // NS_PER_US).bit_length() - 1


RULES: Mapping[str, Rule] = {
    "oracle": oracle,
    "ebbgate": learned,
    "fixed_300ms": fixed(300 * NS_PER_MS),
    "dm_cache": fixed(NS_PER_S),
    "bcache": fixed(30 * NS_PER_S),
}
"""The oracle knows each gap. dm-cache takes a second without I/O of the origin for idle, bcache
writes back at full speed after half a minute; both are given every arrival as I/O."""
