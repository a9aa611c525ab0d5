# SPDX-License-Identifier: GPL-2.0-only
"""Models of volumes and the daemon as they are now. Pure data."""

from __future__ import annotations

from typing import Annotated

from ebbgate.web.models.base import Model, doc

_MONOTONIC = "CLOCK_MONOTONIC of the machine; comparable within one boot."


class Condition(Model):
    """A comparison of a measured value with a threshold."""

    signal: Annotated[str, doc("What was measured.", example="dirty data")]
    measured: Annotated[str | None, doc("With its unit; null if unknown, then it never holds.")]
    comparison: Annotated[str, doc("`>=` or `<`.")]
    threshold: Annotated[str, doc("With its unit.")]
    holds: Annotated[bool, doc("Whether the condition held.")]


class Proposal(Model):
    """What one strategy, rule or override proposes, and why."""

    strategy: Annotated[str, doc("Its name.", example="idle_destage")]
    reason: Annotated[str, doc("Why, in a sentence.")]
    unsupported: Annotated[str, doc("Why it does not work here; empty if it does.")]
    wins: Annotated[list[str], doc("The settings that it decided.")]
    conditions: Annotated[list[Condition], doc("The comparisons that it made.")]


class Gate(Model):
    """The gate of write-back now."""

    kind: Annotated[str, doc("released (the kernel decides), closed, paced, pulsed or open.")]
    rate_bytes_per_s: Annotated[int, doc("The rate if paced or pulsed, else 0.", "B/s")]
    depth_ios: Annotated[
        int, doc("The depth that replaces a rate on dm-cache, else 0.", "requests")
    ]
    state: Annotated[str, doc("unknown, normal, wait, destage or pressure.")]
    since_ns: Annotated[int, doc(f"When this state began. {_MONOTONIC}", "ns")]
    reason: Annotated[str, doc("Why, in a sentence.")]


class KernelSleep(Model):
    """A sleep of the kernel's writeback thread that no knob ends."""

    left_s: Annotated[float, doc("The longest time that it may still last.", "s")]
    text: Annotated[str, doc("What that means, in a sentence.")]


class Rates(Model):
    """The load of users in one direction."""

    iops: Annotated[float, doc("Requests that arrived.", "requests/s")]
    bytes_per_s: Annotated[float, doc("Bytes of these requests.", "B/s")]


class PathFigures(Model):
    """Requests of users that took one path in the last second."""

    op: Annotated[str, doc("read or write.")]
    path: Annotated[str, doc("hit, miss, bypass, writeback or writethrough.")]
    ios: Annotated[int, doc("Requests.", "requests")]
    bytes: Annotated[int, doc("Bytes of these requests.", "B")]
    p50_ns: Annotated[int | None, doc("The median latency; null without requests.", "ns")]
    p99_ns: Annotated[
        int | None, doc("The 99th percentile of latency; null without requests.", "ns")
    ]


class Knob(Model):
    """A setting of the kernel."""

    value: Annotated[str | None, doc("As the kernel writes it; null if unknown.")]
    original: Annotated[
        str | None, doc("The value before ebbgate; null if ebbgate has not changed it.")
    ]
    owner: Annotated[str, doc("kernel, ebbgate, or manual (changed by someone else since).")]
    settable: Annotated[bool, doc("Whether users can set it through ebbgate, within its bounds.")]


class CleaningState(Model):
    """A requested cleaning that is under way."""

    who: Annotated[str, doc("Who requested it.")]
    since_ns: Annotated[int, doc(f"When it began. {_MONOTONIC}", "ns")]
    until_ns: Annotated[int, doc(f"When it is stopped at the latest. {_MONOTONIC}", "ns")]
    began_with_bytes: Annotated[int | None, doc("Dirty data when it began.", "B")]
    eta_s: Annotated[float | None, doc("Estimated time left; null if unknown.", "s")]


