# SPDX-License-Identifier: GPL-2.0-only
"""What the API says of volumes and of the daemon as they are now. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from ebbgate.web.models.field_doc import Of

_MONOTONIC = "CLOCK_MONOTONIC of that machine; comparable within one boot only."


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison: the measured value beside the threshold."""

    signal: Annotated[str, Of("What was measured.", example="dirty data")]
    measured: Annotated[str | None, Of("With its unit; null: unknown, then it never holds.")]
    comparison: Annotated[str, Of("`>=` or `<`.")]
    threshold: Annotated[str, Of("With its unit.")]
    holds: Annotated[bool, Of("Did the condition hold?")]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one strategy, rule or wish wants, and why."""

    strategy: Annotated[str, Of("Its name.", example="idle_destage")]
    reason: Annotated[str, Of("Why, in a sentence.")]
    unsupported: Annotated[str, Of("Why it can do nothing here; empty where it can.")]
    wins: Annotated[list[str], Of("The settings in which it decided.")]
    conditions: Annotated[list[Condition], Of("Every comparison that it made.")]


@dataclass(frozen=True, slots=True)
class Gate:
    """How destage is let through now."""

    kind: Annotated[str, Of("released (the kernel decides), closed, paced, pulsed or open.")]
    rate_bytes_per_s: Annotated[int, Of("Where it is paced or pulsed; 0 elsewhere.", "B/s")]
    depth_ios: Annotated[int, Of("Instead of a rate on dm-cache; 0 elsewhere.", "requests")]
    state: Annotated[str, Of("unknown, normal, wait, destage or pressure.")]
    since_ns: Annotated[int, Of(f"Since when it is so. {_MONOTONIC}", "ns")]
    reason: Annotated[str, Of("Why, in a sentence.")]


@dataclass(frozen=True, slots=True)
class KernelSleep:
    """A sleep of the kernel's writeback thread that no knob ends."""

    left_s: Annotated[float, Of("How long it may last still, at most.", "s")]
    text: Annotated[str, Of("What that means, in a sentence.")]


@dataclass(frozen=True, slots=True)
class Rates:
    """One direction of the load of users."""

    iops: Annotated[float, Of("Requests that arrived.", "requests/s")]
    bytes_per_s: Annotated[float, Of("Bytes of these.", "B/s")]


