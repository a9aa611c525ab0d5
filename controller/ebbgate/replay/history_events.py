# SPDX-License-Identifier: GPL-2.0-only
"""The history of a volume as what a policy looks at: frames and edges, in the order of time. Pure.

A sample is a frame of which much was not kept: run lengths, gaps, the disk's busy share, what was
bypassed for which reason. It is missing in the frame, as it is where a kernel does not give it, so
no rule on it fires. Times are of the wall clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final

from ebbgate.model.frame import Frame, PathLatency, Rates, Regime
from ebbgate.model.records import Direction, Edge, EdgeKind
from ebbgate.model.volume import Kind
from ebbgate.signals.forecast import CUTOFF_ASYNC_RATIO, CUTOFF_SYNC_RATIO, dirty_room_bytes
from ebbgate.units import NS_PER_S

Row = Mapping[str, Any]
"""A sample, by column, as the history has it."""

MINUTE_NS: Final = 60 * NS_PER_S
_HOLE_SPANS: Final = 3
"""So many spans without a sample are a hole, in which nothing is known."""
_NOT_KEPT: Final = "the history does not keep it"
UNKEPT: Final = ("in_flight", "destage_in_flight", "backing_busy", "state")
"""Signals of rules that no sample has."""


@dataclass(frozen=True, slots=True)
class HistoryWindow:
    """What the history has of one volume in `[since, until)`.

    `samples`: oldest first, of a second, and of a minute before the first of these. `edges`: oldest
    first, with Unix ns as their time.
    """

    volume: str
    kind: Kind
    since_unix_ns: int
    until_unix_ns: int
    samples: Sequence[Row]
    edges: Sequence[Edge] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """The volume was quiet. `wait_ns`: after so long it was called idle, then; `until_ns`: None
    where its end is not known.
    """

    since_ns: int
    wait_ns: int
    until_ns: int | None


@dataclass(frozen=True, slots=True)
class Event:
    """`what`: a frame or an edge. `wait_ns`: the wait that was learned then, None where no gap
    shows it. `mixed`: a minute in which the load came and went: whether it was idle is not known.
    `blank`: the beginning of a hole.
    """

    at_ns: int
    what: Frame | Edge
    wait_ns: int | None = None
    mixed: bool = False
    blank: bool = False


def gaps_of(edges: Iterable[Edge]) -> tuple[Gap, ...]:
    """Idle and busy edges in pairs; a busy edge alone tells too little of its gap."""
    found: list[Gap] = []
    open_: Gap | None = None
    for edge in edges:
        if edge.kind is EdgeKind.IDLE:
            if open_ is not None:
                found.append(open_)
            open_ = Gap(edge.at_ns - edge.length_ns, edge.length_ns, None)
        elif open_ is not None:
            found.append(Gap(open_.since_ns, open_.wait_ns, edge.at_ns))
            open_ = None
    return tuple([*found, open_] if open_ is not None else found)


def events(
    past: HistoryWindow, gaps: Sequence[Gap], wait_at: Callable[[int], int | None]
) -> Iterator[Event]:
    """All that happened, as it looks to a policy whose own wait, where it has one, is `wait_at`."""
    found = [*_edges(gaps, wait_at), *_frames(past, gaps, wait_at)]
    # An edge before the sample of the same moment, which knows of it.
    found.sort(key=lambda each: (each.at_ns, isinstance(each.what, Frame)))
    hole = True
    for each in _with_waits(found):
        if isinstance(each.what, Frame):
            hole = each.blank
        elif hole:
            continue
        yield each


def covered_ns(past: HistoryWindow) -> int:
    """For how long there are samples."""
    return sum(until - since for since, until in _stretches(past))


def _with_waits(found: list[Event]) -> list[Event]:
    """Each with the wait by which the next gap was found, or, after the last one, that."""
    wait_ns = next((each.wait_ns for each in reversed(found) if each.wait_ns), None)
    told = []
    for each in reversed(found):
        wait_ns = each.wait_ns or wait_ns
        told.append(Event(each.at_ns, each.what, wait_ns, each.mixed, each.blank))
    told.reverse()
    return told


def _edges(gaps: Iterable[Gap], wait_at: Callable[[int], int | None]) -> Iterator[Event]:
    for gap in gaps:
        own = wait_at(gap.since_ns)
        wait_ns = gap.wait_ns if own is None else own
        idle_at_ns = gap.since_ns + wait_ns
        if gap.until_ns is None or idle_at_ns < gap.until_ns:
            yield Event(idle_at_ns, Edge("", idle_at_ns, EdgeKind.IDLE, wait_ns), gap.wait_ns)
        if gap.until_ns is not None:
            length_ns = gap.until_ns - gap.since_ns
            yield Event(gap.until_ns, Edge("", gap.until_ns, EdgeKind.BUSY, length_ns), gap.wait_ns)


def _frames(
    past: HistoryWindow, gaps: Sequence[Gap], wait_at: Callable[[int], int | None]
) -> Iterator[Event]:
    starts = [gap.since_ns for gap in gaps]
    cutoff: float | None = None
    for row in past.samples:
        at_ns = row["at_unix_ns"]
        cutoff = _cutoff(row) or cutoff
        number = bisect_right(starts, at_ns) - 1
        gap = gaps[number] if number >= 0 and _contains(gaps[number], at_ns) else None
        idle, idle_ns, mixed = _quiet(row, gap, wait_at)
        frame = _frame(row, past, idle=idle, idle_ns=idle_ns, room=_room(row, past.kind, cutoff))
        yield Event(at_ns, frame, mixed=mixed)
    for _, until in _stretches(past):
        yield Event(until, _blank(past, until), blank=True)


def _quiet(
    row: Row, gap: Gap | None, wait_at: Callable[[int], int | None]
) -> tuple[bool | None, int | None, bool]:
    """Idle, quiet for how long, and whether it was both within one sample."""
    share = row["idle"]
    if row["span_ns"] > NS_PER_S:
        mixed = share is not None and 0 < share < 1
        return (None if share is None or mixed else bool(share)), None, mixed
    if gap is None:
        return (None if share is None else bool(share)), None, False
    own = wait_at(gap.since_ns)
    idle_ns = row["at_unix_ns"] - gap.since_ns
    return idle_ns >= (gap.wait_ns if own is None else own), idle_ns, False


def _contains(gap: Gap, at_ns: int) -> bool:
    # Of a gap whose end is not known only its beginning is sure.
    until = gap.since_ns + gap.wait_ns + NS_PER_S if gap.until_ns is None else gap.until_ns
    return gap.since_ns <= at_ns < until


def _frame(
    row: Row, past: HistoryWindow, *, idle: bool | None, idle_ns: int | None, room: int | None
) -> Frame:
    at_ns, dirty, cache = row["at_unix_ns"], row["dirty_bytes"], row["cache_bytes"]
    known = row["read_iops"] is not None
    missing = {**row["missing"], **_MISSING}
    if room is None:
        missing["room"] = _NOT_KEPT
    return Frame(
        volume=past.volume,
        at_ns=at_ns,
        probed_at_ns=at_ns if known or idle is not None else None,
        window_ns=row["covered_ns"] or row["span_ns"],
        idle=idle,
        idle_ns=idle_ns,
        foreground=_foreground(row) if known else None,
        in_flight_ios=None,
        paths=_paths(row["paths"]),
        backing_depth_ios=_whole(row["backing_depth_ios"]),
        destage_bytes_per_s=row["destage_bytes_per_s"],
        dirty_in_bytes_per_s=row["dirty_in_bytes_per_s"],
        dirty_bytes=_whole(dirty),
        cache_bytes=cache,
        dirty_ratio=dirty / cache if dirty is not None and cache else None,
        in_use_ratio=row["in_use_ratio"],
        dirty_room_bytes=room,
        time_to_full_s=row["time_to_full_s"],
        time_to_clean_s=row["time_to_clean_s"],
        regime=Regime(row["regime"]),
        missing=missing,
    )


_MISSING: Final = dict.fromkeys(UNKEPT, _NOT_KEPT)


def _blank(past: HistoryWindow, at_ns: int) -> Frame:
    nothing = {"dirty_bytes": "nothing was recorded", "foreground": "nothing was recorded"}
    return Frame(past.volume, at_ns, None, 0, None, None, None, None, missing=nothing)


def _foreground(row: Row) -> dict[Direction, Rates]:
    return {
        direction: Rates(row[f"{direction}_iops"] or 0.0, row[f"{direction}_bytes_per_s"] or 0.0)
        for direction in Direction
    }


def _paths(paths: Mapping[str, Sequence[int | None]]) -> dict[tuple[Direction, str], PathLatency]:
    found = {}
    for name, (ios, moved, p50_ns, p99_ns, *_) in paths.items():
        direction, _, path = name.partition(" ")
        found[Direction(direction), path] = PathLatency(ios or 0, moved or 0, p50_ns, p99_ns)
    return found


def _cutoff(row: Row) -> float | None:
    """At which of its two levels bcache would have stopped, where the forecast of then tells."""
    full_s, cache, level = row["time_to_full_s"], row["cache_bytes"], row["in_use_ratio"]
    came, went = row["dirty_in_bytes_per_s"], row["destage_bytes_per_s"]
    if None in (full_s, cache, level, came, went) or not cache or row["span_ns"] > NS_PER_S:
        return None
    limit = level + full_s * (came - went) / cache
    return min((CUTOFF_ASYNC_RATIO, CUTOFF_SYNC_RATIO), key=lambda each: abs(each - limit))


def _room(row: Row, kind: Kind, cutoff: float | None) -> int | None:
    """As `signals.frame` reckons it; of bcache with the level that a forecast showed last."""
    dirty, cache, level = row["dirty_bytes"], row["cache_bytes"], row["in_use_ratio"]
    if dirty is None or not cache:
        return None
    if kind is not Kind.BCACHE:
        return dirty_room_bytes(cache, dirty / cache, 1.0)
    if cutoff is None:
        return None
    return dirty_room_bytes(cache, max(dirty / cache, level or 0.0), cutoff)


def _stretches(past: HistoryWindow) -> list[tuple[int, int]]:
    """From when to when there are samples without a hole, until its last sample is over."""
    seconds = [row["at_unix_ns"] for row in past.samples if row["span_ns"] <= NS_PER_S]
    apart = [later - earlier for earlier, later in pairwise(seconds)]
    # With a slow tick a sample stands for the time to the next one.
    each_ns = max(NS_PER_S, round(median(apart))) if apart else NS_PER_S
    found: list[tuple[int, int]] = []
    for row in past.samples:
        at_ns, span_ns = row["at_unix_ns"], max(row["span_ns"], each_ns)
        if found and at_ns - found[-1][1] <= (_HOLE_SPANS - 1) * span_ns:
            found[-1] = (found[-1][0], at_ns + span_ns)
        else:
            found.append((at_ns, at_ns + span_ns))
    return [(since, min(until, past.until_unix_ns)) for since, until in found]


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
