# SPDX-License-Identifier: GPL-2.0-only
"""Finds the volumes of dm-cache and dm-writecache, LVM's and bare ones. I/O: reads only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ebbgate import units
from ebbgate.errors import Unavailable
from ebbgate.kernel.device_mapper import DeviceMapper, Target
from ebbgate.kernel.sysfs import CLASS_BLOCK, Sysfs
from ebbgate.model.dm import DmMapping
from ebbgate.model.volume import Device, Kind, Volume
from ebbgate.probes.block import describe_device, disks_below, multipath_below
from ebbgate.probes.dm_status import BadLine, lvm_name, parse_cache_table, parse_writecache_table

_KINDS = {"cache": Kind.DM_CACHE, "writecache": Kind.DM_WRITECACHE}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9+_.:-]{1,60}")


def dm_volumes(sysfs: Sysfs) -> Iterator[Volume]:
    """Yield every live volume with one target `cache` or `writecache`; none without rights."""
    dm = sysfs.dm
    if not dm.present():
        return
    try:
        names = dm.names()
    except (OSError, Unavailable):
        return
    for name in names:
        try:
            volume = _volume(sysfs, dm, name)
        except (OSError, BadLine):
            # Gone, or not complete yet: the next discovery finds it.
            continue
        if volume is not None:
            yield volume


def _volume(sysfs: Sysfs, dm: DeviceMapper, name: str) -> Volume | None:
    table = dm.table(name)
    if len(table) != 1 or table[0].kind not in _KINDS:
        return None
    device = dm.device(name)
    own = _describe(sysfs, f"{device.devno[0]}:{device.devno[1]}")
    kind = _KINDS[table[0].kind]
    parts = _cache_parts if kind is Kind.DM_CACHE else _writecache_parts
    origin, cache, metadata, block_sectors = parts(sysfs, table[0])
    if own is None or origin is None or cache is None:
        return None
    disks = disks_below(sysfs, origin.name)
    mapping = DmMapping(
        dm_name=name,
        uuid=device.uuid,
        lvm_name=lvm_name(name, device.uuid),
        target=table[0].kind,
        params=table[0].params,
        length_sectors=table[0].length_sectors,
        block_sectors=block_sectors,
    )
    return Volume(
        name=_name(sysfs, name, own.name),
        kind=kind,
        devno=device.devno,
        size_bytes=own.size_bytes,
        backing=origin,
        caches=(cache,),
        set_uuid="",
        sys_name=own.name,
        mapping=mapping,
        metadata=metadata,
        disks=disks,
        multipath=multipath_below(sysfs, origin),
        # A disk that goes stays in `slaves` while device-mapper holds it, and leads nowhere.
        diskless=not disks,
    )


def _name(sysfs: Sysfs, dm_name: str, kernel_name: str) -> str:
    """Return the name of device-mapper, or the kernel's.

    The probe accepts plain names only, and one that is the kernel's name of another device
    (`bcache0`, `dm-3` of a group `dm`) would stand for both.
    """
    if not _PLAIN_NAME.fullmatch(dm_name):
        return kernel_name
    return kernel_name if sysfs.exists(CLASS_BLOCK / dm_name) else dm_name


_Parts = tuple[Device | None, Device | None, Device | None, int]


def _cache_parts(sysfs: Sysfs, target: Target) -> _Parts:
    table = parse_cache_table(target.params)
    devices = (_describe(sysfs, devno) for devno in (table.origin, table.cache, table.metadata))
    return (*devices, table.block_sectors)  # type: ignore[return-value]


def _writecache_parts(sysfs: Sysfs, target: Target) -> _Parts:
    origin, cache, block_bytes = parse_writecache_table(target.params)
    sectors = units.bytes_to_sectors(block_bytes)
    return _describe(sysfs, origin), _describe(sysfs, cache), None, sectors


def _describe(sysfs: Sysfs, devno: str) -> Device | None:
    """Return the device of a number (`253:1`)."""
    real = sysfs.real(Path("/sys/dev/block") / devno)
    return describe_device(sysfs, real.name) if real else None
