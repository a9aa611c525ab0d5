# SPDX-License-Identifier: GPL-2.0-only
"""Finds what else is on the disks below a volume. I/O: sysfs and /proc, reads only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ebbgate.kernel.sysfs import BLOCK, CLASS_BLOCK, Sysfs
from ebbgate.model.volume import DiskUsers, Volume
from ebbgate.probes.block import stack_below

PROC: Final = Path("/proc")
_MOUNT_FIELDS: Final = 3
"""Of `mountinfo`, after the separator: file system, source, options."""


@dataclass(frozen=True, slots=True)
class DeviceUsers:
    """All volumes of this machine, and its devices in use as devices_in_use returns them."""

    volumes: tuple[Volume, ...] = ()
    used: Mapping[str, str] = field(default_factory=dict)


def devices_in_use(proc: Path) -> dict[str, str]:
    """Return `ext4 on /` or `swap` by device number (`8:2`) and by the name in /dev or of dm."""
    found: dict[str, str] = {}
    for line in _lines(proc / "self/mountinfo"):
        # The kernel escapes plain spaces only: a path may have any other.
        front, _, back = line.partition(" - ")
        mount, source = front.split(" "), back.split(" ")
        if len(mount) > _MOUNT_FIELDS and len(source) >= _MOUNT_FIELDS:
            use = f"{source[0]} on {mount[4]}"
            found.setdefault(mount[2], use)
            if source[1].startswith("/dev/"):
                # btrfs has a device number of its own.
                found.setdefault(Path(source[1]).name, use)
    for line in _lines(proc / "swaps")[1:]:
        found.setdefault(Path(line.split()[0]).name, "swap")
    return found


def disk_users(sysfs: Sysfs, volume: Volume, users: DeviceUsers) -> DiskUsers:
    """Return what else is on the disks of a volume."""
    disks = [disk.name for disk in volume.disks]
    cached = [each for each in users.volumes if each.cached]
    own = {name for each in (volume, *cached) for name in (each.backing.name, each.kernel_name)}
    tops = _tops(sysfs, disks, own)
    shared = [
        each.title for each in cached if each.name != volume.name and _is_on(sysfs, each, disks)
    ]
    others = (_described(sysfs, top, users.used) for top in tops)
    return DiskUsers(tuple(shared), tuple(each for each in others if each))


def _is_on(sysfs: Sysfs, volume: Volume, disks: Collection[str]) -> bool:
    """Has a volume data, its cache or its metadata on one of these disks?"""
    if any(disk.name in disks for disk in volume.disks):
        return True
    parts = (*volume.caches, *([volume.metadata] if volume.metadata else []))
    return any(name in disks for part in parts for name in stack_below(sysfs, part.devno))


def _tops(sysfs: Sysfs, disks: Iterable[str], own: Collection[str]) -> list[str]:
    """Return the devices on top of some disks, but for those on top of `own`.

    Each device is looked at once: an array or a thin pool has hundreds above several disks.
    """
    tops: list[str] = []
    seen, left = set(own), list(disks)[::-1]
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        above = [path.name for path in sysfs.glob(f"{CLASS_BLOCK}/{name}/holders/*")]
        above += [path.parent.name for path in sysfs.glob(f"{BLOCK}/{name}/*/partition")]
        if not above:
            tops.append(name)
        left += above[::-1]
    return tops


def _described(sysfs: Sysfs, name: str, used: Mapping[str, str]) -> str:
    """Return `sda2 (ext4 on /)`; empty if the device is not in use."""
    here = CLASS_BLOCK / name
    title = sysfs.read_text(here / "dm/name") or name
    keys = (sysfs.read_text(here / "dev") or "", name, title)
    use = next((used[key] for key in keys if key in used), "")
    return f"{title} ({use})" if use else ""


def _lines(path: Path) -> list[str]:
    """Return the lines; a path in one may have what `splitlines` takes for the end of a line."""
    try:
        lines = path.read_bytes().decode(errors="replace").split("\n")
    except OSError:
        return []
    return [line for line in lines if line.strip()]
