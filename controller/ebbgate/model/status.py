# SPDX-License-Identifier: GPL-2.0-only
"""The status of volumes and daemon, which the daemon records once a second. Pure.

Times are ns of CLOCK_MONOTONIC unless the name says `unix`. None: not known, never zero. How a
status of another version is read: `status_json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ebbgate.model.attribution import AttributionStatus
from ebbgate.model.decision import Condition, GateKind
from ebbgate.model.frame import Rates, Regime
from ebbgate.model.heat import HeatStatus
from ebbgate.model.pin import PinStatus
from ebbgate.model.power import PowerState
from ebbgate.model.promotion import PromotionStatus
from ebbgate.model.records import Direction
from ebbgate.model.volume import Kind, Mode
from ebbgate.model.warm import JobStatus
from ebbgate.units import NS_PER_S

DAEMON: Final = ""
"""The name under which the daemon records its own status, beside those of the volumes."""
CURVE_OCTAVES: Final = 4
"""The miss-ratio curve ends at a 16th and at 16 times the present size of the cache."""
ABSENT_SHOWN_MAX: Final = 32
"""Volumes in the status for which something is kept and that are not here."""
STATUS_STALE_NS: Final = 5 * NS_PER_S
"""The daemon writes every second, or at each longer tick: if a status is old, it hangs or ended."""


@dataclass(frozen=True, slots=True)
class GateStatus:
    """The gate as it was last requested; `state`: the phase of idle_destage."""

    kind: GateKind
    rate_bytes_per_s: int | None = None
    depth_ios: int | None = None
    state: str = "unknown"
    since_ns: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PathStatus:
    """User requests that took one path (hit, miss, ...) within the last second."""

    op: str
    path: str
    ios: int
    bytes: int
    p50_ns: int | None = None
    p99_ns: int | None = None


@dataclass(frozen=True, slots=True)
class KnobStatus:
    """`original`: the value before ebbgate changed it. `owner`: kernel, ebbgate or manual."""

    value: str | None = None
    original: str | None = None
    owner: str = "kernel"


@dataclass(frozen=True, slots=True)
class ProposalStatus:
    """What one strategy proposes; `wins`: the settings that it decides."""

    strategy: str
    reason: str = ""
    unsupported: str = ""
    wins: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class CleaningStatus:
    """A cleaning under way; `eta_s`: None until anything was written back."""

    who: str
    since_ns: int
    until_ns: int
    began_with_bytes: int | None = None
    eta_s: float | None = None


@dataclass(frozen=True, slots=True)
class OverrideStatus:
    """An override in force; without an end, `until_unix_ns` and `left_ns` are None."""

    kind: str
    knob: str | None = None
    value: str | None = None
    who: str = ""
    since_unix_ns: int | None = None
    until_unix_ns: int | None = None
    left_ns: int | None = None


@dataclass(frozen=True, slots=True)
class KernelSleepStatus:
    """A sleep of the kernel's writeback thread that no knob ends; `text` explains it."""

    left_s: float
    text: str


@dataclass(frozen=True, slots=True)
class KnobChanges:
    """How often an actor has changed a knob."""

    knob: str
    actor: str
    count: int


@dataclass(frozen=True, slots=True)
class FlowTotals:
    """Requests of one kind and their bytes."""

    ios: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TimedFlowTotals:
    """The same with latencies, in the buckets of `signals.histogram.coarse_latency`."""

    ios: int
    bytes: int
    latency_counts: tuple[int, ...] = ()
    latency_sum_ns: int | None = None


@dataclass(frozen=True, slots=True)
class CacheWrites:
    """What was written to the cache since boot. `device`: the cache, which volumes may share."""

    device: str
    bytes: int


