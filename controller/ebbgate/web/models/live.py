# SPDX-License-Identifier: GPL-2.0-only
"""What the API says of volumes and of the daemon as they are now. Pure data."""

from __future__ import annotations

from typing import Annotated

from ebbgate.web.models.base import Model, doc

_MONOTONIC = "CLOCK_MONOTONIC of that machine; comparable within one boot only."


class Condition(Model):
    """One comparison: the measured value beside the threshold."""

    signal: Annotated[str, doc("What was measured.", example="dirty data")]
    measured: Annotated[str | None, doc("With its unit; null: unknown, then it never holds.")]
    comparison: Annotated[str, doc("`>=` or `<`.")]
    threshold: Annotated[str, doc("With its unit.")]
    holds: Annotated[bool, doc("Did the condition hold?")]


class Proposal(Model):
    """What one strategy, rule or wish wants, and why."""

    strategy: Annotated[str, doc("Its name.", example="idle_destage")]
    reason: Annotated[str, doc("Why, in a sentence.")]
    unsupported: Annotated[str, doc("Why it can do nothing here; empty where it can.")]
    wins: Annotated[list[str], doc("The settings in which it decided.")]
    conditions: Annotated[list[Condition], doc("Every comparison that it made.")]


class Gate(Model):
    """How destage is let through now."""

    kind: Annotated[str, doc("released (the kernel decides), closed, paced, pulsed or open.")]
    rate_bytes_per_s: Annotated[int, doc("Where it is paced or pulsed; 0 elsewhere.", "B/s")]
    depth_ios: Annotated[int, doc("Instead of a rate on dm-cache; 0 elsewhere.", "requests")]
    state: Annotated[str, doc("unknown, normal, wait, destage or pressure.")]
    since_ns: Annotated[int, doc(f"Since when it is so. {_MONOTONIC}", "ns")]
    reason: Annotated[str, doc("Why, in a sentence.")]


class KernelSleep(Model):
    """A sleep of the kernel's writeback thread that no knob ends."""

    left_s: Annotated[float, doc("How long it may last still, at most.", "s")]
    text: Annotated[str, doc("What that means, in a sentence.")]


class Rates(Model):
    """One direction of the load of users."""

    iops: Annotated[float, doc("Requests that arrived.", "requests/s")]
    bytes_per_s: Annotated[float, doc("Bytes of these.", "B/s")]


class PathFigures(Model):
    """Requests of users that took one path, over the last second."""

    op: Annotated[str, doc("read or write.")]
    path: Annotated[str, doc("hit, miss, bypass, writeback or writethrough.")]
    ios: Annotated[int, doc("Requests.", "requests")]
    bytes: Annotated[int, doc("Bytes of these.", "B")]
    p50_ns: Annotated[int | None, doc("Half of them took no longer; null without any.", "ns")]
    p99_ns: Annotated[int | None, doc("99 of 100 took no longer; null without any.", "ns")]


class Knob(Model):
    """A setting of the kernel."""

    value: Annotated[str | None, doc("As the kernel takes it; null: not known.")]
    original: Annotated[str | None, doc("What it was before ebbgate; null: ebbgate holds it not.")]
    owner: Annotated[str, doc("kernel, ebbgate, or manual: somebody else has written it since.")]
    settable: Annotated[bool, doc("May a person set it through ebbgate, within its bounds?")]


class CleaningState(Model):
    """A cleaning that a person asked for, under way."""

    who: Annotated[str, doc("Who asked for it.")]
    since_ns: Annotated[int, doc(f"Its begin. {_MONOTONIC}", "ns")]
    until_ns: Annotated[int, doc(f"When it is given up. {_MONOTONIC}", "ns")]
    began_with_bytes: Annotated[int | None, doc("Dirty data at its begin.", "B")]
    eta_s: Annotated[float | None, doc("How long it will take still; null: no pace yet.", "s")]


