# SPDX-License-Identifier: GPL-2.0-only
"""What the API says of the past: columns, decisions, knob writes. Pure data."""

from __future__ import annotations

from typing import Annotated

from ebbgate.web.models.base import Model, doc
from ebbgate.web.models.live import Proposal

_HOLE = "Null where nothing was recorded."


class Columns(Model):
    """One value for each time of the grid. Null where nothing was recorded or it is unknown."""

    read_iops: Annotated[list[float | None], doc("Read requests of users.", "requests/s")]
    read_bytes_per_s: Annotated[list[float | None], doc("Bytes of these.", "B/s")]
    write_iops: Annotated[list[float | None], doc("Write requests of users.", "requests/s")]
    write_bytes_per_s: Annotated[list[float | None], doc("Bytes of these.", "B/s")]
    hit_ratio: Annotated[list[float | None], doc("Reads that were served from the cache.", "1")]
    bypass_bytes: Annotated[list[int | None], doc("Past the cache in the time of a point.", "B")]
    destage_bytes_per_s: Annotated[list[float | None], doc("Written back to the disk.", "B/s")]
    dirty_in_bytes_per_s: Annotated[list[float | None], doc("That became dirty.", "B/s")]
    dirty_bytes: Annotated[list[int | None], doc("Dirty data.", "B")]
    cache_bytes: Annotated[list[int | None], doc("The size of the cache.", "B")]
    in_use_ratio: Annotated[list[float | None], doc("The share of the cache in use.", "1")]
    backing_depth_ios: Annotated[
        list[float | None], doc("In flight at the backing device.", "requests")
    ]
    time_to_full_s: Annotated[
        list[float | None], doc("Until the kernel stops caching writes; null: also never.", "s")
    ]
    time_to_clean_s: Annotated[
        list[float | None], doc("Until all is written back; null: also never.", "s")
    ]
    idle: Annotated[list[float | None], doc("The share of the time without load.", "1")]


class PathColumns(Model):
    """One path (`read hit`) on the same grid."""

    ios: Annotated[list[int | None], doc("Requests in the time of a point.", "requests")]
    bytes: Annotated[list[int | None], doc("Bytes of these.", "B")]
    p50_s: Annotated[list[float | None], doc("Half of them took no longer.", "s")]
    p99_s: Annotated[list[float | None], doc("99 of 100 took no longer.", "s")]


class Samples(Model):
    """The course of a volume on a regular grid."""

    volume: Annotated[str, doc("The volume.")]
    span_s: Annotated[int, doc("The time of a point: 1, 60 or 3600.", "s")]
    since_unix_s: Annotated[float, doc("The first point.", "s since 1970")]
    until_unix_s: Annotated[float, doc("The end of the last point.", "s since 1970")]
    at_unix_s: Annotated[list[float], doc("The begin of each point.", "s since 1970")]
    columns: Annotated[Columns, doc(f"Each as long as `at_unix_s`. {_HOLE}")]
    mode: Annotated[list[str | None], doc(f"The mode of each point, or hold. {_HOLE}")]
    paths: Annotated[dict[str, PathColumns], doc("By path, such as `read hit`.")]


class Latency(Model):
    """Requests of users by time and by how long they took."""

    volume: Annotated[str, doc("The volume.")]
    op: Annotated[str, doc("read or write.")]
    span_s: Annotated[int, doc("The time of a point.", "s")]
    at_unix_s: Annotated[list[int], doc("The begin of each point.", "s since 1970")]
    edges_s: Annotated[
        list[float],
        doc(
            "The upper edges of the buckets, ascending; the last one has what took longer, too.",
            "s",
        ),
    ]
    counts: Annotated[
        list[list[int] | None],
        doc("For each point the requests of each bucket. Null: nothing known.", "requests"),
    ]


class Action(Model):
    """One knob write, and what became of it."""

    id: Annotated[int, doc("Its number.")]
    at_unix_s: Annotated[float, doc("When.", "s since 1970")]
    volume: Annotated[str, doc("The volume.")]
    knob: Annotated[str, doc("The knob by its kernel name.", example="writeback_percent")]
    is_gate: Annotated[
        bool,
        doc(
            "Did a strategy move the gate with it? That happens many times a minute, so one write"
            " is not undone: to stop it, set the mode to advise."
        ),
    ]
    old: Annotated[str | None, doc("Its value before, as the kernel takes it.")]
    new: Annotated[str, doc("The value that was wanted.")]
    strategy: Annotated[str, doc("Who wanted it.")]
    reason: Annotated[str, doc("Why, in a sentence.")]
    outcome: Annotated[str, doc("changed, unchanged, refused, manual, too_soon, failed, advised.")]
    read_back: Annotated[str | None, doc("What the kernel showed afterwards.")]
    error: Annotated[str, doc("What went wrong; empty where nothing did.")]
    latency_s: Annotated[float | None, doc("From the edge that caused it to the write.", "s")]
    decision_id: Annotated[int | None, doc("The decision behind it, as long as it is kept.")]


class Actions(Model):
    """Knob writes, the newest first."""

    actions: Annotated[list[Action], doc("The newest first.")]


class DecidedGate(Model):
    """What a decision wants of the gate."""

    kind: Annotated[str, doc("released, closed, paced, pulsed or open.")]
    rate_bytes_per_s: Annotated[int, doc("Where it is paced or pulsed; 0 elsewhere.", "B/s")]
    pulse_ns: Annotated[int, doc("How long a pulse lasts; 0 elsewhere.", "ns")]
    depth_ios: Annotated[int, doc("Instead of a rate on dm-cache; 0 elsewhere.", "requests")]


class Decision(Model):
    """What was decided, without its explanation."""

    id: Annotated[int, doc("Its number.")]
    at_unix_s: Annotated[float, doc("When.", "s since 1970")]
    volume: Annotated[str, doc("The volume.")]
    acted: Annotated[bool, doc("Was a knob written for it?")]
    gate: Annotated[DecidedGate | None, doc("What it wants of the gate; null: nothing.")]
    gate_strategy: Annotated[str, doc("Who decided on the gate; empty: nobody.")]
    sequential_cutoff_bytes: Annotated[
        int | None, doc("From so long a run on streams bypass; null: nobody wants it.", "B")
    ]
    cutoff_strategy: Annotated[str, doc("Who decided on that; empty: nobody.")]
    reason: Annotated[str, doc("The reasons of those that won, in a sentence.")]
    actions: Annotated[list[Action], doc("The knob writes for it, the oldest first.")]


class ExplainedDecision(Decision):
    """A decision with all that was compared for it."""

    proposals: Annotated[list[Proposal], doc("Every strategy, also those that did not win.")]


class Decisions(Model):
    """Decisions, the newest first."""

    decisions: Annotated[list[Decision], doc("The newest first.")]
    next_before_id: Annotated[int | None, doc("`before_id` of the next page; null: no more.")]
