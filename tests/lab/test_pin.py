# SPDX-License-Identifier: GPL-2.0-only
"""A pinned file stays in a real cache while what is not pinned falls out. I/O: a guest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bench.product import Product
from tests.bench.warm_file import missed, warm, wear_in
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.devices import MIB, Hdd, Ssd
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.layout_stacks import MOUNT, half_cached, mounted
from tests.lab.session import Session

BOUND = "/run/bound"
CACHE_BYTES = 256 * MIB
FILE_MIB = 16
PINNED, WARMED = f"{MOUNT}/pinned", f"{MOUNT}/warmed"


def pinned(product: Product) -> dict[str, Any]:
    (found,) = json.loads(product.cli("pins", "--json"))["pins"]
    return dict(found)


@pytest.fixture
def small() -> Iterator[Session]:
    """A guest with a small cache device."""
    try:
        with Guest((Hdd("hdd0"), Ssd("ssd0", size_bytes=CACHE_BYTES))) as session:
            yield session
    except NoLab as reason:
        without_lab(reason)


@pytest.mark.full
def test_a_pinned_file_stays_while_users_read_more_than_the_cache_holds(small: Session) -> None:
    with BcacheStack(small) as stack:
        stack.expect_changed("writeback_rate")
        wear_in(small, stack)
        with mounted(small, "ext4", stack.device):
            # Nothing of a write is cached under this cutoff.
            stack.set_knob("sequential_cutoff", 1)
            for path in (PINNED, WARMED):
                small.check(f"dd if=/dev/urandom of={path} bs=1M count={FILE_MIB} oflag=direct")
            small.check("sync")
            stack.set_knob("sequential_cutoff", 4 * MIB)
            with Product(small) as product:
                warm(product, WARMED, timeout_s=120)
                product.cli("pin", PINNED)
                product.wait_until(
                    lambda: pinned(product)["state"] == "hot", 120, "the pinned file to be hot"
                )
                options: dict[str, str | int] = {
                    "offset": "1200M",
                    "size": "700M",
                    "io_size": str(CACHE_BYTES * 3 // 2),
                }
                job = fio.Job(stack.device, "randread", "64k", options=options)
                fio.run(small, job, seed=1, timeout_s=300)
                assert missed(small, stack, 8192, WARMED) > 0.9, (
                    "the users' reads pushed too little"
                )
                found = pinned(product)
                assert found["state"] == "hot", found["why"]
                assert missed(small, stack, 8192, PINNED) <= 0.01


@pytest.mark.full
def test_a_pin_waits_while_its_bind_mount_is_absent(small: Session) -> None:
    """The file system itself stays mounted, and the folder is there."""
    with BcacheStack(small) as stack:
        stack.expect_changed("writeback_rate")
        wear_in(small, stack)
        with mounted(small, "ext4", stack.device):
            small.check(f"mkdir -p {MOUNT}/inner {BOUND}; mount --bind {MOUNT}/inner {BOUND}")
            small.check(f"dd if=/dev/urandom of={BOUND}/file bs=1M count=4 oflag=direct; sync")
            try:
                with Product(small) as product:
                    product.cli("pin", f"{BOUND}/file")
                    product.wait_until(lambda: pinned(product)["state"] == "hot", 120, "it is hot")
                    small.check(["umount", BOUND])
                    read_past(small, stack, seed=2)
                    product.wait_until(
                        lambda: "may not be mounted" in pinned(product)["why"], 60, "it waits"
                    )
                    small.check(["mount", "--bind", f"{MOUNT}/inner", BOUND])
                    read_past(small, stack, seed=3)
                    product.wait_until(lambda: pinned(product)["state"] == "hot", 120, "it is hot")
            finally:
                small.run(["umount", BOUND])


@pytest.mark.full
def test_a_pinned_file_beside_the_cached_part_of_a_device_is_elsewhere(guest: Session) -> None:
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        with half_cached(guest, stack) as device, mounted(guest, "ext4", device):
            guest.check(f"dd if=/dev/urandom of={PINNED} bs=1M count=4 oflag=direct; sync")
            with Product(guest) as product:
                product.cli("pin", PINNED)
                product.wait_until(
                    lambda: pinned(product)["state"] == "elsewhere", 120, "elsewhere"
                )
                assert "see ebbgate layout show" in pinned(product)["why"]


def read_past(guest: Session, stack: BcacheStack, seed: int) -> None:
    """Have a tenth of the cache replaced, after which pinned files are touched again."""
    options: dict[str, str | int] = {
        "offset": "1200M",
        "size": "700M",
        "io_size": str(CACHE_BYTES // 10),
    }
    fio.run(guest, fio.Job(stack.device, "randread", "64k", options=options), seed=seed)
