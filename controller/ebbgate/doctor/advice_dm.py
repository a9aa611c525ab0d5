# SPDX-License-Identifier: GPL-2.0-only
"""Advice for volumes of device-mapper's caches. Pure. The numbers are listed in advice.py."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Final

from ebbgate.doctor import evidence
from ebbgate.doctor.finding import Advice, Change, Facts, Weight
from ebbgate.model.dm import CacheStatus, Health
from ebbgate.model.volume import Kind
from ebbgate.probes.dm_knobs import THRESHOLD
from ebbgate.probes.dm_status import table_setting, table_threshold_sectors
from ebbgate.units import bytes_to_sectors, format_bytes, sectors_to_bytes

METADATA_RATIO_MAX: Final = 0.8
# Four times stock, whose 2048 sectors let a first request wait for 100 ms on a disk of 8 ms a seek
# (blocks of 64 KiB, `make bench S=gap-drain-dmcache`).
THRESHOLD_SECTORS_MAX: Final = 8192
THRESHOLD_SECTORS_STOCK: Final = 2048
# lvm2 sets no less than so many blocks, whatever it is told (lvmcache(7)).
LVM_BLOCKS_MIN: Final = 8


def _status(facts: Facts) -> CacheStatus | None:
    return facts.state.dm if isinstance(facts.state.dm, CacheStatus) else None


def _lvm(facts: Facts) -> str:
    """LVM's name for its commands; empty for a bare stack."""
    return facts.volume.mapping.lvm_name if facts.volume.mapping else ""


def _health(facts: Facts) -> Iterator[Advice]:
    status = _status(facts)
    if status is None or status.health is Health.OK:
        return
    said = {
        Health.NEEDS_CHECK: "needs a check of its metadata before the kernel writes it again",
        Health.READ_ONLY: "can no longer write its metadata",
        Health.FAILED: "has failed: no I/O gets through",
    }[status.health]
    lvm = _lvm(facts)
    yield Advice(
        "EBB-301",
        Weight.FAULT,
        facts.volume.title,
        f"{said}; ebbgate sends it no message. See dmesg, and repair it while it is inactive",
        f"lvchange -an {lvm} && lvconvert --repair {lvm}" if lvm else "",
    )


def _metadata(facts: Facts) -> Iterator[Advice]:
    status = _status(facts)
    ratio = status.metadata_ratio if status else None
    if ratio is not None and ratio > METADATA_RATIO_MAX:
        lvm = _lvm(facts)
        yield Advice(
            "EBB-302",
            Weight.FAULT,
            facts.volume.title,
            f"has {ratio:.0%} of its metadata device in use; once it is full the cache turns "
            "read-only. Make the cache anew with more of it (lvm-scripts/README.md has the sum)",
            f"lvconvert --splitcache {lvm}" if lvm else "",
            effect="the cache goes on when it is full",
        )


def _passthrough(facts: Facts) -> Iterator[Advice]:
    if facts.volume.kind is Kind.DM_CACHE and facts.state.cache_mode == "passthrough":
        lvm = _lvm(facts)
        yield Advice(
            "EBB-303",
            Weight.ADVICE,
            facts.volume.title,
            "is in passthrough: everything goes to the disk, and writes throw away what is cached. "
            "The mode is meant for a copy that may be stale; leave it when it is not",
            f"lvchange --cachemode writethrough {lvm}" if lvm else "",
            effect="the cache serves reads again, and keeps what is written",
        )


def _reads(facts: Facts) -> Iterator[Advice]:
    if facts.volume.kind is Kind.DM_CACHE:
        yield Advice(
            "EBB-304",
            Weight.NOTE,
            facts.volume.title,
            "takes in what read streams touch (backups, scans), and stock dm-cache has nothing "
            "against it. If that pushes out what is hot: dm-writecache caches no reads, bcache has "
            "a cutoff for streams, and larger cache blocks promote less of a scan",
        )


def _threshold(facts: Facts) -> Iterator[Advice]:
    status = _status(facts)
    sectors = status.migration_threshold_sectors if status else None
    if status is None or sectors is None:
        return
    least = LVM_BLOCKS_MIN * bytes_to_sectors(status.block_bytes)
    if sectors <= max(THRESHOLD_SECTORS_MAX, least):
        return
    better = max(THRESHOLD_SECTORS_STOCK, least)
    argv = _threshold_argv(facts, better)
    yield Advice(
        "EBB-305",
        Weight.ADVICE,
        facts.volume.title,
        f"may have {format_bytes(sectors_to_bytes(sectors))} of destage under way when users "
        "return, and they wait for what the disk has taken of it",
        shlex.join(argv),
        evidence=evidence.destage(facts.live),
        effect=f"at most {format_bytes(sectors_to_bytes(better))} are under way at once",
        change=_threshold_change(facts, argv),
    )


def _threshold_argv(facts: Facts, sectors: int | str) -> tuple[str, ...]:
    """LVM's command; nothing for a bare stack."""
    lvm = _lvm(facts)
    setting = f"migration_threshold={sectors}"
    return ("lvchange", "--cachesettings", setting, lvm) if lvm else ()


def _threshold_change(facts: Facts, argv: tuple[str, ...]) -> Change | None:
    """Back to what the table says now; `default` has LVM forget the setting."""
    mapping = facts.volume.mapping
    if not argv or mapping is None:
        return None
    before = table_setting(mapping.params, THRESHOLD) or "default"
    return Change(argv=argv, undo_argv=_threshold_argv(facts, before))


def _fleeting(facts: Facts) -> Iterator[Advice]:
    status, mapping = _status(facts), facts.volume.mapping
    sectors = status.migration_threshold_sectors if status else None
    if sectors is None or mapping is None or THRESHOLD in facts.held:
        return
    if sectors == table_threshold_sectors(mapping.params):
        return
    argv = _threshold_argv(facts, sectors)
    yield Advice(
        "EBB-308",
        Weight.NOTE,
        facts.volume.title,
        f"has a migration_threshold of {sectors} sectors by message; the next activation, "
        "lvchange or lvextend loads the table's again. To keep it, tell LVM",
        shlex.join(argv),
        effect="the value outlives the next table; LVM loads one now, in a second or two",
        change=_threshold_change(facts, argv),
    )


def _writecache(facts: Facts) -> Iterator[Advice]:
    if facts.volume.kind is not Kind.DM_WRITECACHE:
        return
    lvm = _lvm(facts)
    yield Advice(
        "EBB-306",
        Weight.NOTE,
        facts.volume.title,
        "takes its settings with the table, so ebbgate tunes nothing here. To drain earlier, lower "
        "the watermarks (percent in use); to drain all now: ebbgate clean",
        f"lvchange --cachesettings 'high_watermark=30 low_watermark=10' {lvm}"
        if lvm
        else f"ebbgate clean {facts.volume.name}",
        effect="less is dirty at any time, and more is written to the disk",
    )


def _cleaner(facts: Facts) -> Iterator[Advice]:
    status = _status(facts)
    if status is not None and status.policy == "cleaner":
        lvm = _lvm(facts)
        yield Advice(
            "EBB-307",
            Weight.NOTE,
            facts.volume.title,
            "has the policy cleaner: it drains, and promotes nothing. After `ebbgate clean` the "
            "old policy comes back by itself",
            f"lvchange --refresh {lvm}" if lvm else "",
            effect="what is read often is promoted again",
        )


DM_RULES: Final[tuple[Callable[[Facts], Iterator[Advice]], ...]] = (
    _health,
    _metadata,
    _passthrough,
    _reads,
    _threshold,
    _fleeting,
    _writecache,
    _cleaner,
)
