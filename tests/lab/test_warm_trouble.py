# SPDX-License-Identifier: GPL-2.0-only
"""What hinders a warm-up on real caches: dirty data, a low cutoff, `pvmove`. I/O: a guest."""

from __future__ import annotations

import json

import pytest

from tests.bench.product import Product
from tests.bench.warm_file import PAST, job_ended, missed, warm, wear_in
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.errors import CommandFailed
from tests.lab.knobs import bytes_from_human
from tests.lab.layout_stacks import MOUNT, logical_volume, mounted
from tests.lab.session import Session
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
PATH = f"{MOUNT}/file"
DIRTY_MIB = 320
HELD = {"writeback_running": 0, "sequential_cutoff": 0}
"""Dirty data stays, and all writes are cached."""


def write_past_cache(guest: Session, stack: BcacheStack, mib: int) -> None:
    """Write a file of which the cache has nothing."""
    knob, past, usual = PAST[BcacheStack]
    stack.set_knob(knob, past)
    guest.check(f"dd if=/dev/urandom of={PATH} bs=1M count={mib} oflag=direct; sync")
    stack.set_knob(knob, usual)


def test_what_dirty_data_leaves_no_room_for_is_refused_until_it_is_written_back(
    guest: Session,
) -> None:
    with BcacheStack(guest, settings=HELD) as stack, Product(guest, mode="advise") as product:
        stack.expect_changed("writeback_rate")
        options: dict[str, str | int] = {"size": "1G", "io_size": f"{DIRTY_MIB}M"}
        fio.run(guest, fio.Job(stack.device, "randwrite", "64k", options=options), seed=1)
        cache_mib = int(guest.read(f"/sys/block/{stack.ssd}/size")) // 2048
        # It fits into a clean cache.
        wanted = f"{stack.volume}:1100MiB-{1100 + cache_mib * 9 // 10 - 64}MiB"
        product.wait_until(
            lambda: product.live(stack.volume)["dirty_bytes"] > DIRTY_MIB << 19,
            *(30, "the dirty data to be seen"),
        )
        before, dirty = stack.knob_values(), stack.dirty_bytes()
        with pytest.raises(CommandFailed, match=r"do not fit.*less \d+ MiB of dirty data"):
            product.cli("warm", "--range", wanted)
        assert (stack.knob_values(), stack.dirty_bytes()) == (before, dirty)
        stack.drain()
        product.wait_until(
            lambda: product.live(stack.volume)["dirty_bytes"] == 0,
            *(30, "the cache to be clean"),
        )
        product.cli("warm", "--range", wanted)


def set_cutoff(product: Product, stack: BcacheStack, kib: int) -> None:
    """Set it as a person does, and wait until the daemon has seen it."""

    def seen() -> bool:
        value = product.live(stack.volume)["knobs"]["sequential_cutoff"]["value"]
        return bytes_from_human(value) == kib << 10

    stack.set_knob("sequential_cutoff", kib << 10)
    product.wait_until(seen, 30, f"a cutoff of {kib} KiB to be seen")


@pytest.mark.parametrize("mode", ["advise", "enforce"])
def test_a_low_cutoff_makes_shorter_sequences_and_a_lower_one_is_named(
    guest: Session, mode: str
) -> None:
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate", "sequential_cutoff")
        wear_in(guest, stack)
        with mounted(guest, "ext4", stack.device):
            write_past_cache(guest, stack, mib=8)
            with Product(guest, mode=mode) as product:
                set_cutoff(product, stack, 32)
                with pytest.raises(CommandFailed, match="sequential_cutoff is 32 KiB"):
                    product.cli("warm", PATH)
                set_cutoff(product, stack, 256)
                job = warm(product, PATH, timeout_s=120)
                assert (job["state"], job["left_out"]) == ("done", {}), job["why"]
                assert missed(guest, stack, offset=8192, path=PATH) <= 0.01
                assert stack.knob("sequential_cutoff") == "256.0k"


def test_pvmove_beside_a_warm_up_harms_nothing_and_the_next_one_warms(guest: Session) -> None:
    guest.check("modprobe dm-mirror")
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        wear_in(guest, stack)
        with (
            logical_volume(guest, stack, "-L", "96M") as device,
            mounted(guest, "ext4", device),
        ):
            write_past_cache(guest, stack, mib=24)
            content = guest.check(["sha256sum", PATH])
            with Product(guest) as product:
                product.cli("warm", "--bandwidth", "1MiB/s", PATH)
                move = guest.spawn(["pvmove", "-i", "1", f"{stack.device}p1"])
                table = ["dmsetup", "table", "vgl-pvmove0"]
                wait_until(lambda: "mirror" in guest.run(table).stdout, 60, "pvmove to begin")
                (job,) = json.loads(product.cli("jobs", "--json"))["jobs"]
                assert not job["ended_unix_ns"], "pvmove began after the warm-up"
                job = job_ended(product, 240)
                assert job["state"] == "done" or (job["state"] == "failed" and job["why"])
                assert move.wait(300).rc == 0
                job = warm(product, PATH, timeout_s=120)
                assert (job["state"], job["left_out"]) == ("done", {}), job["why"]
                assert missed(guest, stack, offset=8192, path=PATH) <= 0.01
            guest.check("echo 3 > /proc/sys/vm/drop_caches")
            assert guest.check(["sha256sum", PATH]) == content
