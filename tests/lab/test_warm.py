# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate warm` puts a file into a real cache. I/O: the guest."""

from __future__ import annotations

import pytest

from tests.bench.product import Product
from tests.bench.warm_file import FILE, PAST, Stack, missed, scattered, warm, wear_in
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
from tests.lab.layout_stacks import MOUNT, half_cached, loop, mounted
from tests.lab.session import Session

MIB = 4


@pytest.mark.full
@pytest.mark.parametrize(("make", "share"), [(BcacheStack, 0.99), (DmCacheStack, 0.95)])
def test_a_scattered_file_is_in_the_cache_after_a_warm_up(
    guest: Session, make: type[Stack], share: float
) -> None:
    with make(guest) as stack:
        stack.expect_changed("writeback_rate")
        with scattered(guest, stack, MIB, seed=1), Product(guest) as product:
            job = warm(product, FILE, timeout_s=60)
            assert (job["state"], job["left_out"]) == ("done", {}), job["why"]
            assert job["hit_ratio"] >= share
            (row,) = product.rows("SELECT max(read_bytes_per_s) FROM samples")
            assert (row[0] or 0) < 64 << 10, "its reads count as load of users"
            assert missed(guest, stack, offset=8192) <= 1 - share


@pytest.mark.full
def test_a_file_beside_the_cached_part_of_a_device_is_not_called_cached(guest: Session) -> None:
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        with half_cached(guest, stack) as device, mounted(guest, "ext4", device):
            path = f"{MOUNT}/file"
            guest.check(f"dd if=/dev/urandom of={path} bs=1M count={MIB} oflag=direct; sync")
            with Product(guest) as product:
                job = warm(product, path, timeout_s=120)
                assert (job["state"], job["hit_ratio"]) == ("done", 0), job["why"]
                assert "100.0% is on another device: see ebbgate layout show" in job["why"]


@pytest.mark.full
def test_a_file_on_a_loop_device_is_warmed_through_the_file_behind_it(guest: Session) -> None:
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        wear_in(guest, stack)
        with loop(guest, stack) as device, mounted(guest, "ext4", device):
            path = f"{MOUNT}/file"
            knob, past, usual = PAST[BcacheStack]
            stack.set_knob(knob, past)
            guest.check(f"dd if=/dev/urandom of={path} bs=1M count={MIB} oflag=direct; sync")
            stack.set_knob(knob, usual)
            with Product(guest) as product:
                job = warm(product, path, timeout_s=120)
                assert (job["state"], job["left_out"]) == ("done", {}), job["why"]
                assert job["hit_ratio"] >= 0.99
                # What the loop device reads goes through the page cache of the file behind it.
                guest.check("echo 3 > /proc/sys/vm/drop_caches")
                assert missed(guest, stack, offset=8192, path=path) <= 0.05
