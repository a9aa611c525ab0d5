# SPDX-License-Identifier: GPL-2.0-only
"""What users miss again and again is moved into a real cache, but what is held out.

I/O: the guest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.bench.product import POLICIES, PYTHON, Product
from tests.bench.warm_file import Stack, wear_in
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
from tests.lab.session import Session

MIB = 1 << 20
FIRST, CHUNKS = 300, 96
"""The hot zone, in chunks: users read each of its pages once, so that all are misses."""
PAGES = 16
MOVED_MIB = 60
POLICY = """\
version: 1
name: hot
why: Moves of hot data, soon.
strategies: [idle_destage, promote_hot: {period: 20s, cache_share_max: 25%}]
"""
READ = """
import mmap, os, sys
device, stat, *offsets = sys.argv[1:]
handle, buffer, seen = os.open(device, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096), 0
def reads():
    with open(stat) as file:
        return int(file.read().split()[0])
for offset in offsets:
    before = reads()
    os.preadv(handle, [buffer], int(offset))
    seen += reads() > before
print(seen)
"""
"""Reads a page at each place, and prints how many of them the backing device saw."""


@contextmanager
def hot_policy(guest: Session) -> Iterator[None]:
    guest.check(f"mkdir -p {POLICIES}")
    guest.put_file(f"{POLICIES}/hot.yaml", POLICY)
    try:
        yield
    finally:
        guest.check(f"rm {POLICIES}/hot.yaml")


class Users:
    """Users of the zone, and what ebbgate says of it.

    `states`: of the chunks that were listed at any look; a list is forgotten with its period.
    """

    def __init__(self, guest: Session, stack: Stack, product: Product) -> None:
        self.guest = guest
        self.stack = stack
        self.product = product
        self.states: dict[int, str] = {}

    def live(self) -> dict[str, Any]:
        stack = self.stack
        return self.product.live(stack.name if isinstance(stack, DmCacheStack) else stack.volume)

    def promotion(self) -> dict[str, Any]:
        return self.live().get("promotion") or {}

    def counted_bytes(self) -> int:
        """What the probe has counted as reads of users."""
        arrivals = self.live()["totals"]["arrivals"]
        return int(arrivals["read"]["bytes"]) if arrivals else 0

    def rests(self) -> bool:
        """Whether nothing is left to be moved."""
        found = self.promotion()
        self.states |= {each["chunk"]: each["state"] for each in found.get("chunks", ())}
        return not found.get("pending_bytes")

    def read_until_moved(self) -> int:
        """Let users read until the zone is moved; return what they read.

        They rest while chunks are moved: what they miss then, dm-cache promotes by itself.
        """
        read_bytes = 0
        for seed in range(40):
            options: dict[str, str | int] = {
                "offset": f"{FIRST}M",
                "size": f"{CHUNKS}M",
                "time_based": 1,
                "runtime": 6,
                "rate_iops": 100,
            }
            job = fio.Job(self.stack.device, "randread", "4k", options=options)
            read_bytes += fio.run(self.guest, job, seed=seed).only.read.bytes
            self.product.wait_until(self.rests, 120, "what is listed to be moved")
            if self.promotion().get("moved_bytes", 0) >= MOVED_MIB * MIB and self.rests():
                return read_bytes
        raise AssertionError(f"not moved: {self.promotion()}; {self.product.log()}")

    def misses(self, chunks: list[int]) -> float:
        """Share of a few pages of these chunks that the backing device has to read."""
        which = "hdd" if isinstance(self.stack, BcacheStack) else "origin"
        stat = f"/sys/dev/block/{self.stack.dev_t(which)}/stat"
        places = [
            chunk * MIB + page * (MIB // PAGES) + 8192 for chunk in chunks for page in range(PAGES)
        ]
        argv = [PYTHON, "-c", READ, self.stack.device, stat, *map(str, places)]
        return int(self.guest.check(argv, timeout_s=120)) / len(places)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("make", [BcacheStack, DmCacheStack])
def test_a_hot_zone_is_moved_but_what_is_held_out_and_moves_are_no_load_of_users(
    guest: Session, make: type[Stack]
) -> None:
    with make(guest) as stack:
        stack.expect_changed("writeback_rate")
        wear_in(guest, stack)
        with hot_policy(guest), Product(guest, mode="enforce") as product:
            users = Users(guest, stack, product)
            before = users.counted_bytes()
            read_bytes = users.read_until_moved()
            product.wait_until(
                lambda: users.counted_bytes() == before + read_bytes,
                20,
                f"the probe to have counted the {read_bytes} bytes of users and no more",
            )
            zone = range(FIRST, FIRST + CHUNKS)
            states = users.states
            assert set(states) <= set(zone), "something else was moved"
            moved = [chunk for chunk, state in states.items() if state == "moved"]
            assert moved
            assert users.misses(moved) <= 0.15
            # One of 16, at random; users themselves have brought some of their pages in.
            held_out = [chunk for chunk, state in states.items() if state == "held out"]
            assert 1 <= len(held_out) <= len(states) / 4
            # dm-cache itself promotes blocks that users have read so often.
            if make is BcacheStack:
                assert users.misses(held_out) >= 0.4
