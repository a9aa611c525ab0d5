# SPDX-License-Identifier: GPL-2.0-only
"""Finds cached volumes and their devices. I/O: sysfs, device-mapper; reads only."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from ebbgate import units
from ebbgate.errors import NotFound
from ebbgate.kernel.sysfs import BLOCK, CLASS_BLOCK, Sysfs
from ebbgate.model.volume import Device, Kind, Volume
from ebbgate.probes.block import describe_device, devno_of, disks_below, multipath_below
from ebbgate.probes.dm_topology import dm_volumes

_NAME_MAX: Final = 255
"""Longer names are of no file."""


def discover(sysfs: Sysfs) -> tuple[Volume, ...]:
    """Return every cached volume: bcache's by number, then dm volumes by name."""
    names = sorted((path.name for path in sysfs.glob(f"{BLOCK}/bcache*")), key=_natural)
    volumes = (_bcache_volume(sysfs, name) for name in names)
    dm = sorted(dm_volumes(sysfs), key=lambda volume: _natural(volume.name))
    return (*(volume for volume in volumes if volume is not None), *dm)


def device_generation(sysfs: Sysfs, volume: Volume) -> tuple[int | None, ...]:
    """Return a value that changes when the kernel creates the volume or its cache set again.

    A volume that was stopped and registered again differs in nothing else, but has its defaults.
    """
    own = BLOCK / volume.kernel_name
    if volume.kind is not Kind.BCACHE:
        return (sysfs.inode(own),)
    cache_set = Path("/sys/fs/bcache") / volume.set_uuid
    return (sysfs.inode(own / "bcache"), sysfs.inode(cache_set))


def find(sysfs: Sysfs, name: str) -> Volume:
    """Return the volume of a name (`bcache0`, `vg/data`, `dm-3`) or a path (`/dev/bcache0`,
    `/dev/vg/data`, `/dev/bcache/by-label/vm`).

    Raises NotFound: unknown device, an ordinary disk, or a device that is only a part of a volume.
    """
    known = discover(sysfs)
    wanted = _kernel_name(sysfs, name)
    for volume in known:
        if volume.is_called(wanted):
            return volume
    raise _why_not(sysfs, name, wanted, known)


def _bcache_volume(sysfs: Sysfs, name: str) -> Volume | None:
    """None for a flash-only volume (it has no backing device) and for one that is vanishing.

    The folder `bcache` of a volume leads to its backing device, that of a flash-only one is its own
    (super.c, bch_cached_dev_run and flash_dev_run).
    """
    folder = sysfs.real(BLOCK / name / "bcache")
    if folder is not None and folder.parent.name == name:
        return None
    devno = devno_of(sysfs, BLOCK / name)
    backing = describe_device(sysfs, folder.parent.name) if folder else None
    if devno is None or backing is None or folder is None:
        return None
    cache_set = sysfs.real(folder / "cache")
    return Volume(
        name=name,
        kind=Kind.BCACHE,
        devno=devno,
        size_bytes=units.sectors_to_bytes(sysfs.read_int(BLOCK / name / "size") or 0),
        backing=backing,
        caches=_cache_devices(sysfs, cache_set) if cache_set else (),
        set_uuid=cache_set.name if cache_set else "",
        disks=disks_below(sysfs, backing.name),
        backing_uuid=sysfs.read_text(folder / "backing_dev_uuid") or "",
        multipath=multipath_below(sysfs, backing),
    )


def _cache_devices(sysfs: Sysfs, cache_set: Path) -> tuple[Device, ...]:
    ends = (sysfs.real(link) for link in sysfs.glob(str(cache_set / "cache[0-9]*")))
    found = (describe_device(sysfs, end.parent.name) for end in ends if end is not None)
    return tuple(device for device in found if device is not None)


def _kernel_name(sysfs: Sysfs, name: str) -> str:
    """Return the name in sysfs of any `/dev/...` alias; other words stay as they are."""
    if not name.startswith("/"):
        return name
    try:
        status = Path(name).stat()
    except OSError:
        return Path(name).name
    if not stat.S_ISBLK(status.st_mode):
        return Path(name).name
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    real = sysfs.real(Path("/sys/dev/block") / number)
    return real.name if real else Path(name).name


def _why_not(sysfs: Sysfs, asked: str, wanted: str, known: tuple[Volume, ...]) -> NotFound:
    names = ", ".join(volume.title for volume in known)
    volumes = f"cached volumes here: {names}" if names else "there is no cached volume here"
    for volume in known:
        if wanted == volume.backing.name:
            return NotFound(f"{wanted} is the backing device of {volume.title}", _use(volume))
        if wanted in {device.name for device in volume.caches}:
            return NotFound(f"{wanted} is a cache device of {volume.title}", _use(volume))
        if volume.metadata and wanted == volume.metadata.name:
            return NotFound(f"{wanted} is the metadata device of {volume.title}", _use(volume))
    # Neither `` nor `..` is a device, though both are folders there.
    if len(wanted) <= _NAME_MAX and devno_of(sysfs, CLASS_BLOCK / wanted) is not None:
        return NotFound(f"not cached: {wanted} is an ordinary block device", volumes)
    return NotFound(f"no such volume: {asked}", volumes)


def _use(volume: Volume) -> str:
    return f"name the volume that users mount: {volume.title}"


def _natural(name: str) -> tuple[str, int]:
    """bcache2 before bcache10."""
    match = re.fullmatch(r"(\D*)(\d*)", name)
    word, number = match.groups() if match else (name, "")
    return word, int(number or 0)
