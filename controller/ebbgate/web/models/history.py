# SPDX-License-Identifier: GPL-2.0-only
"""Models of the past: samples, decisions, knob writes. Pure data."""

from __future__ import annotations

from typing import Annotated

from ebbgate.web.models.base import Model, doc
from ebbgate.web.models.live import Proposal

_HOLE = "Null where nothing was recorded."


class Columns(Model):
    """One value for each time of the grid. Null where nothing was recorded or it is unknown."""

    read_iops: Annotated[list[float | None], doc("Read requests of users.", "requests/s")]
    read_bytes_per_s: Annotated[list[float | None], doc("Bytes of these requests.", "B/s")]
    write_iops: Annotated[list[float | None], doc("Write requests of users.", "requests/s")]
    write_bytes_per_s: Annotated[list[float | None], doc("Bytes of these requests.", "B/s")]
    hit_ratio: Annotated[
        list[float | None], doc("The share of reads that were served from the cache.", "1")
    ]
    bypass_bytes: Annotated[
        list[int | None], doc("Bytes that bypassed the cache within a point.", "B")
    ]
    destage_bytes_per_s: Annotated[list[float | None], doc("Written back to the disk.", "B/s")]
    dirty_in_bytes_per_s: Annotated[list[float | None], doc("Data that became dirty.", "B/s")]
    dirty_bytes: Annotated[list[int | None], doc("Dirty data.", "B")]
    cache_bytes: Annotated[list[int | None], doc("The size of the cache.", "B")]
    in_use_ratio: Annotated[list[float | None], doc("The share of the cache in use.", "1")]
    backing_depth_ios: Annotated[
        list[float | None], doc("Requests in flight at the backing device.", "requests")
    ]
    time_to_full_s: Annotated[
        list[float | None], doc("Until the kernel stops caching writes; null also for never.", "s")
    ]
    time_to_clean_s: Annotated[
        list[float | None], doc("Until all is written back; null also for never.", "s")
    ]
    idle: Annotated[list[float | None], doc("The share of the time without load.", "1")]


class PathColumns(Model):
    """One path (`read hit`) on the same grid."""

    ios: Annotated[list[int | None], doc("Requests within a point.", "requests")]
    bytes: Annotated[list[int | None], doc("Bytes of these requests.", "B")]
    p50_s: Annotated[list[float | None], doc("The median latency.", "s")]
    p99_s: Annotated[list[float | None], doc("The 99th percentile of latency.", "s")]


class Samples(Model):
    """The history of a volume on a regular grid."""

    volume: Annotated[str, doc("The volume.")]
    span_s: Annotated[int, doc("Length of a point: 1, 60 or 3600.", "s")]
    since_unix_s: Annotated[float, doc("Start of the first point.", "s since 1970")]
    until_unix_s: Annotated[float, doc("The end of the last point.", "s since 1970")]
    at_unix_s: Annotated[list[float], doc("Start of each point.", "s since 1970")]
    columns: Annotated[Columns, doc(f"Each as long as `at_unix_s`. {_HOLE}")]
    mode: Annotated[list[str | None], doc(f"The mode at each point, or hold. {_HOLE}")]
    paths: Annotated[dict[str, PathColumns], doc("By path, for example `read hit`.")]


class Latency(Model):
    """Requests of users by time and latency."""

    volume: Annotated[str, doc("The volume.")]
    op: Annotated[str, doc("read or write.")]
    span_s: Annotated[int, doc("Length of a point.", "s")]
    at_unix_s: Annotated[list[int], doc("Start of each point.", "s since 1970")]
    edges_s: Annotated[
        list[float],
        doc(
            "Upper edges of the buckets, ascending; the last bucket includes slower requests.", "s"
        ),
    ]
    counts: Annotated[
        list[list[int] | None],
        doc("Requests by bucket, for each point; null if unknown.", "requests"),
    ]


class Action(Model):
    """A knob write and its outcome."""

    id: Annotated[int, doc("Its number.")]
    at_unix_s: Annotated[float, doc("When.", "s since 1970")]
    volume: Annotated[str, doc("The volume.")]
    knob: Annotated[str, doc("The knob by its kernel name.", example="writeback_percent")]
    is_gate: Annotated[
        bool,
        doc(
            "Whether a strategy moved the gate. That happens many times a minute, so one write"
            " cannot be undone: to stop it, set the mode to advise."
        ),
    ]
    old: Annotated[str | None, doc("The value before; null if unknown.")]
    new: Annotated[str, doc("The value that was written.")]
    strategy: Annotated[str, doc("The strategy behind it.")]
    reason: Annotated[str, doc("Why, in a sentence.")]
    outcome: Annotated[str, doc("changed, unchanged, refused, manual, too_soon, failed.")]
    read_back: Annotated[str | None, doc("The value that the kernel showed afterwards.")]
    error: Annotated[str, doc("What went wrong; empty if nothing did.")]
    latency_s: Annotated[float | None, doc("Time from the edge that caused it to the write.", "s")]
    decision_id: Annotated[int | None, doc("The decision behind it; null if it is no longer kept.")]


class Actions(Model):
    """Knob writes, newest first."""

    actions: Annotated[list[Action], doc("Newest first.")]


class DecidedGate(Model):
    """The gate that a decision sets."""

    kind: Annotated[str, doc("released, closed, paced, pulsed or open.")]
    rate_bytes_per_s: Annotated[int, doc("The rate if paced or pulsed, else 0.", "B/s")]
    pulse_ns: Annotated[int, doc("Length of a pulse, else 0.", "ns")]
    depth_ios: Annotated[
        int, doc("The depth that replaces a rate on dm-cache, else 0.", "requests")
    ]


class Decision(Model):
    """A decision without its explanation."""

    id: Annotated[int, doc("Its number.")]
    at_unix_s: Annotated[float, doc("When.", "s since 1970")]
    volume: Annotated[str, doc("The volume.")]
    acted: Annotated[bool, doc("Whether a knob was written for it.")]
    gate: Annotated[DecidedGate | None, doc("The gate that it sets; null if none.")]
    gate_strategy: Annotated[str, doc("The strategy that decided the gate; empty if none.")]
    sequential_cutoff_bytes: Annotated[
        int | None, doc("Run length from which streams bypass the cache; null if not set.", "B")
    ]
    cutoff_strategy: Annotated[str, doc("The strategy that decided the cutoff; empty if none.")]
    reason: Annotated[str, doc("The reasons of the strategies that decided.")]
    actions: Annotated[list[Action], doc("Knob writes for it, oldest first.")]


class ExplainedDecision(Decision):
    """A decision with all comparisons."""

    proposals: Annotated[list[Proposal], doc("All strategies, also those that did not decide.")]


class Decisions(Model):
    """Decisions, newest first."""

    decisions: Annotated[list[Decision], doc("Newest first.")]
    next_before_id: Annotated[
        int | None, doc("`before_id` of the next page; null if this is the last.")
    ]
