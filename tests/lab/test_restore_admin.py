# SPDX-License-Identifier: GPL-2.0-only
"""What a stop and a restore leave to the administrator, on real kernels. I/O: the guest.

Leaving a stack compares every knob with its original; what a test means to leave changed it sets
back itself.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.bench.gap_drain import Pieces, fill_job
from tests.bench.product import Product
from tests.lab import fio
from tests.lab.dm_stack import DmCacheStack
from tests.lab.session import Session
from tests.lab.test_dm_product import SMALL, holds_back, users

# Seldom: the stop is to find out by itself what was done just before it.
SELDOM_MS = 1000
CLEANED = Pieces(kib=64, dirty_mib=32, range_mib=256)
"""Enough that its cleaning is seen."""


def ended(
    stack: DmCacheStack,
    number: int,
    before: Callable[[Product], str] = lambda _: "",
    *,
    tick_ms: int = 250,
) -> tuple[Product, str]:
    """A daemon that held the volume back, and its log. `before`: a command just before its end."""
    product = Product(stack.session, tick_ms=tick_ms)
    with users(stack):
        fio.run(stack.session, fill_job(stack.device, SMALL), seed=7)
        try:
            product.start()
            holds_back(product, stack)
            command = before(product)
            if command:
                stack.session.check(f"{command}; kill -{int(number)} {product.pid}", timeout_s=60)
        finally:
            log = product.stop(number)
    return product, log


@pytest.mark.full
def test_a_read_only_volume_is_read_only_after_a_cleaning(
    guest: Session, stack: DmCacheStack
) -> None:
    product = Product(guest, mode="advise")
    try:
        # Under load: the kernel itself would clean it in the meantime.
        with users(stack):
            fio.run(guest, fill_job(stack.device, CLEANED), seed=8)
            guest.check(f"lvchange -pr {stack.lvm_name}", timeout_s=60)
            product.start()
            product.cli("clean", "vg/data", "--within", "3min", "--yes")
            product.wait_until(lambda: stack.status().policy == "cleaner" or None, 30, "cleaner")
            assert guest.check(f"blockdev --getro {stack.device}").strip() == "1"
        product.wait_until(lambda: stack.status().policy != "cleaner" or None, 90, "the old policy")
        product.stop()
        assert guest.check(f"blockdev --getro {stack.device}").strip() == "1"
    finally:
        product.stop()
        guest.check(f"lvchange -prw {stack.lvm_name}", timeout_s=60)


def test_a_threshold_that_somebody_sets_just_before_a_stop_stays(
    guest: Session, stack: DmCacheStack
) -> None:
    message = f"dmsetup message {stack.name} 0 migration_threshold 7777"
    _, log = ended(stack, signal.SIGTERM, lambda _: message, tick_ms=SELDOM_MS)
    assert stack.threshold == 7777
    assert "somebody else" in log
    assert "7777" in log
    stack.threshold = 2048


def test_lvm_and_the_kernel_agree_after_a_stop(guest: Session, stack: DmCacheStack) -> None:
    change = f"lvchange --cachesettings migration_threshold=4096 {stack.lvm_name}"
    ended(stack, signal.SIGTERM, lambda _: change, tick_ms=SELDOM_MS)
    shown = ["lvs", "--noheadings", "-o", "cache_settings,kernel_cache_settings", stack.lvm_name]
    says = guest.check(shown)
    assert says.count("migration_threshold=4096") == 2, says
    guest.check(f"lvchange --cachesettings migration_threshold=default {stack.lvm_name}")


@pytest.mark.full
def test_a_snapshot_under_the_old_name_costs_no_error_of_the_kernel(
    guest: Session, stack: DmCacheStack
) -> None:
    make = "dmesg -C; lvcreate -qq -y -s -L 32m -n snap"
    _, log = ended(stack, signal.SIGTERM, lambda _: f"{make} {stack.lvm_name}", tick_ms=SELDOM_MS)
    try:
        assert "does not support messages" not in guest.check("dmesg")
        assert "could be put back" not in log
    finally:
        guest.check("lvremove -qq -f vg/snap", timeout_s=60)
    assert stack.threshold == 2048


@pytest.mark.full
def test_a_volume_that_was_activated_again_keeps_its_values(
    guest: Session, stack: DmCacheStack
) -> None:
    """The same name, uuid and even value; but another device of the kernel.

    The last test of this file: the shared volume is another one afterwards.
    """
    product, _ = ended(stack, signal.SIGKILL)
    assert stack.threshold == 0
    guest.check(f"lvchange -an {stack.lvm_name}; lvchange -ay {stack.lvm_name}", timeout_s=60)
    stack.threshold = 0
    assert "created again" in " ".join(product.cli("restore").split())
    assert stack.threshold == 0
    stack.threshold = 2048
    stack.expect_changed("devices", "hdd:queue/scheduler", "volume:queue/max_sectors_kb")
