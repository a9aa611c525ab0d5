# SPDX-License-Identifier: GPL-2.0-only
"""A hold on a real bcache: the disk is left alone, and the kernel's thread comes back.

I/O: the guest.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from tests.bench.gap_drain import Pieces, fill_job
from tests.bench.product import POLICIES, Product
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.session import Session

_RULE = """
version: 1
name: sleep
why: Let the disk sleep.
rules:
  - {name: sleep, why: It may sleep., when: {state: STATE}, set: {destage_rate: hold}}
"""
_FILE = f"{POLICIES}/sleep.yaml"
_SMALL = Pieces(kib=4, dirty_mib=16, range_mib=256)
_QUIET_S = 20
_DISK_WRITES = 4
"""The column of completed writes in a disk's `stat`."""


class HoldHarness:
    """A volume with dirty data and a daemon whose policy holds it."""

    def __init__(self, guest: Session, stack: BcacheStack, product: Product) -> None:
        self.guest = guest
        self.stack = stack
        self.product = product

    def wait_held(self) -> None:
        self.product.wait_until(self.held, 90, "the hold")

    def end_hold(self) -> None:
        self.guest.put_file(_FILE, _RULE.replace("STATE", "clean"))
        self.guest.check(f"kill -HUP {self.product.pid}")
        self.product.wait_until(lambda: self.running == "1", 30, "the end of the hold")

    def held(self) -> bool:
        """Is nothing under way any more?"""
        reason = str(self.product.live(self.stack.volume).get("gate", {}).get("reason"))
        return self.running == "0" and "; held" in reason and "under way" not in reason

    @property
    def running(self) -> str:
        return self.stack.knob("writeback_running")

    def disk_writes(self) -> int:
        words = self.guest.read(f"/sys/block/{self.stack.hdd}/stat").split()
        return int(words[_DISK_WRITES])


@pytest.fixture
def harness(guest: Session) -> Iterator[HoldHarness]:
    guest.check(f"mkdir -p {POLICIES}")
    guest.put_file(_FILE, _RULE.replace("STATE", "dirty"))
    # Without a delay the kernel's thread has a full key buffer when the hold begins.
    settings: dict[str, str | int] = {"sequential_cutoff": 0, "writeback_delay": 0}
    with BcacheStack(guest, settings=settings) as stack:
        stack.expect_changed("writeback_rate")
        fio.run(guest, fill_job(stack.device, _SMALL), seed=2)
        try:
            with Product(guest) as product:
                yield HoldHarness(guest, stack, product)
        finally:
            guest.check(f"rm -rf {POLICIES}")


def test_no_write_reaches_the_disk_while_it_is_held(harness: HoldHarness) -> None:
    harness.wait_held()
    dirty_bytes, writes = harness.stack.dirty_bytes(), harness.disk_writes()
    options: dict[str, str | int] = {"rate_iops": 25, "runtime": _QUIET_S, "time_based": 1}
    job = fio.Job(harness.stack.device, "randwrite", "4k", options={"size": "256m", **options})
    started = time.monotonic()
    fio.run(harness.guest, job, seed=3)
    assert time.monotonic() - started >= _QUIET_S
    assert harness.disk_writes() == writes
    assert harness.stack.dirty_bytes() > dirty_bytes
    assert "; held" in harness.product.cli("explain", harness.stack.volume)
    harness.end_hold()
    harness.product.wait_until(lambda: harness.stack.dirty_bytes() == 0, 60, "the drain")


@pytest.mark.full
def test_a_killed_daemon_s_hold_is_restored(harness: HoldHarness) -> None:
    harness.wait_held()
    harness.product.stop(signal.SIGKILL)
    assert harness.running == "0"
    assert "writeback_running" in harness.product.cli("restore")
    assert (harness.running, harness.stack.knob("writeback_percent")) == ("1", "10")
