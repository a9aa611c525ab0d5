# SPDX-License-Identifier: GPL-2.0-only
"""Advice for dm-cache and dm-writecache volumes. Pure. The numbers are listed in advice.py."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from ebbgate.doctor import evidence
from ebbgate.doctor.model import LASTS_LVM, Advice, Change, Facts, Weight
from ebbgate.knobs.catalog import THRESHOLD
from ebbgate.model.dm import CLEANER, CacheStatus, DmHealth
from ebbgate.model.volume import Kind
from ebbgate.probes.dm_status import (
    BadLine,
    old_settings,
    table_mode,
    table_setting,
    table_threshold_sectors,
    writecache_percent,
)
from ebbgate.units import bytes_to_sectors, format_bytes, sectors_to_bytes

METADATA_RATIO_MAX: Final = 0.8
# Four times stock, whose 2048 sectors let a first request wait for 100 ms on a disk of 8 ms a seek
# (blocks of 64 KiB, `make bench S=gap-drain-dmcache`).
THRESHOLD_SECTORS_MAX: Final = 8192
THRESHOLD_SECTORS_STOCK: Final = 2048
# The lowest value that lvm2 sets, in blocks (lvmcache(7)).
LVM_BLOCKS_MIN: Final = 8
# Each with the kernel's default and a lower value, in percent (dm-writecache.c).
_WATERMARKS: Final = (("high_watermark", 50, 30), ("low_watermark", 45, 10))
_LASTS_TABLE: Final = (
    "Until the next boot or table reload. To keep it, put it into the table that you load."
)


def _status(facts: Facts) -> CacheStatus | None:
    return facts.state.dm if isinstance(facts.state.dm, CacheStatus) else None


def _lvm(facts: Facts) -> str:
    """Return the name that LVM commands take; empty for a bare stack."""
    return facts.volume.mapping.lvm_name if facts.volume.mapping else ""


def _by_lvm(facts: Facts, advice: Advice) -> Advice:
    """Complete the LVM commands with `sudo` and the volume; a bare stack gets no command."""
    lvm = _lvm(facts)
    if not lvm:
        return replace(advice, command="", lasts="", undo="", effect="")
    undo = f"sudo {advice.undo} {lvm}" if advice.undo else ""
    return replace(advice, command=f"sudo {advice.command} {lvm}", undo=undo)


def _health(facts: Facts) -> Iterator[Advice]:
    status, title = _status(facts), facts.volume.title
    if status is None or status.health is DmHealth.OK:
        return
    fault = {
        DmHealth.NEEDS_CHECK: "needs a check of its metadata before the kernel writes it again",
        DmHealth.READ_ONLY: "can no longer write its metadata",
        DmHealth.FAILED: "has failed: all I/O to it fails",
    }[status.health]
    repair, command = _repair(facts)
    yield Advice(
        "EBB-301",
        Weight.FAULT,
        title,
        f"The cache of {title} {fault}. ebbgate changes nothing on it. Read dmesg first. {repair}",
        command,
        lasts="It survives reboots: LVM keeps it in its metadata." if command else "",
        effect="the volume can be used again" if command else "",
    )


def _diskless(facts: Facts) -> Iterator[Advice]:
    """EBB-310: all disks below the backing device are gone, and device-mapper keeps the volume."""
    title, dirty_bytes = facts.volume.title, facts.state.dirty_bytes
    if not facts.volume.diskless:
        return
    only = ""
    if dirty_bytes:
        only = f" Only the cache has {format_bytes(dirty_bytes)} of dirty data: do not remove it."
    lvm = _lvm(facts)
    again = f" (lvchange -an {lvm}; lvchange -ay {lvm})" if lvm else ""
    yield Advice(
        "EBB-310",
        Weight.FAULT,
        title,
        f"No disk is left below {title}: what is not in the cache can neither be read nor written,"
        f" and the kernel tries in vain to write back.{only} Read dmesg. Unmount it; once the disk"
        f" is back, under whatever name, take the volume out of use and into use again{again}.",
    )


def _repair(facts: Facts) -> tuple[str, str]:
    """Return advice and a command: LVM can repair only the metadata of a cache pool.

    lvm2: "repairing a damaged cachevol is not yet possible".
    """
    lvm = _lvm(facts)
    mode = _table_mode(facts)
    unmount = (
        f"Unmount it, so that it can be deactivated (lvchange -an {lvm}); after the command it is"
        f" still inactive (lvchange -ay {lvm})."
    )
    if not lvm:
        return "Check the metadata while the volume is down (cache_check, cache_repair).", ""
    if mode in ("writethrough", "passthrough"):
        text = f"In {mode} the disk has all data, so the cache can be dropped. {unmount}"
        return text, f"sudo lvchange -an {lvm} && sudo lvconvert --uncache {lvm}"
    if facts.cachevol is False:
        text = f"Its metadata is an LV of its own (cache pool), which LVM can repair. {unmount}"
        return text, f"sudo lvchange -an {lvm} && sudo lvconvert --repair {lvm}"
    which = (
        "Its cache is a cachevol, which LVM cannot repair"
        if facts.cachevol
        else "LVM cannot repair it if its cache is a cachevol (`lvs -a` shows _cvol)"
    )
    text = (
        f"{which}, and in writeback only the cache has the dirty data: do not remove the cache."
        " Deactivate the volume, copy the cache LV and the disk, and work on the copy of its"
        " metadata with cache_check and cache_repair, or restore from a backup."
    )
    return text, ""


def _table_mode(facts: Facts) -> str | None:
    """Return the cache mode from the table: the status line of a failed cache does not have it."""
    try:
        return table_mode(facts.volume.mapping.params) if facts.volume.mapping else None
    except BadLine:
        return None


def _metadata(facts: Facts) -> Iterator[Advice]:
    status = _status(facts)
    ratio = status.metadata_ratio if status else None
    if ratio is not None and ratio > METADATA_RATIO_MAX:
        advice = Advice(
            "EBB-302",
            Weight.FAULT,
            facts.volume.title,
            f"The metadata of {facts.volume.title} is {ratio:.0%} full. Once it is full, the cache"
            " becomes read-only. Detach the cache and set it up again with more metadata"
            " (lvm-scripts/README.md says how much); detaching first writes all dirty data back.",
            "lvconvert --splitcache",
            lasts="It survives reboots: the volume has no cache until you attach one.",
            evidence=f"{ratio:.0%} of the metadata is in use",
            effect="the cache does not become read-only",
        )
        yield _by_lvm(facts, advice)


def _passthrough(facts: Facts) -> Iterator[Advice]:
    if facts.volume.kind is Kind.DM_CACHE and facts.state.cache_mode == "passthrough":
        advice = Advice(
            "EBB-303",
            Weight.ADVICE,
            facts.volume.title,
            f"{facts.volume.title} is in passthrough: all reads and writes go to the disk, and a"
            " write removes its block from the cache. The mode is for a cache whose content may be"
            " out of date; leave it if yours is not.",
            "lvchange --cachemode writethrough",
            lasts=LASTS_LVM,
            undo="lvchange --cachemode passthrough",
            effect="the cache serves reads again and keeps what is written",
        )
        yield _by_lvm(facts, advice)


def _reads(facts: Facts) -> Iterator[Advice]:
    if facts.volume.kind is Kind.DM_CACHE:
        title = facts.volume.title
        yield Advice(
            "EBB-304",
            Weight.NOTE,
            title,
            f"Streams that read from {title} (backups, scans) can enter its cache; stock dm-cache"
            " has no setting against it. If that pushes out what is used often: dm-writecache"
            " caches no reads, bcache has a cutoff for streams, and larger cache blocks take in"
            " less of a scan.",
        )


def _threshold(facts: Facts) -> Iterator[Advice]:
    status = _status(facts)
    sectors = status.migration_threshold_sectors if status else None
    # One that ebbgate has set is that of a gap.
    if status is None or sectors is None or THRESHOLD in facts.owned:
        return
    least = LVM_BLOCKS_MIN * bytes_to_sectors(status.block_bytes)
    if sectors <= max(THRESHOLD_SECTORS_MAX, least):
        return
    better = max(THRESHOLD_SECTORS_STOCK, least)
    argv = _threshold_argv(facts, better)
    measured, title = evidence.destage(facts.status), facts.volume.title
    several = (
        " The limit was measured with one disk; several disks are faster, so try and compare."
        if facts.several_disks
        else ""
    )
    yield Advice(
        "EBB-305",
        Weight.NOTE if facts.several_disks else measured.weight,
        title,
        f"{title} may have {format_bytes(sectors_to_bytes(sectors))} of write-back under way when"
        f" users return; they wait for the part that the disk has already taken.{several}",
        _threshold_command(facts, better),
        lasts=LASTS_LVM if argv else _LASTS_TABLE,
        undo="" if argv else _threshold_command(facts, sectors),
        evidence=measured.text,
        effect=f"at most {format_bytes(sectors_to_bytes(better))} are under way at once",
        change=_threshold_change(facts, argv),
    )


def _threshold_argv(facts: Facts, sectors: int | str) -> tuple[str, ...]:
    """Return LVM's command; empty for a bare stack."""
    lvm = _lvm(facts)
    setting = f"migration_threshold={sectors}"
    return ("lvchange", "--cachesettings", setting, lvm) if lvm else ()


