# SPDX-License-Identifier: GPL-2.0-only
"""Physical volumes of other volume groups: refused with --force, too, if no volume is active."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shell.machines import PARTITION
from tests.shell.recorded import Machine, refused

LVM = ("lvmcache-attach", "--yes", "--force", "vg/data", "/dev/sdb")
BCACHE_CACHE = ("bcache-attach", "--yes", "--force", "/dev/sda", "/dev/sdb")
BCACHE_BACKING = ("bcache-attach", "--yes", "--force", "/dev/sdb", "/dev/sda")
MEMBER = "0x218,LVM2_member\n"
ALL = pytest.mark.parametrize("argv", [LVM, BCACHE_CACHE, BCACHE_BACKING])


@ALL
def test_force_keeps_a_physical_volume_of_another_group(
    argv: tuple[str, ...], tmp_path: Path
) -> None:
    machine = Machine(
        tmp_path, pvs="8|16|other|4194304|25599|100\n", signatures={"sdb": f"0x438,ext4\n{MEMBER}"}
    )
    refused(machine, argv, "/dev/sdb belongs to the volume group other\n  remove it from there")


@ALL
def test_force_keeps_a_partition_that_belongs_to_a_group(
    argv: tuple[str, ...], tmp_path: Path
) -> None:
    signatures = {"sdb": "0x1fe,dos\n", "sdb1": MEMBER}
    pvs = "8|17|other|4194304|25599|100\n"
    machine = Machine(tmp_path, pvs=pvs, signatures=signatures, sysfs=PARTITION)
    refused(machine, argv, "/dev/sdb1 belongs to the volume group other")


@ALL
@pytest.mark.parametrize("on", ["sdb", "sdb1"])
def test_force_keeps_a_physical_volume_that_lvm_does_not_show(
    on: str, argv: tuple[str, ...], tmp_path: Path
) -> None:
    signatures = {"sdb": "0x1fe,dos\n", on: MEMBER}
    machine = Machine(tmp_path, signatures=signatures, sysfs=PARTITION)
    refused(machine, argv, f"/dev/{on} is a physical volume that LVM does not show")


def test_force_keeps_a_physical_volume_where_lvm_is_not_installed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, signatures={"sdb": MEMBER}, without="pvs")
    refused(machine, BCACHE_CACHE, "pvs is not installed", 69)


@pytest.mark.parametrize("argv", [LVM, BCACHE_CACHE])
def test_force_takes_a_physical_volume_without_a_group(
    argv: tuple[str, ...], tmp_path: Path
) -> None:
    signatures = {"sdb": "0x1fe,dos\n", "sdb1": MEMBER}
    machine = Machine(tmp_path, pvs="8|17||0|0|0\n", signatures=signatures, sysfs=PARTITION)
    assert machine.run(*argv).endswith("exit 0\n")


def test_an_extended_partition_is_not_asked_for_signatures(tmp_path: Path) -> None:
    """It has 1 KiB and no device on some systems."""
    sysfs = {**PARTITION, "block/sdb/sdb2/partition": "2\n", "block/sdb/sdb2/size": "2\n"}
    sysfs["block/sdb/sdb2/dev"] = "8:18\n"
    machine = Machine(tmp_path, signatures={"sdb": "0x1fe,dos\n"}, sysfs=sysfs)
    assert machine.run(*BCACHE_CACHE).endswith("exit 0\n")
