# SPDX-License-Identifier: GPL-2.0-only
"""The lab's promises about devices and volumes: their speed, and that no stack is left unclean."""

from __future__ import annotations

import pytest

from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import GIB, MIB, control_path
from tests.lab.errors import CommandFailed, UncleanStack
from tests.lab.hdd_control import HddControl, HddCounters
from tests.lab.knobs import bytes_from_human
from tests.lab.session import LogRecord, Session
from tests.lab.stack import trouble

AT_ONCE = {"writeback_delay": 0}


def counters(guest: Session, name: str) -> HddCounters:
    control = HddControl(control_path(guest.folder, name))
    try:
        return control.counters
    finally:
        control.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("512", 512), ("4.0k", 4096), ("63.9M", 67004006), ("1.5G", 3 * GIB // 2)],
)
def test_what_bcache_prints_is_read_to_its_last_digit(text: str, expected: int) -> None:
    assert bytes_from_human(text) == expected


@pytest.mark.parametrize(
    ("record", "bad"),
    [
        ("6,900,1000000,-;bcache: register_bdev() registered backing device vda", False),
        ("4,900,1000000,-;WARNING: CPU: 0 PID: 1 at drivers/md/bcache/btree.c:1", True),
        ("4,900,1000000,-;task bcache_writebac:99 blocked for more than 120 seconds.", True),
        ("3,900,1000000,-;bcache: anything at the level of an error", True),
        ("12,900,1000000,-;a program's remark\n SUBSYSTEM=block", False),
        ("11,900,1000000,-;a program's error", True),
    ],
)
def test_kernel_messages_that_are_trouble(record: str, bad: bool) -> None:
    assert bool(trouble([LogRecord.parse(record)])) is bad


def test_random_reads_of_the_hdd_are_as_slow_as_a_disks(guest: Session) -> None:
    device = f"/dev/{guest.device('hdd1')}"
    job = fio.Job(device, "randread", "4k", options={"io_size": "800k"})
    before = counters(guest, "hdd1")
    done = fio.run(guest, job, seed=11).only.read
    counted = counters(guest, "hdd1") - before
    assert done.ios == 200
    # fio looks at the device's first sectors, too.
    assert 200 <= counted.reads < 220
    # By the disk's own clock: how much the guest adds depends on what else the host does.
    assert 6e6 < counted.busy_ns / counted.reads < 12e6
    assert counted.busy_ns < done.runtime_ms * 1e6 * 1.1


def test_the_hdd_streams_at_a_disks_pace(guest: Session) -> None:
    device = f"/dev/{guest.device('hdd1')}"
    options: dict[str, str | int] = {"size": "200m", "ioengine": "libaio", "iodepth": 4}
    job = fio.Job(device, "read", "1m", options=options)
    before = counters(guest, "hdd1")
    done = fio.run(guest, job, seed=12).only.read
    counted = counters(guest, "hdd1") - before
    assert done.bytes == 200 * MIB
    assert done.bytes_per_s < 131e6
    assert counted.read_bytes / counted.busy_ns * 1e9 > 70e6


def test_the_ssd_is_many_times_faster_than_the_hdd(guest: Session) -> None:
    device = f"/dev/{guest.device('ssd1')}"
    options = {"io_size": "4m"}
    done = fio.run(guest, fio.Job(device, "randread", "4k", options=options), seed=13).only.read
    assert done.p50_ns < 2_000_000


def test_devices_present_themselves_like_the_ones_they_stand_for(guest: Session) -> None:
    queues = [f"/sys/block/{guest.device(name)}/queue" for name in ("hdd0", "ssd0")]
    assert [guest.read(f"{queue}/rotational") for queue in queues] == ["1", "0"]
    assert "[mq-deadline]" in guest.read(f"{queues[0]}/scheduler")


@pytest.mark.parametrize(
    "scheduler",
    [
        "mq-deadline",
        pytest.param("none", marks=pytest.mark.full),
        pytest.param("bfq", marks=pytest.mark.full),
    ],
)
def test_a_stack_is_made_and_left_clean_again_and_again(guest: Session, scheduler: str) -> None:
    with BcacheStack(guest, scheduler=scheduler) as stack:
        assert stack.state() == "clean"
        assert stack.knob("cache_mode") == "writeback"
        assert stack.knob("hdd:queue/scheduler") == scheduler
    assert guest.run(["ls", stack.sysfs]).rc != 0


