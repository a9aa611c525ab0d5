# SPDX-License-Identifier: GPL-2.0-only
"""Models of volumes and the daemon as they are now. Pure data."""

from __future__ import annotations

from ebbgate.web.models.base import Model, doc
from ebbgate.web.models.hot_data import Attribution, Heat, Promotion

_MONOTONIC = "CLOCK_MONOTONIC of the machine; comparable within one boot."


class Condition(Model):
    """A comparison of a measured value with a threshold."""

    signal: str = doc("What was measured.", example="dirty data")
    measured: str | None = doc("With its unit; null if unknown, then it never holds.")
    comparison: str = doc("`>=` or `<`.")
    threshold: str = doc("With its unit.")
    holds: bool = doc("Whether the condition held.")


class Proposal(Model):
    """What one strategy, rule or override proposes, and why."""

    strategy: str = doc("Its name.", example="idle_destage")
    reason: str = doc("Why, in a sentence.")
    unsupported: str = doc("Why it does not work here; empty if it does.")
    wins: list[str] = doc("The settings that it decided.")
    conditions: list[Condition] = doc("The comparisons that it made.")


class Gate(Model):
    """The gate of write-back now."""

    kind: str = doc("released (the kernel decides), held, closed, paced, resting or open.")
    rate_bytes_per_s: int = doc(
        "The rate if paced, what leaks if shut, the highest mean if open.", "B/s"
    )
    depth_ios: int = doc("The depth that replaces a rate on dm-cache, else 0.", "requests")
    state: str = doc("unknown, normal, wait, destage or pressure.")
    since_ns: int = doc(f"When this state began. {_MONOTONIC}", "ns")
    reason: str = doc("Why, in a sentence.")


class KernelSleep(Model):
    """A sleep of the kernel's writeback thread that no knob ends."""

    left_s: float = doc("The longest time that it may still last.", "s")
    text: str = doc("What that means, in a sentence.")


class Rates(Model):
    """The load of users in one direction."""

    iops: float = doc("Requests that arrived.", "requests/s")
    bytes_per_s: float = doc("Bytes of these requests.", "B/s")


class PathFigures(Model):
    """Requests of users that took one path in the last second."""

    op: str = doc("read or write.")
    path: str = doc("hit, miss, bypass, writeback or writethrough.")
    ios: int = doc("Requests.", "requests")
    bytes: int = doc("Bytes of these requests.", "B")
    p50_ns: int | None = doc("The median latency; null without requests.", "ns")
    p99_ns: int | None = doc("The 99th percentile of latency; null without requests.", "ns")


class Knob(Model):
    """A setting of the kernel."""

    value: str | None = doc("As the kernel writes it; null if unknown.")
    original: str | None = doc("The value before ebbgate; null if ebbgate has not changed it.")
    owner: str = doc("kernel, ebbgate, or manual (changed by someone else since).")
    settable: bool = doc("Whether users can set it through ebbgate, within its bounds.")


class CleaningState(Model):
    """A requested cleaning that is under way."""

    who: str = doc("Who requested it.")
    since_ns: int = doc(f"When it began. {_MONOTONIC}", "ns")
    until_ns: int = doc(f"When it is stopped at the latest. {_MONOTONIC}", "ns")
    began_with_bytes: int | None = doc("Dirty data when it began.", "B")
    eta_s: float | None = doc("Estimated time left; null if unknown.", "s")


class ActiveOverride(Model):
    """An override in force: a hold, a set knob or a drain."""

    kind: str = doc("hold, set or drain.")
    knob: str | None = doc("The knob, for `set`.")
    value: str | None = doc("Its value as the kernel writes it, for `set`.")
    who: str = doc("Who requested it.")
    since_unix_ns: int = doc("When it began.", "ns since 1970")
    until_unix_ns: int | None = doc(
        "When it ends; null if it lasts until released.", "ns since 1970"
    )
    left_ns: int | None = doc("Time left; null if it lasts until released.", "ns")


