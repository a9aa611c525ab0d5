# SPDX-License-Identifier: GPL-2.0-only
"""Describes block devices. I/O: sysfs, reads only."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Final

from ebbgate import units
from ebbgate.kernel.sysfs import BLOCK, CLASS_BLOCK, Sysfs
from ebbgate.knobs.knob import chosen_word
from ebbgate.model.volume import Device, Volume

_MULTIPATH: Final = "mpath-"
"""The uuid of a device of multipathd; those of its partitions begin with `part`."""


def describe_device(sysfs: Sysfs, name: str) -> Device | None:
    """Return the block device (or partition) of a kernel name; None when it is gone."""
    here = CLASS_BLOCK / name
    devno = devno_of(sysfs, here)
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
        scheduler=chosen_word(schedulers) or schedulers.strip() or None,
        schedulers=tuple(word.strip("[]") for word in schedulers.split()),
        nr_requests=sysfs.read_int(queue / "nr_requests"),
        queue_depth=sysfs.read_int(queue.parent / "device" / "queue_depth"),
        max_sectors_kb=sysfs.read_int(queue / "max_sectors_kb"),
        wbt_lat_usec=sysfs.read_int(queue / "wbt_lat_usec"),
    )


def physical_devices(sysfs: Sysfs, name: str) -> tuple[Device, ...]:
    """Return the disks under a stack (md, LVM, dm-crypt); the device itself if it is a disk, or a
    partition of one.
    """
    # A partition of an array has no `slaves`.
    below = sysfs.glob(str(CLASS_BLOCK / whole_disk(sysfs, name) / "slaves" / "*"))
    if not below:
        device = describe_device(sysfs, name)
        return (device,) if device else ()
    found = {device.name: device for path in below for device in physical_devices(sysfs, path.name)}
    return tuple(found.values())


def cached_volumes_below(
    sysfs: Sysfs, devno: tuple[int, int], known: Mapping[tuple[int, int], str]
) -> tuple[str, ...]:
    """Return which known volumes a device is, or lies on: by partition, LVM, dm-crypt, md."""
    found = set[str]()
    for name in stack_below(sysfs, devno, known):
        number = devno_of(sysfs, CLASS_BLOCK / name)
        if number is not None and number in known:
            found.add(known[number])
    return tuple(sorted(found))


def loops_below(sysfs: Sysfs, devno: tuple[int, int]) -> dict[str, str]:
    """Return the loop devices that a device is, or lies on, each with the path of its file."""
    found = dict[str, str]()
    for name in stack_below(sysfs, devno):
        file = sysfs.read_text(CLASS_BLOCK / name / "loop/backing_file")
        if file is not None:
            found[name] = file
    return found


def stack_below(
    sysfs: Sysfs, devno: tuple[int, int], ends: Container[object] = ()
) -> Iterator[str]:
    """Yield a device and all below it; what is below those with a number of `ends` is left out."""
    real = sysfs.real(f"/sys/dev/block/{devno[0]}:{devno[1]}")
    names = [] if real is None else [real.name]
    while names:
        name = whole_disk(sysfs, names.pop())
        yield name
        if devno_of(sysfs, CLASS_BLOCK / name) not in ends:
            names += [path.name for path in sysfs.glob(str(CLASS_BLOCK / name / "slaves" / "*"))]


def volume_uuid(sysfs: Sysfs, volume: Volume) -> str:
    """Return what names a volume whatever cache it has; empty where its maker gave it nothing.

    Of a bcache volume it is in the superblock of the backing device, of a dm volume LVM's.
    """
    here = BLOCK / volume.kernel_name
    found = sysfs.read_text(here / "bcache/backing_dev_uuid") or sysfs.read_text(here / "dm/uuid")
    return found or ""


def disks_below(sysfs: Sysfs, name: str) -> tuple[Device, ...]:
    """Return the whole disks under a device, by name."""
    names = {whole_disk(sysfs, device.name) for device in physical_devices(sysfs, name)}
    found = (describe_device(sysfs, each) for each in sorted(names))
    return tuple(device for device in found if device is not None)


def multipath_below(sysfs: Sysfs, below: Device) -> tuple[tuple[str, Device], ...]:
    """Return each path of a multipath device whose queue serves in its place, and that device.

    It sends whole requests: the scheduler of a path never sees them, and a path refuses those that
    are longer than its own `max_sectors_kb` (block/blk-mq.c, blk_insert_cloned_request).
    """
    found: dict[str, Device] = {}
    for name in stack_below(sysfs, below.devno):
        here = CLASS_BLOCK / name
        if not (sysfs.read_text(here / "dm/uuid") or "").startswith(_MULTIPATH):
            continue
        device = describe_device(sysfs, name)
        # One that sends bios (`queue_mode bio`) has no scheduler to choose.
        if device is not None and len(device.schedulers) > 1:
            paths = sysfs.glob(str(here / "slaves" / "*"))
            found |= {whole_disk(sysfs, path.name): device for path in paths}
    return tuple(sorted(found.items()))


def whole_disk(sysfs: Sysfs, name: str) -> str:
    """Return the disk of a partition; any other name unchanged."""
    here = CLASS_BLOCK / name
    real = sysfs.real(here) if sysfs.exists(here / "partition") else None
    return real.parent.name if real else name


def devno_of(sysfs: Sysfs, here: Path) -> tuple[int, int] | None:
    """Return the device number in a sysfs folder; None when the device is gone."""
    major, separator, minor = (sysfs.read_text(here / "dev") or "").partition(":")
    return (int(major), int(minor)) if separator else None


def _queue(sysfs: Sysfs, here: Path) -> Path:
    """Return the queue's folder; a partition has its disk's, one folder up (after the link)."""
    if sysfs.exists(here / "queue"):
        return here / "queue"
    real = sysfs.real(here)
    return (real.parent if real else here) / "queue"
