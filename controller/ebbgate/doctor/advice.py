# SPDX-License-Identifier: GPL-2.0-only
"""Advice on a volume's devices and settings, with stable numbers. Pure.

A number never changes its meaning, so that people can search for it and refer to it:

EBB-101  a rotating backing device without an I/O scheduler
EBB-102  a backing device that reports that it does not rotate
EBB-103  a rotating backing device that takes many requests at once
EBB-104  a stacked backing device: advice applies to the disks below it
EBB-105  hard disks that could hold write-back back by themselves: bfq and a short queue in gaps
EBB-106  a hard disk whose queue somebody has left short
EBB-107  the volatile write cache of a hard disk is on
EBB-108  a policy with a short queue, on a disk that others use, too
EBB-109  a volume whose requests the probe cannot measure
EBB-110  dm-crypt below bcache, on a kernel where it loses the idle class of write-back
EBB-111  a cache on a drive that reports that it rotates
EBB-112  write throttling lets dm-cache write few blocks back at once
EBB-201  no cache attached
EBB-202  a cache mode without dirty data
EBB-203  the state `inconsistent`
EBB-204  the cache is (nearly) full
EBB-205  requests bypass the cache when the cache device is slow
EBB-206  the sequential detector is off
EBB-207  discard is on
EBB-208  I/O errors were counted
EBB-209  writeback_percent near the level at which writes are no longer cached
EBB-210  writeback_percent 0: no rate limit for write-back
EBB-211  writeback_percent so low that write-back hardly ever stops
EBB-212  a high minimum rate of write-back
EBB-213  a sequential_cutoff below the size of ordinary requests
EBB-214  congestion thresholds 0, which is right
EBB-301  dm-cache metadata that needs a check, cannot be written, or a cache that failed
EBB-302  a metadata device that is nearly full
EBB-303  a cache in passthrough
EBB-304  read streams cannot be kept out of dm-cache
EBB-305  a migration_threshold that lets write-back delay users
EBB-306  dm-writecache: what may be set, and by which command
EBB-307  the cleaner policy is loaded: nothing is promoted
EBB-308  a threshold set by message, which the next table load undoes
EBB-309  settings of the old policy mq, which have no effect
EBB-310  all disks below a dm volume are gone
EBB-401  something is kept for a volume that is not here

205, 206 and 209 to 214 are about settings from guides (advice_folklore.py). `ebbgate apply`
carries out, after asking, what sets knobs (`KNOB_CHANGES` in model.py), and 305 and 308 where LVM
can. The rest is left to the administrator: a disk's scheduler and depth affect everything on that
disk, and the cache mode decides what a dead SSD costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from ebbgate.doctor.advice_disks import depth, rotational, scheduler, slow_cache, stacked
from ebbgate.doctor.advice_dm import DM_RULES
from ebbgate.doctor.advice_drives import (
    encrypted,
    shallow,
    shared_disk,
    short_queue,
    throttled,
    write_cache,
)
from ebbgate.doctor.advice_folklore import (
    BCACHE_RULES,
    congested,
    detector_off,
    knob_advice,
)
from ebbgate.doctor.evidence import Evidence
from ebbgate.doctor.model import Advice, DiskKind, Facts, Weight, write_command
from ebbgate.doctor.remedy import forget_command
from ebbgate.knobs.catalog import PERCENT
from ebbgate.model.status import DaemonStatus
from ebbgate.model.volume import Kind
from ebbgate.signals.frame import NO_RECORD
from ebbgate.units import format_bytes

# Above 95 % in use the kernel caches nothing more (CUTOFF_CACHE_ADD, drivers/md/bcache/bcache.h).
IN_USE_MAX: Final = 0.95


def advise(facts: Facts) -> tuple[Advice, ...]:
    """Return all advice that applies, faults first, then by number."""
    found = [_named(advice, facts) for rule in RULES for advice in rule(facts)]
    order = list(Weight)
    return tuple(sorted(found, key=lambda advice: (order.index(advice.weight), advice.id)))


def _named(advice: Advice, facts: Facts) -> Advice:
    """Name the other volumes that an advice on a disk is for."""
    others = facts.drive(advice.about).users.volumes
    if not others:
        return advice
    return replace(advice, text=f"{advice.text} {advice.about} is below {', '.join(others)}, too.")


def without_repeats(found: Iterable[tuple[Advice, ...]]) -> list[tuple[Advice, ...]]:
    """Return the advice on several volumes; each device that they share has it once."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for advice in found:
        kept.append(tuple(each for each in advice if (each.id, each.about) not in seen))
        seen |= {(each.id, each.about) for each in advice}
    return kept


def _not_measured(facts: Facts) -> Iterator[Advice]:
    title, why = facts.volume.title, facts.status.missing.get("foreground", NO_RECORD)
    if why != NO_RECORD:
        yield Advice(
            "EBB-109",
            Weight.FAULT,
            title,
            f"The requests to {title} cannot be measured, so ebbgate does not tune it: {why}.",
        )