class ActiveOverride(Model):
    """An override in force: a hold, a set knob or a drain."""

    kind: Annotated[str, doc("hold, set or drain.")]
    knob: Annotated[str | None, doc("The knob, for `set`.")]
    value: Annotated[str | None, doc("Its value as the kernel writes it, for `set`.")]
    who: Annotated[str, doc("Who requested it.")]
    since_unix_ns: Annotated[int, doc("When it began.", "ns since 1970")]
    until_unix_ns: Annotated[
        int | None, doc("When it ends; null if it lasts until released.", "ns since 1970")
    ]
    left_ns: Annotated[int | None, doc("Time left; null if it lasts until released.", "ns")]


class Volume(Model):
    """A volume as the daemon last saw it. Unknown values are null, never zero."""

    volume: Annotated[str, doc("Its name in paths of this API.", example="bcache0")]
    title: Annotated[str, doc("Its display name.", example="vg/data")]
    kind: Annotated[str, doc("bcache, dm-cache or dm-writecache.")]
    mode: Annotated[str, doc("observe, advise or enforce.")]
    policy: Annotated[str, doc("The policy in force.", example="adaptive")]
    overlay: Annotated[str | None, doc("The part of its schedule that is in force; null if none.")]
    frozen: Annotated[bool, doc("Whether all knobs are frozen.")]
    at_unix_s: Annotated[float, doc("When the daemon wrote this status.", "s since 1970")]
    age_s: Annotated[float, doc("How long ago that was.", "s")]
    stale: Annotated[bool, doc("Whether it is outdated: older than 5 s, or no daemon runs.")]
    at_ns: Annotated[int, doc(f"When its figures were measured. {_MONOTONIC}", "ns")]
    now: Annotated[str, doc("What ebbgate does with it, and why, in a sentence.")]
    kernel_sleep: Annotated[
        KernelSleep | None, doc("A sleep that no knob ends; null if there is none.")
    ]
    state: Annotated[str | None, doc("The state that the kernel reports.", example="dirty")]
    cache_mode: Annotated[str | None, doc("writeback, writethrough and so on.")]
    regime: Annotated[str, doc("The load: gap, burst, stream, light or unknown.")]
    gate: Annotated[Gate, doc("The gate of write-back.")]
    dirty_bytes: Annotated[
        int | None, doc("Data in the cache that is newer than on the disk.", "B")
    ]
    dirty_ratio: Annotated[float | None, doc("Dirty data as a share of the cache.", "1")]
    dirty_floor_bytes: Annotated[
        int | None, doc("Below this no idle gap is used for write-back.", "B")
    ]
    cutoff_dirty_bytes: Annotated[
        int | None, doc("Dirty data at which the kernel stops caching writes.", "B")
    ]
    cache_bytes: Annotated[int | None, doc("Size of the cache.", "B")]
    in_use_ratio: Annotated[
        float | None, doc("The share of the cache in use, as the kernel counts it.", "1")
    ]
    room_bytes: Annotated[
        int | None, doc("Dirty data that still fits until the kernel stops caching writes.", "B")
    ]
    time_to_full_s: Annotated[
        float | None, doc("Until the kernel stops caching writes, at this rate; see `never`.", "s")
    ]
    time_to_clean_s: Annotated[
        float | None, doc("Until all dirty data is written back, at this rate; see `never`.", "s")
    ]
    never: Annotated[list[str], doc("Fields that are null because it never happens at this rate.")]
    hit_ratio: Annotated[
        float | None,
        doc(
            "The share of read requests of the last five minutes that found all their data in the"
            " cache. Partial hits count as misses, bypassed reads as reads. Null without reads.",
            "1",
        ),
    ]
    hit_ratio_window_s: Annotated[float, doc("The time that `hit_ratio` covers.", "s")]
    idle: Annotated[bool | None, doc("Whether there is no load.")]
    wait_ns: Annotated[int, doc("How long the volume must be idle before a gap is used.", "ns")]
    wait_learned: Annotated[
        bool, doc("Whether that was learned from gaps; else it is the default.")
    ]
    destage_bytes_per_s: Annotated[float | None, doc("Written back to the disk.", "B/s")]
    backing_depth_ios: Annotated[
        int | None, doc("Requests in flight at the backing device.", "requests")
    ]
    foreground: Annotated[dict[str, Rates] | None, doc("The load of users by read and write.")]
    paths: Annotated[list[PathFigures], doc("Latency by the path that requests took.")]
    bypass_bytes: Annotated[
        dict[str, int], doc("Bytes past the cache in the last second, by reason.", "B")
    ]
    gap_counts: Annotated[
        list[float],
        doc("Idle gaps, older ones count less. Bucket i: [2^i, 2^(i+1)) microseconds.", "gaps"),
    ]
    run_bytes: Annotated[
        dict[str, list[float]],
        doc(
            "Bytes by run length, older ones count less. Bucket i: [512 * 2^i, 512 * 2^(i+1)) B.",
            "B",
        ),
    ]
    knobs: Annotated[dict[str, Knob], doc("All knobs by kernel name.")]
    proposals: Annotated[
        list[Proposal], doc("What each strategy proposes now, and which one decides.")
    ]
    cleaning: Annotated[CleaningState | None, doc("A cleaning under way; null if there is none.")]
    overrides: Annotated[list[ActiveOverride], doc("Overrides in force.")]
    missing: Annotated[dict[str, str], doc("Signals that are unknown, each with the reason.")]
    lost: Annotated[dict[str, int], doc("Records that the probe dropped, by kind.", "records")]


