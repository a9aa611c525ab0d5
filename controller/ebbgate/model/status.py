# SPDX-License-Identifier: GPL-2.0-only
"""The status of a volume, which the daemon records once a second and everybody else reads. Pure.

Times are ns of CLOCK_MONOTONIC unless the name says `unix`. None: not known. Every field has a
default, because a daemon of another version may not have sent it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ebbgate.model.decision import Condition, GateKind
from ebbgate.model.frame import Rates, Regime
from ebbgate.model.records import Direction
from ebbgate.model.volume import Mode
from ebbgate.units import NS_PER_S

DAEMON: Final = ""
"""The name under which the daemon records its own status, beside those of the volumes."""
STATUS_STALE_NS: Final = 5 * NS_PER_S
"""The daemon writes every second: if a status is older, the daemon hangs or has ended."""


@dataclass(frozen=True, slots=True)
class GateStatus:
    """The gate as it was last requested; `state`: the phase of idle_destage."""

    kind: GateKind
    rate_bytes_per_s: int = 0
    depth_ios: int = 0
    state: str = "unknown"
    since_ns: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PathStatus:
    """User requests that took one path (hit, miss, ...) within the last second."""

    op: str = ""
    path: str = ""
    ios: int = 0
    bytes: int = 0
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

    strategy: str = ""
    reason: str = ""
    unsupported: str = ""
    wins: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class CleaningStatus:
    """A cleaning under way; `eta_s`: None until anything was written back."""

    who: str = ""
    since_ns: int = 0
    until_ns: int = 0
    began_with_bytes: int | None = None
    eta_s: float | None = None


@dataclass(frozen=True, slots=True)
class OverrideStatus:
    """An override in force; without an end both times are None."""

    kind: str = ""
    knob: str | None = None
    value: str | None = None
    who: str = ""
    since_unix_ns: int = 0
    until_unix_ns: int | None = None
    left_ns: int | None = None


@dataclass(frozen=True, slots=True)
class KernelSleepStatus:
    """A sleep of the kernel's writeback thread that no knob ends; `text` explains it."""

    left_s: float = 0.0
    text: str = ""


@dataclass(frozen=True, slots=True)
class KnobChanges:
    """How often an actor has changed a knob."""

    knob: str = ""
    actor: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class FlowTotals:
    """Bytes of one kind of request; the latency only of user requests by path."""

    bytes: int | None = None
    latency_counts: tuple[int, ...] = ()
    latency_sum_ns: int | None = None


@dataclass(frozen=True, slots=True)
class VolumeTotals:
    """What readers use of the totals, which `signals.totals.totals_to_json` writes."""

    paths: Mapping[str, FlowTotals] = field(default_factory=dict)
    bypass: Mapping[str, FlowTotals] = field(default_factory=dict)
    run_bytes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    gap_counts: tuple[int, ...] = ()
    gap_sum_ns: int | None = None
    destage: FlowTotals = field(default_factory=FlowTotals)
    lost: Mapping[str, int] = field(default_factory=dict)
    since_unix_ns: int | None = None
    decisions: int | None = None
    rollbacks: Mapping[str, int] = field(default_factory=dict)
    knob_changes: tuple[KnobChanges, ...] = ()


@dataclass(frozen=True, slots=True)
class VolumeStatus:
    """A volume as the daemon last saw it.

    `frozen`: every knob stays where it is. `summary`: what ebbgate does now, and why, in one
    sentence. `dirty_floor_bytes`: with less dirty data no gap is used. `paths`, `bypass_bytes`: of
    the last second. `gap_counts`, `run_bytes`: histograms that decay. `totals`: what was counted
    since the daemon follows the volume; `totals_from_json` reads it.
    """

    volume: str = ""
    title: str = ""
    kind: str = ""
    mode: Mode | None = None
    policy: str | None = None
    overlay: str | None = None
    frozen: bool = False
    at_ns: int = 0
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
    destage_bytes_per_s: float | None = None
    backing_depth_ios: int | None = None
    foreground: Mapping[Direction, Rates] | None = None
    paths: tuple[PathStatus, ...] = ()
    bypass_bytes: Mapping[str, int] = field(default_factory=dict)
    gap_counts: tuple[float, ...] = ()
    run_bytes: Mapping[Direction, tuple[float, ...]] = field(default_factory=dict)
    knobs: Mapping[str, KnobStatus] = field(default_factory=dict)
    proposals: tuple[ProposalStatus, ...] = ()
    cleaning: CleaningStatus | None = None
    overrides: tuple[OverrideStatus, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[str, object] = field(default_factory=dict)
