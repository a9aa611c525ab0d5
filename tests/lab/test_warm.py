# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate warm` puts a file into a real cache. I/O: the guest."""

from __future__ import annotations

import pytest

from tests.bench.product import Product
from tests.bench.warm_file import FILE, Stack, missed, scattered, warm
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
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
