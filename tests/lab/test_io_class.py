# SPDX-License-Identifier: GPL-2.0-only
"""Which layers between bcache and its disks keep the idle I/O class of write-back.

bcache writes back in that class while `writeback_percent` is 0, and bfq holds back what has it
(policy/strategies/disk_queue.py). A layer that sends requests of its own may lose it: dm-crypt does
so for writes until 6.8.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from typing import Final

import pytest

from tests.bench.gap_drain import Pieces, fill_job
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import MIB
from tests.lab.disk_layers import Layer, crypt, linear_volume, partition, raid1
from tests.lab.io_class import IDLE, can_count, io_classes
from tests.lab.kernel_matrix import HONEST_NO, on_kernels
from tests.lab.session import Session
from tests.lab.wait import wait_until

pytestmark = [
    on_kernels("layers below bcache keep the idle class of write-back"),
    pytest.mark.full,
]
_DIRTY: Final = Pieces(kib=64, dirty_mib=48, range_mib=256)
_KEPT_BY_CRYPT: Final = (6, 9)


@pytest.mark.parametrize(
    ("names", "layers"),
    [
        pytest.param(("hdd0",), (linear_volume,), id="lvm"),
        pytest.param(("hdd0", "hdd1"), (), id="raid1"),
        pytest.param(("hdd0",), (linear_volume, crypt), id="crypt"),
    ],
)
def test_the_idle_class_reaches_the_disks(
    guest: Session, names: tuple[str, ...], layers: tuple[Layer, ...]
) -> None:
    if not can_count(guest):
        pytest.skip("this kernel has no histograms of events")
    with ExitStack() as below:
        parts = [below.enter_context(partition(guest, guest.device(name))) for name in names]
        top = parts[0] if len(parts) == 1 else below.enter_context(raid1(guest, *parts))
        for layer in layers:
            top = below.enter_context(layer(guest, top))
        guest.name_device("layers", top)
        # On 6.12 a layer has no file for a scheduler.
        stack = below.enter_context(BcacheStack(guest, hdd="layers", scheduler=""))
        stack.expect_changed("writeback_rate", "writeback_percent")
        written = destaged_by_class(stack)
    keeps = crypt not in layers or release(guest) >= _KEPT_BY_CRYPT
    assert written.keys() == {IDLE if keeps else 0}, written
    assert written.total() >= len(names) * _DIRTY.dirty_mib * MIB * 0.9
    if not keeps:
        pytest.skip(f"{HONEST_NO}dm-crypt loses the idle class")


def destaged_by_class(stack: BcacheStack) -> Counter[int]:
    """Make data dirty, and write it back at full speed; return the bytes by I/O class."""
    fio.run(stack.session, fill_job(stack.device, _DIRTY), seed=1)
    with io_classes(stack.session) as classes:
        stack.set_knob("writeback_percent", 0)
        stack.set_knob("writeback_running", 1)
        wait_until(lambda: stack.dirty_bytes() == 0, 60, "all to be written back")
        return classes.written_bytes()


def release(guest: Session) -> tuple[int, ...]:
    """Return the first two numbers of the kernel's release."""
    found = re.match(r"(\d+)\.(\d+)", guest.check(["uname", "-r"]))
    assert found
    return int(found[1]), int(found[2])
