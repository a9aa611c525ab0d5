# SPDX-License-Identifier: GPL-2.0-only
"""What to change about a volume's devices and settings, as sentences with stable numbers. Pure.

The numbers never change their meaning, so that people can search for and refer to them:

EBB-101  a rotating backing device without an I/O scheduler
EBB-102  a backing device that says it does not rotate
EBB-103  a rotating backing device that takes many requests at once
EBB-104  a stacked backing device: the advice is for the disks below it
EBB-201  no cache attached
EBB-202  a cache mode without dirty data
EBB-203  the state `inconsistent`
EBB-204  the cache is (nearly) full
EBB-205  a slow moment of the cache device sends requests past it
EBB-206  the sequential detector is off
EBB-207  discard is on
EBB-208  I/O errors were counted
EBB-209  writeback_percent near the level at which writes are no longer cached
EBB-210  writeback_percent 0: destage without a limit, beside users
EBB-211  writeback_percent so low that destage hardly ever rests
EBB-212  a floor under the rate of destage
EBB-213  a sequential_cutoff under the size of ordinary requests
EBB-214  thresholds of congestion 0, which is right
EBB-301  dm-cache metadata that needs a check, cannot be written, or a cache that failed
EBB-302  a metadata device that is nearly full
EBB-303  a cache in passthrough
EBB-304  read streams cannot be kept out of dm-cache
EBB-305  a migration_threshold that lets destage hold users up
EBB-306  dm-writecache: what may be set, and by which command
EBB-307  the cleaner policy is loaded: nothing is promoted
EBB-308  a threshold set by message, which the next table takes back
EBB-309  settings of the old policy mq, which have no effect

205, 206 and 209 to 214 are what guides hand on (advice_folklore.py). `ebbgate apply` carries out
204, 205, 206, 209, 210, 211, 213, 305 and 308, once a person has said yes. All else is only said: a
disk's scheduler and depth serve everything on that disk, and the cache mode decides what a dead SSD
costs. Both are the administrator's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ebbgate.actuators.bounds import TRIGGER_GC
from ebbgate.doctor import evidence
from ebbgate.doctor.advice_dm import DM_RULES
from ebbgate.doctor.advice_folklore import BCACHE_RULES, congested, detector_off, mq_settings
from ebbgate.doctor.finding import Advice, Change, Facts, Weight
from ebbgate.model.volume import Device, Kind

# What one SATA disk takes (NCQ); a longer queue inside a disk cannot be overtaken by anybody.
DEPTH_MAX: Final = 32
# Above 95 % in use the kernel caches nothing more (CUTOFF_CACHE_ADD, drivers/md/bcache/bcache.h).
IN_USE_MAX: Final = 0.95


def advise(facts: Facts) -> tuple[Advice, ...]:
    """Everything that applies, faults first, then by number."""
    found = [advice for rule in _RULES for advice in rule(facts)]
    order = list(Weight)
    return tuple(sorted(found, key=lambda advice: (order.index(advice.weight), advice.id)))


def depth_inside(device: Device) -> int | None:
    """How many requests wait where no scheduler can reach them; None where nothing says it.

    SCSI and SATA say it (`device/queue_depth`). Of other disks it is known only without a
    scheduler: then all of `nr_requests` goes down at once (block/blk-mq-sched.c:blk_mq_init_sched).
    """
    if device.queue_depth is not None:
        return device.queue_depth
    return device.nr_requests if device.scheduler == "none" else None


def _scheduler(facts: Facts) -> Iterator[Advice]:
    for disk in facts.disks:
        if disk.rotational and disk.scheduler == "none":
            better = next((name for name in ("mq-deadline", "bfq") if name in disk.schedulers), "")
            file = f"/sys/block/{disk.name}/queue/scheduler"
            yield Advice(
                "EBB-101",
                Weight.ADVICE,
                disk.name,
                "has no I/O scheduler, so nothing lets a user's request overtake the destage that "
                "waits in front of it; mq-deadline halves the wait of the first request after a gap"
                + ("" if better else " (the kernel offers none here: load mq-deadline or bfq)"),
                f"echo {better} > {file}" if better else "",
                effect="the first request after a gap waits about half as long",
            )


def _rotational(facts: Facts) -> Iterator[Advice]:
    for disk in facts.disks:
        if disk.rotational is False:
            file = f"/sys/block/{disk.name}/queue/rotational"
            yield Advice(
                "EBB-102",
                Weight.NOTE,
                disk.name,
                "says it does not rotate, as virtual disks do whatever is behind them; if that is "
                "a hard disk, tell the kernel",
                f"echo 1 > {file}",
                effect="the kernel and this advice treat it as what it is",
            )


def _depth(facts: Facts) -> Iterator[Advice]:
    for disk in facts.disks:
        depth = depth_inside(disk)
        if disk.rotational and depth is not None and depth > DEPTH_MAX:
            settable = disk.queue_depth is not None
            file = f"/sys/block/{disk.name}/device/queue_depth"
            yield Advice(
                "EBB-103",
                Weight.ADVICE,
                disk.name,
                f"takes {depth} requests at once; what is inside the disk cannot be overtaken, so "
                f"{DEPTH_MAX} are enough"
                + ("" if settable else " (a virtual disk: set it where the machine is defined)"),
                f"echo {DEPTH_MAX} > {file}" if settable else "",
                effect=f"a user's request waits for {DEPTH_MAX} others at most",
            )


def _stacked(facts: Facts) -> Iterator[Advice]:
    names = [disk.name for disk in facts.disks]
    if names and names != [facts.volume.backing.name]:
        yield Advice(
            "EBB-104",
            Weight.NOTE,
            facts.volume.backing.name,
            f"is a stack on {', '.join(names)}: queue and scheduler are theirs, and the paced "
            "destage sees the stack as one device",
        )


def _no_cache(facts: Facts) -> Iterator[Advice]:
    if not facts.volume.cached:
        yield Advice(
            "EBB-201",
            Weight.FAULT,
            facts.volume.name,
            "has no cache attached: it runs at the speed of its backing device",
            f"echo SET-UUID > /sys/block/{facts.volume.name}/bcache/attach",
            effect="what is read and written often runs at the speed of the SSD",
        )


def _cache_mode(facts: Facts) -> Iterator[Advice]:
    mode = facts.state.cache_mode
    if facts.volume.cached and mode not in (None, "writeback", "passthrough"):
        yield Advice(
            "EBB-202",
            Weight.NOTE,
            facts.volume.title,
            f"is in {mode}: no dirty data to hold back or to drain, so ebbgate has nothing to tune "
            "here. Writeback is faster and puts unwritten data on the SSD alone: "
            "that choice stays yours",
        )


def _inconsistent(facts: Facts) -> Iterator[Advice]:
    if facts.state.state == "inconsistent":
        yield Advice(
            "EBB-203",
            Weight.FAULT,
            facts.volume.name,
            "is inconsistent: it was run without a cache that held dirty data. ebbgate leaves it "
            "alone; check the file system and make the cache anew",
        )


def _full(facts: Facts) -> Iterator[Advice]:
    in_use = facts.state.in_use_ratio
    if facts.volume.kind is Kind.BCACHE and in_use is not None and in_use > IN_USE_MAX:
        yield Advice(
            "EBB-204",
            Weight.ADVICE,
            facts.volume.name,
            f"has {in_use:.0%} of its cache in use; above {IN_USE_MAX:.0%} the kernel caches "
            "nothing more until garbage is collected",
            f"echo 1 > /sys/fs/bcache/{facts.volume.set_uuid}/internal/trigger_gc",
            evidence=evidence.level(facts.live),
            effect="buckets that hold nothing any more can be used again; writers may wait for it",
            change=Change(((TRIGGER_GC, "1"),)),
        )


def _discard(facts: Facts) -> Iterator[Advice]:
    for name in facts.discards:
        yield Advice(
            "EBB-207",
            Weight.ADVICE,
            name,
            "has discard on: bcache waits for a discard of every bucket that it frees, which "
            "stalls writers; fstrim from time to time does the same without",
            f"echo 0 > /sys/block/{name}/bcache/discard",
            effect="writers no longer wait for discards; the setting persists",
        )


def _io_errors(facts: Facts) -> Iterator[Advice]:
    for name, count in facts.io_errors.items():
        if count:
            yield Advice(
                "EBB-208",
                Weight.FAULT,
                name,
                f"had {count} I/O errors; at io_error_limit bcache stops the device. See dmesg",
            )


_RULES: Final[tuple[Callable[[Facts], Iterator[Advice]], ...]] = (
    _scheduler,
    _rotational,
    _depth,
    _stacked,
    _no_cache,
    _cache_mode,
    _inconsistent,
    _full,
    congested,
    detector_off,
    _discard,
    _io_errors,
    *BCACHE_RULES,
    *DM_RULES,
    mq_settings,
)
