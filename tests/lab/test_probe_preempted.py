# SPDX-License-Identifier: GPL-2.0-only
"""A real-time task preempts programs of the probe, where the kernel (7.0 and later) lets it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.fio_compare import preempts_programs
from tests.lab.kernel_matrix import on_kernels
from tests.lab.probe import GuestProbe
from tests.lab.session import Session
from tests.probe_records import Record, of_type

pytestmark = [
    on_kernels("requests whose programs were skipped are made good"),
    # Only the newest kernel skips runs often.
    pytest.mark.full,
]
DISK = "nullb0"
# Wakes by a timer and reads from the same disk, on the same CPU.
WAKER = """
import mmap, os, sys, time
page = mmap.mmap(-1, 4096)
disk = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
while True:
    os.preadv(disk, [page], 0)
    time.sleep(0.0005)
"""
READS: dict[str, str | int] = {"time_based": 1, "runtime": 8, "size": "64m", "cpus_allowed": 0}


@contextmanager
def waker(guest: Session, disk: str) -> Iterator[None]:
    """Run a real-time task on the first CPU."""
    argv = ["taskset", "--cpu-list", "0", "chrt", "--fifo", "50", "python3", "-c", WAKER, disk]
    process = guest.spawn(argv)
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def load(guest: Session, probe: GuestProbe, disk: str, name: str) -> Record:
    """Read from the disk with a waker beside, and return a tick after it."""
    with waker(guest, disk):
        fio.run(guest, fio.Job(disk, "randread", "4k", options=READS), seed=1)
    probe.tick(name)
    last = probe.tick(name)
    warned = of_type(probe.records(), "warn", what="missed")
    assert bool(last["lost"]["missed"]) == bool(warned) == preempts_programs(guest)
    return last


@pytest.fixture
def disk(guest: Session) -> Iterator[str]:
    guest.run(["modprobe", "null_blk", "queue_mode=2", "gb=1", "nr_devices=1"]).check()
    yield f"/dev/{DISK}"
    guest.run(["modprobe", "--remove", "null_blk"]).check()


def test_skipped_runs_leave_no_request_of_a_disk_in_flight(guest: Session, disk: str) -> None:
    number = guest.read(f"/sys/block/{DISK}/dev").strip()
    with GuestProbe(guest, "--tick-ms", "100") as probe:
        probe.send(f"track disk kind=disk volume={number} backing={number}")
        probe.wait_for("track", vol="disk")
        assert load(guest, probe, disk, "disk")["inflight"] == {"read": 0, "write": 0}


def test_skipped_runs_leave_no_request_of_bcache_in_flight(guest: Session) -> None:
    with BcacheStack(guest) as stack, GuestProbe(guest, "--tick-ms", "100") as probe:
        fio.run(guest, fio.Job(stack.device, "write", "1m", options={"size": "64m"}), seed=1)
        probe.track(stack)
        last = load(guest, probe, stack.device, stack.volume)
        assert last["inflight"] == {"read": 0, "write": 0}
