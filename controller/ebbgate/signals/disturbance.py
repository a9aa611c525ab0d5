# SPDX-License-Identifier: GPL-2.0-only
"""How much longer returning requests took because of what a gap wrote back. Pure.

Whatever the cause (a deep queue, pieces under way, a disk that writes out its own cache), the
requests right after the gap wait for it. Their mean latency, but for the slowest tenth, is compared
with the calm one: that of like requests while nothing of a gap can be left. The first one or two
wait for what was under way, at whatever rate that was written. A disk with a full write cache slows
a whole short burst, so the calm latency is remembered over bursts:

- a window is some ticks with enough requests on one path to the backing device (never hits);
- the first window after a gap that wrote back is judged, all later ones teach the calm latency;
- where a burst has too few requests, those after the next such gaps come into the same window;
- while something of the gap may be left they only lower it, otherwise they raise it, too;
- requests are alike if direction, path, about their size and their number at once are.

If like requests are slow after gaps of whatever rate, the reason lies elsewhere, such as two loads
in different places of the disk: what remains after a much slower gap counts as their spread.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from ebbgate.model.frame import Disturbance
from ebbgate.model.records import Direction, Tick
from ebbgate.signals.histogram import latency_sum_ns, subtract, without_slowest
from ebbgate.units import KIB, NS_PER_MS, NS_PER_S

IOS_MIN: Final = 16
"""The mean of 16 random reads of a hard disk is known to 0.7 ms."""
SLOWEST_MIN: Final = 2
SLOWEST_SHARE: Final = 10
"""One request in so many, the slowest, is left out."""
WINDOW_NS_MIN: Final = 400 * NS_PER_MS
WINDOW_NS_MAX: Final = 5 * NS_PER_S
"""Requests that come later say nothing about the moment after a gap."""
CALM_WINDOW_NS_MAX: Final = 20 * NS_PER_S
"""Bursts of few requests may be seconds apart."""
SHORT_NS: Final = NS_PER_S
"""Ticks see such a gap twice as short as it was, so its own length counts."""
PIECES_MIN: Final = 8
"""A closed gate lets fewer through in a gap."""
RECENT_NS: Final = 2 * NS_PER_S
"""Nothing is left of write-back that ended longer ago in the gap."""
LEFT_NS_MAX: Final = 60 * NS_PER_S
"""A disk that writes out one piece between two reads has emptied its cache after this time."""
CALM_NS_MAX: Final = 600 * NS_PER_S
"""What nothing has confirmed for this long is forgotten."""
NOISE_NS: Final = 2 * NS_PER_MS
SLOWER: Final = 20
"""Gaps that wrote back this much slower than one that was felt, and long after it, are felt as
well: something else is the reason.
"""
_PIECE_COST_BYTES: Final = 64 * KIB
"""A piece costs a disk about the time of so many bytes more."""
_SLOWER_WEIGHT, _FASTER_WEIGHT = 0.1, 0.25
_MUCH_FASTER: Final = 0.75
_DEPTHS: Final = (2.5, 10)
_CLASSES_MAX: Final = 16

NO_GAP: Final = "no gap with write-back and requests after it yet"
NOT_COMPARABLE: Final = "no like requests to compare those after the last gap with"
TOO_FEW: Final = "too few requests reached the backing device after the last gap"

_PATHS: Final = frozenset(
    {
        (Direction.READ, "miss"),
        (Direction.READ, "bypass"),
        (Direction.WRITE, "bypass"),
        (Direction.WRITE, "writethrough"),
    }
)


class Likeness(NamedTuple):
    """What like requests have in common. `size`, `depth`: classes."""

    direction: Direction
    path: str
    size: int
    depth: int


@dataclass(frozen=True, slots=True)
class Calm:
    """The latency of like requests that nothing delays. `at_ns`: when it was last confirmed."""

    mean_ns: float
    at_ns: int
    spread_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class Gap:
    """An idle time: its last tick; the tick before the first write-back, the tick after it, and
    the last tick that saw more.
    """

    end: Tick
    since: Tick
    first: Tick | None = None
    last: Tick | None = None

    @property
    def pieces(self) -> int:
        """Pieces that were written back."""
        return self.last.destage_done.ios - self.since.destage_done.ios if self.last else 0

    def rates(self, length_ns: int) -> tuple[float, float]:
        """Bytes and pieces per second of a gap of this length, without what a disk's cache took at
        once at the beginning if it is long enough.
        """
        last, since = self.last or self.end, self.first or self.since
        if last.at_ns - since.at_ns < WINDOW_NS_MIN:
            since = self.since
        span_ns = last.at_ns - since.at_ns
        if length_ns < SHORT_NS:
            span_ns = max(span_ns, length_ns)
        span_s = max(1, span_ns) / NS_PER_S
        ios = last.destage_done.ios - since.destage_done.ios
        return (last.destage_done.bytes - since.destage_done.bytes) / span_s, ios / span_s


@dataclass(frozen=True, slots=True)
class DisturbanceState:
    """What is remembered between ticks.

    - `gap`: the present one. `window`: the tick at which the present window began.
    - `drained`: bytes and pieces per second of the last gap before this window, if it is to judge.
    - `burst_at_ns`: the end of the last gap that wrote back. `unfelt`: nothing of it was felt.
    - `felt_cost`: the cost per second of the fastest write-back that was felt, and when.
    """

    calm: Mapping[Likeness, Calm] = field(default_factory=dict)
    gap: Gap | None = None
    window: Tick | None = None
    drained: tuple[float, float] | None = None
    burst_at_ns: int = -LEFT_NS_MAX
    unfelt: bool = True
    felt_cost: float = 0.0
    felt_at_ns: int = 0
    last: Disturbance | None = None
    missing: str = NO_GAP


def restarted(state: DisturbanceState) -> DisturbanceState:
    """Prepare for counters that begin at zero."""
    return replace(state, gap=None, window=None, drained=None)


def on_tick(state: DisturbanceState, before: Tick, tick: Tick) -> DisturbanceState:
    """Handle a tick and the one before it, of the same probe."""
    if tick.idle:
        state = _watch(state, before, tick)
        gap = state.gap or Gap(tick, before)
        if tick.destage_done.ios > before.destage_done.ios:
            gap = Gap(tick, gap.since if gap.first else before, gap.first or tick, tick)
        return replace(state, gap=replace(gap, end=tick))
    if state.gap is not None:
        state = _returned(replace(state, gap=None), state.gap, tick)
    return _watch(state, before, tick)


def _returned(state: DisturbanceState, gap: Gap, tick: Tick) -> DisturbanceState:
    """Begin the window to judge, if the gap wrote back until its end.

    A burst that was too short to judge is judged with the next ones.
    """
    if gap.pieces < PIECES_MIN or gap.last is None or gap.end.at_ns - gap.last.at_ns > RECENT_NS:
        return state
    return replace(
        state,
        window=gap.end if state.drained is None else state.window,
        drained=gap.rates(sum(tick.gap_sums_ns) - sum(gap.end.gap_sums_ns)),
        burst_at_ns=tick.at_ns,
        unfelt=False,
        last=None if state.drained else state.last,
        missing=TOO_FEW,
    )


def _watch(state: DisturbanceState, before: Tick, tick: Tick) -> DisturbanceState:
    """End the window if it has enough requests or lasts too long."""
    begin = state.window or before
    if state.window is None:
        state = replace(state, window=before)
    span_ns = tick.at_ns - begin.at_ns
    if span_ns < WINDOW_NS_MIN:
        return state
    found = _busiest(begin, tick)
    if found is None:
        if not _too_old(state, span_ns, tick.at_ns):
            return state
        state = replace(state, last=None) if state.drained else state
        return replace(state, window=tick, drained=None)
    state = replace(state, window=tick)
    key, mean_ns = found
    if state.drained is not None:
        return _judge(state, state.drained, key, mean_ns, tick.at_ns)
    left = tick.destage_done.ios - begin.destage_done.ios >= PIECES_MIN
    calm = not left and (state.unfelt or tick.at_ns - state.burst_at_ns > LEFT_NS_MAX)
    return _learn(state, key, mean_ns, tick.at_ns, calm)


def _too_old(state: DisturbanceState, span_ns: int, now_ns: int) -> bool:
    """Return whether a window without enough requests is given up."""
    if state.drained is None:
        return span_ns > CALM_WINDOW_NS_MAX
    return now_ns - state.burst_at_ns > WINDOW_NS_MAX


def _judge(
    state: DisturbanceState,
    drained: tuple[float, float],
    key: Likeness,
    mean_ns: float,
    now_ns: int,
) -> DisturbanceState:
    """Compare the first requests after a gap with calm ones."""
    rate, pieces = drained
    cost = rate + pieces * _PIECE_COST_BYTES
    known = state.calm.get(key)
    if known is None or now_ns - known.at_ns > CALM_NS_MAX:
        found = Disturbance(state.burst_at_ns, rate, None)
        return replace(state, drained=None, last=found, missing=NOT_COMPARABLE)
    worst = state.felt_cost if now_ns - state.felt_at_ns <= CALM_NS_MAX else 0.0
    excess_ns = mean_ns - known.mean_ns
    later = now_ns - state.felt_at_ns >= LEFT_NS_MAX
    if later and cost * SLOWER < worst and excess_ns > known.spread_ns:
        known = replace(known, spread_ns=excess_ns)
        state = _with(state, key, known)
    felt_ns = max(0, round(excess_ns - known.spread_ns))
    unfelt = felt_ns <= NOISE_NS
    if not unfelt and cost >= worst:
        state = replace(state, felt_cost=cost, felt_at_ns=now_ns)
    found = Disturbance(state.burst_at_ns, rate, felt_ns)
    state = replace(state, drained=None, last=found, missing="", unfelt=unfelt)
    return _learn(state, key, mean_ns, now_ns, calm=False)


def _learn(
    state: DisturbanceState, key: Likeness, mean_ns: float, now_ns: int, calm: bool
) -> DisturbanceState:
    known = state.calm.get(key)
    if known is None or now_ns - known.at_ns > CALM_NS_MAX:
        return _with(state, key, Calm(mean_ns, now_ns))
    slower = mean_ns > known.mean_ns
    if slower and not calm:
        return state
    weight = _SLOWER_WEIGHT if slower else _FASTER_WEIGHT
    if mean_ns < _MUCH_FASTER * known.mean_ns:
        weight = 1.0
    mean_ns = known.mean_ns + weight * (mean_ns - known.mean_ns)
    return _with(state, key, replace(known, mean_ns=mean_ns, at_ns=now_ns))


def _with(state: DisturbanceState, key: Likeness, calm: Calm) -> DisturbanceState:
    known = {**state.calm, key: calm}
    if len(known) > _CLASSES_MAX:
        del known[min(known, key=lambda each: known[each].at_ns)]
    return replace(state, calm=known)


def _busiest(begin: Tick, end: Tick) -> tuple[Likeness, float] | None:
    """Return the most used path to the backing device with its mean latency; None without enough
    requests on it. Reads come first.
    """
    found: list[tuple[Direction, str, int, int, tuple[int, ...]]] = []
    for (direction, path), flow in end.paths.items():
        old = begin.paths.get((direction, path))
        ios = flow.ios - (old.ios if old else 0)
        if ios and (direction, path) in _PATHS:
            size = (flow.bytes - (old.bytes if old else 0)) // ios
            counts = subtract(flow.latency, old.latency if old else ())
            found.append((direction, path, ios, size, counts))
    enough = [each for each in found if each[2] >= IOS_MIN]
    if not enough:
        return None
    direction, path, ios, size, counts = max(
        enough, key=lambda each: (each[0] is Direction.READ, each[2])
    )
    depth = sum(latency_sum_ns(each[4]) for each in found) / max(1, _busy_ns(begin, end))
    size_class = (size // (64 * KIB)).bit_length()
    slowest = max(SLOWEST_MIN, ios // SLOWEST_SHARE)
    mean_ns = latency_sum_ns(without_slowest(counts, slowest)) / (ios - slowest)
    return Likeness(direction, path, size_class, bisect(_DEPTHS, depth)), mean_ns


def _busy_ns(begin: Tick, end: Tick) -> int:
    """Return for how long users had requests in flight; pauses under 1 ms count as busy."""
    # Gaps that ended; the first may have begun before, and the last may not have ended yet.
    idle_ns = sum(end.gap_sums_ns) - sum(begin.gap_sums_ns) - _paused_ns(begin) + _paused_ns(end)
    return end.at_ns - begin.at_ns - idle_ns


def _paused_ns(tick: Tick) -> int:
    return 0 if any(tick.in_flight_ios.values()) else max(0, tick.at_ns - tick.last_activity_ns)
