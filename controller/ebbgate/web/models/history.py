# SPDX-License-Identifier: GPL-2.0-only
"""What the API says of the past: columns, decisions, knob writes. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ebbgate.web.models.field_doc import Of
from ebbgate.web.models.live import Proposal

_HOLE = "Null where nothing was recorded."


@dataclass(frozen=True, slots=True)
class Columns:
    """One value for each time of the grid. Null where nothing was recorded or it is unknown."""

    read_iops: Annotated[list[float | None], Of("Read requests of users.", "requests/s")]
    read_bytes_per_s: Annotated[list[float | None], Of("Bytes of these.", "B/s")]
    write_iops: Annotated[list[float | None], Of("Write requests of users.", "requests/s")]
    write_bytes_per_s: Annotated[list[float | None], Of("Bytes of these.", "B/s")]
    hit_ratio: Annotated[list[float | None], Of("Reads that were served from the cache.", "1")]
    bypass_bytes: Annotated[list[int | None], Of("Past the cache in the time of a point.", "B")]
    destage_bytes_per_s: Annotated[list[float | None], Of("Written back to the disk.", "B/s")]
    dirty_in_bytes_per_s: Annotated[list[float | None], Of("That became dirty.", "B/s")]
    dirty_bytes: Annotated[list[int | None], Of("Dirty data.", "B")]
    cache_bytes: Annotated[list[int | None], Of("The size of the cache.", "B")]
    in_use_ratio: Annotated[list[float | None], Of("The share of the cache in use.", "1")]
    backing_depth_ios: Annotated[
        list[float | None], Of("In flight at the backing device.", "requests")
    ]
    time_to_full_s: Annotated[
        list[float | None], Of("Until the kernel stops caching writes; null: also never.", "s")
    ]
    time_to_clean_s: Annotated[
        list[float | None], Of("Until all is written back; null: also never.", "s")
    ]
    idle: Annotated[list[float | None], Of("The share of the time without load.", "1")]


@dataclass(frozen=True, slots=True)
class PathColumns:
    """One path (`read hit`) on the same grid."""

    ios: Annotated[list[int | None], Of("Requests in the time of a point.", "requests")]
    bytes: Annotated[list[int | None], Of("Bytes of these.", "B")]
    p50_s: Annotated[list[float | None], Of("Half of them took no longer.", "s")]
    p99_s: Annotated[list[float | None], Of("99 of 100 took no longer.", "s")]


@dataclass(frozen=True, slots=True)
class Samples:
    """The course of a volume on a regular grid."""

    volume: Annotated[str, Of("The volume.")]
    span_s: Annotated[int, Of("The time of a point: 1, 60 or 3600.", "s")]
    since_unix_s: Annotated[float, Of("The first point.", "s since 1970")]
    until_unix_s: Annotated[float, Of("The end of the last point.", "s since 1970")]
    at_unix_s: Annotated[list[float], Of("The begin of each point.", "s since 1970")]
    columns: Annotated[Columns, Of(f"Each as long as `at_unix_s`. {_HOLE}")]
    mode: Annotated[list[str | None], Of(f"The mode of each point, or hold. {_HOLE}")]
    paths: Annotated[dict[str, PathColumns], Of("By path, such as `read hit`.")]


@dataclass(frozen=True, slots=True)
class Latency:
    """Requests of users by time and by how long they took."""

    volume: Annotated[str, Of("The volume.")]
    op: Annotated[str, Of("read or write.")]
    span_s: Annotated[int, Of("The time of a point.", "s")]
    at_unix_s: Annotated[list[int], Of("The begin of each point.", "s since 1970")]
    edges_s: Annotated[
        list[float],
        Of(
            "The upper edges of the buckets, ascending; the last one has what took longer, too.",
            "s",
        ),
    ]
    counts: Annotated[
        list[list[int] | None],
        Of("For each point the requests of each bucket. Null: nothing is known of it.", "requests"),
    ]


@dataclass(frozen=True, slots=True)
class Action:
    """One knob write, and what became of it."""

    id: Annotated[int, Of("Its number.")]
    at_unix_s: Annotated[float, Of("When.", "s since 1970")]
    volume: Annotated[str, Of("The volume.")]
    knob: Annotated[str, Of("The knob by its kernel name.", example="writeback_percent")]
    is_gate: Annotated[
        bool,
        Of(
            "Did a strategy move the gate with it? That happens many times a minute, so one write"
            " is not undone: to stop it, set the mode to advise."
        ),
    ]
    old: Annotated[str | None, Of("Its value before, as the kernel takes it.")]
    new: Annotated[str, Of("The value that was wanted.")]
    strategy: Annotated[str, Of("Who wanted it.")]
    reason: Annotated[str, Of("Why, in a sentence.")]
    outcome: Annotated[str, Of("changed, unchanged, refused, manual, too_soon, failed, advised.")]
    read_back: Annotated[str | None, Of("What the kernel showed afterwards.")]
    error: Annotated[str, Of("What went wrong; empty where nothing did.")]
    latency_s: Annotated[float | None, Of("From the edge that caused it to the write.", "s")]
    decision_id: Annotated[int | None, Of("The decision behind it, as long as it is kept.")]


@dataclass(frozen=True, slots=True)
class Actions:
    """Knob writes, the newest first."""

    actions: Annotated[list[Action], Of("The newest first.")]


@dataclass(frozen=True, slots=True)
class DecidedGate:
    """What a decision wants of the gate."""

    kind: Annotated[str, Of("released, closed, paced, pulsed or open.")]
    rate_bytes_per_s: Annotated[int, Of("Where it is paced or pulsed; 0 elsewhere.", "B/s")]
    pulse_ns: Annotated[int, Of("How long a pulse lasts; 0 elsewhere.", "ns")]
    depth_ios: Annotated[int, Of("Instead of a rate on dm-cache; 0 elsewhere.", "requests")]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, without its explanation."""

    id: Annotated[int, Of("Its number.")]
    at_unix_s: Annotated[float, Of("When.", "s since 1970")]
    volume: Annotated[str, Of("The volume.")]
    acted: Annotated[bool, Of("Was a knob written for it?")]
    gate: Annotated[DecidedGate | None, Of("What it wants of the gate; null: nothing.")]
    gate_strategy: Annotated[str, Of("Who decided on the gate; empty: nobody.")]
    sequential_cutoff_bytes: Annotated[
        int | None, Of("From so long a run on streams bypass; null: nobody wants it.", "B")
    ]
    cutoff_strategy: Annotated[str, Of("Who decided on that; empty: nobody.")]
    reason: Annotated[str, Of("The reasons of those that won, in a sentence.")]
    actions: Annotated[list[Action], Of("The knob writes for it, the oldest first.")]


@dataclass(frozen=True, slots=True)
class ExplainedDecision(Decision):
    """A decision with all that was compared for it."""

    proposals: Annotated[list[Proposal], Of("Every strategy, also those that did not win.")]


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions, the newest first."""

    decisions: Annotated[list[Decision], Of("The newest first.")]
    next_before_id: Annotated[int | None, Of("`before_id` of the next page; null: no more.")]
