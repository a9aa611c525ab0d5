# SPDX-License-Identifier: GPL-2.0-only
"""Volumes are found with all their devices; anything else is refused with the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.errors import NotFound
from ebbgate.probes import topology
from ebbgate.probes.block import physical_devices
from ebbgate.units import GIB
from tests.fake_sysfs import SET_UUID, FakeSysfs, fake_bcache, fake_multipath


@pytest.fixture
def fake(tmp_path: Path) -> FakeSysfs:
    return fake_bcache(tmp_path / "sys")


def test_a_volume_is_found_with_its_devices(fake: FakeSysfs) -> None:
    (found,) = topology.discover(fake.sysfs)
    assert (found.name, found.devno, found.set_uuid) == ("bcache0", (252, 0), SET_UUID)
    assert (found.backing.name, found.backing.devno) == ("vda", (254, 0))
    assert [(cache.name, cache.size_bytes) for cache in found.caches] == [("vdb", GIB)]


def test_the_queue_of_the_backing_device_is_described(fake: FakeSysfs) -> None:
    backing = topology.discover(fake.sysfs)[0].backing
    assert (backing.scheduler, backing.schedulers) == ("mq-deadline", ("mq-deadline", "none"))
    assert (backing.nr_requests, backing.queue_depth, backing.rotational) == (64, 32, True)


def test_a_missing_attribute_of_a_device_is_unknown(fake: FakeSysfs) -> None:
    fake.remove("/sys/block/vda/device/queue_depth")
    fake.remove("/sys/block/vda/queue/rotational")
    fake.remove("/sys/block/vda/queue/scheduler")
    backing = topology.discover(fake.sysfs)[0].backing
    assert (backing.queue_depth, backing.rotational, backing.scheduler) == (None, None, None)


def test_a_scheduler_without_brackets_is_read(fake: FakeSysfs) -> None:
    fake.write("/sys/block/vda/queue/scheduler", "none")
    assert topology.discover(fake.sysfs)[0].backing.scheduler == "none"


def test_a_partition_as_backing_device_has_the_queue_of_its_disk(tmp_path: Path) -> None:
    fake = FakeSysfs(tmp_path)
    fake.disk("sda", "8:0", queue_depth=31)
    fake.partition("sda", "sda3", "8:3")
    fake.bcache(backing="sda3", cache=None)
    (found,) = topology.discover(fake.sysfs)
    assert (found.backing.name, found.backing.devno) == ("sda3", (8, 3))
    assert (found.backing.scheduler, found.backing.queue_depth) == ("mq-deadline", 31)


def test_a_volume_without_cache_is_a_volume(tmp_path: Path) -> None:
    fake = FakeSysfs(tmp_path)
    fake.disk("vda", "254:0")
    fake.bcache(cache=None)
    (found,) = topology.discover(fake.sysfs)
    assert (found.caches, found.set_uuid) == ((), "")


def test_volumes_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    fake = FakeSysfs(tmp_path)
    for number in (10, 2):
        fake.disk(f"sd{number}", f"8:{number}")
        fake.bcache(f"bcache{number}", backing=f"sd{number}", cache=None, devno=f"252:{number}")
    assert [found.name for found in topology.discover(fake.sysfs)] == ["bcache2", "bcache10"]


def test_a_flash_only_volume_is_left_out(fake: FakeSysfs) -> None:
    """Its folder `bcache` is its own, with a link to the cache set (super.c, flash_dev_run)."""
    real, cache_set = "/sys/devices/virtual/block/bcache1", f"/sys/fs/bcache/{SET_UUID}"
    fake.write(f"{real}/dev", "252:16")
    fake.write(f"{real}/bcache/size", "1.0G")
    fake.links("bcache1", real, "252:16")
    fake.link(f"{real}/bcache/cache", cache_set)
    fake.link(f"{cache_set}/volume0", f"{real}/bcache")
    assert [found.name for found in topology.discover(fake.sysfs)] == ["bcache0"]


def test_a_vanishing_volume_is_left_out(fake: FakeSysfs) -> None:
    fake.remove("/sys/block/bcache0/dev")
    assert topology.discover(fake.sysfs) == ()


@pytest.mark.parametrize("name", ["bcache0", "/dev/bcache0"])
def test_a_volume_is_found_by_name_and_by_path(fake: FakeSysfs, name: str) -> None:
    assert topology.find(fake.sysfs, name).name == "bcache0"


@pytest.mark.parametrize("name", ["", "..", "/", "sdz/queue"])
def test_what_is_no_device_is_not_called_an_ordinary_one(fake: FakeSysfs, name: str) -> None:
    fake.disk("sdz", "65:144")
    fake.write("/sys/class/block/sdz/queue/scheduler", "[none]")
    with pytest.raises(NotFound, match="no such volume: "):
        topology.find(fake.sysfs, name)


def test_an_ordinary_disk_is_reported_as_not_cached(fake: FakeSysfs) -> None:
    fake.disk("sdz", "65:144")
    with pytest.raises(NotFound, match="not cached: sdz is an ordinary block device") as caught:
        topology.find(fake.sysfs, "sdz")
    assert caught.value.hint == "cached volumes here: bcache0"
    assert caught.value.exit_code == 66


def test_an_unknown_name_lists_the_volumes(fake: FakeSysfs) -> None:
    with pytest.raises(NotFound, match=r"no such volume: bcache7\n.*bcache0"):
        topology.find(fake.sysfs, "bcache7")


def test_a_machine_without_volumes_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no cached volume here"):
        topology.find(FakeSysfs(tmp_path).sysfs, "bcache0")


@pytest.mark.parametrize(("part", "role"), [("vda", "the backing"), ("vdb", "a cache")])
def test_a_part_of_a_volume_names_the_volume(fake: FakeSysfs, part: str, role: str) -> None:
    with pytest.raises(NotFound, match=f"{part} is {role} device of bcache0") as caught:
        topology.find(fake.sysfs, f"/dev/{part}")
    assert "bcache0" in caught.value.hint


def test_the_disks_below_a_stack_are_found(fake: FakeSysfs) -> None:
    fake.disk("md0", "9:0", scheduler="none", queue_depth=None)
    fake.link("/sys/class/block/md0/slaves/vda", "/sys/block/vda")
    fake.link("/sys/class/block/md0/slaves/vdb", "/sys/block/vdb")
    below = physical_devices(fake.sysfs, "md0")
    assert [found.name for found in below] == ["vda", "vdb"]
    assert [found.name for found in physical_devices(fake.sysfs, "vda")] == ["vda"]


def test_the_disks_below_a_partition_of_an_array_are_found(fake: FakeSysfs) -> None:
    """The folder `slaves` is that of the array: a partition has none."""
    fake.disk("md126", "9:126", scheduler="none", queue_depth=None)
    fake.partition("md126", "md126p1", "259:0")
    fake.disk("sda", "8:0", queue_depth=31)
    fake.link("/sys/class/block/md126/slaves/sda", "/sys/block/sda")
    assert [found.name for found in physical_devices(fake.sysfs, "md126p1")] == ["sda"]
    fake.bcache("bcache1", backing="md126p1", cache=None, devno="252:16")
    assert [disk.name for disk in topology.find(fake.sysfs, "bcache1").disks] == ["sda"]


def test_the_disks_of_a_volume_are_whole_disks(tmp_path: Path) -> None:
    fake = FakeSysfs(tmp_path)
    for name, devno in (("sda", "8:0"), ("sdb", "8:16")):
        fake.disk(name, devno, queue_depth=31)
        fake.partition(name, f"{name}1", f"{devno[:-1]}{int(devno[-1]) + 1}")
    fake.disk("md0", "9:0", scheduler="none", queue_depth=None)
    for part in ("sdb1", "sda1"):
        fake.link(f"/sys/class/block/md0/slaves/{part}", f"/sys/class/block/{part}")
    fake.bcache(backing="md0", cache=None)
    (found,) = topology.discover(fake.sysfs)
    assert [(disk.name, disk.queue_depth) for disk in found.disks] == [("sda", 31), ("sdb", 31)]


@pytest.mark.parametrize(
    ("schedulers", "queues"),
    [("[mq-deadline] none", ["dm-0"]), ("none", ["sda", "sdb"])],
    ids=["requests", "bios"],
)
def test_a_multipath_device_has_the_queue_of_its_paths(
    tmp_path: Path, schedulers: str, queues: list[str]
) -> None:
    fake = fake_multipath(tmp_path, schedulers)
    fake.disk("dm-1", "253:1", scheduler="none", queue_depth=None)
    fake.link("/sys/class/block/dm-1/slaves/dm-0", "/sys/block/dm-0")
    fake.bcache(backing="dm-1", cache=None)
    (found,) = topology.discover(fake.sysfs)
    assert [disk.name for disk in found.disks] == ["sda", "sdb"]
    assert [queue.name for queue in found.queues] == queues


def test_a_volume_stays_the_same_whatever_its_queues_are_set_to(fake: FakeSysfs) -> None:
    before = topology.discover(fake.sysfs)
    fake.write("/sys/block/vda/device/queue_depth", "4")
    fake.write("/sys/block/vda/queue/scheduler", "mq-deadline [none]")
    assert topology.discover(fake.sysfs) == before
