# SPDX-License-Identifier: GPL-2.0-only
"""Turns a volume's history into frames and edges for a policy, and notes what is missing. Pure.

A sample becomes a frame without what the history does not keep: run lengths, gaps, how busy the
disk was, the reasons of bypasses. These are missing in the frame, so no rule on them fires. Times
are of the wall clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Final, TypedDict

from ebbgate.model.frame import Frame, PathLatency, Rates, Regime
from ebbgate.model.records import Direction, Edge, EdgeKind
from ebbgate.model.volume import Kind
from ebbgate.policy.engine import Policy, Rule
from ebbgate.signals.forecast import CUTOFF_ASYNC_RATIO, CUTOFF_SYNC_RATIO, dirty_room_bytes
from ebbgate.units import NS_PER_S, format_ns

_HOLE_SPANS: Final = 3
"""This many spans without a sample are a hole, in which nothing is known."""
_NOT_KEPT: Final = "the history does not keep it"
UNKEPT: Final = ("in_flight", "destage_in_flight", "backing_busy", "disturbance", "state")
"""Signals of rules that no sample has."""
DISK_STATE: Final = "backing_state"
"""Not kept, either, but never missing: it has the word `unknown`."""


class HistorySample(TypedDict):
    """The columns of a sample that are read here; None: unknown then.

    `idle`: 0 or 1, or the share of a minute. `paths`: by "read hit": requests, bytes, p50, p99.
    """

    at_unix_ns: int
    span_ns: int
    covered_ns: int
    regime: str
    idle: float | None
    read_iops: float | None
    read_bytes_per_s: float | None
    write_iops: float | None
    write_bytes_per_s: float | None
    destage_bytes_per_s: float | None
    dirty_in_bytes_per_s: float | None
    dirty_bytes: float | None
    cache_bytes: int | None
    in_use_ratio: float | None
    backing_depth_ios: float | None
    time_to_full_s: float | None
    time_to_clean_s: float | None
    paths: Mapping[str, Sequence[int | None]]
    missing: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class HistoryWindow:
    """The history of one volume in `[since, until)`.

    - `samples`: oldest first; each of a second, and before the first of these each of a minute.
    - `edges`: oldest first, with Unix ns as their time.
    """

    volume: str
    kind: Kind
    since_unix_ns: int
    until_unix_ns: int
    samples: Sequence[HistorySample]
    edges: Sequence[Edge] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """The volume was idle. `wait_ns`: the wait then; `until_ns`: None if the end is unknown."""

    since_ns: int
    wait_ns: int
    until_ns: int | None


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """A frame or an edge.

    - `wait_ns`: the wait that was learned then; None if no gap shows it.
    - `mixed`: a minute in which the load changed, so idleness is unknown.
    - `blank`: the beginning of a hole.
    """

    at_ns: int
    payload: Frame | Edge
    wait_ns: int | None = None
    mixed: bool = False
    blank: bool = False


def gaps_of(edges: Iterable[Edge]) -> tuple[Gap, ...]:
    """Return pairs of idle and busy edges; a busy edge alone is no use."""
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
    history: HistoryWindow, gaps: Sequence[Gap], wait_at: Callable[[int], int | None]
) -> Iterator[HistoryEvent]:
    """Yield all events as a policy sees them whose own wait, if it has one, is `wait_at`."""
    found = [*_edges(gaps, wait_at), *_frames(history, gaps, wait_at)]
    # An edge comes before the sample of the same moment, which includes it.
    found.sort(key=lambda each: (each.at_ns, isinstance(each.payload, Frame)))
    hole = True
    for each in _with_waits(found):
        if isinstance(each.payload, Frame):
            hole = each.blank
        elif hole:
            continue
        yield each


def covered_ns(history: HistoryWindow) -> int:
    """Return how long there are samples for."""
    return sum(until - since for since, until in _stretches(history))


def _with_waits(found: list[HistoryEvent]) -> list[HistoryEvent]:
    """Give each event the wait of the next gap, or after the last gap that of the last one."""
    wait_ns = next((each.wait_ns for each in reversed(found) if each.wait_ns), None)
    with_waits = []
    for each in reversed(found):
        wait_ns = each.wait_ns or wait_ns
        with_waits.append(replace(each, wait_ns=wait_ns))
    return with_waits[::-1]


def _edges(gaps: Iterable[Gap], wait_at: Callable[[int], int | None]) -> Iterator[HistoryEvent]:
    for gap in gaps:
        own = wait_at(gap.since_ns)
        wait_ns = gap.wait_ns if own is None else own
        idle_at_ns = gap.since_ns + wait_ns
        if gap.until_ns is None or idle_at_ns < gap.until_ns:
            idle = Edge("", idle_at_ns, EdgeKind.IDLE, wait_ns)
            yield HistoryEvent(idle.at_ns, idle, gap.wait_ns)
        if gap.until_ns is not None:
            busy = Edge("", gap.until_ns, EdgeKind.BUSY, gap.until_ns - gap.since_ns)
            yield HistoryEvent(busy.at_ns, busy, gap.wait_ns)


def _frames(
    history: HistoryWindow, gaps: Sequence[Gap], wait_at: Callable[[int], int | None]
) -> Iterator[HistoryEvent]:
    starts = [gap.since_ns for gap in gaps]
    cutoff: float | None = None
    for row in history.samples:
        at_ns = row["at_unix_ns"]
        cutoff = _cutoff(row) or cutoff
        number = bisect_right(starts, at_ns) - 1
        gap = gaps[number] if number >= 0 and _contains(gaps[number], at_ns) else None
        idle, idle_ns, mixed = _idleness(row, gap, wait_at)
        frame = _frame(
            row, history, idle=idle, idle_ns=idle_ns, room=_room(row, history.kind, cutoff)
        )
        yield HistoryEvent(at_ns, frame, mixed=mixed)
    for _, until in _stretches(history):
        yield HistoryEvent(until, _blank(history, until), blank=True)


def _idleness(
    row: HistorySample, gap: Gap | None, wait_at: Callable[[int], int | None]
) -> tuple[bool | None, int | None, bool]:
    """Return whether the volume was idle, for how long, and whether it was mixed."""
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
    # If the end of a gap is unknown, only its beginning is certain.
    until = gap.since_ns + gap.wait_ns + NS_PER_S if gap.until_ns is None else gap.until_ns
    return gap.since_ns <= at_ns < until


def _frame(
    row: HistorySample,
    history: HistoryWindow,
    *,
    idle: bool | None,
    idle_ns: int | None,
    room: int | None,
) -> Frame:
    at_ns, dirty, cache = row["at_unix_ns"], row["dirty_bytes"], row["cache_bytes"]
    known = row["read_iops"] is not None
    missing = {**row["missing"], **_MISSING}
    if room is None:
        missing["room"] = _NOT_KEPT
    return Frame(
        volume=history.volume,
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


_MISSING: Final = dict.fromkeys((*UNKEPT, "heat"), _NOT_KEPT)


def _blank(history: HistoryWindow, at_ns: int) -> Frame:
    nothing = {"dirty_bytes": "nothing was recorded", "foreground": "nothing was recorded"}
    return Frame(history.volume, at_ns, None, 0, None, None, None, None, missing=nothing)


def _foreground(row: HistorySample) -> dict[Direction, Rates]:
    return {
        Direction.READ: Rates(row["read_iops"] or 0.0, row["read_bytes_per_s"] or 0.0),
        Direction.WRITE: Rates(row["write_iops"] or 0.0, row["write_bytes_per_s"] or 0.0),
    }


def _paths(paths: Mapping[str, Sequence[int | None]]) -> dict[tuple[Direction, str], PathLatency]:
    found = {}
    for name, (ios, moved, p50_ns, p99_ns, *_) in paths.items():
        direction, _, path = name.partition(" ")
        found[Direction(direction), path] = PathLatency(ios or 0, moved or 0, p50_ns, p99_ns)
    return found


def _cutoff(row: HistorySample) -> float | None:
    """Return at which of its two levels bcache would stop, if the recorded forecast shows it."""
    full_s, cache, level = row["time_to_full_s"], row["cache_bytes"], row["in_use_ratio"]
    came, went = row["dirty_in_bytes_per_s"], row["destage_bytes_per_s"]
    if full_s is None or level is None or came is None or went is None:
        return None
    if not cache or row["span_ns"] > NS_PER_S:
        return None
    limit = level + full_s * (came - went) / cache
    return min((CUTOFF_ASYNC_RATIO, CUTOFF_SYNC_RATIO), key=lambda each: abs(each - limit))


def _room(row: HistorySample, kind: Kind, cutoff: float | None) -> int | None:
    """Return the room as `signals.frame` does; for bcache by the last known level."""
    dirty, cache, level = row["dirty_bytes"], row["cache_bytes"], row["in_use_ratio"]
    if dirty is None or not cache:
        return None
    if kind is not Kind.BCACHE:
        return dirty_room_bytes(cache, dirty / cache, 1.0)
    if cutoff is None:
        return None
    return dirty_room_bytes(cache, max(dirty / cache, level or 0.0), cutoff)


def _stretches(history: HistoryWindow) -> list[tuple[int, int]]:
    """Return the intervals that have samples without a hole."""
    seconds = [row["at_unix_ns"] for row in history.samples if row["span_ns"] <= NS_PER_S]
    apart = [later - earlier for earlier, later in pairwise(seconds)]
    # With a slow tick a sample covers the time to the next one.
    each_ns = max(NS_PER_S, round(median(apart))) if apart else NS_PER_S
    found: list[tuple[int, int]] = []
    for row in history.samples:
        at_ns, span_ns = row["at_unix_ns"], max(row["span_ns"], each_ns)
        if found and at_ns - found[-1][1] <= (_HOLE_SPANS - 1) * span_ns:
            found[-1] = (found[-1][0], at_ns + span_ns)
        else:
            found.append((at_ns, at_ns + span_ns))
    return [(since, min(until, history.until_unix_ns)) for since, until in found]


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


# ---- notes --------------------------------------------------------------------------------------
_ALWAYS: Final = (
    "the measurements result from the decisions made then: another policy would have led to"
    " another dirty level and other latencies",
    "overrides are left out, and the rollback guard sees the latencies recorded then",
)


def notes_of(
    history: HistoryWindow, gaps: Sequence[Gap], policies: Iterable[Callable[[int], Policy]]
) -> Iterator[str]:
    """Yield what the comparison cannot know, the most important first."""
    used = _used(history, policies)
    if not history.samples:
        yield "the history has nothing for this time"
        return
    yield from dict.fromkeys(_of_rules(used))
    if history.kind is Kind.DM_WRITECACHE:
        yield "dm-writecache has no settings that can change while it is in use: nothing to decide"
    if any(policy.streams is not None for policy in used):
        yield (
            "the history does not keep run lengths, so the effect of stream_bypass is unknown; here"
            " only rules set the cutoff"
        )
    if any(policy.promotion is not None for policy in used):
        yield (
            "the history does not keep which parts of the volume users missed, so the effect of"
            " promote_hot is unknown"
        )
    yield from _of_minutes(history)
    yield from _of_gaps(history, gaps, used)
    yield from _ALWAYS


def _used(history: HistoryWindow, policies: Iterable[Callable[[int], Policy]]) -> list[Policy]:
    found: dict[int, Policy] = {}
    for policy_at in policies:
        for row in history.samples[:: max(1, len(history.samples) // 1000)]:
            policy = policy_at(row["at_unix_ns"])
            found[id(policy)] = policy
    return list(found.values())


def _of_rules(used: Iterable[Policy]) -> Iterator[str]:
    for rule in (rule for policy in used for rule in policy.rules):
        lost = sorted(signals_of(rule) & set(UNKEPT))
        if lost:
            yield (
                f"rule {rule.name} uses {' and '.join(lost)}, which the history does not keep: here"
                " its condition is never met"
            )
        if DISK_STATE in signals_of(rule):
            yield (
                f"rule {rule.name} uses {DISK_STATE}, which the history does not keep: here it is"
                " always `unknown`"
            )


def signals_of(rule: Rule) -> set[str]:
    """Return the signals that a rule compares."""
    return {check.signal for groups in (rule.when, rule.until) for g in groups for check in g}


def _of_minutes(history: HistoryWindow) -> Iterator[str]:
    minutes = [row for row in history.samples if row["span_ns"] > NS_PER_S]
    if not minutes:
        return
    mixed = sum(row["idle"] is not None and 0 < row["idle"] < 1 for row in minutes)
    yield (
        f"for {len(minutes)} minutes the history keeps only means, so shorter peaks are lost; in"
        f" {mixed} of them the load changed, so the effect of idle_destage is unknown"
    )


def _of_gaps(history: HistoryWindow, gaps: Sequence[Gap], used: Iterable[Policy]) -> Iterator[str]:
    if not any(policy.destage is not None for policy in used):
        return
    yield (
        "the history does not keep the gaps that the wait is learned from: `wait: auto` uses the"
        " recorded wait; how fast a gap drains is unknown"
    )
    own = [p.destage.wait_ns for p in used if p.destage is not None and p.destage.wait_ns]
    shortest = max((gap.wait_ns for gap in gaps), default=0)
    if own and gaps and min(own) < shortest:
        yield (
            f"gaps shorter than the recorded wait (up to {format_ns(shortest)}) are unknown, so"
            f" a wait of {format_ns(min(own))} would have found more"
        )
    if own and any(row["span_ns"] <= NS_PER_S for row in history.samples) and not gaps:
        yield "the history has no edges for this time: idleness is judged by the recorded wait"
