# SPDX-License-Identifier: GPL-2.0-only
"""Names and sizes that people give, and what the scripts make of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.shell.machines import SSD_PV, STACK, WRITEBACK
from tests.shell.recorded import REPO, Machine, refused


@pytest.mark.parametrize("script", ["lvmcache-attach", "writecache-attach"])
@pytest.mark.parametrize("name", ["-x", "..", "x" * 128, "x; touch executed"])
def test_a_name_that_lvm_does_not_take_is_refused_before_the_first_step(
    name: str, script: str, tmp_path: Path
) -> None:
    """The check whether a failed lvcreate has made the volume would run what is in the name."""
    name = name.replace("executed", f"{tmp_path}/executed")
    machine = Machine(tmp_path, fault="3 fails")
    argv = (script, "--yes", "--name", name, "vg/data", "/dev/sdb")
    refused(machine, argv, f"not a name for a volume: {name}")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("option", "size"),
    [
        *(("--bucket", size) for size in ("0", "1048576t", "16777217t", "999999999999999t", "k")),
        *(("--erase-block", "0"), ("--block", "0k")),
    ],
)
def test_a_size_that_is_none_or_too_large_is_refused(
    option: str, size: str, tmp_path: Path
) -> None:
    argv = ("bcache-attach", "--yes", option, size, "/dev/sda", "/dev/sdb")
    refused(Machine(tmp_path), argv, f"not a size: {size}")


def test_a_roll_back_quotes_the_name_of_a_device(tmp_path: Path) -> None:
    """udev writes a space of a label as a backslash and its number."""
    device = "/dev/disk/by-partlabel/a\\x20disk"
    machine = Machine(tmp_path, fault="5 fails")
    machine.install()
    before = machine.state()
    text = machine.run("bcache-attach", "--yes", "/dev/sda", device)
    assert "everything that this run changed is as it was before" in text
    assert machine.state() == before
    assert "+ echo '/dev/disk/by-partlabel/a\\x20disk' > /sys/fs/bcache/register" in text


def test_stack_status_names_each_volume_that_it_does_not_find(tmp_path: Path) -> None:
    machine = Machine(tmp_path, **STACK, dm_status=WRITEBACK)
    text = machine.run("stack-status", "vg/data", "vg-data", "vg/typo")
    assert "vg/data  dm-cache writeback" in text
    assert text.endswith("stack-status: no cached volume vg/typo\nexit 66\n")


def test_stack_status_does_not_wait_for_a_lock_of_lvm(tmp_path: Path) -> None:
    """A detach holds it while it writes a cache back, for hours perhaps."""
    machine = Machine(tmp_path, **STACK, dm_status=WRITEBACK, faults={"lvs": "locked"})
    text = machine.run("stack-status", "vg/data")
    assert "vg/data  dm-cache writeback" in text
    assert text.endswith("exit 0\n")


@pytest.mark.parametrize("script", ["lvmcache-attach", "writecache-attach"])
def test_nobody_is_asked_to_lose_the_data_of_a_physical_volume_of_the_group(
    script: str, tmp_path: Path
) -> None:
    """The cache volume takes free space of it; other volumes stay."""
    machine = Machine(tmp_path, pvs=SSD_PV, signatures={"sdb": "0x218,LVM2_member\n"})
    text = machine.run(script, "vg/data", "/dev/sdb")
    assert "not confirmed: vg/data gets a cache in the free space of /dev/sdb.\n" in text
    assert "not confirmed: All data on /dev/sdb" in Machine(tmp_path / "new").run(
        script, "vg/data", "/dev/sdb"
    )


def test_a_name_of_device_mapper_is_not_taken_for_that_of_a_group(tmp_path: Path) -> None:
    argv = ("lvmcache-attach", "--yes", "/dev/mapper/vg-data", "/dev/sdb")
    refused(Machine(tmp_path), argv, "not a volume name: /dev/mapper/vg-data\n  use VG/LV")


def test_a_device_is_named_by_the_path_that_was_given(tmp_path: Path) -> None:
    argv = ("bcache-detach", "--yes", "/srv/disk")
    refused(Machine(tmp_path), argv, "bcache-detach: /srv/disk is not a block device", 66)


def test_programs_of_administrators_are_found_without_sbin_in_the_path() -> None:
    """As after `su` on Debian, which keeps the PATH of the user."""
    lib = REPO / "lvm-scripts/lib.sh"
    done = subprocess.run(
        ["bash", "-c", f". {lib}; need blockdev wipefs"],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


def test_two_devices_whose_backups_would_have_one_name_are_refused(tmp_path: Path) -> None:
    """A roll back would write the signature of one to the other."""
    signatures = {"sda": "0x0,xfs\n", "sdb": "0x0,crypto_LUKS\n"}
    machine = Machine(tmp_path, signatures=signatures, fault="5 fails")
    machine.install()
    before = machine.state()
    argv = ("bcache-attach", "--yes", "--force", "/dev/slow/data", "/dev/fast/data")
    text = machine.run(*argv)
    assert machine.state() == before, text
    text = "signatures of /dev/slow/data and /dev/fast/data would have the same name\n  use another"
    refused(machine, argv, text)
    other = (*argv[:-1], "/dev/sdb")
    assert Machine(tmp_path / "other", signatures=signatures).run(*other).endswith("exit 0\n")
