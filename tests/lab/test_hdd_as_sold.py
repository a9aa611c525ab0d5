# SPDX-License-Identifier: GPL-2.0-only
"""A hard disk like a user's, seen from the guest: reordering, and a write cache that can be lost;
and ebbgate's knobs of such a disk.

Times are the disk's own (`busy_ns`) wherever that is possible: what the guest adds depends on what
else the host does.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.bench import gap_drain
from tests.bench.product import POLICIES, PYTHON, Product, stage_in_guest
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.devices import GIB, MIB, Attachment, Ssd, as_sold, control_path
from tests.lab.dm_stack import DmCacheStack
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.hdd_control import HddControl
from tests.lab.session import Session
from tests.lab.wait import wait_until

SHALLOW_DEPTH = "4"
SHALLOW = f"""
version: 1
name: shallow
why: Let bfq hold write-back behind users.
backing_scheduler: bfq
strategies:
  - idle_destage: {{queue_depth: {SHALLOW_DEPTH}}}
  - stream_bypass
"""
_COUNT_BLOCKS = """
import sys
pipe = sys.stdin.buffer
print(sum(any(block) for block in iter(lambda: pipe.read(4096), b"")))"""


_ASK = """
import sys
from pathlib import Path
from ebbgate.kernel.disk_power import ask
found = ask(Path("/dev") / sys.argv[1])
print(found.state, found.why, sep="\\n")"""
_ATTACHMENTS = [Attachment.AHCI, pytest.param(Attachment.SCSI, marks=pytest.mark.full)]


@pytest.fixture(scope="module", params=_ATTACHMENTS)
def sold_guest(request: pytest.FixtureRequest) -> Iterator[Session]:
    try:
        with Guest([as_sold("hdd0", request.param), Ssd("ssd0")]) as session:
            yield session
    except NoLab as reason:
        without_lab(reason)


@pytest.fixture
def control(sold_guest: Session) -> Iterator[HddControl]:
    """The disk's own page; the disk is idle and its cache empty."""
    made = HddControl(control_path(sold_guest.folder, "hdd0"))
    wait_until(lambda: made.cached_bytes == 0, 20, "the disk to write its cache out")
    yield made
    made.scale = 1.0
    made.close()


def sysfs(guest: Session, name: str) -> str:
    return f"/sys/block/{guest.device('hdd0')}/{name}"


def read_ns(guest: Session, control: HddControl, depth: int) -> float:
    """Time of the head for a random read of 4 KiB with so many waiting."""
    options: dict[str, str | int] = {"io_size": "1m", "ioengine": "libaio", "iodepth": depth}
    job = fio.Job(f"/dev/{guest.device('hdd0')}", "randread", "4k", options=options)
    before = control.counters
    fio.run(guest, job, seed=depth)
    counted = control.counters - before
    assert counted.reads >= 256
    return counted.busy_ns / counted.reads


def write_ns(guest: Session, **options: str | int) -> int:
    """Median latency of a random write of 4 KiB to the first half of the disk."""
    options = {"size": "1g", "io_size": "200k", **options}
    job = fio.Job(f"/dev/{guest.device('hdd0')}", "randwrite", "4k", options=options)
    return fio.run(guest, job, seed=3).only.write.p50_ns


def test_the_disk_presents_itself_as_a_hard_disk(sold_guest: Session) -> None:
    names = ("queue/rotational", "queue/write_cache", "device/queue_depth")
    values = [sold_guest.read(sysfs(sold_guest, name)) for name in names]
    assert values[:2] == ["1", "write back"]
    assert 31 <= int(values[2]) <= 32
    assert int(sold_guest.read(sysfs(sold_guest, "queue/max_sectors_kb"))) >= 1280


def test_the_disk_reorders_what_its_queue_depth_lets_it_have(
    sold_guest: Session, control: HddControl
) -> None:
    depth = sysfs(sold_guest, "device/queue_depth")
    before = sold_guest.read(depth)
    single_ns = read_ns(sold_guest, control, 1)
    assert 6e6 < single_ns < 12e6
    control.forget_depth()
    assert read_ns(sold_guest, control, 32) < 0.8 * single_ns
    assert control.depth_max > 8
    sold_guest.write(depth, "2")
    control.forget_depth()
    read_ns(sold_guest, control, 32)
    assert control.depth_max == 2
    sold_guest.write(depth, before)
    assert sold_guest.read(depth) == before