@dataclass(frozen=True, slots=True)
class PathFigures:
    """Requests of users that took one path, over the last second."""

    op: Annotated[str, Of("read or write.")]
    path: Annotated[str, Of("hit, miss, bypass, writeback or writethrough.")]
    ios: Annotated[int, Of("Requests.", "requests")]
    bytes: Annotated[int, Of("Bytes of these.", "B")]
    p50_ns: Annotated[int | None, Of("Half of them took no longer; null without any.", "ns")]
    p99_ns: Annotated[int | None, Of("99 of 100 took no longer; null without any.", "ns")]


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting of the kernel."""

    value: Annotated[str | None, Of("As the kernel takes it; null: not known.")]
    original: Annotated[str | None, Of("What it was before ebbgate; null: ebbgate holds it not.")]
    owner: Annotated[str, Of("kernel, ebbgate, or manual: somebody else has written it since.")]
    settable: Annotated[bool, Of("May a person set it through ebbgate, within its bounds?")]


@dataclass(frozen=True, slots=True)
class CleaningState:
    """A cleaning that a person asked for, under way."""

    who: Annotated[str, Of("Who asked for it.")]
    since_ns: Annotated[int, Of(f"Its begin. {_MONOTONIC}", "ns")]
    until_ns: Annotated[int, Of(f"When it is given up. {_MONOTONIC}", "ns")]
    began_with_bytes: Annotated[int | None, Of("Dirty data at its begin.", "B")]
    eta_s: Annotated[float | None, Of("How long it will take still; null: no pace yet.", "s")]


@dataclass(frozen=True, slots=True)
class StandingWish:
    """What a person wished that lasts: a hold, a knob's value, a drain."""

    kind: Annotated[str, Of("hold, set or drain.")]
    knob: Annotated[str | None, Of("Which knob, of `set`.")]
    value: Annotated[str | None, Of("Its value as the kernel takes it, of `set`.")]
    who: Annotated[str, Of("Who wished it.")]
    since_unix_ns: Annotated[int, Of("Since when.", "ns since 1970")]
    until_unix_ns: Annotated[int | None, Of("Until when; null: until released.", "ns since 1970")]
    left_ns: Annotated[int | None, Of("How long still; null: until released.", "ns")]


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume as the daemon last saw it. What is unknown is null, never zero."""

    volume: Annotated[str, Of("The name by which to ask for it.", example="bcache0")]
    title: Annotated[str, Of("What people call it.", example="vg/data")]
    kind: Annotated[str, Of("bcache, dm-cache or dm-writecache.")]
    mode: Annotated[str, Of("observe, advise or enforce.")]
    policy: Annotated[str, Of("The policy that runs.", example="adaptive")]
    overlay: Annotated[str | None, Of("The part of its schedule that is in force.")]
    held: Annotated[bool, Of("Is every knob frozen where it is?")]
    at_unix_s: Annotated[float, Of("When the daemon said all this.", "s since 1970")]
    age_s: Annotated[float, Of("How long ago that is.", "s")]
    stale: Annotated[bool, Of("Is it too old to be called now (more than 5 s, or no daemon)?")]
    at_ns: Annotated[int, Of(f"The time of its figures. {_MONOTONIC}", "ns")]
    now: Annotated[str, Of("What ebbgate does with it, and why, in a sentence.")]
    kernel_sleep: Annotated[KernelSleep | None, Of("A sleep that no knob ends; null: none.")]
    state: Annotated[str | None, Of("The kernel's own word on the volume.", example="dirty")]
    cache_mode: Annotated[str | None, Of("writeback, writethrough and so on.")]
    regime: Annotated[str, Of("The load: gap, burst, stream, light or unknown.")]
    gate: Annotated[Gate, Of("How destage is let through.")]
    dirty_bytes: Annotated[int | None, Of("Data in the cache, newer than the disk.", "B")]
    dirty_ratio: Annotated[float | None, Of("The same as a share of the cache.", "1")]
    dirty_floor_bytes: Annotated[
        int | None, Of("With less dirty data no gap is used for destage.", "B")
    ]
    cutoff_dirty_bytes: Annotated[
        int | None, Of("At so much dirty data the kernel stops caching writes.", "B")
    ]
    cache_bytes: Annotated[int | None, Of("The size of the cache.", "B")]
    in_use_ratio: Annotated[
        float | None, Of("The share of the cache in use, which the kernel compares.", "1")
    ]
    room_bytes: Annotated[
        int | None, Of("What the kernel will take as dirty before it stops caching writes.", "B")
    ]
    time_to_full_s: Annotated[
        float | None, Of("Until it stops caching writes, at this rate; see `never`.", "s")
    ]
    time_to_clean_s: Annotated[
        float | None, Of("Until all is written back, at this rate; see `never`.", "s")
    ]
    never: Annotated[list[str], Of("Fields that are null because it will not happen at this rate.")]
    hit_ratio: Annotated[
        float | None,
        Of(
            "The share of read requests of the last five minutes that found all their data in the"
            " cache. Partial hits count as misses, reads past the cache as reads. Null: no reads.",
            "1",
        ),
    ]
    hit_ratio_window_s: Annotated[float, Of("The time that `hit_ratio` covers.", "s")]
    idle: Annotated[bool | None, Of("Is the load away?")]
    wait_ns: Annotated[int, Of("So long it must be quiet before a gap is used.", "ns")]
    wait_learned: Annotated[bool, Of("Was that learned from gaps, or is it the default?")]
    destage_bytes_per_s: Annotated[float | None, Of("Written back to the disk.", "B/s")]
    backing_depth_ios: Annotated[int | None, Of("In flight at the backing device.", "requests")]
    foreground: Annotated[dict[str, Rates] | None, Of("The load of users by read and write.")]
    paths: Annotated[list[PathFigures], Of("Latency by the path that requests took.")]
    bypass_bytes: Annotated[
        dict[str, int], Of("Bytes past the cache in the last second, by reason.", "B")
    ]
    gap_counts: Annotated[
        list[float],
        Of("Idle gaps that faded with time, by length: [2^i, 2^(i+1)) microseconds.", "gaps"),
    ]
    run_bytes: Annotated[
        dict[str, list[float]],
        Of("Bytes that faded, of runs of [512 * 2^i, 512 * 2^(i+1)) B, by read and write.", "B"),
    ]
    knobs: Annotated[dict[str, Knob], Of("Every knob by its kernel name.")]
    proposals: Annotated[list[Proposal], Of("What each strategy wants now, and who won.")]
    cleaning: Annotated[CleaningState | None, Of("A cleaning under way.")]
    wishes: Annotated[list[StandingWish], Of("Wishes of people that are in force.")]
    missing: Annotated[dict[str, str], Of("Signals that are unknown, each with the reason.")]
    lost: Annotated[dict[str, int], Of("What the probe had to drop, by what.", "records")]


@dataclass(frozen=True, slots=True)
class Volumes:
    """Every volume that the daemon follows."""

    now_unix_s: Annotated[float, Of("The time of this answer.", "s since 1970")]
    daemon_alive: Annotated[bool | None, Of("Does the daemon run? Null: cannot be told.")]
    history: Annotated[str | None, Of("Why nothing can be read; null where it can.")]
    unreadable: Annotated[list[str], Of("Volumes whose document is of another version.")]
    volumes: Annotated[list[Volume], Of("By name.")]


@dataclass(frozen=True, slots=True)
class PolicyTold:
    """What the daemon says of the administrator's policy files."""

    folder: Annotated[str, Of("Where they are.")]
    names: Annotated[list[str], Of("The good ones, in the order in which they count.")]
    problems: Annotated[list[str], Of("Each error with its place.")]
    kept: Annotated[bool, Of("Are the last good ones in force?")]