@dataclass(frozen=True, slots=True)
class VolumeTotals:
    """What was counted since the daemon follows the volume, which is since `since_unix_ns`.

    The first eight: by the probe, None before its first record. `paths`: by names like `read hit`.
    `dirty_age_ns`: for how long there has been dirty data without a break; None without any.
    """

    arrivals: Mapping[str, FlowTotals] | None = None
    paths: Mapping[str, TimedFlowTotals] | None = None
    bypass: Mapping[str, FlowTotals] | None = None
    run_bytes: Mapping[str, tuple[int, ...]] | None = None
    gap_counts: tuple[int, ...] | None = None
    gap_sum_ns: int | None = None
    destage: FlowTotals | None = None
    lost: Mapping[str, int] | None = None
    since_unix_ns: int | None = None
    decisions: int | None = None
    rollbacks: Mapping[str, int] = field(default_factory=dict, metadata={"json_0_1": "guard_trips"})
    knob_changes: tuple[KnobChanges, ...] = ()
    dirty_age_ns: int | None = None
    cache_writes: CacheWrites | None = None


@dataclass(frozen=True, slots=True)
class MissRatioStatus:
    """The share of reads that caches of other sizes would miss, as a model has it.

    `sizes_bytes`: evenly spaced octaves, from `CURVE_OCTAVES` below the present size to as many
    above it; empty with less than `reads_min` sampled reads. `observed_ns`: for how long.
    """

    observed_ns: int
    sampled_reads: int
    reads_min: int
    sizes_bytes: tuple[int, ...] = ()
    miss_ratios: tuple[float, ...] = ()

    def hit_ratio(self, octaves: int) -> float | None:
        """Return the hit ratio of a cache so many times twice (or half) as large."""
        if not self.miss_ratios:
            return None
        steps = (len(self.miss_ratios) - 1) // (2 * CURVE_OCTAVES)
        return round(1 - self.miss_ratios[len(self.miss_ratios) // 2 + octaves * steps], 6)


@dataclass(frozen=True, slots=True)
class LayoutStatus:
    """What is known of the files that the policy names for `promote_hot`.

    - `files`, `known_bytes`: those of which it is known where on the volume they lie.
    - `left_out`: the other files, by reason.
    - `read_ns`: when they were read, on CLOCK_MONOTONIC; None: never.
    - `error`: why they could not be read the last time, else about the first file left out.
    """

    files: int = 0
    known_bytes: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    read_ns: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class VolumeStatus:
    """A volume as the daemon last saw it.

    `frozen`: every knob stays where it is. `summary`: what ebbgate does now, and why, in one
    sentence. `dirty_floor_bytes`: with less dirty data no gap is used. `paths`, `bypass_bytes`: of
    the last second. `disturbance_ns`: how much longer requests took right after the last gap in
    which anything was written back. `gap_counts`, `run_bytes`: histograms that decay.
    `backing_state_why`: why it is unknown, or empty.
    """

    volume: str = ""
    title: str = ""
    kind: Kind | None = None
    mode: Mode | None = None
    policy: str | None = None
    overlay: str | None = None
    frozen: bool = field(default=False, metadata={"json_0_1": "held"})
    at_ns: int | None = None
    summary: str = field(default="", metadata={"json": "now"})
    kernel_sleep: KernelSleepStatus | None = None
    state: str | None = None
    cache_mode: str | None = None
    regime: Regime | None = None
    gate: GateStatus | None = None
    dirty_bytes: int | None = None
    dirty_ratio: float | None = None
    dirty_floor_bytes: int | None = None
    cache_bytes: int | None = None
    in_use_ratio: float | None = None
    room_bytes: int | None = None
    time_to_full_s: float | None = None
    time_to_clean_s: float | None = None
    idle: bool | None = None
    wait_ns: int | None = None
    wait_learned: bool = False
    disturbance_ns: int | None = None
    destage_bytes_per_s: float | None = None
    backing_depth_ios: int | None = None
    backing_state: PowerState = PowerState.UNKNOWN
    backing_state_why: str = ""
    foreground: Mapping[Direction, Rates] | None = None
    paths: tuple[PathStatus, ...] = ()
    bypass_bytes: Mapping[str, int] = field(default_factory=dict)
    gap_counts: tuple[float, ...] = ()
    run_bytes: Mapping[Direction, tuple[float, ...]] = field(default_factory=dict)
    miss_ratio: MissRatioStatus | None = None
    heat: HeatStatus | None = None
    attribution: AttributionStatus | None = None
    knobs: Mapping[str, KnobStatus] = field(default_factory=dict)
    proposals: tuple[ProposalStatus, ...] = ()
    cleaning: CleaningStatus | None = None
    overrides: tuple[OverrideStatus, ...] = field(default=(), metadata={"json_0_1": "wishes"})
    jobs: tuple[JobStatus, ...] = ()
    layout: LayoutStatus | None = None
    pins: tuple[PinStatus, ...] = ()
    promotion: PromotionStatus | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    totals: VolumeTotals = field(default_factory=VolumeTotals)


# ---- the daemon's own ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ProbeStatus:
    """`signals`: each `ok` or what is missing. `complaints`: what it lost or refused, by kind."""

    kind: str | None = None
    state: str | None = None
    restarts: int | None = None
    signals: Mapping[str, str] | None = None
    bad_lines: int | None = None
    complaints: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PolicyFilesStatus:
    """The administrator's policies. `kept`: whether valid ones stay in force despite `problems`.

    `notes`: keys of those in force that have no effect.
    """

    folder: str | None = None
    names: tuple[str, ...] | None = None
    problems: tuple[str, ...] | None = None
    kept: bool | None = None
    notes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class OutageStatus:
    """The last time the history could not be written; `until_unix_ns`: None while it lasts."""

    since_unix_ns: int | None = None
    until_unix_ns: int | None = None
    why: str | None = None
    dropped: int | None = None


@dataclass(frozen=True, slots=True)
class LogStatus:
    """The log of the history; `held_*`: since when and by whom it is kept from shrinking."""

    bytes: int | None = None
    held_since_unix_ns: int | None = None
    held_by: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryStatus:
    """Whether the history can be written. `dropped`: records lost so far."""

    written: bool | None = None
    dropped: int | None = None
    trouble: OutageStatus | None = None
    log: LogStatus | None = None


@dataclass(frozen=True, slots=True)
class ControlStatus:
    """The control socket. `problem`: why it does not listen, or empty."""

    socket: str | None = None
    problem: str | None = None
    connections: int | None = None


@dataclass(frozen=True, slots=True)
class LoopSilenceStatus:
    """The longest silences of the event loop: since the last status, and since the start."""

    last_ns: int | None = None
    max_ns: int | None = None
    max_unix_ns: int | None = None


@dataclass(frozen=True, slots=True)
class KeptChoice:
    """What was chosen for a volume, in a few words; `since_unix_ns`: when, None if unknown."""

    what: str
    since_unix_ns: int | None = None


@dataclass(frozen=True, slots=True)
class AbsentVolume:
    """A volume that ebbgated does not find, and what is kept for it.

    `volume`: the name that it had last. `uuid`: empty where it is unknown: then the name counts.
    `why`: why nothing of it is applied.
    """

    volume: str
    uuid: str = ""
    why: str = ""
    kept: tuple[KeptChoice, ...] = ()

    @property
    def owner(self) -> str:
        """Return what names it in requests."""
        return self.uuid or self.volume

    @property
    def kept_text(self) -> str:
        """Return all that is kept, in one line."""
        return ", ".join(each.what for each in self.kept)


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """The daemon's own status.

    `intents_error`: why requests are refused or not saved, or empty. `device_mapper`: why it cannot
    be queried; None if it can. `absent`: at most `ABSENT_SHOWN_MAX` of the `absent_count` volumes;
    None while it is not known which volumes are here.
    """

    pid: int | None = None
    version: str | None = None
    boot_id: str | None = None
    started_unix_ns: int | None = None
    tick_ns: int | None = None
    history: HistoryStatus = field(default_factory=HistoryStatus)
    intents_error: str | None = None
    control: ControlStatus | None = None
    loop_silence: LoopSilenceStatus | None = None
    device_mapper: str | None = None
    policies: PolicyFilesStatus = field(default_factory=PolicyFilesStatus)
    probe: ProbeStatus = field(default_factory=ProbeStatus)
    absent: tuple[AbsentVolume, ...] | None = None
    absent_count: int | None = None