def _no_cache(facts: Facts) -> Iterator[Advice]:
    name = facts.volume.name
    if not facts.volume.cached:
        yield Advice(
            "EBB-201",
            Weight.FAULT,
            name,
            f"{name} has no cache attached, so it runs at the speed of its backing device. To"
            " attach one, put the UUID of a cache set into the command; `ls -d /sys/fs/bcache/*-*`"
            " lists the sets.",
            write_command("SET-UUID", f"/sys/block/{name}/bcache/attach"),
            lasts="It survives reboots: bcache writes it to the backing device.",
            undo=write_command(1, f"/sys/block/{name}/bcache/detach"),
            effect="data that is used often is read and written at the speed of the SSD",
        )


def _cache_mode(facts: Facts) -> Iterator[Advice]:
    mode, title = facts.state.cache_mode, facts.volume.title
    if not facts.volume.cached or mode in (None, "writeback", "passthrough"):
        return
    text = (
        "There is no dirty data to hold back or to write back, so ebbgate has nothing to tune here."
        " Writeback is faster, but until data is written back only the SSD has it. The choice is"
        " yours."
    )
    if facts.state.dirty_bytes:
        # It stays dirty when writeback is left (drivers/md/bcache/sysfs.c, cache_mode).
        text = (
            f"{format_bytes(facts.state.dirty_bytes)} from before are still dirty, so only the SSD"
            " has them: do not remove it. The kernel writes them back at its own pace; ebbgate has"
            " nothing to tune here."
        )
        if facts.volume.kind is Kind.BCACHE:
            text += f" At {PERCENT} above 0 it may keep up to that share of the cache dirty."
    yield Advice("EBB-202", Weight.NOTE, title, f"{title} is in {mode}. {text}")


def _inconsistent(facts: Facts) -> Iterator[Advice]:
    name = facts.volume.name
    if facts.state.state == "inconsistent":
        yield Advice(
            "EBB-203",
            Weight.FAULT,
            name,
            f"{name} is inconsistent: it was used without the cache that held its dirty data, so"
            " recent writes are missing. ebbgate leaves it alone. Check the file system, then"
            " set up the cache again.",
        )


def _full(facts: Facts) -> Iterator[Advice]:
    in_use = facts.state.in_use_ratio
    if facts.volume.kind is Kind.BCACHE and in_use is not None and in_use > IN_USE_MAX:
        advice = knob_advice(
            facts,
            "EBB-204",
            f"has {in_use:.0%} of its cache in use. Above {IN_USE_MAX:.0%} the kernel caches"
            " nothing more until it has collected garbage.",
            Evidence(f"{in_use:.0%} of the cache is in use", supports=True),
            "space with outdated data can be used again; writers may wait meanwhile",
        )
        yield replace(advice, lasts="It runs one garbage collection and changes no setting.")


def _discard(facts: Facts) -> Iterator[Advice]:
    # File systems' discards go to the backing device alone (check_should_bypass, request.c), so
    # fstrim never tells the SSD anything.
    for name in facts.discards:
        thin = (
            " Here the cache device is a virtual disk: keep discard on if its host needs the space"
            " back."
            if facts.kind(name) is DiskKind.VIRTUAL
            else ""
        )
        yield Advice(
            "EBB-207",
            Weight.NOTE,
            name,
            f"{name} has discard on: bcache discards each part of the cache before it reuses it,"
            " and writers may wait for that. fstrim does not replace it: discards of a file system"
            " go past the cache, so without this setting the SSD is never trimmed. The usual"
            " replacement is blank space: when you set up the cache, trim the whole SSD"
            f" (blkdiscard) and leave 10% to 20% of it without a partition.{thin}",
            write_command(0, f"/sys/class/block/{name}/bcache/discard"),
            lasts="It survives reboots: bcache writes it to the cache device.",
            undo=write_command(1, f"/sys/class/block/{name}/bcache/discard"),
            effect="writers no longer wait for discards; an SSD without blank space gets slower",
        )


def _io_errors(facts: Facts) -> Iterator[Advice]:
    for name, count in facts.io_errors.items():
        if count:
            yield Advice(
                "EBB-208",
                Weight.FAULT,
                name,
                f"{name} had {count} I/O errors. When the count reaches io_error_limit, bcache"
                " takes the device out of service. Read dmesg and check the device.",
            )


def _absent(daemon: DaemonStatus) -> Iterator[Advice]:
    for each in daemon.absent or ():
        uuid = f" (uuid {each.uuid})" if each.uuid else ""
        yield Advice(
            "EBB-401",
            Weight.NOTE,
            each.volume,
            f"For {each.volume}{uuid}, which is not here, something is kept: {each.kept_text}. It"
            f" is not applied: {each.why}. It is in force again once the volume is here. If the"
            " volume is gone for good, drop it.",
            f"sudo {forget_command(each)}",
            lasts="It survives reboots, and nothing undoes it.",
            effect="neither the log nor `ebbgate status` mentions the volume any more",
        )


def advise_on_daemon(daemon: DaemonStatus) -> tuple[Advice, ...]:
    """Return the advice on what the daemon has, which is of no volume that is here."""
    return tuple(advice for rule in DAEMON_RULES for advice in rule(daemon))


DAEMON_RULES: Final[tuple[Callable[[DaemonStatus], Iterator[Advice]], ...]] = (_absent,)
RULES: Final[tuple[Callable[[Facts], Iterator[Advice]], ...]] = (
    scheduler,
    rotational,
    slow_cache,
    depth,
    stacked,
    short_queue,
    throttled,
    shallow,
    write_cache,
    shared_disk,
    encrypted,
    _not_measured,
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
)
