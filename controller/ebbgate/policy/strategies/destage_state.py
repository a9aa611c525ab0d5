# SPDX-License-Identifier: GPL-2.0-only
"""Parameters and state of idle_destage. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ebbgate.policy.strategies.calm_time import CalmTime
from ebbgate.policy.strategies.drain_cap import DrainCap
from ebbgate.policy.strategies.gap_use import GapUse, Rest
from ebbgate.policy.strategies.head_return import HeadReturn
from ebbgate.policy.strategies.pace_state import PaceParams, PaceState
from ebbgate.policy.strategies.sweep import Sweep
from ebbgate.signals.gaps import Wait, WaitParams, learn_wait
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S


class Phase(StrEnum):
    """The phases of idle_destage."""

    UNKNOWN = "unknown"
    NORMAL = "normal"
    WAIT = "wait"
    DESTAGE = "destage"
    PRESSURE = "pressure"


@dataclass(frozen=True, slots=True)
class DestageParams:
    """What a policy may set.

    - `wait_ns`: idle time before the gate opens; None learns it from the gaps.
    - `start_ratio`, `start_bytes_min`: with this much dirty data a gap is used, until all is clean.
    - `full_soon_s`: pressure if the cache will take no more writes within this time.
    - `burst_ns`: a load shorter than this is absorbed, however fast it fills the cache.
    - `room_ratio_min`: pressure with less room for dirty data than this share of the cache.
    - `age_max_ns`: pressure once dirty data has waited this long for a gap, until as much is
      written back as was dirty then.
    - `light_ratio`, `light_after_ns`: pressure once users have kept the backing device less busy
      than this share for this long.
    - `pressure_min_ns`: pressure lasts at least this long, since destage itself adds to the load.
    - `read_p99_max_ns`, `write_p99_max_ns`: a light load causes no pressure above this p99.
    - `likely_share`: a gap counts as likely to last for as long as this share of similar gaps does.
    - `queue_depth`: requests that the disks take at once in gaps, if they hold destage back by
      themselves (see `disk_queue`); 0: as many as ever. In the lab 4 drained as much as all 31,
      with a worst first request of half the time; 2 was no better, and worse for 4 KiB pieces.
    - `nr_requests`: the I/O scheduler of each disk holds at least so many requests; 0: as many as
      ever. smq's order is not the disk's, so what dm-cache has under way is sorted there.
    - `wbt_lat_usec`: of the kernel's own throttling of writes on each disk; None: as ever. It lets
      12 writes go on at once, so a scheduler has none of dm-cache's to sort. It also protects
      users' reads beside a copied file: in the lab there were a quarter as many without it.
    - `shallow_ns_max`: after a gap the disks' queues stay shallow for at most this long.
    - `disturbance_ns`: requests after a gap may take this much longer; None: no matter how much.
    - `mean_rate_max_bytes_per_s`: a limit of the policy, which rests keep; None: any rate.
    - `head_return`: 1: after write-back in a gap one read brings the heads back (`head_return`).
    - `gc_ratio`: share of the cache that is drained but still counted as in use, from which a
      garbage collection is requested; None where there is nothing to collect.
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
    likely_share: float = 0.95
    nr_requests: int = 0
    wbt_lat_usec: int | None = None
    mean_rate_max_bytes_per_s: int | None = None
    gc_ratio: float | None = 0.10
    gc_interval_ns: int = 5 * NS_PER_S
    queue_depth: int = 4
    shallow_ns_max: int = 2 * NS_PER_S
    disturbance_ns: int | None = 3 * NS_PER_MS
    head_return: int = 0
    pace: PaceParams = field(default_factory=PaceParams)
    pressure_pace: PaceParams = field(
        default_factory=lambda: PaceParams(
            target_ns=8 * NS_PER_MS, depth_min_ios=1.0, depth_max_ios=8.0, gain=0.4
        )
    )


@dataclass(frozen=True, slots=True)
class DestageState:
    """What idle_destage remembers between events. Times are 0 until the event has happened.

    - `why`: the reason for the phase, for people.
    - `learned_ns`: when the wait was learned.
    - `waiting_since_ns`: since when dirty data waits for an idle gap.
    - `peak_ratio`: the highest dirty level (0..1) since the last requested garbage collection.
    - `idle_since_ns`: when the present gap began.
    - `gap_end_ns`: when the last gap ended, also one in which there was too little to write back.
    - `gap_counts`: of the last frame.
    - `shallow`: the disks' queues are shallow in gaps.
    - `calm`: when gaps were left alone, to learn how fast requests are that nothing delays.
    - `gap`: how the gate is used within a gap.
    - `head`: whether the disks' heads are where write-back has left them.
    - `sweep`: how much of what had waited is written back under load.
    - `shallow_until_ns`: until then the queues stay shallow for what a gap has left; 0: no more.
    """

    phase: Phase = Phase.UNKNOWN
    since_ns: int = 0
    why: str = "no measurement yet"
    idle: bool = False
    edge_at_ns: int = 0
    wait: Wait = field(default_factory=lambda: learn_wait((), WaitParams()))
    learned_ns: int = 0
    waiting_since_ns: int = 0
    collected_at_ns: int = 0
    collect: bool = False
    peak_ratio: float = 0.0
    idle_since_ns: int = 0
    gap_end_ns: int = 0
    gap_counts: tuple[float, ...] = ()
    shallow: bool = False
    shallow_until_ns: int = 0
    cap: DrainCap = field(default_factory=DrainCap)
    calm: CalmTime = field(default_factory=CalmTime)
    gap: GapUse = field(default_factory=GapUse)
    head: HeadReturn = field(default_factory=HeadReturn)
    sweep: Sweep = field(default_factory=Sweep)
    pace: PaceState = field(default_factory=PaceState)

    @property
    def pacing(self) -> bool:
        """Whether the gate lets destage through."""
        return self.phase in (Phase.DESTAGE, Phase.PRESSURE)

    @property
    def resting(self) -> bool:
        """Whether the gate is closed for a while although the gap goes on."""
        return self.phase is Phase.DESTAGE and self.gap.rest is not Rest.NONE

    @property
    def sampled(self) -> bool:
        """Whether samples of the queue are needed."""
        return self.pacing or self.shallow_until_ns > 0
