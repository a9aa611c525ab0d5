# SPDX-License-Identifier: GPL-2.0-only
"""What else is on the disks below a volume: other volumes, file systems, swap."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.volume import NO_USERS, DiskUsers
from ebbgate.probes.disk_users import DeviceUsers, devices_in_use, disk_users
from ebbgate.probes.topology import discover
from tests.fake_sysfs import SET_UUID, FakeSysfs, fake_bcache, two_on_a_disk

MOUNTS = """\
22 1 8:3 / / rw,relatime shared:1 - ext4 /dev/sda3 rw
23 22 8:3 / /var/tmp rw - ext4 /dev/sda3 rw
24 22 0:21 / /proc rw - proc proc rw
30 22 253:1 / /home rw - xfs /dev/mapper/vg-home rw
31 22 0:40 /root /srv rw - btrfs /dev/sda6 rw
32 22 252:0 / /data rw - ext4 /dev/bcache0 rw
"""
SWAPS = """\
Filename  Type  Size Used Priority
/dev/dm-2 partition 1 0 -2
"""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTS)
    (tmp_path / "proc/swaps").write_text(SWAPS)
    return tmp_path / "proc"


@pytest.fixture
def fake(tmp_path: Path) -> FakeSysfs:
    return two_on_a_disk(tmp_path / "sys")


def users(fake: FakeSysfs, proc: Path) -> list[DiskUsers]:
    found = DeviceUsers(discover(fake.sysfs), devices_in_use(proc))
    return [disk_users(fake.sysfs, volume, found) for volume in found.volumes]


def hold(fake: FakeSysfs, below: str, name: str, devno: str, title: str) -> None:
    """Put a dm device on a partition."""
    real = f"/sys/devices/virtual/block/{name}"
    fake.write(f"{real}/dev", devno)
    fake.write(f"{real}/dm/name", title)
    fake.links(name, real, devno)
    fake.link(f"/sys/class/block/{below}/holders/{name}", real)


def test_a_disk_of_one_volume_has_no_other_users(tmp_path: Path, proc: Path) -> None:
    assert users(fake_bcache(tmp_path / "own"), proc) == [NO_USERS]


def test_volumes_on_one_disk_know_each_other(fake: FakeSysfs, proc: Path) -> None:
    assert users(fake, proc) == [DiskUsers(("bcache1",)), DiskUsers(("bcache0",))]


def test_a_volume_knows_the_one_whose_cache_is_on_its_disk(tmp_path: Path, proc: Path) -> None:
    fake = fake_bcache(tmp_path / "own")
    fake.disk("sda", "8:0")
    for number in (1, 2):
        fake.partition("sda", f"sda{number}", f"8:{number}")
    fake.disk("vdc", "254:32")
    uuid = SET_UUID.replace("5", "1")
    fake.bcache("bcache1", backing="vdc", cache="sda1", devno="252:1", set_uuid=uuid)
    fake.bcache("bcache2", backing="sda2", cache=None, devno="252:2")
    fake.link("/sys/class/block/sda2/bcache/cache", f"/sys/fs/bcache/{SET_UUID}")
    assert [each.volumes for each in users(fake, proc)] == [(), (), ("bcache1",)]


def test_file_systems_and_swap_on_the_disk_are_named_and_unused_partitions_are_not(
    fake: FakeSysfs, proc: Path
) -> None:
    for number in (3, 4, 5, 6):
        fake.partition("sda", f"sda{number}", f"8:{number}")
    hold(fake, "sda4", "dm-1", "253:1", "vg-home")
    hold(fake, "sda4", "dm-2", "253:2", "vg-swap")
    found = users(fake, proc)[0]
    assert found.volumes == ("bcache1",)
    assert sorted(found.others) == [
        "sda3 (ext4 on /)",
        "sda6 (btrfs on /srv)",
        "vg-home (xfs on /home)",
        "vg-swap (swap)",
    ]


@pytest.mark.parametrize("space", ["\v", "\r", "\x85", "\u2028", "\u3000"])
def test_a_file_system_on_a_folder_with_an_odd_name_is_named(
    fake: FakeSysfs, proc: Path, space: str
) -> None:
    fake.partition("sda", "sda3", "8:3")
    folder = f"/media/a{space}b"
    mounts = f"29 1 8:3 / {folder} rw,relatime shared:1 - ext4 /dev/sda3 rw\n"
    (proc / "self/mountinfo").write_text(mounts, encoding="utf-8", newline="")
    assert users(fake, proc)[0].others == (f"sda3 (ext4 on {folder})",)


def test_a_device_above_several_disks_is_looked_at_once(
    tmp_path: Path, proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSysfs(tmp_path / "sys")
    fake.disk("md0", "9:0", scheduler="none", queue_depth=None)
    for number in range(4):
        disk = f"sd{number}"
        fake.disk(disk, f"8:{number}")
        fake.link(f"/sys/class/block/md0/slaves/{disk}", f"/sys/block/{disk}")
        fake.link(f"/sys/class/block/{disk}/holders/md0", "/sys/block/md0")
    fake.partition("md0", "md0p1", "259:1")
    hold(fake, "md0p1", "dm-1", "253:1", "vg-home")
    fake.partition("md0", "md0p2", "259:2")
    fake.bcache(backing="md0p2", cache=None)
    looked: list[str] = []
    glob = Sysfs.glob

    def counted(sysfs: Sysfs, pattern: str) -> tuple[Path, ...]:
        looked.append(pattern)
        return glob(sysfs, pattern)

    monkeypatch.setattr(Sysfs, "glob", counted)
    (found,) = discover(fake.sysfs)
    del looked[:]
    known = DeviceUsers((found,), devices_in_use(proc))
    assert disk_users(fake.sysfs, found, known) == DiskUsers((), ("vg-home (xfs on /home)",))
    assert len(looked) == len(set(looked))


def test_a_volume_without_a_cache_is_a_file_system_like_others(tmp_path: Path, proc: Path) -> None:
    fake = FakeSysfs(tmp_path / "sys")
    fake.disk("sda", "8:0")
    fake.disk("sdb", "8:16", rotational=False)
    for number, cache in enumerate((None, "sdb")):
        fake.partition("sda", f"sda{number}", f"8:{number + 1}")
        devno = f"252:{number}"
        fake.bcache(f"bcache{number}", backing=f"sda{number}", cache=cache, devno=devno)
    fake.link("/sys/class/block/sda0/holders/bcache0", "/sys/devices/virtual/block/bcache0")
    assert users(fake, proc)[1] == DiskUsers((), ("bcache0 (ext4 on /data)",))


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    assert devices_in_use(tmp_path / "nowhere") == {}
