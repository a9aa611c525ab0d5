# SPDX-License-Identifier: GPL-2.0-only
"""A bcache that is registered again at once while it is tuned: its new instance's values are kept.

The kernel gives the new instance the same name and its own defaults. A write that was meant for
the old one must neither reach it nor become its original. I/O: the guest.
"""

from __future__ import annotations

import json

import pytest

from tests.bench.gap_drain import Pieces, fill_job
from tests.bench.product import Product
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.session import Session

pytestmark = pytest.mark.full

_TIMES = 6
_DIRTY = Pieces(kib=64, dirty_mib=48, range_mib=256)
_AGAIN = """set -e
echo 1 > /sys/block/{volume}/bcache/stop
while ! echo /dev/{hdd} > /sys/fs/bcache/register; do :; done 2>/dev/null
"""
"""The cache stays registered, so the backing device is attached again as soon as it is free."""


def tuned(product: Product, stack: BcacheStack) -> None:
    """Wait until a gate's values are in the kernel."""
    product.wait_until(lambda: stack.knob("writeback_percent") != "10" or None, 30, "a gate")


def test_values_of_the_old_instance_never_reach_the_new_one(guest: Session) -> None:
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        with Product(guest) as product:
            for number in range(_TIMES):
                fio.run(guest, fill_job(stack.device, _DIRTY), seed=number + 1)
                tuned(product, stack)
                guest.check(_AGAIN.format(volume=stack.volume, hdd=stack.hdd), timeout_s=60)
                guest.wait_for_path(stack.device)
            tuned(product, stack)
            (volume,) = json.loads(product.cli("status", "--json"))["volumes"]
            assert volume["live"], volume
            log = product.log()
        assert log.count("bcache over") > _TIMES, log
        assert "Traceback" not in log
        assert set(stack.changed_knobs()) <= {"writeback_rate"}