def test_streams_run_at_the_platters_pace(sold_guest: Session, control: HddControl) -> None:
    options: dict[str, str | int] = {"size": "128m", "ioengine": "libaio", "iodepth": 4}
    job = fio.Job(f"/dev/{sold_guest.device('hdd0')}", "read", "1m", options=options)
    before = control.counters
    done = fio.run(sold_guest, job, seed=12).only.read
    counted = control.counters - before
    # Fast at the start, where the track buffer may hold the first part already.
    assert done.bytes_per_s < 140e6
    assert counted.read_bytes / counted.busy_ns * 1e9 > 80e6


def test_the_write_cache_answers_at_once_until_the_guest_switches_it_off(
    sold_guest: Session, control: HddControl
) -> None:
    cached_ns = write_ns(sold_guest)
    kind = sold_guest.check(f"ls {sysfs(sold_guest, 'device/scsi_disk')}").strip()
    knob = sysfs(sold_guest, f"device/scsi_disk/{kind}/cache_type")
    sold_guest.write(knob, "write through")
    try:
        assert sold_guest.read(sysfs(sold_guest, "queue/write_cache")) == "write through"
        assert write_ns(sold_guest) > 3 * cached_ns
        assert control.cached_bytes == 0
    finally:
        sold_guest.write(knob, "write back")


def test_a_flush_waits_for_the_platter(sold_guest: Session, control: HddControl) -> None:
    before = control.counters
    write_ns(sold_guest, fsync=1)
    counted = control.counters - before
    assert counted.flushes >= 49
    assert counted.busy_ns / counted.flushes > 2e6
    assert control.cached_bytes == 0


def test_a_power_cut_loses_what_was_not_flushed_and_nothing_else(
    sold_guest: Session, control: HddControl
) -> None:
    device, start = f"/dev/{sold_guest.device('hdd0')}", GIB // MIB
    flushed, unflushed = f"{start + 64}m", f"{start + 128}m"
    options: dict[str, str | int] = {"offset": flushed, "size": "16m", "io_size": "2m"}
    end_fsync = {**options, "end_fsync": 1}
    fio.run(sold_guest, fio.Job(device, "randwrite", "4k", options=end_fsync), seed=5)
    assert control.cached_bytes == 0
    # Slow enough that little is written out before the cut.
    control.scale = 50.0
    options["offset"] = unflushed
    fio.run(sold_guest, fio.Job(device, "randwrite", "4k", options=options), seed=6)
    lost_before = control.counters.lost_bytes
    control.cut_power()
    control.scale = 1.0
    lost_bytes = control.counters.lost_bytes - lost_before
    assert 0 < lost_bytes <= 2 * MIB
    assert written_bytes(sold_guest, device, start + 64) == 2 * MIB
    assert written_bytes(sold_guest, device, start + 128) == 2 * MIB - lost_bytes


def written_bytes(guest: Session, device: str, start_mib: int) -> int:
    """Blocks that are not zero, in 16 MiB of the disk itself."""
    read = f"dd if={device} bs=1M iflag=direct status=none skip={start_mib} count=16"
    return int(guest.check(f"{read} | python3 -c '{_COUNT_BLOCKS}'")) * 4096


def test_a_volume_on_it_is_made_drained_and_left_clean(
    sold_guest: Session, control: HddControl
) -> None:
    settings: dict[str, str | int] = {"writeback_delay": 0, "sequential_cutoff": 0}
    with BcacheStack(sold_guest, settings=settings) as stack:
        options = {"size": "256m", "io_size": "8m"}
        fio.run(sold_guest, fio.Job(stack.device, "randwrite", "64k", options=options), seed=7)
        before = control.counters
        stack.drain()
        assert stack.dirty_bytes() == 0
        assert (control.counters - before).write_bytes > 0


def test_the_power_state_is_asked_for_without_a_request_to_the_platter(
    sold_guest: Session, control: HddControl
) -> None:
    disk, site = sold_guest.device("hdd0"), stage_in_guest(sold_guest)
    requests = sysfs(sold_guest, "stat")
    before, counted = control.counters, sold_guest.read(requests)
    found = sold_guest.run([PYTHON, "-c", _ASK, disk], env={"PYTHONPATH": str(site)})
    state, why = found.check().stdout.splitlines()
    # Of QEMU's disks only those of AHCI take ATA commands; their platters never stop.
    ahci = sold_guest.read(sysfs(sold_guest, "device/vendor")).strip() == "ATA"
    assert (state, bool(why)) == (("active", False) if ahci else ("unknown", True))
    assert control.counters == before
    assert sold_guest.read(requests) == counted


