# SPDX-License-Identifier: GPL-2.0-only
"""Reads what the kernel says of a volume: dirty level, room, health and knobs. I/O: reads only.

Each read of a bcache file takes bcache's global register lock for a moment (SHOW_LOCKED in
sysfs.c), so a registration elsewhere may delay one for seconds, as it does every write of a knob.
The files that walk the btree or sort buckets (`bset_tree_stats`, `priority_stats`) are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from ebbgate import units
from ebbgate.errors import Unavailable
from ebbgate.kernel.sysfs import BLOCK, CLASS_BLOCK, Sysfs
from ebbgate.knobs.catalog import THRESHOLD, knob_row
from ebbgate.knobs.knob import KnobPlace, ValueForm, parse_value
from ebbgate.knobs.places import dm_reference, knob_path, knobs_of, place_folder
from ebbgate.model.dm import CacheStatus, DmHealth, WritecacheStatus
from ebbgate.model.volume import DISKLESS, SUSPENDED, Kind, Volume, VolumeState
from ebbgate.probes.dm_status import BadLine, parse_cache_status, parse_writecache_status

_SECTORS_WRITTEN: Final = 6
"""A column of Documentation/block/stat.rst."""


def read_state(
    sysfs: Sysfs,
    volume: Volume,
    now_ns: int,
    previous: VolumeState | None = None,
    fresh: Collection[str] = (),
) -> VolumeState:
    """Return the volume's state; what is missing makes its field None.

    With `previous`, only what the load itself moves and the `fresh` knobs are read of a bcache
    volume (4 files instead of 25); the other knobs, cache mode and size are taken over. So a caller
    that ticks fast leaves `previous` out now and then. A dm volume is always read whole.
    """
    if volume.kind is Kind.BCACHE:
        found = _read_bcache(sysfs, volume, now_ns, previous, fresh)
    else:
        found = _read_dm(sysfs, volume, now_ns)
    if previous:
        written, has_cache = previous.cache_written_bytes, previous.disk_write_cache
    else:
        written = cache_written_bytes(sysfs, volume)
        has_cache = disk_write_cache(sysfs, volume)
    return replace(found, cache_written_bytes=written, disk_write_cache=has_cache)


def cache_written_bytes(sysfs: Sysfs, volume: Volume) -> int | None:
    """Return what was written to the devices of the cache since boot, as the kernel counts it.

    None where it does not count one of them.
    """
    devices = [*volume.caches, *([volume.metadata] if volume.metadata else [])]
    if not all(_is_counted(sysfs, device.name) for device in devices):
        return None
    texts = [sysfs.read_text(CLASS_BLOCK / device.name / "stat") or "" for device in devices]
    counts = [text.split()[_SECTORS_WRITTEN : _SECTORS_WRITTEN + 1] for text in texts]
    if not devices or not all(count and count[0].isdigit() for count in counts):
        return None
    return units.sectors_to_bytes(sum(int(count[0]) for count in counts))


def _is_counted(sysfs: Sysfs, name: str) -> bool:
    """Return whether the kernel counts requests to a device; where it does not, its counts stand
    still.
    """
    own = sysfs.real(CLASS_BLOCK / name)
    if own is None or name.startswith("dm-"):
        # Linux 6.1 counts those of device-mapper whatever the setting says, and has it off there.
        return True
    # A partition has the setting of its disk.
    texts = (sysfs.read_text(place / "queue/iostats") for place in (own, own.parent))
    return next((text for text in texts if text is not None), "1") != "0"


def disk_write_cache(sysfs: Sysfs, volume: Volume) -> bool:
    """Return whether a hard disk below has a volatile write cache, for all that the kernel knows.

    That of an SSD is empty again before it matters.
    """
    disks = (disk for disk in volume.disks if disk.rotational is not False)
    files = (BLOCK / disk.name / "queue/write_cache" for disk in disks)
    return any(sysfs.read_text(file) == "write back" for file in files)


# ---- bcache -------------------------------------------------------------------------------------
def _read_bcache(
    sysfs: Sysfs, volume: Volume, now_ns: int, previous: VolumeState | None, fresh: Collection[str]
) -> VolumeState:
    state, dirty, available = _level_files(volume)
    knobs = _refreshed(sysfs, volume, previous, fresh) if previous else read_knobs(sysfs, volume)
    return VolumeState(
        at_ns=now_ns,
        state=sysfs.read_text(state),
        cache_mode=knobs.get("cache_mode"),
        dirty_bytes=_size(sysfs, dirty),
        cache_bytes=previous.cache_bytes if previous else _cache_bytes(sysfs, volume),
        in_use_ratio=_in_use_ratio(sysfs, available),
        knobs=knobs,
    )


def read_knobs(sysfs: Sysfs, volume: Volume) -> Mapping[str, str]:
    """Return every knob in sysfs that this kernel has, in the unit in which the kernel takes it."""
    found: dict[str, str] = {}
    for name, form, path in _readable(volume):
        text = sysfs.read_text(path)
        if text is not None:
            found[name] = parse_value(form, text)
    return found


@lru_cache(maxsize=64)
def _readable(volume: Volume) -> tuple[tuple[str, ValueForm, str], ...]:
    """Name, form and file of every readable knob; building the paths costs more than the reads."""
    paths = [(knob, knob_path(volume, knob.name)) for knob in knobs_of(volume)]
    return tuple(
        (knob.name, knob.form, path)
        for knob, path in paths
        if path is not None and knob.readable and knob.place is not KnobPlace.MESSAGE
    )


def _refreshed(
    sysfs: Sysfs, volume: Volume, previous: VolumeState, fresh: Collection[str]
) -> Mapping[str, str]:
    found = dict(previous.knobs)
    for name, form, path in _readable(volume):
        if knob_row(name).kernel_writes or name in fresh:
            text = sysfs.read_text(path)
            if text is not None:
                found[name] = parse_value(form, text)
    return found


@lru_cache(maxsize=64)
def _level_files(volume: Volume) -> tuple[str, str, str | None]:
    """State, dirty data, and the available share of the cache (None while none is attached)."""
    own = place_folder(volume, KnobPlace.BACKING)
    cache_set = place_folder(volume, KnobPlace.CACHE_SET)
    available = f"{cache_set}/cache_available_percent" if cache_set else None
    return f"{own}/state", f"{own}/dirty_data", available


def _size(sysfs: Sysfs, path: str) -> int | None:
    text = sysfs.read_text(path)
    try:
        return None if text is None else max(0, units.parse_hprint(text))
    except ValueError:
        return None


def _cache_bytes(sysfs: Sysfs, volume: Volume) -> int | None:
    """Buckets times their size, as the kernel's target does it (writeback.c:__calc_target_rate)."""
    folder = place_folder(volume, KnobPlace.CACHE_SET)
    if folder is None:
        return None
    buckets = [sysfs.read_int(path) for path in sysfs.glob(f"{folder}/cache[0-9]*/nbuckets")]
    bucket_bytes = _size(sysfs, f"{folder}/bucket_size")
    if not buckets or bucket_bytes is None or None in buckets:
        return None
    return bucket_bytes * sum(count for count in buckets if count is not None)


