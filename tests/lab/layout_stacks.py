# SPDX-License-Identifier: GPL-2.0-only
"""Devices and file systems above a cached volume, and what ebbgate says of them. I/O: the guest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.bench.product import PYTHON, SITE
from tests.lab import dm_parts
from tests.lab.devices import MIB
from tests.lab.session import Completed, Session
from tests.lab.stack import Stack

MOUNT: Final = "/run/layout"
IMAGE: Final = "/run/outer/disk"
_PART_SECTORS: Final = 400 * MIB // 512
_NO_UDEV: Final = ("--noudevsync", "--noudevrules")
_MAKE: Final = {
    "ext4": "mkfs.ext4 -q -F -b 4096 -E nodiscard",
    "xfs": "mkfs.xfs -q -f -K",
    "btrfs": "mkfs.btrfs -q -f -K",
}


def show(guest: Session, *words: str, stdin: str = "") -> Completed:
    argv = [PYTHON, "-m", "ebbgate", "layout", "show", "--json", *words]
    return guest.run(argv, env={"PYTHONPATH": str(SITE)}, stdin=stdin)


def surveyed(guest: Session, stack: Stack, pattern: str, *dm_names: str) -> tuple[set[str], Any]:
    """What the process of ebbgated says of files: names of groups, and figures."""
    tables = {name: [_row(guest.check(["dmsetup", "table", name]))] for name in dm_names}
    request = {"layout": [pattern], "volume": stack.volume, "tables": tables}
    argv = [PYTHON, "-m", "ebbgate.warm.worker"]
    env = {"PYTHONPATH": str(SITE), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = guest.run(argv, env=env, stdin=f"{json.dumps(request)}\n", timeout_s=180).check()
    *others, last = map(json.loads, done.stdout.splitlines())
    return {name for each in others for name in each.get("names", ())}, last


def _row(table: str) -> tuple[int, int, str, str]:
    start, length, kind, params = table.strip().split(maxsplit=3)
    return int(start), int(length), kind, params


@contextmanager
def mounted(guest: Session, filesystem: str, device: str, folder: str = MOUNT) -> Iterator[None]:
    """A new file system on a device."""
    make = _MAKE[filesystem]
    guest.check(f"modprobe {filesystem}; {make} {device} && mkdir -p {folder}")
    guest.check(f"mount -t {filesystem} {device} {folder}")
    try:
        yield
    finally:
        guest.check(["umount", folder])


@contextmanager
def partition(guest: Session, stack: Stack) -> Iterator[str]:
    with partitions(guest, stack) as (_, second):
        yield second


@contextmanager
def partitions(guest: Session, stack: Stack) -> Iterator[tuple[str, str]]:
    """Two partitions of a volume, as the kernel has them of a table."""
    starts = (2048, 4096 + _PART_SECTORS)
    for number, start in enumerate(starts, start=1):
        guest.check(["addpart", stack.device, str(number), str(start), str(_PART_SECTORS)])
    try:
        yield f"{stack.device}p1", f"{stack.device}p2"
    finally:
        for number in (1, 2):
            guest.check(["delpart", stack.device, str(number)])


@contextmanager
def logical_volume(guest: Session, stack: Stack, *options: str) -> Iterator[str]:
    dm_parts.prepare(guest, ())
    with partitions(guest, stack) as parts:
        guest.check(["pvcreate", "-qq", "-y", "-ff", *parts])
        guest.check(["vgcreate", "-qq", "vgl", *parts])
        guest.check(["lvcreate", "-qq", "-y", "-Wn", "-n", "files", *options, "vgl"])
        try:
            yield "/dev/vgl/files"
        finally:
            guest.check(["vgchange", "-qq", "-an", "vgl"])
            guest.check("rm -rf /run/lvm/hints /dev/vgl")


def linear(guest: Session, stack: Stack) -> Any:
    """It reaches from one partition into the other."""
    return logical_volume(guest, stack, "-L", "600M")


def striped(guest: Session, stack: Stack) -> Any:
    return logical_volume(guest, stack, "-L", "512M", "-i", "2", "-I", "64k")


@contextmanager
def crypt(guest: Session, stack: Stack, *options: str) -> Iterator[str]:
    """A null cipher on a partition. `options`: those of dm-crypt's table."""
    guest.check("modprobe -a dm-crypt crypto_null")
    dm_parts.prepare(guest, ())
    more = f" {len(options)} {' '.join(options)}" if options else ""
    with partition(guest, stack) as below:
        table = f"0 {_PART_SECTORS - 4096} crypt cipher_null-ecb - 0 {below} 4096{more}"
        guest.check(["dmsetup", "create", *_NO_UDEV, "secret", "--table", table])
        try:
            guest.check(["dmsetup", "mknodes", "secret"])
            yield "/dev/mapper/secret"
        finally:
            guest.check(["dmsetup", "remove", *_NO_UDEV, "--retry", "secret"])


@contextmanager
def loop(guest: Session, stack: Stack, offset: str = "1M") -> Iterator[str]:
    """A loop device within a file, on a null cipher on a partition."""
    guest.check("modprobe loop; mkdir -p /run/outer")
    with crypt(guest, stack) as secret, mounted(guest, "ext4", secret, "/run/outer"):
        guest.check(f"truncate -s 128M {IMAGE}")
        device = guest.check(f"losetup -f --show -o {offset} {IMAGE}").strip()
        try:
            yield device
        finally:
            guest.check(["losetup", "-d", device])


@contextmanager
def half_cached(guest: Session, stack: Stack) -> Iterator[str]:
    """A device whose first half is on a disk that is not cached, the second on the volume."""
    dm_parts.prepare(guest, ())
    sectors = 128 * MIB // 512
    table = (
        f"0 {sectors} linear /dev/{guest.device('hdd1')} 0\n"
        f"{sectors} {sectors} linear {stack.device} 0\n"
    )
    guest.check(["dmsetup", "create", *_NO_UDEV, "half"], stdin=table)
    try:
        guest.check(["dmsetup", "mknodes", "half"])
        yield "/dev/mapper/half"
    finally:
        guest.check(["dmsetup", "remove", *_NO_UDEV, "--retry", "half"])