class MissRatio(Model):
    """The share of reads that caches of other sizes would miss, from a sample of the blocks.

    The model is a cache that takes in every block of 4 KiB that is read or written and evicts the
    least recently used one. Reads of a day ago count half.
    """

    observed_ns: int = doc("How long reads have been observed.", "ns")
    sampled_reads: int = doc("Sampled reads that it rests on; old ones count less.", "reads")
    reads_min: int = doc("With fewer sampled reads there are no ratios.", "reads")
    sizes_bytes: list[int] = doc(
        "Sizes of the cache, rising by a factor of 2^(1/4); the middle one is the present size.",
        "B",
    )
    miss_ratios: list[float] = doc("The share of reads that a cache of each size would miss.", "1")


class Job(Model):
    """A warm-up: a file or a range that is read into the cache."""

    id: int = doc("Its number, for `job` requests.")
    target: str = doc("The file, or the range of the volume in bytes.", example="/srv/db")
    state: str = doc("reading, checking, waiting, paused, done, failed or cancelled.")
    who: str = doc("Who requested it.")
    why: str = doc("Why it waits or has failed, or its result; empty while it reads.")
    read_bytes: int = doc("Read in the pass under way.", "B")
    total_bytes: int = doc("To be read in each pass.", "B")
    bandwidth_bytes_per_s: int | None = doc("The highest rate; null for none.", "B/s")
    hit_ratio: float | None = doc(
        "Share of a sample that was read from the cache again; null before the check.", "1"
    )
    left_out: dict[str, int] = doc("Bytes that cannot be warmed, by reason.", "B")
    since_unix_ns: int = doc("When it was requested.", "ns since 1970")
    ended_unix_ns: int | None = doc("When it was over; null while it is not.", "ns since 1970")
    other_promotions: int | None = doc(
        "What users' misses have brought into a dm-cache since it began; null where the kernel"
        " counts none.",
        "cache blocks",
    )
    promotion_holds: int = doc(
        "How often it waited because more of these came while it read.", "times"
    )


class Layout(Model):
    """What is known of the files that the policy names for `promote_hot`."""

    files: int = doc("Files of which it is known where on the volume they lie.", "files")
    known_bytes: int = doc("Their data on the volume.", "B")
    left_out: dict[str, int] = doc("The other files, by reason.", "files")
    read_ns: int | None = doc(f"When they were read; null if never. {_MONOTONIC}", "ns")
    error: str = doc("Why they could not be read, or about the first file left out; empty if none.")


class Pin(Model):
    """A pinned file: it is kept in the cache."""

    id: int = doc("Its number, for `unpin` requests.")
    path: str = doc("The file.", example="/srv/db")
    state: str = doc("warming, hot, cold, absent, too_large or elsewhere.")
    who: str = doc("Who pinned it.")
    why: str = doc("Why it is in this state; empty while all of it is hot.")
    size_bytes: int | None = doc("What of it can be cached; null before it was opened.", "B")
    cache_ratio: float | None = doc(
        "Share of the cache that this takes, of dm-cache in whole blocks; null if unknown.", "1"
    )
    hit_ratio: float | None = doc(
        "Share of the last touches that were read from the cache; null before the first.", "1"
    )
    since_unix_ns: int = doc("When it was pinned.", "ns since 1970")
    touched_unix_ns: int | None = doc(
        "When it was touched last; null before that.", "ns since 1970"
    )


