# SPDX-License-Identifier: GPL-2.0-only
"""Models of the past: samples, decisions, knob writes. Pure data."""

from __future__ import annotations

from ebbgate.web.models.base import Model, doc
from ebbgate.web.models.live import Proposal

_HOLE = "Null where nothing was recorded."


class Columns(Model):
    """One value for each time of the grid. Null where nothing was recorded or it is unknown."""

    read_iops: list[float | None] = doc("Read requests of users.", "requests/s")
    read_bytes_per_s: list[float | None] = doc("Bytes of these requests.", "B/s")
    write_iops: list[float | None] = doc("Write requests of users.", "requests/s")
    write_bytes_per_s: list[float | None] = doc("Bytes of these requests.", "B/s")
    hit_ratio: list[float | None] = doc("The share of reads that were served from the cache.", "1")
    bypass_bytes: list[int | None] = doc("Bytes that bypassed the cache within a point.", "B")
    destage_bytes_per_s: list[float | None] = doc("Written back to the disk.", "B/s")
    dirty_in_bytes_per_s: list[float | None] = doc("Data that became dirty.", "B/s")
    dirty_bytes: list[int | None] = doc("Dirty data.", "B")
    cache_bytes: list[int | None] = doc("The size of the cache.", "B")
    in_use_ratio: list[float | None] = doc("The share of the cache in use.", "1")
    backing_depth_ios: list[float | None] = doc(
        "Requests in flight at the backing device.", "requests"
    )
    time_to_full_s: list[float | None] = doc(
        "Until the kernel stops caching writes; null also for never.", "s"
    )
    time_to_clean_s: list[float | None] = doc(
        "Until all is written back; null also for never.", "s"
    )
    idle: list[float | None] = doc("The share of the time without load.", "1")


class PathColumns(Model):
    """One path (`read hit`) on the same grid."""

    ios: list[int | None] = doc("Requests within a point.", "requests")
    bytes: list[int | None] = doc("Bytes of these requests.", "B")
    p50_s: list[float | None] = doc("The median latency.", "s")
    p99_s: list[float | None] = doc("The 99th percentile of latency.", "s")


class Samples(Model):
    """The history of a volume on a regular grid."""

    volume: str = doc("The volume.")
    span_s: int = doc("Length of a point: 1, 60 or 3600.", "s")
    since_unix_s: float = doc("Start of the first point.", "s since 1970")
    until_unix_s: float = doc("The end of the last point.", "s since 1970")
    at_unix_s: list[float] = doc("Start of each point.", "s since 1970")
    columns: Columns = doc(f"Each as long as `at_unix_s`. {_HOLE}")
    mode: list[str | None] = doc(f"The mode at each point, or hold. {_HOLE}")
    paths: dict[str, PathColumns] = doc("By path, for example `read hit`.")


class Latency(Model):
    """Requests of users by time and latency."""

    volume: str = doc("The volume.")
    op: str = doc("read or write.")
    span_s: int = doc("Length of a point.", "s")
    at_unix_s: list[int] = doc("Start of each point.", "s since 1970")
    edges_s: list[float] = doc(
        "Upper edges of the buckets, ascending; the last bucket includes slower requests.", "s"
    )
    counts: list[list[int] | None] = doc(
        "Requests by bucket, for each point; null if unknown.", "requests"
    )


class Action(Model):
    """A knob write and its outcome."""

    id: int = doc("Its number.")
    at_unix_s: float = doc("When.", "s since 1970")
    volume: str = doc("The volume.")
    knob: str = doc("The knob by its kernel name.", example="writeback_percent")
    is_gate: bool = doc(
        "Whether a strategy moved the gate. That happens many times a minute, so one write"
        " cannot be undone: to stop it, set the mode to advise."
    )
    old: str | None = doc("The value before; null if unknown.")
    new: str = doc("The value that was written.")
    strategy: str = doc("The strategy behind it.")
    reason: str = doc("Why, in a sentence.")
    outcome: str = doc("changed, unchanged, refused, manual, too_soon, failed.")
    read_back: str | None = doc("The value that the kernel showed afterwards.")
    error: str = doc("What went wrong; empty if nothing did.")
    latency_s: float | None = doc("Time from the edge that caused it to the write.", "s")
    decision_id: int | None = doc("The decision behind it; null if it is no longer kept.")


class Actions(Model):
    """Knob writes, newest first."""

    actions: list[Action] = doc("Newest first.")


class DecidedGate(Model):
    """The gate that a decision sets."""

    kind: str = doc("released, held, closed, paced, resting or open.")
    rate_bytes_per_s: int = doc(
        "The rate if paced, what leaks if shut, the highest mean if open.", "B/s"
    )
    depth_ios: int = doc("The depth that replaces a rate on dm-cache, else 0.", "requests")


class Decision(Model):
    """A decision without its explanation."""

    id: int = doc("Its number.")
    at_unix_s: float = doc("When.", "s since 1970")
    volume: str = doc("The volume.")
    acted: bool = doc("Whether a knob was written for it.")
    gate: DecidedGate | None = doc("The gate that it sets; null if none.")
    gate_strategy: str = doc("The strategy that decided the gate; empty if none.")
    sequential_cutoff_bytes: int | None = doc(
        "Run length from which streams bypass the cache; null if not set.", "B"
    )
    cutoff_strategy: str = doc("The strategy that decided the cutoff; empty if none.")
    reason: str = doc("The reasons of the strategies that decided.")
    actions: list[Action] = doc("Knob writes for it, oldest first.")


class ExplainedDecision(Decision):
    """A decision with all comparisons."""

    proposals: list[Proposal] = doc("All strategies, also those that did not decide.")


class Decisions(Model):
    """Decisions, newest first."""

    decisions: list[Decision] = doc("Newest first.")
    next_before_id: int | None = doc("`before_id` of the next page; null if this is the last.")