def test_dirty_data_is_counted_to_the_byte_and_drains(guest: Session) -> None:
    # A busy host makes the cache device look congested, and the kernel then bypasses it.
    never = {"cache/congested_read_threshold_us": 0, "cache/congested_write_threshold_us": 0}
    # Between two ways of counting the kernel must not go on.
    still = {"writeback_running": 0}
    with BcacheStack(guest, settings={**AT_ONCE, **never, **still}) as stack:
        options = {"size": "16m"}
        done = fio.run(guest, fio.Job(stack.device, "write", "64k", options=options), seed=14)
        # 4 MiB in, the kernel takes the stream for one and lets it bypass the cache.
        dirty_bytes = stack.dirty_bytes_exact()
        assert done.bytes == 16 * MIB
        assert 0 < dirty_bytes <= 16 * MIB
        assert abs(stack.dirty_bytes() - dirty_bytes) <= MIB / 10
        assert stack.state() == "dirty"
        stack.drain()
        assert stack.dirty_bytes_exact() == 0


def test_leaving_a_stack_names_a_knob_that_was_not_put_back(guest: Session) -> None:
    with (
        pytest.raises(UncleanStack, match="knob writeback_percent: 10 -> 33"),
        BcacheStack(guest) as stack,
    ):
        stack.set_knob("writeback_percent", 33)


def test_a_tunable_of_the_scheduler_is_a_knob_while_it_has_that(guest: Session) -> None:
    tunable = "hdd:queue/iosched/read_expire"
    with (
        pytest.raises(UncleanStack, match=f"knob {tunable}: 500 -> 300"),
        BcacheStack(guest) as stack,
    ):
        stack.set_knob(tunable, 300)
    with BcacheStack(guest) as other:
        # Without one the queue is shorter, too.
        other.expect_changed("hdd:queue/scheduler", "hdd:queue/nr_requests")
        other.set_knob("hdd:queue/scheduler", "none")
    with BcacheStack(guest, scheduler="mq-deadline") as fresh:
        assert fresh.knob(tunable) == "500", "the kernel's own, with a scheduler made anew"


def test_a_declared_change_may_stay(guest: Session) -> None:
    with BcacheStack(guest) as stack:
        stack.expect_changed("cache/congested_read_threshold_us", "hdd:queue/read_ahead_kb")
        stack.set_knob("cache/congested_read_threshold_us", 0)
        stack.set_knob("hdd:queue/read_ahead_kb", 256)
    with BcacheStack(guest) as fresh:
        fresh.set_knob("hdd:queue/read_ahead_kb", 128)
        fresh.expect_changed("hdd:queue/read_ahead_kb")


def test_leaving_a_stack_after_a_kernel_warning_is_a_failure(guest: Session) -> None:
    with pytest.raises(UncleanStack, match=r"kernel: .*WARNING: made up"), BcacheStack(guest):
        guest.check("echo '<4>WARNING: made up by a test' > /dev/kmsg")


def test_a_volume_that_broke_is_noticed_and_taken_down(guest: Session) -> None:
    with pytest.raises(UncleanStack, match="is in state 'gone'"), BcacheStack(guest) as stack:
        stack.set_knob("stop", 1)
        stack.session.check(f"while [ -e {stack.sysfs} ]; do sleep 0.1; done")
    with BcacheStack(guest) as again:
        assert again.state() == "clean"


def test_a_failing_test_keeps_its_own_error_and_learns_of_the_unclean_stack(
    guest: Session,
) -> None:
    with pytest.raises(CommandFailed, match="exit 3") as failed, BcacheStack(guest) as stack:
        stack.set_knob("sequential_cutoff", 0)
        guest.check("exit 3")
    assert "knob sequential_cutoff: 4.0M -> 0" in "".join(failed.value.__notes__)


def test_settings_are_the_originals_of_a_stack(guest: Session) -> None:
    with BcacheStack(guest, settings={"writeback_percent": 20}) as stack:
        assert stack.originals["writeback_percent"] == "20"
        stack.set_knob("writeback_percent", 10)
        assert stack.changed_knobs() == {"writeback_percent": ("20", "10")}
        stack.set_knob("writeback_percent", 20)


def test_two_stacks_stand_side_by_side(guest: Session) -> None:
    with BcacheStack(guest) as one, BcacheStack(guest, hdd="hdd1", ssd="ssd1") as other:
        assert {one.volume, other.volume} == {"bcache0", "bcache1"}
        assert one.dev_t("hdd") != other.dev_t("hdd")