@dataclass(frozen=True, slots=True)
class ProbeTold:
    """What the daemon says of its probe."""

    kind: Annotated[str, Of("Which probe.", example="ebpf")]
    state: Annotated[str, Of("What it does.", example="running")]
    restarts: Annotated[int, Of("How often it had to be started again.", "restarts")]
    signals: Annotated[dict[str, str], Of("Each signal: ok, or what is missing.")]
    bad_lines: Annotated[int, Of("Lines that were no record.", "lines")]
    complaints: Annotated[dict[str, str], Of("What it lost or refused, by what.")]


@dataclass(frozen=True, slots=True)
class DaemonHealth:
    """The daemon, as far as it is known."""

    alive: Annotated[bool | None, Of("Does it run? Null: cannot be told.")]
    pid: Annotated[int | None, Of("Its process.")]
    version: Annotated[str | None, Of("Its version.")]
    at_unix_s: Annotated[float | None, Of("When it last said something.", "s since 1970")]
    age_s: Annotated[float | None, Of("How long ago that is.", "s")]
    started_unix_s: Annotated[float | None, Of("When it was started.", "s since 1970")]
    tick_s: Annotated[float | None, Of("How often it looks.", "s")]
    probe: Annotated[ProbeTold | None, Of("Its probe.")]
    policies: Annotated[PolicyTold | None, Of("The administrator's policies.")]
    errors: Annotated[list[str], Of("What does not work, each in a sentence.")]


@dataclass(frozen=True, slots=True)
class Readable:
    """Can the history be read, or the daemon be asked?"""

    ok: Annotated[bool, Of("Can it?")]
    why: Annotated[str | None, Of("Why not; null where it can.")]


@dataclass(frozen=True, slots=True)
class HealthModel:
    """What works and what does not. Always answered."""

    now_unix_s: Annotated[float, Of("The time of this answer.", "s since 1970")]
    version: Annotated[str, Of("Of ebbgate-web.")]
    daemon: Annotated[DaemonHealth, Of("The daemon.")]
    history: Annotated[Readable, Of("The history, from which all figures come.")]
    intents: Annotated[Readable, Of("Requests to the daemon: can they be made?")]


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of the stream of live data."""

    event: Annotated[
        Literal["volumes", "health", "decision", "action", "intent", "reset"], Of("Its name.")
    ]
    id: Annotated[str, Of("To be sent back as Last-Event-ID.")]
    data: Annotated[str, Of("JSON on one line: of its name, as the routes answer.")]
