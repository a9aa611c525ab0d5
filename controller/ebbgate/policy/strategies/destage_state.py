# SPDX-License-Identifier: GPL-2.0-only
"""What idle_destage is told and what it remembers. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ebbgate.policy.strategies.pace_state import PaceParams, PaceState
from ebbgate.signals.gaps import Wait, WaitParams, learn_wait
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S


class Phase(StrEnum):
    """Where the machine stands."""

    UNKNOWN = "unknown"
    NORMAL = "normal"
    WAIT = "wait"
    DESTAGE = "destage"
    PRESSURE = "pressure"


@dataclass(frozen=True, slots=True)
class DestageParams:
    """What a policy may set.

    `wait_ns`: None learns it from the gaps. `start_ratio`, `start_bytes_min`: dirty data (share of
    the cache, bytes) from which draining is worth a gap; once begun it goes on until all is clean.
    `full_soon_s`, `room_ratio_min`: pressure when the kernel would stop caching writes sooner than
    this (once the load has lasted longer than a burst, `burst_ns`), or has less room than this
    share of the cache. `age_max_ns`: pressure when dirty data has waited this long without a gap.
    `light_ratio`, `light_after_ns`: pressure when the foreground keeps the backing device less busy
    than this share for so long without a gap. `pressure_min_ns`: once begun, pressure lasts this
    long, since destage itself makes the device busier. `read_p99_max_ns`, `write_p99_max_ns`: no
    such pressure for a light load while users wait longer than this (p99). `seep_ns`: a closed gate
    still lets one piece through in this time, since a longer one would put the kernel's thread to
    sleep far into the next gap (policy.pace); a shorter one is felt by the burst: at 150 ms its p99
    was 1.5 times that of a closed gate in the simulation (tests/sim), at 1.2 s 1.0 to 1.1 times.
    `sure_share`: a gap counts as sure to go on for as long as this share (0..1) of its like do.
    `collect_ratio`: None where nothing is to be collected.
    """

    wait_ns: int | None = None
    wait: WaitParams = field(default_factory=WaitParams)
    start_ratio: float = 0.01
    start_bytes_min: int = 4 * MIB
    full_soon_s: float = 20.0
    burst_ns: int = 8 * NS_PER_S
    room_ratio_min: float = 0.05
    age_max_ns: int = 600 * NS_PER_S
    light_ratio: float = 0.30
    light_after_ns: int = 5 * NS_PER_S
    pressure_min_ns: int = 2 * NS_PER_S
    read_p99_max_ns: int | None = None
    write_p99_max_ns: int | None = None
    seep_ns: int = 1200 * NS_PER_MS
    sure_share: float = 0.95
    collect_ratio: float | None = 0.10
    collect_interval_ns: int = 5 * NS_PER_S
    pace: PaceParams = field(default_factory=PaceParams)
    pressure_pace: PaceParams = field(
        default_factory=lambda: PaceParams(
            target_ns=8 * NS_PER_MS, depth_min_ios=1.0, depth_max_ios=8.0, gain=0.4
        )
    )


@dataclass(frozen=True, slots=True)
class DestageState:
    """What the machine remembers between events. Times are 0 where nothing happened yet.

    `learned_ns`: when the wait was learned; `waiting_since_ns`: since when dirty data waits for a
    gap; `why`: the sentence behind the phase;
    `peak_ratio`: the highest dirty level (0..1) since the last garbage collection that was asked
    for; `quiet_since_ns`: when the present gap began; `gap_counts`: of the last frame.
    """

    phase: Phase = Phase.UNKNOWN
    since_ns: int = 0
    why: str = "no frame yet"
    idle: bool = False
    edge_at_ns: int = 0
    wait: Wait = field(default_factory=lambda: learn_wait((), WaitParams()))
    learned_ns: int = 0
    waiting_since_ns: int = 0
    collected_at_ns: int = 0
    collect: bool = False
    peak_ratio: float = 0.0
    quiet_since_ns: int = 0
    gap_counts: tuple[float, ...] = ()
    pace: PaceState = field(default_factory=PaceState)

    @property
    def pacing(self) -> bool:
        """Does the machine want samples of the queue?"""
        return self.phase in (Phase.DESTAGE, Phase.PRESSURE)
