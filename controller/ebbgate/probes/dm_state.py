# SPDX-License-Identifier: GPL-2.0-only
"""What device-mapper says of a mapped volume: dirty level, health, settings. I/O: reads only."""

from __future__ import annotations

from ebbgate.errors import Unavailable
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.catalog import MAX_SECTORS, THRESHOLD, dm_reference, knob_path
from ebbgate.model.dm import CacheStatus, DmHealth, WritecacheStatus
from ebbgate.model.volume import Kind, Volume, VolumeState
from ebbgate.probes.dm_status import BadLine, parse_cache_status, parse_writecache_status
from ebbgate.units import sectors_to_bytes

SUSPENDED = "suspended"


def read_mapped_state(sysfs: Sysfs, volume: Volume, now_ns: int) -> VolumeState:
    """The volume's state; all of it is None where the device is gone or its line is odd.

    One ioctl for the status, which costs the same however much of it is wanted, and one for
    whether the device is suspended: then a status would wait for whoever resumes it.
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
        block_bytes = sectors_to_bytes(mapping.block_sectors)
        return _writecache(now_ns, parse_writecache_status(target.params, block_bytes))
    except (OSError, Unavailable, BadLine, ValueError):
        return nothing


def _cache(sysfs: Sysfs, volume: Volume, now_ns: int, status: CacheStatus) -> VolumeState:
    if status.health is DmHealth.FAILED:
        return VolumeState(now_ns, str(status.health), None, None, None, None, {}, status)
    knobs = {}
    if status.migration_threshold_sectors is not None:
        knobs[THRESHOLD] = str(status.migration_threshold_sectors)
    path = knob_path(volume, MAX_SECTORS)
    longest = sysfs.read_text(path) if path else None
    if longest is not None:
        knobs[MAX_SECTORS] = longest
    ill = "" if status.health is DmHealth.OK else str(status.health)
    return VolumeState(
        at_ns=now_ns,
        state=ill or ("dirty" if status.dirty else "clean"),
        cache_mode=status.cache_mode,
        dirty_bytes=status.dirty * status.block_bytes,
        cache_bytes=status.total * status.block_bytes,
        in_use_ratio=status.used / status.total if status.total else None,
        knobs=knobs,
        dm=status,
    )


def _writecache(now_ns: int, status: WritecacheStatus) -> VolumeState:
    return VolumeState(
        at_ns=now_ns,
        state=str(DmHealth.FAILED) if status.errors else "dirty" if status.dirty else "clean",
        cache_mode="writeback",
        dirty_bytes=status.dirty * status.block_bytes,
        cache_bytes=status.total * status.block_bytes,
        in_use_ratio=status.dirty / status.total if status.total else None,
        knobs={},
        dm=status,
    )
