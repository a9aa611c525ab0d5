# SPDX-License-Identifier: GPL-2.0-only
"""Layers between a disk and a cached volume: partition, md raid1, LVM, dm-crypt, multipath.

I/O: the guest.

Each takes the kernel names of what is below it and yields its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from tests.lab import dm_parts
from tests.lab.devices import MIB
from tests.lab.session import Session
from tests.lab.wait import wait_until

Layer = Callable[[Session, str], AbstractContextManager[str]]

_START_SECTOR: Final = 2048
_NO_UDEV: Final = ("--noudevsync", "--noudevrules")
_MD: Final = "md0"
_VG: Final = "below"
_SECRET: Final = "below-secret"
_PATHS: Final = "below-paths"


@contextmanager
def partition(guest: Session, disk: str, size_bytes: int = 1024 * MIB) -> Iterator[str]:
    """A partition of a disk, as the kernel has it of a table."""
    sectors = str(size_bytes // 512)
    guest.check(["addpart", f"/dev/{disk}", "1", str(_START_SECTOR), sectors])
    try:
        yield f"{disk}1"
    finally:
        guest.check(["delpart", f"/dev/{disk}", "1"])


@contextmanager
def raid1(guest: Session, *members: str) -> Iterator[str]:
    """A mirror without a superblock, made by md's own files (Documentation/admin-guide/md.rst): the
    guest has no mdadm. Its members count as equal.
    """
    guest.check("modprobe -a md-mod raid1")
    guest.write("/sys/module/md_mod/parameters/new_array", _MD)
    folder = f"/sys/block/{_MD}/md"
    guest.wait_for_path(folder)
    try:
        for name, value in (
            ("metadata_version", "none"),
            ("level", "raid1"),
            ("raid_disks", str(len(members))),
            *(("new_dev", guest.read(f"/sys/class/block/{member}/dev")) for member in members),
        ):
            guest.write(f"{folder}/{name}", value)
        kib = min(int(guest.read(f"/sys/class/block/{each}/size")) // 2 for each in members)
        for slot, member in enumerate(members):
            guest.write(f"{folder}/dev-{member}/size", str(kib))
            guest.write(f"{folder}/dev-{member}/slot", str(slot))
        guest.write(f"{folder}/component_size", str(kib))
        guest.write(f"{folder}/resync_start", "none")
        guest.write(f"{folder}/array_state", "active")
        yield _MD
    finally:
        guest.write(f"{folder}/array_state", "clear")
        wait_until(lambda: guest.resolve(folder) is None, 20, f"{_MD} to be stopped")


@contextmanager
def linear_volume(guest: Session, below: str) -> Iterator[str]:
    """A linear volume of LVM."""
    dm_parts.prepare(guest, ())
    _lvm(guest, below, "pvcreate", "-y", "-ff", f"/dev/{below}")
    _lvm(guest, below, "vgcreate", _VG, f"/dev/{below}")
    _lvm(guest, below, "lvcreate", "-y", "-Wn", "-n", "slow", "-l", "100%FREE", _VG)
    try:
        yield _kernel_name(guest, f"{_VG}-slow")
    finally:
        _lvm(guest, below, "vgchange", "-an", _VG)
        dm_parts.forget(guest, _VG, below)


def _lvm(guest: Session, below: str, command: str, *words: str) -> None:
    """A command of LVM that sees one device: it finds the same data on each member of a mirror."""
    only = f'devices {{ filter=["a|^/dev/{below}$|", "r|.*|"] }}'
    guest.check([command, "-qq", "--config", only, *words])


def crypt(guest: Session, below: str) -> AbstractContextManager[str]:
    """dm-crypt with the null cipher, and a uuid as cryptsetup's, which the guest does not have."""
    dm_parts.prepare(guest, ("dm-crypt", "crypto_null"))
    table = f"crypt cipher_null-ecb - 0 /dev/{below} 0"
    return _mapped(guest, below, _SECRET, f"CRYPT-PLAIN-{_SECRET}", table)


def multipath(guest: Session, disk: str) -> AbstractContextManager[str]:
    """A multipath device with one path, a whole disk, and a uuid as multipathd's."""
    dm_parts.prepare(guest, ("dm-multipath", "dm-round-robin"))
    table = f"multipath 0 0 1 1 round-robin 0 1 1 /dev/{disk} 1"
    return _mapped(guest, disk, _PATHS, f"mpath-{_PATHS}", table)


@contextmanager
def _mapped(guest: Session, below: str, name: str, uuid: str, target: str) -> Iterator[str]:
    """A device of device-mapper as large as the one below it."""
    table = f"0 {guest.read(f'/sys/class/block/{below}/size')} {target}"
    create = ("dmsetup", "create", *_NO_UDEV, name, "--uuid", uuid, "--table", table)
    guest.check(create)
    try:
        guest.check(["dmsetup", "mknodes", name])
        yield _kernel_name(guest, name)
    finally:
        guest.check(["dmsetup", "remove", *_NO_UDEV, "--retry", name])


def _kernel_name(guest: Session, name: str) -> str:
    return (
        f"dm-{guest.check(['dmsetup', 'info', '-c', '--noheadings', '-o', 'minor', name]).strip()}"
    )
