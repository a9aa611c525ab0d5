# SPDX-License-Identifier: GPL-2.0-only
"""What was hot is warmed again after the cache device was replaced. I/O: a guest."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.bench.product import Product
from tests.bench.warm_file import job_ended, wear_in
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.devices import MIB, Hdd, Ssd
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.session import Session

CACHE_BYTES = 256 * MIB
ZONE: dict[str, str | int] = {"offset": "700M", "size": "24M"}
ZONE_READS = 24 * 16
SAVED = "/run/hot.jsonl"


@pytest.fixture
def spare() -> Iterator[Session]:
    """A guest with a second cache device."""
    ssds = (Ssd(name, size_bytes=CACHE_BYTES) for name in ("ssd0", "ssd1"))
    try:
        with Guest((Hdd("hdd0"), *ssds)) as session:
            yield session
    except NoLab as reason:
        without_lab(reason)


def missed(guest: Session, stack: BcacheStack, seed: int) -> int:
    """Read the hot zone as users do; return how many reads the hard disk saw."""
    path = stack.knob_path("hdd:stat")
    before = int(guest.read(path).split()[0])
    fio.run(guest, fio.Job(stack.device, "randread", "64k", options=ZONE), seed=seed)
    return int(guest.read(path).split()[0]) - before


@pytest.mark.full
def test_a_hot_set_is_warmed_into_a_new_cache_device(spare: Session) -> None:
    with BcacheStack(spare) as stack:
        stack.expect_changed("writeback_rate")
        wear_in(spare, stack)
        with Product(spare) as product:
            assert missed(spare, stack, seed=1) >= ZONE_READS
            assert missed(spare, stack, seed=2) == 0
            saved = json.loads(product.cli("warm", "--save", SAVED, stack.volume, "--json"))
            assert saved["bytes"] >= 24 * MIB
            stack.replace_cache("ssd1")
            product.cli("warm", "--restore", SAVED)
            job = job_ended(product, 240)
            assert (job["state"], job["left_out"]) == ("done", {}), job["why"]
            assert job["hit_ratio"] >= 0.99
            assert missed(spare, stack, seed=3) <= 0.01 * ZONE_READS