class Volume(Model):
    """A volume as the daemon last saw it. Unknown values are null, never zero."""

    volume: str = doc("Its name in paths of this API.", example="bcache0")
    title: str = doc("Its display name.", example="vg/data")
    kind: str = doc("bcache, dm-cache or dm-writecache.")
    mode: str = doc("observe, advise or enforce.")
    policy: str = doc("The policy in force.", example="adaptive")
    overlay: str | None = doc("The part of its schedule that is in force; null if none.")
    frozen: bool = doc("Whether all knobs are frozen.")
    at_unix_s: float = doc("When the daemon wrote this status.", "s since 1970")
    age_s: float = doc("How long ago that was.", "s")
    stale: bool = doc("Whether it is outdated: older than 5 s and three ticks, or no daemon runs.")
    at_ns: int = doc(f"When its figures were measured. {_MONOTONIC}", "ns")
    now: str = doc("What ebbgate does with it, and why, in a sentence.")
    kernel_sleep: KernelSleep | None = doc("A sleep that no knob ends; null if there is none.")
    state: str | None = doc("The state that the kernel reports.", example="dirty")
    cache_mode: str | None = doc("writeback, writethrough and so on.")
    regime: str = doc("The load: gap, burst, stream, light or unknown.")
    gate: Gate = doc("The gate of write-back.")
    dirty_bytes: int | None = doc("Data in the cache that is newer than on the disk.", "B")
    dirty_ratio: float | None = doc("Dirty data as a share of the cache.", "1")
    dirty_floor_bytes: int | None = doc("Below this no idle gap is used for write-back.", "B")
    cutoff_dirty_bytes: int | None = doc(
        "Dirty data at which the kernel stops caching writes.", "B"
    )
    cache_bytes: int | None = doc("Size of the cache.", "B")
    in_use_ratio: float | None = doc("The share of the cache in use, as the kernel counts it.", "1")
    room_bytes: int | None = doc(
        "Dirty data that still fits until the kernel stops caching writes.", "B"
    )
    time_to_full_s: float | None = doc(
        "Until the kernel stops caching writes, at this rate; see `never`.", "s"
    )
    time_to_clean_s: float | None = doc(
        "Until all dirty data is written back, at this rate; see `never`.", "s"
    )
    never: list[str] = doc("Fields that are null because it never happens at this rate.")
    hit_ratio: float | None = doc(
        "The share of read requests of the last five minutes that found all their data in the"
        " cache. Partial hits count as misses, bypassed reads as reads. Null without reads.",
        "1",
    )
    hit_ratio_window_s: float = doc("The time that `hit_ratio` covers.", "s")
    idle: bool | None = doc("Whether there is no load.")
    wait_ns: int = doc("How long the volume must be idle before a gap is used.", "ns")
    wait_learned: bool = doc("Whether that was learned from gaps; else it is the default.")
    disturbance_ns: int | None = doc(
        "How much longer requests took right after the last gap in which data was written back.",
        "ns",
    )
    destage_bytes_per_s: float | None = doc("Written back to the disk.", "B/s")
    backing_depth_ios: int | None = doc("Requests in flight at the backing device.", "requests")
    backing_state: str = doc(
        "Whether its disks turn: active, idle, standby or unknown. Of several, the most awake one."
    )
    backing_state_why: str = doc("Why `backing_state` is unknown; empty if it is known.")
    foreground: dict[str, Rates] | None = doc("The load of users by read and write.")
    paths: list[PathFigures] = doc("Latency by the path that requests took.")
    bypass_bytes: dict[str, int] = doc("Bytes past the cache in the last second, by reason.", "B")
    gap_counts: list[float] = doc(
        "Idle gaps, older ones count less. Bucket i: [2^i, 2^(i+1)) microseconds.", "gaps"
    )
    run_bytes: dict[str, list[float]] = doc(
        "Bytes by run length, older ones count less. Bucket i: [512 * 2^i, 512 * 2^(i+1)) B.", "B"
    )
    miss_ratio: MissRatio | None = doc(
        "What other sizes of the cache would bring; null from an older daemon."
    )
    heat: Heat | None = doc("Where users missed the cache; null from an older daemon.")
    attribution: Attribution | None = doc(
        "Whose requests missed the cache; null from an older daemon."
    )
    knobs: dict[str, Knob] = doc("All knobs by kernel name.")
    proposals: list[Proposal] = doc("What each strategy proposes now, and which one decides.")
    cleaning: CleaningState | None = doc("A cleaning under way; null if there is none.")
    overrides: list[ActiveOverride] = doc("Overrides in force.")
    jobs: list[Job] = doc("Warm-ups that are under way or have ended of late.")
    layout: Layout | None = doc(
        "Where files lie that the policy names for `promote_hot`; null if it names none."
    )
    pins: list[Pin] = doc("Pinned files.")
    promotion: Promotion | None = doc(
        "What `promote_hot` does; null where the policy does not use it."
    )
    missing: dict[str, str] = doc("Signals that are unknown, each with the reason.")
    lost: dict[str, int] = doc("Records that the probe dropped, by kind.", "records")