class StandingWish(Model):
    """What a person wished that lasts: a hold, a knob's value, a drain."""

    kind: Annotated[str, doc("hold, set or drain.")]
    knob: Annotated[str | None, doc("Which knob, of `set`.")]
    value: Annotated[str | None, doc("Its value as the kernel takes it, of `set`.")]
    who: Annotated[str, doc("Who wished it.")]
    since_unix_ns: Annotated[int, doc("Since when.", "ns since 1970")]
    until_unix_ns: Annotated[int | None, doc("Until when; null: until released.", "ns since 1970")]
    left_ns: Annotated[int | None, doc("How long still; null: until released.", "ns")]


class Volume(Model):
    """A volume as the daemon last saw it. What is unknown is null, never zero."""

    volume: Annotated[str, doc("The name by which to ask for it.", example="bcache0")]
    title: Annotated[str, doc("What people call it.", example="vg/data")]
    kind: Annotated[str, doc("bcache, dm-cache or dm-writecache.")]
    mode: Annotated[str, doc("observe, advise or enforce.")]
    policy: Annotated[str, doc("The policy that runs.", example="adaptive")]
    overlay: Annotated[str | None, doc("The part of its schedule that is in force.")]
    held: Annotated[bool, doc("Is every knob frozen where it is?")]
    at_unix_s: Annotated[float, doc("When the daemon said all this.", "s since 1970")]
    age_s: Annotated[float, doc("How long ago that is.", "s")]
    stale: Annotated[bool, doc("Is it too old to be called now (more than 5 s, or no daemon)?")]
    at_ns: Annotated[int, doc(f"The time of its figures. {_MONOTONIC}", "ns")]
    now: Annotated[str, doc("What ebbgate does with it, and why, in a sentence.")]
    kernel_sleep: Annotated[KernelSleep | None, doc("A sleep that no knob ends; null: none.")]
    state: Annotated[str | None, doc("The kernel's own word on the volume.", example="dirty")]
    cache_mode: Annotated[str | None, doc("writeback, writethrough and so on.")]
    regime: Annotated[str, doc("The load: gap, burst, stream, light or unknown.")]
    gate: Annotated[Gate, doc("How destage is let through.")]
    dirty_bytes: Annotated[int | None, doc("Data in the cache, newer than the disk.", "B")]
    dirty_ratio: Annotated[float | None, doc("The same as a share of the cache.", "1")]
    dirty_floor_bytes: Annotated[
        int | None, doc("With less dirty data no gap is used for destage.", "B")
    ]
    cutoff_dirty_bytes: Annotated[
        int | None, doc("At so much dirty data the kernel stops caching writes.", "B")
    ]
    cache_bytes: Annotated[int | None, doc("The size of the cache.", "B")]
    in_use_ratio: Annotated[
        float | None, doc("The share of the cache in use, which the kernel compares.", "1")
    ]
    room_bytes: Annotated[
        int | None, doc("What the kernel will take as dirty before it stops caching writes.", "B")
    ]
    time_to_full_s: Annotated[
        float | None, doc("Until it stops caching writes, at this rate; see `never`.", "s")
    ]
    time_to_clean_s: Annotated[
        float | None, doc("Until all is written back, at this rate; see `never`.", "s")
    ]
    never: Annotated[list[str], doc("Fields that are null because it never happens at this rate.")]
    hit_ratio: Annotated[
        float | None,
        doc(
            "The share of read requests of the last five minutes that found all their data in the"
            " cache. Partial hits count as misses, reads past the cache as reads. Null: no reads.",
            "1",
        ),
    ]
    hit_ratio_window_s: Annotated[float, doc("The time that `hit_ratio` covers.", "s")]
    idle: Annotated[bool | None, doc("Is the load away?")]
    wait_ns: Annotated[int, doc("So long it must be quiet before a gap is used.", "ns")]
    wait_learned: Annotated[bool, doc("Was that learned from gaps, or is it the default?")]
    destage_bytes_per_s: Annotated[float | None, doc("Written back to the disk.", "B/s")]
    backing_depth_ios: Annotated[int | None, doc("In flight at the backing device.", "requests")]
    foreground: Annotated[dict[str, Rates] | None, doc("The load of users by read and write.")]
    paths: Annotated[list[PathFigures], doc("Latency by the path that requests took.")]
    bypass_bytes: Annotated[
        dict[str, int], doc("Bytes past the cache in the last second, by reason.", "B")
    ]
    gap_counts: Annotated[
        list[float],
        doc("Idle gaps that faded with time, by length: [2^i, 2^(i+1)) microseconds.", "gaps"),
    ]
    run_bytes: Annotated[
        dict[str, list[float]],
        doc("Bytes that faded, of runs of [512 * 2^i, 512 * 2^(i+1)) B, by read and write.", "B"),
    ]
    knobs: Annotated[dict[str, Knob], doc("Every knob by its kernel name.")]
    proposals: Annotated[list[Proposal], doc("What each strategy wants now, and who won.")]
    cleaning: Annotated[CleaningState | None, doc("A cleaning under way.")]
    wishes: Annotated[list[StandingWish], doc("Wishes of people that are in force.")]
    missing: Annotated[dict[str, str], doc("Signals that are unknown, each with the reason.")]
    lost: Annotated[dict[str, int], doc("What the probe had to drop, by what.", "records")]


