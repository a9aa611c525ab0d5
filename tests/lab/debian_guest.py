# SPDX-License-Identifier: GPL-2.0-only
"""A guest with a Debian of its own, of any release, and SATA disks.

I/O: debootstrap (network, once per release).
"""

from __future__ import annotations

from tests.lab.devices import Ssd, as_sold
from tests.lab.guest import Guest
from tests.package.chroot import base, group

_DISKS = (as_sold("hdd0"), Ssd("ssd0"), as_sold("hdd1", seed=2), Ssd("ssd1"))
_PACKAGES = (
    *("systemd", "udev", "dbus", "kmod", "make", "curl", "fio", "bcache-tools", "lvm2"),
    *("thin-provisioning-tools", *group("run")),
)
"""What the lab and the packages of ebbgate need in the guest: it has no network."""


def debian_guest(release: str, purpose: str = "guest", *more: str) -> Guest:
    """Describe a guest with the system and the kernel of a release. Raises NoLab.

    `more`: packages besides, for a system that is kept for a purpose of its own.
    """
    return Guest(_DISKS, release=release, root=base(release, purpose, (*_PACKAGES, *more)))