class Volumes(Model):
    """All volumes that the daemon follows."""

    now_unix_s: float = doc("The time of this answer.", "s since 1970")
    daemon_alive: bool | None = doc("Whether the daemon runs; null if unknown.")
    history: str | None = doc("Why the history cannot be read; null if it can.")
    unreadable: list[str] = doc("Volumes whose status was written by another version of ebbgate.")
    volumes: list[Volume] = doc("By name.")


class PolicyStatus(Model):
    """The administrator's policy files, as the daemon sees them."""

    folder: str = doc("Their folder.")
    names: list[str] = doc("Valid policies, in order of precedence.")
    problems: list[str] = doc("Errors, each with its place.")
    kept: bool = doc("Whether the last valid ones stay in force.")
    notes: list[str] = doc("Keys that have no effect, each with its place.")


class ProbeStatus(Model):
    """The probe, as the daemon sees it."""

    kind: str = doc("Which probe.", example="ebpf")
    state: str = doc("Its state.", example="running")
    restarts: int = doc("How often it was restarted.", "restarts")
    signals: dict[str, str] = doc("Each signal: ok, or what is missing.")
    bad_lines: int = doc("Lines that were not a record.", "lines")
    complaints: dict[str, str] = doc("What it lost or refused, by kind.")


class KeptChoice(Model):
    """Something that was chosen for a volume."""

    what: str = doc("In a few words.", example="mode enforce")
    since_unix_s: float | None = doc("When; null if unknown.", "s since 1970")


class AbsentVolume(Model):
    """A volume that is not here, and what is kept for it. A `forget` request drops that."""

    volume: str = doc("The name that it had last.", example="bcache0")
    uuid: str | None = doc("Its uuid; null if unknown: then the name counts.")
    why: str = doc("Why nothing of it is applied.")
    kept: list[KeptChoice] = doc("What is kept for it.")
    command: str = doc("The command that drops it.")


class DaemonHealth(Model):
    """The daemon, as far as known."""

    alive: bool | None = doc("Whether it runs; null if unknown.")
    pid: int | None = doc("Its process ID.")
    version: str | None = doc("Its version.")
    at_unix_s: float | None = doc("When it last wrote its status.", "s since 1970")
    age_s: float | None = doc("How long ago that was.", "s")
    started_unix_s: float | None = doc("When it was started.", "s since 1970")
    tick_s: float | None = doc("How often it measures.", "s")
    probe: ProbeStatus | None = doc("Its probe.")
    policies: PolicyStatus | None = doc("The administrator's policies.")
    absent: list[AbsentVolume] | None = doc(
        "Volumes that are not here, for which something is kept; null if unknown."
    )
    absent_count: int | None = doc("How many there are: `absent` has the first 32.", "volumes")
    errors: list[str] = doc("What does not work, one sentence each.")


class Availability(Model):
    """Whether a part of ebbgate is available."""

    ok: bool = doc("Whether it is available.")
    why: str | None = doc("Why not; null if it is.")


class Health(Model):
    """What works and what does not."""

    now_unix_s: float = doc("The time of this answer.", "s since 1970")
    version: str = doc("Version of ebbgate-web.")
    daemon: DaemonHealth = doc("The daemon.")
    history: Availability = doc("Reading the history, the source of all figures.")
    intents: Availability = doc("Requests to the daemon.")