def _threshold_command(facts: Facts, sectors: int) -> str:
    """Return the command to run by hand: LVM's, or a message to a bare stack."""
    argv = _threshold_argv(facts, sectors)
    if not argv and facts.volume.mapping is not None:
        name = facts.volume.mapping.dm_name
        argv = ("dmsetup", "message", name, "0", THRESHOLD, str(sectors))
    return shlex.join(("sudo", *argv)) if argv else ""


def _threshold_change(facts: Facts, argv: tuple[str, ...]) -> Change | None:
    """Return the change and its undo: the value in the table, or `default`, which removes it."""
    mapping = facts.volume.mapping
    if not argv or mapping is None:
        return None
    before = table_setting(mapping.params, THRESHOLD) or "default"
    return Change(argv=argv, undo_argv=_threshold_argv(facts, before))


def _set_by_message(facts: Facts) -> Iterator[Advice]:
    status, mapping = _status(facts), facts.volume.mapping
    sectors = status.migration_threshold_sectors if status else None
    if status is None or sectors is None or mapping is None or THRESHOLD in facts.owned:
        return
    if sectors == table_threshold_sectors(mapping.params):
        return
    title, least = facts.volume.title, LVM_BLOCKS_MIN * bytes_to_sectors(status.block_bytes)
    argv = _threshold_argv(facts, sectors) if sectors >= least else ()
    if argv:
        keep = "To keep yours, set it in LVM."
    elif _lvm(facts):
        keep = f"LVM cannot keep yours: it sets at least {LVM_BLOCKS_MIN} blocks, {least} sectors."
    else:
        keep = "To keep yours, put it into the table."
    yield Advice(
        "EBB-308",
        Weight.NOTE,
        title,
        f"{title} has a migration_threshold of {sectors} sectors that was set by a message. The"
        f" next activation, lvchange or lvextend brings the table's value back. {keep}",
        shlex.join(("sudo", *argv)) if argv else "",
        lasts=LASTS_LVM if argv else "",
        effect="the value stays; LVM reloads the table now, which takes a second or two"
        if argv
        else "",
        change=_threshold_change(facts, argv),
    )