class Volumes(Model):
    """Every volume that the daemon follows."""

    now_unix_s: Annotated[float, doc("The time of this answer.", "s since 1970")]
    daemon_alive: Annotated[bool | None, doc("Does the daemon run? Null: cannot be told.")]
    history: Annotated[str | None, doc("Why nothing can be read; null where it can.")]
    unreadable: Annotated[list[str], doc("Volumes whose document is of another version.")]
    volumes: Annotated[list[Volume], doc("By name.")]


class PolicyTold(Model):
    """What the daemon says of the administrator's policy files."""

    folder: Annotated[str, doc("Where they are.")]
    names: Annotated[list[str], doc("The good ones, in the order in which they count.")]
    problems: Annotated[list[str], doc("Each error with its place.")]
    kept: Annotated[bool, doc("Are the last good ones in force?")]


class ProbeTold(Model):
    """What the daemon says of its probe."""

    kind: Annotated[str, doc("Which probe.", example="ebpf")]
    state: Annotated[str, doc("What it does.", example="running")]
    restarts: Annotated[int, doc("How often it had to be started again.", "restarts")]
    signals: Annotated[dict[str, str], doc("Each signal: ok, or what is missing.")]
    bad_lines: Annotated[int, doc("Lines that were no record.", "lines")]
    complaints: Annotated[dict[str, str], doc("What it lost or refused, by what.")]


class DaemonHealth(Model):
    """The daemon, as far as it is known."""

    alive: Annotated[bool | None, doc("Does it run? Null: cannot be told.")]
    pid: Annotated[int | None, doc("Its process.")]
    version: Annotated[str | None, doc("Its version.")]
    at_unix_s: Annotated[float | None, doc("When it last said something.", "s since 1970")]
    age_s: Annotated[float | None, doc("How long ago that is.", "s")]
    started_unix_s: Annotated[float | None, doc("When it was started.", "s since 1970")]
    tick_s: Annotated[float | None, doc("How often it looks.", "s")]
    probe: Annotated[ProbeTold | None, doc("Its probe.")]
    policies: Annotated[PolicyTold | None, doc("The administrator's policies.")]
    errors: Annotated[list[str], doc("What does not work, each in a sentence.")]


class Readable(Model):
    """Can the history be read, or the daemon be asked?"""

    ok: Annotated[bool, doc("Can it?")]
    why: Annotated[str | None, doc("Why not; null where it can.")]


class Health(Model):
    """What works and what does not. Always answered."""

    now_unix_s: Annotated[float, doc("The time of this answer.", "s since 1970")]
    version: Annotated[str, doc("Of ebbgate-web.")]
    daemon: Annotated[DaemonHealth, doc("The daemon.")]
    history: Annotated[Readable, doc("The history, from which all figures come.")]
    intents: Annotated[Readable, doc("Requests to the daemon: can they be made?")]
