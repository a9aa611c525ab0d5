# SPDX-License-Identifier: GPL-2.0-only
"""A guest with a root of its own: Debian 13 with its kernel boots, keeps its changes, reboots.

I/O: a guest of its own, with SATA disks and systemd as process 1.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.debian_guest import debian_guest
from tests.lab.dm_stack import DmCacheStack
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.service_harness import KERNELS_OWN

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]


@pytest.fixture
def machine() -> Iterator[Guest]:
    try:
        with debian_guest("trixie") as guest:
            yield guest
    except NoLab as reason:
        without_lab(reason)


def test_a_debian_13_keeps_files_and_volumes_through_a_reboot(machine: Guest) -> None:
    assert machine.read("/etc/debian_version").startswith("13")
    machine.put_file("/srv/kept", "text")
    with DmCacheStack(machine, hdd="hdd1", ssd="ssd1") as dm, BcacheStack(machine) as bcache:
        bcache.expect_changed(*KERNELS_OWN)
        for stack in (bcache, dm):
            written = fio.Job(stack.device, "write", "64k", options={"size": "8M"})
            fio.run(machine, written, seed=1)
        machine.reboot()
        for stack in (bcache, dm):
            stack.reassemble()
        assert machine.read("/srv/kept") == "text"
        assert {**bcache.changed_knobs(), **dm.changed_knobs()}.keys() <= KERNELS_OWN