def _writecache(facts: Facts) -> Iterator[Advice]:
    if facts.volume.kind is not Kind.DM_WRITECACHE:
        return
    title, (command, undo) = facts.volume.title, _watermarks_commands(facts)
    lower = (
        "lower the watermarks (percent of the cache in use)"
        if command or not _lvm(facts)
        else "lower the watermarks further, which are low already"
    )
    clean = shlex.join(("sudo", "ebbgate", "clean", title))
    yield Advice(
        "EBB-306",
        Weight.NOTE,
        title,
        f"{title} gets its settings when its table is loaded, so ebbgate tunes nothing here. To"
        f" write back earlier, {lower}; to write all dirty data back now, use ebbgate clean.",
        command or clean,
        lasts=LASTS_LVM if command else "It writes back once and changes no setting.",
        undo=undo,
        effect="less is dirty at any time, and more is written to the disk",
    )


def _watermarks_commands(facts: Facts) -> tuple[str, str]:
    """Return LVM's command that lowers the watermarks, and the one that undoes it; both are empty
    where it would raise one.
    """
    lvm, mapping = _lvm(facts), facts.volume.mapping
    params = mapping.params if mapping else ""
    before = [writecache_percent(params, name, default) for name, default, _ in _WATERMARKS]
    lower = [percent for _, _, percent in _WATERMARKS]
    if not lvm or any(had <= low for had, low in zip(before, lower, strict=True)):
        return "", ""
    return _watermarks_command(lvm, lower), _watermarks_command(lvm, before)