def _in_use_ratio(sysfs: Sysfs, file: str | None) -> float | None:
    """The kernel compares `in_use` with its cutoffs and shows 100 minus it."""
    available = sysfs.read_int(file) if file else None
    return None if available is None else (100 - available) / 100


# ---- device-mapper ------------------------------------------------------------------------------
def _read_dm(sysfs: Sysfs, volume: Volume, now_ns: int) -> VolumeState:
    """All of it is None where the device is gone or its status line is odd.

    One ioctl for the status, which costs the same however much of it is wanted, and one for whether
    the device is suspended: then a status would wait for whoever resumes it.
    """
    nothing = VolumeState(now_ns, None, None, None, None, None, {})
    mapping = volume.mapping
    if mapping is None:
        return nothing
    ref = dm_reference(volume)
    try:
        if sysfs.dm.device(ref).suspended:
            return VolumeState(now_ns, SUSPENDED, None, None, None, None, {})
        (target,) = sysfs.dm.status(ref)
        if volume.kind is Kind.DM_CACHE:
            return _cache(sysfs, volume, now_ns, parse_cache_status(target.params))
        block_bytes = units.sectors_to_bytes(mapping.block_sectors)
        status = parse_writecache_status(target.params, block_bytes)
        return _writecache(volume, now_ns, status)
    except (OSError, Unavailable, BadLine, ValueError):
        return nothing


def _cache(sysfs: Sysfs, volume: Volume, now_ns: int, status: CacheStatus) -> VolumeState:
    if status.health is DmHealth.FAILED:
        return VolumeState(now_ns, str(status.health), None, None, None, None, {}, status)
    threshold = status.migration_threshold_sectors
    knobs = {} if threshold is None else {THRESHOLD: str(threshold)}
    knobs |= read_knobs(sysfs, volume)
    fault = "" if status.health is DmHealth.OK else str(status.health)
    return VolumeState(
        at_ns=now_ns,
        state=fault or _level_word(volume, status),
        cache_mode=status.cache_mode,
        dirty_bytes=status.dirty * status.block_bytes,
        cache_bytes=status.total * status.block_bytes,
        in_use_ratio=status.used / status.total if status.total else None,
        knobs=knobs,
        dm=status,
    )


def _level_word(volume: Volume, status: CacheStatus | WritecacheStatus) -> str:
    return DISKLESS if volume.diskless else "dirty" if status.dirty else "clean"


def _writecache(volume: Volume, now_ns: int, status: WritecacheStatus) -> VolumeState:
    return VolumeState(
        at_ns=now_ns,
        state=str(DmHealth.FAILED) if status.errors else _level_word(volume, status),
        cache_mode="writeback",
        dirty_bytes=status.dirty * status.block_bytes,
        cache_bytes=status.total * status.block_bytes,
        in_use_ratio=status.dirty / status.total if status.total else None,
        knobs={},
        dm=status,
    )