def test_queue_and_scheduler_come_with_a_gap_and_go_with_the_daemon(
    sold_guest: Session, control: HddControl
) -> None:
    depth, disk = sysfs(sold_guest, "device/queue_depth"), sold_guest.device("hdd0")
    deep, length = sold_guest.read(depth), sysfs(sold_guest, "queue/nr_requests")
    expire = sysfs(sold_guest, "queue/iosched/read_expire")
    # A person's own, which the kernel resets at each switch of the scheduler.
    sold_guest.check(f"echo 100 > {length}; echo 300 > {expire}")
    sold_guest.check(f"mkdir -p {POLICIES}")
    sold_guest.put_file(f"{POLICIES}/shallow.yaml", SHALLOW)
    pieces = gap_drain.Pieces(kib=64, dirty_mib=96, range_mib=256)
    with BcacheStack(sold_guest) as stack, Product(sold_guest) as product:
        stack.expect_changed("writeback_rate")
        product.wait_until(lambda: stack.knob("hdd:queue/scheduler") == "bfq", 30, "bfq")
        assert (sold_guest.read(depth), sold_guest.read(length)) == (deep, "100")
        fio.run(sold_guest, gap_drain.fill_job(stack.device, pieces), seed=4)
        # A late request closes the gate for a moment, and the queue stays shallow meanwhile.
        product.wait_until(
            lambda: (sold_guest.read(depth), stack.knob("writeback_percent")) == ("4", "0"),
            *(30, "a shallow queue and an open gate"),
        )
        assert "queue of the disks" in product.cli("explain", stack.volume)
        product.wait_until(lambda: stack.dirty_bytes() == 0, 60, "all to be written back")
        product.wait_until(lambda: sold_guest.read(depth) == deep, 30, "the deep queue")
        product.cli("advise", stack.volume)
        product.wait_until(
            lambda: [*sold_guest.read_many([length, expire]).values()] == ["100", "300"],
            *(30, "the disk's own scheduler as a person has set it"),
        )
        product.cli("enforce", stack.volume)
        fio.run(sold_guest, gap_drain.fill_job(stack.device, pieces), seed=5)
        product.wait_until(lambda: sold_guest.read(depth) == "4", 30, "a shallow queue")
        product.stop(signal.SIGKILL)
        assert sold_guest.read(depth) == "4"
        assert f"queue_depth:{disk}" in product.cli("restore")
        assert (sold_guest.read(depth), stack.knob("hdd:queue/scheduler")) == (deep, "mq-deadline")
        assert (sold_guest.read(length), sold_guest.read(expire)) == ("100", "300")


def test_more_of_dm_cache_goes_on_at_once_and_all_comes_back(sold_guest: Session) -> None:
    """Without the kernel's own throttling, and with a scheduler that takes more to sort."""
    names = ("wbt_lat_usec", "nr_requests", "iosched/async_depth")
    files = [sysfs(sold_guest, f"queue/{name}") for name in names]
    more = ["0", "768", "768"]

    def values() -> list[str | None]:
        return [*sold_guest.read_many(files).values()]

    # Another test has set a length, and the kernel the depth of the length before.
    scheduler = sysfs(sold_guest, "queue/scheduler")
    sold_guest.check(f"echo none > {scheduler}; echo mq-deadline > {scheduler}")
    policy = gap_drain.shallow_policy(sold_guest, 0, settings="wbt_lat_usec: 0")
    with DmCacheStack(sold_guest) as stack, policy:
        before = values()
        assert before != more
        with Product(sold_guest) as product:
            product.wait_until(lambda: values() == more, 30, "more to go on at once")
            product.cli("advise", stack.lvm_name)
            product.wait_until(lambda: values() == before, 30, "the disk as it was")
            product.cli("enforce", stack.lvm_name)
            product.wait_until(lambda: values() == more, 30, "more to go on again")
            product.stop(signal.SIGKILL)
            assert values() == more
            assert "wbt_lat_usec" in product.cli("restore")
            assert values() == before
