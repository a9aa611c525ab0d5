# SPDX-License-Identifier: GPL-2.0-only
"""Volumes, their devices and their state in sysfs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final

from ebbgate.model.dm import CacheStatus, DmMapping, WritecacheStatus


class Kind(StrEnum):
    """The cache driver of a volume."""

    BCACHE = "bcache"
    DM_CACHE = "dm-cache"
    DM_WRITECACHE = "dm-writecache"


class Mode(StrEnum):
    """What ebbgate may do with a volume."""

    OBSERVE = "observe"
    ADVISE = "advise"
    ENFORCE = "enforce"


SUSPENDED: Final = "suspended"
DISKLESS: Final = "diskless"
UNWRITABLE: Final[Mapping[str, str]] = {
    "no cache": "no cache is attached",
    "inconsistent": "the kernel reports the volume as inconsistent: nothing is written to it",
    SUSPENDED: "the volume is suspended: ebbgate waits until it is resumed",
    DISKLESS: "no disk is left below its backing device, so write-back fails (see dmesg)",
    "needs_check": "its metadata needs a check (cache_check, lvconvert --repair): left alone",
    "read-only": "its metadata can no longer be written: left alone",
    "failed": "the kernel reports that the cache has failed: nothing is written to it",
}
"""States in which no knob is written and no message sent, and why (super.c of bcache; cache_status
of dm-cache-target.c; `diskless` is found in sysfs)."""


@dataclass(frozen=True, slots=True)
class Device:
    """A block device under a volume; None: the kernel does not report it.

    Two are the same device whatever its queue is set to.
    """

    name: str
    devno: tuple[int, int]
    size_bytes: int
    rotational: bool | None = None
    scheduler: str | None = field(default=None, compare=False)
    schedulers: tuple[str, ...] = field(default=(), compare=False)
    nr_requests: int | None = field(default=None, compare=False)
    queue_depth: int | None = field(default=None, compare=False)
    max_sectors_kb: int | None = field(default=None, compare=False)
    wbt_lat_usec: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Volume:
    """A composed device that users mount.

    - `set_uuid`: of a bcache volume; empty while no cache is attached.
    - `sys_name`: the kernel name of a dm volume (`dm-3`).
    - `metadata`: the device of dm-cache's metadata.
    - `disks`: the whole disks below the backing device, by name; empty where it is one that hides
      them.
    - `backing_uuid`: of a bcache volume, in the superblock of its backing device.
    - `multipath`: the name of each disk that is a path, and the multipath device above it whose
      queue serves in place of the path's.
    - `diskless`: all disks below the backing device are gone. device-mapper keeps such a volume,
      and its kernel tries in vain, without a pause, to write dirty data back.
    """

    name: str
    kind: Kind
    devno: tuple[int, int]
    size_bytes: int
    backing: Device
    caches: tuple[Device, ...]
    set_uuid: str
    sys_name: str = ""
    mapping: DmMapping | None = None
    metadata: Device | None = None
    disks: tuple[Device, ...] = ()
    backing_uuid: str = ""
    multipath: tuple[tuple[str, Device], ...] = ()
    diskless: bool = False

    @property
    def queues(self) -> tuple[Device, ...]:
        """The devices whose I/O schedulers serve the disks; one for all paths to the same data."""
        above = dict(self.multipath)
        found = (above.get(disk.name, disk) for disk in self.disks)
        return tuple({device.name: device for device in found}.values())

    @property
    def uuid(self) -> str:
        """What names it at every boot, whatever name the kernel gives it; empty where unknown."""
        return self.mapping.uuid if self.mapping else self.backing_uuid

    @property
    def cached(self) -> bool:
        """Whether it has a cache device."""
        return bool(self.set_uuid) or self.mapping is not None

    @property
    def title(self) -> str:
        """The name for people: LVM's if it has one."""
        return self.mapping.lvm_name if self.mapping and self.mapping.lvm_name else self.name

    @property
    def kernel_name(self) -> str:
        """The name of its folder in /sys/block."""
        return self.sys_name or self.name

    @property
    def names(self) -> tuple[str, ...]:
        """What people may call it, the surest first: the kernel's names may change at a boot."""
        found = (self.uuid, self.name, self.title, self.kernel_name)
        return tuple(dict.fromkeys(name for name in found if name))

    def is_called(self, name: str) -> bool:
        """Return whether the name is one of its names."""
        return name in self.names


@dataclass(frozen=True, slots=True)
class DiskUsers:
    """What else is on the disks below a volume.

    `volumes`: other cached volumes, as people call them; `others`: file systems and swap.
    """

    volumes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join((*self.volumes, *self.others))


NO_USERS: Final = DiskUsers()


@dataclass(frozen=True, slots=True)
class VolumeState:
    """What the kernel reported of a volume at `at_ns`; a missing file is None, never zero.

    - `state`: bcache's own word; for a dm volume `clean`, `dirty`, `suspended`, `diskless` or the
      fault.
    - `in_use_ratio`: share of the cache's buckets in use (0..1), which the kernel compares with its
      cutoffs (drivers/md/bcache/writeback.h: 0.40 for asynchronous, 0.70 for synchronous writes).
    - `knobs`: raw values by kernel name, sizes in the kernel's unit.
    - `dm`: the whole status line of a dm volume.
    - `cache_written_bytes`: written to the devices of the cache since boot, by whomever.
    - `disk_write_cache`: the kernel takes a hard disk below for one with a volatile write cache.
    """

    at_ns: int
    state: str | None
    cache_mode: str | None
    dirty_bytes: int | None
    cache_bytes: int | None
    in_use_ratio: float | None
    knobs: Mapping[str, str]
    dm: CacheStatus | WritecacheStatus | None = None
    cache_written_bytes: int | None = None
    disk_write_cache: bool = False


STATE_LEVELS: Final = tuple(
    each.name
    for each in fields(VolumeState)
    if each.name not in ("at_ns", "knobs", "dm", "cache_written_bytes", "disk_write_cache")
)
"""The fields of one value each, which recordings and `ebbgate status` have."""
