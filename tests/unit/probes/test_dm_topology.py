# SPDX-License-Identifier: GPL-2.0-only
"""Volumes of device-mapper are found with all of their devices."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ebbgate.errors import NotFound
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.volume import Kind
from ebbgate.probes.topology import discover, find
from tests.fake_dm import FakeCache, FakeDm, fake_lvm, lvm_disks, lvm_machine
from tests.fake_sysfs import FakeSysfs, fake_bcache


@pytest.fixture
def fake(tmp_path: Path) -> FakeSysfs:
    return lvm_disks(tmp_path)


def test_a_volume_is_found_with_all_of_its_devices(fake: FakeSysfs) -> None:
    sysfs, _ = lvm_machine(fake)
    (volume,) = discover(sysfs)
    assert (volume.name, volume.title, volume.kernel_name) == ("vg-data", "vg/data", "dm-0")
    assert (volume.kind, volume.cached) == (Kind.DM_CACHE, True)
    assert [device.name for device in (volume.backing, *volume.caches)] == ["dm-4", "dm-2"]
    assert volume.metadata is not None
    assert volume.metadata.name == "dm-3"
    assert volume.mapping is not None
    assert volume.mapping.block_sectors == 128


@pytest.mark.parametrize("name", ["vg-data", "vg/data", "dm-0"])
def test_a_volume_is_found_by_each_of_its_names(fake: FakeSysfs, name: str) -> None:
    sysfs, _ = lvm_machine(fake)
    found = find(sysfs, name)
    assert found.name == "vg-data"
    assert found.is_called(name)


@pytest.mark.parametrize("name", ["", "vg", "data", "dm-", "dm-2", "/dev/vg/data", "VG/data"])
def test_a_volume_is_not_found_by_another_name(fake: FakeSysfs, name: str) -> None:
    sysfs, _ = lvm_machine(fake)
    assert not find(sysfs, "vg/data").is_called(name)


def test_a_part_of_a_volume_is_not_the_volume(fake: FakeSysfs) -> None:
    sysfs, _ = lvm_machine(fake)
    with pytest.raises(NotFound, match="dm-2 is a cache device of vg/data") as caught:
        find(sysfs, "dm-2")
    assert "vg/data" in (caught.value.hint or "")


def test_volumes_of_bcache_and_of_device_mapper_are_found_together(tmp_path: Path) -> None:
    fake = fake_bcache(tmp_path)
    sysfs, _ = lvm_machine(fake)
    assert [volume.name for volume in discover(sysfs)] == ["bcache0", "vg-data"]


def test_a_name_that_the_probe_refuses_is_replaced_by_the_kernel_name(fake: FakeSysfs) -> None:
    sysfs, _ = lvm_machine(fake, FakeCache(name="my cache", uuid=""))
    (volume,) = discover(sysfs)
    assert (volume.name, volume.title) == ("dm-0", "dm-0")


@pytest.mark.parametrize("name", ["bcache0", "dm-2"])
def test_the_kernel_name_of_another_device_is_not_the_name_of_a_volume(
    tmp_path: Path, name: str
) -> None:
    sysfs, _ = lvm_machine(fake_bcache(tmp_path), FakeCache(name=name, uuid=""))
    assert [(each.name, each.kind) for each in discover(sysfs)] == [
        ("bcache0", Kind.BCACHE),
        ("dm-0", Kind.DM_CACHE),
    ]
    assert find(sysfs, "bcache0").kind is Kind.BCACHE


def test_no_dm_volume_is_found_without_rights(fake: FakeSysfs) -> None:
    _, dm = lvm_machine(fake)
    dm.allowed = False
    assert discover(Sysfs(fake.root, dm)) == ()


def test_a_vanishing_dm_device_is_left_out(fake: FakeSysfs) -> None:
    class Fleeting(FakeDm):
        def table(self, ref: str) -> tuple[()]:
            raise OSError(errno.ENXIO, "No such device or address", ref)

    fake_lvm(fake)
    assert discover(Sysfs(fake.root, Fleeting(FakeCache()))) == ()


def test_a_volume_is_diskless_once_all_disks_below_it_are_gone(fake: FakeSysfs) -> None:
    sysfs, _ = lvm_machine(fake)
    assert not find(sysfs, "vg/data").diskless
    # As the kernel does: the links in `slaves` stay.
    for place in ("/sys/block", "/sys/class/block"):
        fake.sysfs.locate(f"{place}/vda").unlink()
    volume = find(sysfs, "vg/data")
    assert (volume.diskless, volume.disks, volume.backing.name) == (True, (), "dm-4")