def _watermarks_command(lvm: str, percents: Sequence[int]) -> str:
    pairs = zip(_WATERMARKS, percents, strict=True)
    settings = " ".join(f"{row[0]}={percent}" for row, percent in pairs)
    return f"sudo lvchange --cachesettings '{settings}' {lvm}"


def _cleaner(facts: Facts) -> Iterator[Advice]:
    status, lvm = _status(facts), _lvm(facts)
    if status is not None and status.policy == CLEANER:
        advice = Advice(
            "EBB-307",
            Weight.NOTE,
            facts.volume.title,
            f"{facts.volume.title} has the policy cleaner: it writes dirty data back and caches"
            " nothing new. After `ebbgate clean` the old policy is restored automatically."
            + (
                " If it is also the one that LVM has (lvs -o cache_policy), the command loads it"
                f" again: first run lvchange --cachepolicy smq {lvm}."
                if lvm
                else ""
            ),
            "lvchange --refresh",
            lasts="It loads the table that LVM has, which is also what the next boot loads.",
            effect="what is read often is cached again",
        )
        yield _by_lvm(facts, advice)


def _mq_settings(facts: Facts) -> Iterator[Advice]:
    """EBB-309: settings of the old policy mq."""
    mapping = facts.volume.mapping
    if facts.volume.kind is not Kind.DM_CACHE or mapping is None:
        return
    found = old_settings(mapping.params)
    if found:
        defaults = " ".join(f"{name}=default" for name in found)
        before = " ".join(f"{name}={table_setting(mapping.params, name)}" for name in found)
        advice = Advice(
            "EBB-309",
            Weight.NOTE,
            facts.volume.title,
            f"{facts.volume.title} has {', '.join(found)} in its table. These are settings of the"
            " old policy mq, which the kernel accepts and ignores: they do not keep streams out of"
            " the cache.",
            f"lvchange --cachesettings '{defaults}'",
            lasts=LASTS_LVM,
            undo=f"lvchange --cachesettings '{before}'",
            effect="none on the speed; the table then shows only what has an effect",
        )
        yield _by_lvm(facts, advice)


DM_RULES: Final[tuple[Callable[[Facts], Iterator[Advice]], ...]] = (
    _health,
    _diskless,
    _metadata,
    _passthrough,
    _reads,
    _threshold,
    _set_by_message,
    _writecache,
    _cleaner,
    _mq_settings,
)
