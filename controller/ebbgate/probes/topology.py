# SPDX-License-Identifier: GPL-2.0-only
"""Which cached volumes exist and what they are made of. I/O: sysfs, reads only."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from ebbgate import units
from ebbgate.errors import NotFound
from ebbgate.model.volume import Device, Kind, Volume
from ebbgate.probes.bcache_knobs import chosen
from ebbgate.sysfs import Sysfs

_CLASS_BLOCK = Path("/sys/class/block")
_BLOCK = Path("/sys/block")


def discover(sysfs: Sysfs) -> tuple[Volume, ...]:
    """Every volume that a cache driver composes, in the order of their numbers."""
    names = sorted((path.name for path in sysfs.glob("/sys/block/bcache*")), key=_natural)
    volumes = (_bcache_volume(sysfs, name) for name in names)
    return tuple(volume for volume in volumes if volume is not None)


def find(sysfs: Sysfs, name: str) -> Volume:
    """The volume of a name (`bcache0`) or a path (`/dev/bcache0`, `/dev/bcache/by-label/vm`).

    Raises NotFound: unknown device, an ordinary disk, or a device that is only a part of a volume.
    """
    known = discover(sysfs)
    wanted = _kernel_name(sysfs, name)
    for volume in known:
        if volume.name == wanted:
            return volume
    raise _why_not(sysfs, name, wanted, known)


def describe_device(sysfs: Sysfs, name: str) -> Device | None:
    """The block device (or partition) of that kernel name; None when it is gone."""
    here = _CLASS_BLOCK / name
    devno = _devno(sysfs, here)
    if devno is None:
        return None
    queue = _queue(sysfs, here)
    schedulers = sysfs.read_text(queue / "scheduler") or ""
    rotational = sysfs.read_text(queue / "rotational")
    return Device(
        name=name,
        devno=devno,
        size_bytes=units.sectors_to_bytes(sysfs.read_int(here / "size") or 0),
        rotational=None if rotational is None else rotational == "1",
        # A device without a choice prints `none` bare.
        scheduler=chosen(schedulers) or schedulers.strip() or None,
        schedulers=tuple(word.strip("[]") for word in schedulers.split()),
        nr_requests=sysfs.read_int(queue / "nr_requests"),
        queue_depth=sysfs.read_int(queue.parent / "device" / "queue_depth"),
    )


def physical_devices(sysfs: Sysfs, name: str) -> tuple[Device, ...]:
    """The disks at the bottom of a stack (md, LVM, dm-crypt); the device itself if it is a disk."""
    below = sysfs.glob(str(_CLASS_BLOCK / name / "slaves" / "*"))
    if not below:
        device = describe_device(sysfs, name)
        return (device,) if device else ()
    found = {device.name: device for path in below for device in physical_devices(sysfs, path.name)}
    return tuple(found.values())


def _bcache_volume(sysfs: Sysfs, name: str) -> Volume | None:
    """None for a flash-only volume (it has no backing device) and for one that is vanishing."""
    folder = sysfs.real(_BLOCK / name / "bcache")
    devno = _devno(sysfs, _BLOCK / name)
    backing = describe_device(sysfs, folder.parent.name) if folder else None
    if devno is None or backing is None or folder is None:
        return None
    cache_set = sysfs.real(folder / "cache")
    return Volume(
        name=name,
        kind=Kind.BCACHE,
        devno=devno,
        size_bytes=units.sectors_to_bytes(sysfs.read_int(_BLOCK / name / "size") or 0),
        backing=backing,
        caches=_cache_devices(sysfs, cache_set) if cache_set else (),
        set_uuid=cache_set.name if cache_set else "",
    )


def _cache_devices(sysfs: Sysfs, cache_set: Path) -> tuple[Device, ...]:
    ends = (sysfs.real(link) for link in sysfs.glob(str(cache_set / "cache[0-9]*")))
    found = (describe_device(sysfs, end.parent.name) for end in ends if end is not None)
    return tuple(device for device in found if device is not None)


def _queue(sysfs: Sysfs, here: Path) -> Path:
    """A partition has no queue of its own: its disk's is the folder above (after the link)."""
    if sysfs.exists(here / "queue"):
        return here / "queue"
    real = sysfs.real(here)
    return (real.parent if real else here) / "queue"


def _devno(sysfs: Sysfs, here: Path) -> tuple[int, int] | None:
    major, separator, minor = (sysfs.read_text(here / "dev") or "").partition(":")
    return (int(major), int(minor)) if separator else None


def _kernel_name(sysfs: Sysfs, name: str) -> str:
    """`/dev/...` of any alias to the name that sysfs has; other words are taken as they are."""
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
    names = ", ".join(volume.name for volume in known)
    volumes = f"cached volumes here: {names}" if names else "there is no cached volume here"
    for volume in known:
        if wanted == volume.backing.name:
            return NotFound(f"{wanted} is the backing device of {volume.name}", _use(volume))
        if wanted in {device.name for device in volume.caches}:
            return NotFound(f"{wanted} is a cache device of {volume.name}", _use(volume))
    if sysfs.exists(_CLASS_BLOCK / wanted):
        return NotFound(f"not cached: {wanted} is an ordinary block device", volumes)
    return NotFound(f"no such volume: {asked}", volumes)


def _use(volume: Volume) -> str:
    return f"name the volume that users mount: {volume.name}"


def _natural(name: str) -> tuple[str, int]:
    """bcache2 before bcache10."""
    match = re.fullmatch(r"(\D*)(\d*)", name)
    word, number = match.groups() if match else (name, "")
    return word, int(number or 0)
