# SPDX-License-Identifier: GPL-2.0-only
"""Every knob that ebbgate writes or shows, one row each. Pure.

bcache: drivers/md/bcache/sysfs.c of Linux 6.1; 6.12 has the same set, 5.10 lacks the fragment
terms. Stores take plain decimal numbers only; some reads are rounded for humans (`bch_hprint`), so
the printed value is often neither what was written nor writable. dm-cache: dm-cache-target.c and
dm.c. It takes one setting by message while it runs; everything else needs another table.
dm-writecache takes none.

The bounds hold whatever a strategy, a rule or a person asks for. Each strategy bounds its own
steps; a close goes all the way at once, since a request waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ebbgate.knobs.knob import Knob, KnobBounds, KnobPlace, KnobUnit, ResetCause, ValueForm
from ebbgate.knobs.never import WITHOUT_ROW
from ebbgate.knobs.shown import BCACHE_ONLY, PERSISTS, REGISTERED, SHOWN, backing, in_set, internal
from ebbgate.model.volume import Kind
from ebbgate.units import KIB, NS_PER_S

PERCENT: Final = "writeback_percent"
RATE: Final = "writeback_rate"
RATE_MINIMUM: Final = "writeback_rate_minimum"
DELAY: Final = "writeback_delay"
RUNNING: Final = "writeback_running"
UPDATE_SECONDS: Final = "writeback_rate_update_seconds"
IDLE_MAX_RATE: Final = "idle_max_writeback_rate"
CUTOFF: Final = "sequential_cutoff"
CONGESTED: Final = ("congested_read_threshold_us", "congested_write_threshold_us")
TRIGGER_GC: Final = "trigger_gc"
THRESHOLD: Final = "migration_threshold"
MAX_SECTORS: Final = "max_sectors_kb"
"""Of a dm volume, and, with the name of a disk, of each disk below a volume."""
QUEUE_DEPTH: Final = "queue_depth"
NR_REQUESTS: Final = "nr_requests"
WBT: Final = "wbt_lat_usec"
SCHEDULER: Final = "scheduler"
IOSCHED: Final = "iosched"
"""All that the I/O scheduler of a disk is set to, as one text."""
TABLE: Final = "table"
FLUSH: Final = "flush"
ANY_VALUE: Final = "*"
"""In place of a value that was written: the kernel chooses it while ebbgate writes another knob."""

_LOADED: Final = frozenset({ResetCause.TABLE, ResetCause.REBOOT})
_DM_CACHE: Final = frozenset({Kind.DM_CACHE})
_CONGESTED_BOUNDS: Final = KnobBounds(0, 10_000_000, "10 s is never reached", "bcache/io.c")
_CONGESTED_PURPOSE: Final = "0 where jitter of the cache device was taken for congestion"

KNOBS: Final[tuple[Knob, ...]] = (
    backing(
        name=CUTOFF,
        form=ValueForm.SIZE,
        unit=KnobUnit.BYTES,
        about="longer streams bypass the cache, bytes",
        purpose="keeps streams out of a filling cache; never 0 and never under 64 KiB",
        bounds=KnobBounds(
            64 * KIB,
            (1 << 32) - 1,
            "0 stops the detector, 1 to 511 bypass everything, and less than 64 KiB bypasses "
            "ordinary requests",
            "bcache/request.c, check_should_bypass",
        ),
        interval_ns=NS_PER_S,
    ),
    backing(
        name=PERCENT,
        unit=KnobUnit.PERCENT,
        about="share of dirty data to keep, percent",
        # Above 0 the rate limit holds; 0 lifts it and uses the idle I/O class.
        purpose="40: the gate limits destage; 0: the gate is open",
        bounds=KnobBounds(
            0, 40, "above it no write is cached", "bcache/sysfs.c, bch_cutoff_writeback"
        ),
        gate=True,
        verified=False,
    ),
    backing(
        name=RATE,
        form=ValueForm.RATE,
        unit=KnobUnit.SECTORS_PER_S,
        about="present rate of destage, sectors/s",
        purpose="the pace of destage; written again where the kernel overwrote it",
        resets=REGISTERED | {ResetCause.KERNEL},
        bounds=KnobBounds(1, 1 << 30, "0 is not a rate; higher values overflow", "bcache/util.c"),
        gate=True,
        verified=False,
    ),
    backing(
        name=RATE_MINIMUM, unit=KnobUnit.SECTORS_PER_S, about="lowest rate of destage, sectors/s"
    ),
    backing(
        name=UPDATE_SECONDS,
        unit=KnobUnit.SECONDS,
        about="period of the rate controller, s",
        purpose="60: the kernel's own controller interferes as rarely as it can",
        bounds=KnobBounds(
            1, 60, "the kernel's own range", "bcache/writeback.h, WRITEBACK_RATE_UPDATE_SECS_MAX"
        ),
        gate=True,
    ),
    backing(
        name=DELAY,
        unit=KnobUnit.SECONDS,
        about="pause after a full scan, s",
        # Read once per scan of the index.
        purpose="0: nothing interrupts this sleep; one that has begun may last, `status` says so",
        bounds=KnobBounds(
            0, 3600, "nothing interrupts this sleep", "bcache/writeback.c, writeback_delay"
        ),
        gate=True,
    ),
    backing(
        name=RUNNING,
        unit=KnobUnit.FLAG,
        about="destage on or off; writing 1 wakes it",
        # The thread looks at it before it fills its key buffer, not while it empties that.
        purpose="1: wakes the kernel's thread; 0: only for a rule with `destage_rate: hold`",
        bounds=KnobBounds(0, 1, "off or on", "bcache/writeback.c, bch_writeback_thread"),
        gate=True,
        verified=False,
    ),
    in_set(
        name=CONGESTED[0],
        unit=KnobUnit.MICROSECONDS,
        about="bypass when cache reads are slower, us",
        purpose=_CONGESTED_PURPOSE,
        bounds=_CONGESTED_BOUNDS,
        interval_ns=NS_PER_S,
    ),
    in_set(
        name=CONGESTED[1],
        unit=KnobUnit.MICROSECONDS,
        about="bypass when cache writes are slower, us",
        purpose=_CONGESTED_PURPOSE,
        bounds=_CONGESTED_BOUNDS,
        interval_ns=NS_PER_S,
    ),
    internal(
        name=IDLE_MAX_RATE,
        unit=KnobUnit.FLAG,
        about="destage at full rate after 30 s idle",
        purpose="0: the kernel does not open the gate by itself after 30 s",
        bounds=KnobBounds(0, 1, "on or off", "bcache/sysfs.c"),
        gate=True,
    ),
    internal(
        name=TRIGGER_GC,
        form=ValueForm.UNREADABLE,
        unit=KnobUnit.FLAG,
        about="any write starts garbage collection",
        purpose="frees drained buckets; leaves no value behind",
        bounds=KnobBounds(1, 1, "any write starts garbage collection", "bcache/sysfs.c"),
        interval_ns=NS_PER_S,
        trigger=True,
    ),
    Knob(
        name=THRESHOLD,
        kinds=_DM_CACHE,
        place=KnobPlace.MESSAGE,
        unit=KnobUnit.SECTORS,
        about="most destage in flight, sectors",
        # Below one cache block nothing is written back; queued promotions go out in any case.
        purpose="the most destage that may be in flight; 0: none",
        resets=_LOADED,
        bounds=KnobBounds(
            0,
            1 << 20,
            "512 MiB in flight keep a disk busy for seconds",
            "dm-cache-target.c, spare_migration_bandwidth",
        ),
        gate=True,
        verified=False,
    ),
    Knob(
        name=MAX_SECTORS,
        kinds=_DM_CACHE,
        place=KnobPlace.QUEUE,
        unit=KnobUnit.KIB,
        about="longest request, KiB; splits longer ones",
        # A write as long as a cache block is taken in at once, dirty, while free blocks are left
        # (optimisable_bio); a shorter one is promoted only once its region is hot.
        purpose="half a cache block keeps streams of writes out of a filling cache",
        resets=_LOADED,
        bounds=KnobBounds(
            16,
            1 << 20,
            "shorter requests cost more than they keep out",
            "block/blk-sysfs.c, queue_max_sectors_store",
        ),
        interval_ns=NS_PER_S,
    ),
    Knob(
        name=QUEUE_DEPTH,
        kinds=BCACHE_ONLY | _DM_CACHE,
        place=KnobPlace.DISK,
        unit=KnobUnit.NUMBER,
        about="requests that the disk takes at once",
        # What a disk has taken no scheduler reorders, so a request waits behind all of it.
        # The kernel lowers it where a SAS disk reports QUEUE_FULL, as a person would.
        purpose="a few: the I/O scheduler, not the disk, chooses what is next",
        resets=frozenset({ResetCause.DISK, ResetCause.REBOOT}),
        bounds=KnobBounds(
            2,
            256,
            "at 1 libata switches NCQ off; the kernel refuses more than the host takes",
            "drivers/ata/libata-sata.c, ata_change_queue_depth; drivers/scsi/scsi_sysfs.c",
        ),
    ),
    Knob(
        name=MAX_SECTORS,
        kinds=BCACHE_ONLY | _DM_CACHE,
        place=KnobPlace.DISK_QUEUE,
        unit=KnobUnit.KIB,
        about="longest request to the disk, KiB",
        # bcache's pieces are merged up to this, and the disk finishes what it has begun.
        purpose="with a short queue: a returning request waits for a few short writes",
        resets=frozenset({ResetCause.DISK, ResetCause.REBOOT}),
        bounds=KnobBounds(
            64,
            32_767,
            "shorter requests cost streams throughput; the kernel refuses more than the host takes",
            "block/blk-sysfs.c, queue_max_sectors_store",
        ),
    ),
    Knob(
        name=NR_REQUESTS,
        kinds=BCACHE_ONLY | _DM_CACHE,
        place=KnobPlace.DISK_QUEUE,
        unit=KnobUnit.NUMBER,
        about="requests that the I/O scheduler may hold",
        purpose="dm-cache: many, since smq's order is not the disk's and the scheduler sorts what "
        "it holds; kept over a switch of the scheduler, which resets it",
        resets=frozenset({ResetCause.DISK, ResetCause.REBOOT}),
        bounds=KnobBounds(64, 2048, "the kernel refuses more", "block/blk-mq.h, MAX_SCHED_RQ"),
        # A change waits until the disk has no request.
        interval_ns=NS_PER_S,
    ),
    Knob(
        name=WBT,
        kinds=BCACHE_ONLY | _DM_CACHE,
        place=KnobPlace.DISK_QUEUE,
        unit=KnobUnit.MICROSECONDS,
        about="read latency for which the kernel throttles writes, us; 0: off",
        # The kernel takes a cache's write-back for that of the page cache, and lets 12 writes at
        # most go on at once: none for a scheduler to sort. With bfq the kernel turns it off, but
        # not where somebody has written it (wbt_disable_default).
        purpose="only where a policy has `wbt_lat_usec`: at 0 more than 12 blocks of dm-cache are "
        "written back at once, which the scheduler sorts; with bfq the kernel turns it off",
        resets=frozenset({ResetCause.DISK, ResetCause.REBOOT}),
        bounds=KnobBounds(
            0,
            1_000_000,
            "0 turns it off; the kernel's own is 75 ms on a hard disk",
            "block/blk-wbt.c",
        ),
        # A change waits until the disk has no request.
        interval_ns=NS_PER_S,
    ),
    Knob(
        name=SCHEDULER,
        kinds=BCACHE_ONLY | _DM_CACHE,
        place=KnobPlace.DISK_QUEUE,
        form=ValueForm.CHOICE,
        unit=KnobUnit.WORD,
        about="which request the disk gets next",
        purpose="only where a policy has `backing_scheduler`: bfq holds write-back in a gap back",
        # A living queue keeps its scheduler, so one that was set back is somebody's choice.
        resets=frozenset({ResetCause.REBOOT}),
        words=("bfq",),
        # A switch waits until the disk has no request.
        interval_ns=NS_PER_S,
    ),
    Knob(
        name=IOSCHED,
        kinds=BCACHE_ONLY | _DM_CACHE,
        place=KnobPlace.DISK_QUEUE,
        form=ValueForm.FOLDER,
        unit=KnobUnit.WORD,
        about="settings of the I/O scheduler",
        purpose="never changed; put back after a switch of the scheduler, which resets it",
        resets=frozenset({ResetCause.REBOOT}),
        verified=False,
        listed=False,
    ),
    Knob(
        name=TABLE,
        kinds=_DM_CACHE,
        place=KnobPlace.MESSAGE,
        unit=KnobUnit.WORD,
        about="loaded by `ebbgate clean` only",
        purpose="only `ebbgate clean`: the same cache with the policy cleaner, and back",
        resets=_LOADED,
        verified=False,
        listed=False,
    ),
    Knob(
        name=FLUSH,
        kinds=frozenset({Kind.DM_WRITECACHE}),
        place=KnobPlace.MESSAGE,
        form=ValueForm.UNREADABLE,
        unit=KnobUnit.WORD,
        about="sent by `ebbgate clean` only",
        purpose="only `ebbgate clean`: writes everything back; leaves no value behind",
        resets=PERSISTS,
        trigger=True,
        listed=False,
    ),
    *SHOWN,
)
BY_NAME: Final[Mapping[str, Knob]] = {knob.key: knob for knob in KNOBS}
"""By `Knob.key`."""
BOUNDS: Final[Mapping[str, KnobBounds]] = {knob.key: knob.bounds for knob in KNOBS if knob.bounds}
NEVER: Final[Mapping[str, str]] = {
    **WITHOUT_ROW,
    **{knob.name: knob.never for knob in KNOBS if knob.never},
}
"""File or message -> why ebbgate never writes it."""


def find_knob(name: str) -> Knob | None:
    """Return the row of a knob, also by its name for one disk; None: there is no such knob."""
    base, colon, _ = name.partition(":")
    return BY_NAME.get(base + colon)


def knob_row(name: str) -> Knob:
    """Return the row of a knob as `find_knob` does. Raises KeyError where there is none."""
    found = find_knob(name)
    if found is None:
        raise KeyError(name)
    return found


def bounds_of(name: str) -> KnobBounds:
    """Return the bounds of a knob. Raises KeyError for one that ebbgate cannot set."""
    found = knob_row(name).bounds
    if found is None:
        raise KeyError(name)
    return found


def same_value(name: str, written: str, seen: str) -> bool:
    """Is `seen` the value that was written? The kernel rounds sizes to one decimal."""
    if written in (seen, ANY_VALUE):
        return True
    try:
        ours, theirs = int(written), int(seen)
    except ValueError:
        return False
    knob = find_knob(name)
    # In whole numbers: a damaged row may have one that no float can hold.
    near = 100 * abs(ours - theirs) <= max(100, 6 * ours)
    return knob is not None and knob.form.rounded and near
