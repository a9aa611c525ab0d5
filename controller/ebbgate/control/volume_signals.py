# SPDX-License-Identifier: GPL-2.0-only
"""Builds the frames of one volume from the probe's records and from looks at sysfs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.ownership import OwnedKnob
from ebbgate.control.attribution_status import CachedAttribution
from ebbgate.control.heat_status import CachedHeatStatus
from ebbgate.knobs.catalog import DELAY, knob_row
from ebbgate.knobs.knob import ResetCause
from ebbgate.model.attribution import UNKNOWN_CGROUP, AttributionStatus
from ebbgate.model.dm import CacheStatus
from ebbgate.model.frame import DaemonFacts, Frame
from ebbgate.model.heat import HeatStatus, VolumeLayout
from ebbgate.model.hot_set import HotSet
from ebbgate.model.power import NOT_ASKED, DiskPower
from ebbgate.model.records import (
    AttributionRecord,
    HeatRecord,
    ReuseSamples,
    Tick,
    Tracked,
    TrackRefused,
)
from ebbgate.model.status import CacheWrites, MissRatioStatus
from ebbgate.model.volume import VolumeState
from ebbgate.policy.engine import PromoteState
from ebbgate.signals import kernel_sleep
from ebbgate.signals.frame import (
    FrameState,
    build,
    on_heat,
    on_tick,
    on_tracked,
    reset_counters,
    totals,
)
from ebbgate.signals.hot_chunks import HotChunks
from ebbgate.signals.kernel_sleep import KernelSleep
from ebbgate.signals.recent_attribution import RecentAttribution, add_attribution
from ebbgate.signals.recent_misses import RecentMisses, add_period, middle_chunk
from ebbgate.signals.totals import Changes, Totals
from ebbgate.signals.volume_curve import VolumeCurve

SignalRecord = AttributionRecord | HeatRecord | ReuseSamples | Tick | Tracked | TrackRefused
"""Records that change the signals of a volume, and nothing else."""


@dataclass(slots=True)
class VolumeSignals:
    """What was measured of one volume. `since_unix_ns`: when the daemon began to follow it.

    `last_seen`: the last look at sysfs. `lost`: what the probe had to drop. `power`: whether the
    disks below turn. `reloaded`: a table was loaded; who looks at its knobs clears it. `layout`:
    who owns the chunks of the volume. `cgroups`: paths by id. `_counts`: the newest that dm-cache
    reported; `_counts_before`: those at the look before.
    """

    writer: KnobWriter
    now_ns: Callable[[], int]
    since_unix_ns: int
    last_seen: VolumeState | None = None
    lost: Mapping[str, int] = field(default_factory=dict)
    power: DiskPower = NOT_ASKED
    reloaded: bool = False
    layout: VolumeLayout | None = None
    cgroups: Mapping[int, str] = field(default_factory=dict)
    _frames: FrameState = field(default_factory=FrameState)
    _kernel_sleep: KernelSleep | None = None
    _dirty_since_ns: int | None = None
    _counts: CacheStatus | None = None
    _counts_before: CacheStatus | None = None
    _curve: VolumeCurve = field(default_factory=VolumeCurve)
    _misses: RecentMisses = field(default_factory=RecentMisses)
    _heat: CachedHeatStatus = field(default_factory=CachedHeatStatus)
    _who: RecentAttribution = field(default_factory=RecentAttribution)
    _attribution: CachedAttribution = field(default_factory=CachedAttribution)
    _hot: HotChunks = field(init=False)

    def __post_init__(self) -> None:
        caches = self.writer.volume.caches
        self._hot = HotChunks(sum(device.size_bytes for device in caches))

    def on_record(self, record: SignalRecord) -> None:
        """Take a record of the probe."""
        if isinstance(record, ReuseSamples):
            self._curve.on_samples(record)
            self._hot.on_samples(record)
            return
        if isinstance(record, HeatRecord):
            self._frames = on_heat(self._frames, record)
            self._misses = add_period(self._misses, record.period)
            return
        if isinstance(record, AttributionRecord):
            self._who = add_attribution(self._who, record.period)
            return
        if isinstance(record, Tracked | TrackRefused):
            if isinstance(record, Tracked):
                # Its counts begin at zero, and no window may span the time before.
                self._frames = reset_counters(self._frames)
            self._frames = on_tracked(self._frames, record)
            self._curve.on_tracked()
            return
        self._frames = on_tick(self._frames, record)
        self._curve.on_tick(record)
        self.lost = dict(record.lost)
        # The end of the kernel thread's sleep is known once we have changed its delay.
        delay = self.writer.owned.get(DELAY)
        ours = (delay.owned_since_ns, delay.original) if delay else None
        self._kernel_sleep = kernel_sleep.on_tick(self._kernel_sleep, ours, record)

    def on_probe_restart(self) -> None:
        """Expect a new probe that counts from zero."""
        self._frames = reset_counters(self._frames)

    @property
    def refused(self) -> str:
        """Return why the probe does not follow the volume; empty if it does."""
        return self._frames.refused

    def frame(self, seen: VolumeState) -> Frame:
        """Return what is known at this look at sysfs, the next one after `last_seen`."""
        # A suspended volume has no status, and a table is loaded while it is suspended.
        self._counts_before = self._counts
        self._counts = seen.dm if isinstance(seen.dm, CacheStatus) else self._counts
        self.reloaded = self.reloaded or self._counts_fell(seen)
        foreign = frozenset(self.writer.manual | self.writer.pinned | self.writer.lacking)
        facts = DaemonFacts(foreign, self.writer.disk_users, self.power, self.layout)
        if seen.dirty_bytes == 0:
            self._dirty_since_ns = None
        elif self._dirty_since_ns is None and seen.dirty_bytes is not None:
            self._dirty_since_ns = seen.at_ns
        return build(self._frames, seen, self.writer.volume.name, self.now_ns(), facts)

    def table_reloaded(self, seen: VolumeState) -> bool:
        """Whether the table was loaded again since the knobs were looked at; it resets the knobs.

        dm-cache counts promotions and demotions from the last load, and takes its threshold from
        the table. Before anything was counted, only original values show that a table was loaded.
        A table with another threshold is noticed by that, too (`VolumeKnobs.has_other_table`).
        Call it only while no write is under way.
        """
        if self.reloaded:
            # A look at a suspended volume finds no knobs; a later one tells what they are now.
            return bool(seen.knobs)
        then = self._counts_before
        if then is None or not isinstance(seen.dm, CacheStatus):
            return False
        if then.promotions or then.demotions:
            return False
        knobs = self._reset_by_table()
        # Where ebbgate wrote the original, too, it shows nothing.
        shows = any(not owned.is_ours(owned.original) for owned in knobs.values())
        originals = {knob: owned.original for knob, owned in knobs.items()}
        return shows and originals.items() <= seen.knobs.items()

    def _counts_fell(self, seen: VolumeState) -> bool:
        """Whether the counts show that a table was loaded that resets knobs of ebbgate."""
        then, new = self._counts_before, seen.dm
        if then is None or not isinstance(new, CacheStatus):
            return False
        fell = new.promotions < then.promotions or new.demotions < then.demotions
        return fell and bool(self._reset_by_table())

    def _reset_by_table(self) -> dict[str, OwnedKnob]:
        """Return the knobs of ebbgate that a table sets; those of the disks below stay."""
        return {
            knob: owned
            for knob, owned in list(self.writer.owned.items())
            if ResetCause.TABLE in knob_row(knob).resets
        }

    def originals(self) -> dict[str, str]:
        """Return the original values of the knobs that ebbgate has changed."""
        return {knob: owned.original for knob, owned in list(self.writer.owned.items())}

    def sleep_left_s(self) -> float | None:
        """Return how long the kernel's writeback thread may still sleep; None: it does not."""
        return kernel_sleep.left_s(self._kernel_sleep, self.now_ns())

    def miss_ratio(self, cache_bytes: int | None) -> MissRatioStatus:
        """Return which share of reads caches of other sizes would miss."""
        return self._curve.status(cache_bytes, self.now_ns())

    def heat(self, frame: Frame, promote: PromoteState) -> HeatStatus:
        """Return where users missed the cache of late."""
        return self._heat.get(self._misses, frame, promote, self.writer.volume.size_bytes)

    def missed_chunk(self) -> int | None:
        """Return the middle of where users missed the cache of late, in MiB; None: unknown."""
        return middle_chunk(self._misses)

    def attribution(self) -> AttributionStatus:
        """Return whose requests missed the cache of late."""
        return self._attribution.get(self._who, self.cgroups, self.layout)

    def missed_cgroups(self) -> set[int]:
        """Return the ids of the cgroups that missed the cache of late."""
        return self._who.cgroups.known.keys() - {UNKNOWN_CGROUP}

    def hot_set(self) -> HotSet:
        """Return the parts of the volume that were used last."""
        return self._hot.hot_set(self._curve.observed_ns(self.now_ns()))

    def totals(self, changes: Changes, decisions: int, rollbacks: Mapping[str, int]) -> Totals:
        """Return what was counted since the daemon follows the volume."""
        since_ns = self._dirty_since_ns
        return Totals(
            self.since_unix_ns,
            totals(self._frames),
            changes,
            decisions,
            rollbacks,
            None if since_ns is None else self.now_ns() - since_ns,
            self._cache_writes(),
        )

    def _cache_writes(self) -> CacheWrites | None:
        written = self.last_seen.cache_written_bytes if self.last_seen else None
        caches = self.writer.volume.caches
        return CacheWrites(caches[0].name, written) if caches and written is not None else None
