# SPDX-License-Identifier: GPL-2.0-only
"""A device-mapper device on a loop device, in a fake sysfs."""

from __future__ import annotations

from pathlib import Path

from tests.fake_sysfs import FakeSysfs

ON_LOOP = (253, 7)


def add_dm_on_loop(root: Path) -> None:
    """Add a device with the number `ON_LOOP`, on loop0."""
    fake = FakeSysfs(root)
    loop = fake.disk("loop0", "7:0")
    fake.write(f"{loop}/loop/backing_file", "/srv/image")
    above = fake.disk("dm-7", "253:7")
    fake.link(f"{above}/slaves/loop0", loop)
