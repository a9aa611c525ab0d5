# SPDX-License-Identifier: GPL-2.0-only
"""What rules for opening the gate would have got out of the gaps of a trace. Pure.

A gate that is open for some time in a gap drains for as long. It disturbs the request that ends
the gap, which counts as 0.25 s less, if it was open less than RUN_OFF_NS before: so long goes on
what is under way once it has closed (assumed; in the lab 60 to 600 ms, by the size of the pieces).
A gap runs from one arrival to the next (arrivals only: a trace does not tell when a request ended),
and as in the probe, one under a millisecond is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ebbgate.policy.strategies import gap_use
from ebbgate.policy.strategies.gap_use import GapUse
from ebbgate.signals import frame
from ebbgate.signals.gaps import WaitParams, learn_wait
from ebbgate.units import NS_PER_MS, NS_PER_S, NS_PER_US
from tests.builders import tick

PARAMS = WaitParams()
COST_NS = PARAMS.disturbance_cost_ns
RUN_OFF_NS = 100 * NS_PER_MS
GAP_MIN_NS = NS_PER_MS
_FOREVER = 1 << 62
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


Spans = Sequence[tuple[int, int]]
"""Idle times at which the gate opens and closes."""
Rule = Callable[[Sequence[Gap]], Iterable[Spans]]
"""Returns when the gate is open in each gap."""


def gaps_of(arrivals_ns: Iterable[int]) -> tuple[Gap, ...]:
    """Return the gaps between requests."""
    pairs = pairwise(sorted(arrivals_ns))
    return tuple(Gap(a, b - a) for a, b in pairs if b - a >= GAP_MIN_NS)


def gain(gaps: Sequence[Gap], rule: Rule) -> Gain:
    """Return what a rule gets out of the gaps."""
    return sum(map(_gain, gaps, rule(gaps)), Gain())


def _gain(gap: Gap, spans: Spans) -> Gain:
    drained_ns = sum(max(0, min(end, gap.length_ns) - begin) for begin, end in spans)
    disturbed = any(begin < gap.length_ns < end + RUN_OFF_NS for begin, end in spans)
    return Gain(drained_ns, int(disturbed))


def _after(wait_ns: int) -> Spans:
    return ((wait_ns, _FOREVER),)


def fixed(wait_ns: int) -> Rule:
    """Return the rule that always waits as long."""
    return lambda gaps: [_after(wait_ns)] * len(gaps)


def oracle(gaps: Sequence[Gap]) -> Iterator[Spans]:
    """Open at once in each gap that is worth a disturbed request; never close before it."""
    for gap in gaps:
        yield _after(0) if gap.length_ns > COST_NS else ()


def learned(gaps: Sequence[Gap]) -> Iterator[Spans]:
    """Open after the learned wait, until the next request."""
    return map(_after, _waits(gaps))


def foreseen(gaps: Sequence[Gap]) -> Iterator[Spans]:
    """Open after the learned wait and rest before the likely end, by ebbgate's own code."""
    use = GapUse(run_off_ns=RUN_OFF_NS)
    for gap, wait_ns in zip(gaps, _waits(gaps), strict=True):
        yield tuple(_open_spans(use, gap, wait_ns))
        if gap.length_ns > wait_ns:
            # The probe reports no shorter gap.
            use = gap_use.end(use, gap.length_ns)


def _open_spans(use: GapUse, gap: Gap, wait_ns: int) -> Iterator[tuple[int, int]]:
    use, idle_ns = replace(use, opened_ns=wait_ns), wait_ns
    while idle_ns < gap.length_ns:
        window = gap_use.likely_end(use, idle_ns, COST_NS)
        if window is None:
            yield idle_ns, _FOREVER
            return
        if window.from_ns > idle_ns:
            yield idle_ns, window.from_ns
        idle_ns = window.until_ns


def _waits(gaps: Sequence[Gap]) -> Iterator[int]:
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
    "ebbgate": foreseen,
    "learned_wait": learned,
    "fixed_300ms": fixed(300 * NS_PER_MS),
    "dm_cache": fixed(NS_PER_S),
    "bcache": fixed(30 * NS_PER_S),
}
"""The oracle knows each gap, but a rule that closes in time disturbs fewer requests and may exceed
it. `learned_wait` is ebbgate without rests. dm-cache takes a second without I/O of the origin for
idle, bcache writes back at full speed after half a minute; both are given every arrival as I/O."""