class Volumes(Model):
    """All volumes that the daemon follows."""

    now_unix_s: Annotated[float, doc("The time of this answer.", "s since 1970")]
    daemon_alive: Annotated[bool | None, doc("Whether the daemon runs; null if unknown.")]
    history: Annotated[str | None, doc("Why the history cannot be read; null if it can.")]
    unreadable: Annotated[
        list[str], doc("Volumes whose status was written by another version of ebbgate.")
    ]
    volumes: Annotated[list[Volume], doc("By name.")]


class PolicyStatus(Model):
    """The administrator's policy files, as the daemon sees them."""

    folder: Annotated[str, doc("Their folder.")]
    names: Annotated[list[str], doc("Valid policies, in order of precedence.")]
    problems: Annotated[list[str], doc("Errors, each with its place.")]
    kept: Annotated[bool, doc("Whether the last valid ones stay in force.")]


class ProbeStatus(Model):
    """The probe, as the daemon sees it."""

    kind: Annotated[str, doc("Which probe.", example="ebpf")]
    state: Annotated[str, doc("Its state.", example="running")]
    restarts: Annotated[int, doc("How often it was restarted.", "restarts")]
    signals: Annotated[dict[str, str], doc("Each signal: ok, or what is missing.")]
    bad_lines: Annotated[int, doc("Lines that were not a record.", "lines")]
    complaints: Annotated[dict[str, str], doc("What it lost or refused, by kind.")]


class DaemonHealth(Model):
    """The daemon, as far as known."""

    alive: Annotated[bool | None, doc("Whether it runs; null if unknown.")]
    pid: Annotated[int | None, doc("Its process ID.")]
    version: Annotated[str | None, doc("Its version.")]
    at_unix_s: Annotated[float | None, doc("When it last wrote its status.", "s since 1970")]
    age_s: Annotated[float | None, doc("How long ago that was.", "s")]
    started_unix_s: Annotated[float | None, doc("When it was started.", "s since 1970")]
    tick_s: Annotated[float | None, doc("How often it measures.", "s")]
    probe: Annotated[ProbeStatus | None, doc("Its probe.")]
    policies: Annotated[PolicyStatus | None, doc("The administrator's policies.")]
    errors: Annotated[list[str], doc("What does not work, one sentence each.")]


class Availability(Model):
    """Whether a part of ebbgate is available."""

    ok: Annotated[bool, doc("Whether it is available.")]
    why: Annotated[str | None, doc("Why not; null if it is.")]


class Health(Model):
    """What works and what does not."""

    now_unix_s: Annotated[float, doc("The time of this answer.", "s since 1970")]
    version: Annotated[str, doc("Version of ebbgate-web.")]
    daemon: Annotated[DaemonHealth, doc("The daemon.")]
    history: Annotated[Availability, doc("Reading the history, the source of all figures.")]
    intents: Annotated[Availability, doc("Requests to the daemon.")]
