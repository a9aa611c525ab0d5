# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate warm` puts a file into a real cache. I/O: the guest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.bench.product import PYTHON, STATE_DIR, Product, stage_in_guest
from tests.bench.warm_file import (
    FILE,
    PAST,
    Stack,
    job_ended,
    missed,
    scattered,
    warm,
    wear_in,
)
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
from tests.lab.layout_stacks import MOUNT, crypt, half_cached, loop, mounted
from tests.lab.session import Session
from tests.lab.test_promote_hot import READ

MIB = 4
COLLECTIONS = """
import sys, time
from pathlib import Path
from ebbgate.warm.collection import Collection

internal = Path(sys.argv[1])


def seen(asks, seconds):
    time.sleep(1.5)
    collection = Collection.begin(internal, time.monotonic_ns(), 60)
    if asks:
        (internal / "trigger_gc").write_text("1")
    end = time.monotonic() + seconds
    while not collection.is_over(time.monotonic_ns()) and time.monotonic() < end:
        time.sleep(0.05)
    return collection.is_over(time.monotonic_ns())


print(*[seen(*each) for each in ((True, 30), (True, 30), (False, 4), (True, 30))])
"""
"""Whether the end of a collection is seen, with and without one, before it counts as over."""


@pytest.mark.parametrize(("make", "share"), [(BcacheStack, 0.99), (DmCacheStack, 0.95)])
def test_a_scattered_file_is_in_the_cache_after_a_warm_up(
    guest: Session, make: type[Stack], share: float
) -> None:
    # The history of earlier tests has other loads.
    guest.run(["rm", "-rf", STATE_DIR])
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
def test_the_end_of_a_garbage_collection_is_seen(guest: Session) -> None:
    with BcacheStack(guest) as stack:
        wear_in(guest, stack)
        internal = f"/sys/block/{stack.volume}/bcache/cache/internal"
        env = {"PYTHONPATH": str(stage_in_guest(guest))}
        argv = [PYTHON, "-c", COLLECTIONS, internal]
        found = guest.run(argv, env=env, timeout_s=180).check().stdout.split()
        assert found == ["True", "True", "False", "True"]


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


def written_past_cache(guest: Session, stack: BcacheStack) -> str:
    """Write a file of which the cache has nothing; return its path."""
    path = f"{MOUNT}/file"
    knob, past, usual = PAST[BcacheStack]
    stack.set_knob(knob, past)
    guest.check(f"dd if=/dev/urandom of={path} bs=1M count={MIB} oflag=direct; sync")
    stack.set_knob(knob, usual)
    return path


def warm_whole(product: Product, path: str) -> None:
    job = warm(product, path, timeout_s=120)
    assert (job["state"], job["left_out"]) == ("done", {}), job["why"]
    assert job["hit_ratio"] >= 0.99


@pytest.mark.full
def test_a_file_on_a_loop_device_is_warmed_through_the_file_behind_it(guest: Session) -> None:
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        wear_in(guest, stack)
        with loop(guest, stack) as device, mounted(guest, "ext4", device):
            path = written_past_cache(guest, stack)
            with Product(guest) as product:
                warm_whole(product, path)
                # What the loop device reads goes through the page cache of the file behind it.
                guest.check("echo 3 > /proc/sys/vm/drop_caches")
                assert missed(guest, stack, offset=8192, path=path) <= 0.05


@contextmanager
def whole(_: Session, stack: BcacheStack) -> Iterator[str]:
    yield stack.device


@contextmanager
def large_sectors(guest: Session, stack: BcacheStack) -> Iterator[str]:
    """A device that refuses reads of less than 4096 bytes."""
    with crypt(guest, stack, "sector_size:4096") as device:
        assert guest.check(["blockdev", "--getss", device]).strip() == "4096"
        yield device


@pytest.mark.full
@pytest.mark.parametrize(("filesystem", "make"), [("ext4", large_sectors), ("btrfs", whole)])
def test_hits_are_seen_where_a_file_is_read_in_units_of_4096_bytes(
    guest: Session, filesystem: str, make: Callable[..., Any]
) -> None:
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        wear_in(guest, stack)
        with make(guest, stack) as device, mounted(guest, filesystem, device):
            path = written_past_cache(guest, stack)
            with Product(guest) as product:
                warm_whole(product, path)
                assert missed(guest, stack, offset=8192, path=path) <= 0.01


PART_MIB = 16


def warmed(
    product: Product, stack: DmCacheStack, from_mib: int, beside: fio.Job | None = None
) -> tuple[dict[str, Any], int]:
    """Warm a part of the volume; return the job, and what was promoted besides its blocks.

    `beside`: begins after the job has.
    """
    before = stack.status().promotions
    product.cli("warm", "--range", f"{stack.lvm_name}:{from_mib}MiB-{from_mib + PART_MIB}MiB")
    users = fio.start(product.session, beside, seed=1) if beside else None
    job = job_ended(product, 240)
    assert job["state"] == "done", job["why"]
    status = stack.status()
    if users:
        users.wait(120)
    return job, status.promotions - before - (PART_MIB << 20) // status.block_bytes


@pytest.mark.full
def test_what_users_misses_bring_in_is_told_from_a_warm_up(guest: Session) -> None:
    with DmCacheStack(guest) as stack:
        wear_in(guest, stack)
        few = (PART_MIB << 20) // stack.status().block_bytes // 20
        with Product(guest) as product:
            job, others = warmed(product, stack, 200)
            assert abs(others) <= few, "of a quiet volume all promotions are the warm-up's"
            assert (job["other_promotions"], job["promotion_holds"]) == (0, 0)
            options: dict[str, str | int] = {"offset": "600M", "size": f"{PART_MIB}M"}
            options |= {"time_based": 1, "runtime": 20}
            job, others = warmed(
                product, stack, 400, fio.Job(stack.device, "randread", "4k", options=options)
            )
            assert others > few
            assert abs(job["other_promotions"] - others) <= few


@pytest.mark.full
def test_a_full_dm_cache_takes_a_part_in_or_the_job_says_how_much_is_not(guest: Session) -> None:
    with DmCacheStack(guest, cache_bytes=(4 * PART_MIB + 8) << 20) as stack:
        wear_in(guest, stack)
        with Product(guest) as product:
            for from_mib in (100, 200, 300, 400):
                warmed(product, stack, from_mib)
            assert stack.status().used > stack.status().total * 0.95
            job, _ = warmed(product, stack, 500)
            stat = f"/sys/dev/block/{stack.dev_t('origin')}/stat"
            # In each block, where no check has read.
            places = [(500 << 20) + at + 32768 for at in range(0, PART_MIB << 20, 65536)]
            argv = [PYTHON, "-c", READ, stack.device, stat, *map(str, places)]
            hits = 1 - int(guest.check(argv, timeout_s=120)) / len(places)
            assert abs(hits - job["hit_ratio"]) < 0.1
            assert hits > 0.95 or "the rest was not taken" in job["why"]
