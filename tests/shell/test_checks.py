# SPDX-License-Identifier: GPL-2.0-only
"""Refused devices: with data, in use, or needed by others."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.shell.machines import (
    BACKING_SUPERBLOCK,
    BCACHE,
    BCACHE_TREE,
    CACHE_SUPERBLOCK,
    INDEX,
    PARTITION,
    SCENARIOS,
    SET,
    STACK,
    SUPERBLOCK,
    VOL_LVS,
    WRITEBACK,
)
from tests.shell.recorded import UUID, Machine

ATTACH = ("lvmcache-attach", "--yes", "vg/data", "/dev/sdb")
FORCE = (ATTACH[0], "--force", *ATTACH[1:])
DETACH = ("bcache-detach", "--yes", "--free", "bcache0")
UNREGISTER = f"echo 1 > /sys/{SET}/unregister"


def refused(machine: Machine, argv: tuple[str, ...], code: int, text: str) -> None:
    """Check that the real run and the dry run refuse with this exit code and text."""
    for words in (argv, (argv[0], "-n", *argv[1:])):
        answer = machine.run(*words)
        assert text in answer
        assert answer.endswith(f"exit {code}\n"), answer
        assert machine.steps() == []


# ---- bcache-detach --free ----------------------------------------------------------------------


@pytest.mark.parametrize("user", ["bdev1", "volume1"])
def test_a_set_that_others_use_is_not_stopped(user: str, tmp_path: Path) -> None:
    tree = {**BCACHE_TREE, f"{SET}/{user}": "-> /block/sdc", "block/sdc/bcache/size": "8\n"}
    machine = Machine(tmp_path, **{**BCACHE, "sysfs": tree})
    text = machine.run(*DETACH)
    assert f"the set {UUID} stays: {user} on it" in text
    assert text.endswith("exit 0\n")
    assert UNREGISTER not in machine.steps()
    assert not any(step.startswith("wipefs") for step in machine.steps())
    assert machine.state()["state/signatures.sdb"] == SUPERBLOCK


def test_dirty_data_of_a_device_that_is_not_registered_keeps_the_set(tmp_path: Path) -> None:
    index = f"{BCACHE_TREE[INDEX]}1:16 len 64 -> [0:47104 gen 1] dirty\n"
    machine = Machine(tmp_path, **{**BCACHE, "sysfs": {**BCACHE_TREE, INDEX: index}})
    refused(machine, DETACH, 64, "holds 32 KiB of dirty data of a device that is not registered")


@pytest.mark.parametrize(
    "index",
    [None, "0:16 len 512 -> ???\n", f"0:16 len 512 -> [0:46080 gen 1]{' ' * 60}\n"],
    ids=["no debugfs", "another format", "cut off"],
)
def test_a_set_whose_index_cannot_be_read_is_kept(index: str | None, tmp_path: Path) -> None:
    tree = {path: text for path, text in BCACHE_TREE.items() if path != INDEX}
    if index is not None:
        tree[INDEX] = index
    machine = Machine(tmp_path, **{**BCACHE, "sysfs": tree})
    refused(machine, DETACH, 69, f"the set {UUID} may hold dirty data")
    # Without --free it has nothing to do with the set.
    assert machine.run(*(word for word in DETACH if word != "--free")).endswith("exit 0\n")


def test_only_the_superblock_of_the_set_is_removed_from_its_device(tmp_path: Path) -> None:
    stale = {"sda": SUPERBLOCK, "sdb": f"{SUPERBLOCK}0x438,ext4\n"}
    machine = Machine(tmp_path, **{**BCACHE, "signatures": stale})
    assert machine.run(*DETACH).endswith("exit 0\n")
    assert machine.state()["state/signatures.sdb"] == "0x438,ext4\n"


# ---- a device that carries data ----------------------------------------------------------------


@pytest.mark.parametrize("argv", [ATTACH, ("bcache-attach", "--yes", "/dev/sda", "/dev/sdb")])
@pytest.mark.parametrize("how", ["fails", "old", "garbage"])
def test_a_device_is_refused_if_wipefs_fails(
    how: str, argv: tuple[str, ...], tmp_path: Path
) -> None:
    for forced in (argv, (argv[0], "--force", *argv[1:])):
        machine = Machine(
            tmp_path / forced[1], faults={"wipefs": how}, signatures={"sdb": "0x438,ext4\n"}
        )
        refused(machine, forced, 69, "a check failed: wipefs --no-act")


def test_a_mounted_device_is_found_without_lsblk(tmp_path: Path) -> None:
    machine = Machine(tmp_path, mounts={"8:16": "/srv"})
    # As of util-linux 2.36, which has no such column.
    tool = machine.file("bin/lsblk", "#!/bin/sh\necho 'lsblk: unknown column' >&2\nexit 1\n")
    tool.chmod(0o755)
    refused(machine, FORCE, 64, "/dev/sdb is mounted at /srv")


@pytest.mark.parametrize("table", ["self/mountinfo", "swaps"])
def test_a_device_is_refused_if_a_kernel_table_cannot_be_read(table: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.install()
    (tmp_path / "proc" / table).unlink()
    refused(machine, ATTACH, 69, f"a check failed: {tmp_path}/proc/{table} cannot be read")


def test_swap_is_found_by_its_device_number(tmp_path: Path) -> None:
    machine = Machine(tmp_path, swaps="/dev/disk/by-id/ssd partition 8 0 -2\n")
    refused(machine, FORCE, 64, "/dev/sdb is swap")


def test_a_member_of_a_mounted_btrfs_is_in_use(tmp_path: Path) -> None:
    machine = Machine(tmp_path, sysfs={"fs/btrfs/0e7a/devices/sdb/dev": "8:16\n"})
    refused(machine, FORCE, 64, "/dev/sdb belongs to a mounted btrfs")


def test_a_partition_is_in_use_if_its_disk_is(tmp_path: Path) -> None:
    machine = Machine(tmp_path, sysfs={**PARTITION, "block/sdb/holders/md0": ""})
    refused(machine, (*ATTACH[:-1], "/dev/sdb1"), 64, "/dev/sdb is used by md0")


@pytest.mark.parametrize("cache", ["/dev/disk/by-id/hdd", "/dev/sda"])
def test_two_names_of_one_device_are_the_same_device(cache: str, tmp_path: Path) -> None:
    argv = ("bcache-attach", "--yes", "--force", "/dev/sda", cache)
    refused(Machine(tmp_path), argv, 64, f"/dev/sda and {cache} are the same device")


def test_a_disk_and_its_partition_are_refused_as_cache_and_backing(tmp_path: Path) -> None:
    argv = ("bcache-attach", "--yes", "--force", "/dev/sdb", "/dev/sdb1")
    refused(Machine(tmp_path, sysfs=PARTITION), argv, 64, "/dev/sdb and /dev/sdb1 overlap")


def test_a_physical_volume_that_lvm_does_not_show_is_refused_with_force(tmp_path: Path) -> None:
    machine = Machine(tmp_path, signatures={"sdb": "0x218,LVM2_member\n"})
    refused(machine, FORCE, 64, "a physical volume that LVM does not show")


def test_a_physical_volume_is_found_by_its_device_number(tmp_path: Path) -> None:
    machine = Machine(tmp_path, pvs="8|16|other|4194304|25599|100\n")
    argv = (*FORCE[:-1], "/dev/disk/by-id/ssd")
    refused(machine, argv, 64, "belongs to the volume group other")


# ---- a cache that is slower ---------------------------------------------------------------------
SWAPPED = {"block/sda/queue/rotational": "0\n", "block/sdb/queue/rotational": "1\n"}


@pytest.mark.parametrize(
    "argv",
    [
        FORCE,
        ("writecache-attach", "--yes", "--force", "vg/data", "/dev/sdb"),
        ("bcache-attach", "--yes", "--force", "/dev/sda", "/dev/sdb"),
    ],
)
def test_a_hard_disk_is_refused_as_the_cache_of_an_ssd(
    argv: tuple[str, ...], tmp_path: Path
) -> None:
    text = (
        "/dev/sdb is a hard disk and would be the cache of /dev/sda, which is faster\n"
        "  if it is no hard disk: echo 0 > /sys/block/sdb/queue/rotational"
    )
    refused(Machine(tmp_path, sysfs=SWAPPED), argv, 64, text)


def test_the_kind_of_a_partition_is_that_of_its_disk(tmp_path: Path) -> None:
    machine = Machine(tmp_path, sysfs={**SWAPPED, **PARTITION})
    argv = ("bcache-attach", "--yes", "/dev/sda", "/dev/sdb1")
    refused(machine, argv, 64, "echo 0 > /sys/block/sdb/queue/rotational")


@pytest.mark.parametrize(("slow", "fast"), [("1", "0"), ("1", "1"), ("0", "0")])
def test_any_other_pair_of_devices_can_be_combined(slow: str, fast: str, tmp_path: Path) -> None:
    kinds = {"block/sda/queue/rotational": slow, "block/sdb/queue/rotational": fast}
    assert Machine(tmp_path, sysfs=kinds).run(*ATTACH).endswith("exit 0\n")


@pytest.mark.parametrize("command", ["lvmcache-attach", "writecache-attach"])
def test_the_device_of_a_volume_is_refused_as_its_cache(command: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, pvs="8|0|vg|4194304|25599|100\n")
    argv = (command, "--yes", "vg/data", "/dev/disk/by-id/hdd")
    refused(machine, argv, 64, "vg/data is on /dev/disk/by-id/hdd itself")


# ---- bcache superblocks ------------------------------------------------------------------------


def attach_made(tmp_path: Path, superblock: str) -> Machine:
    """Return a machine with an unregistered device that has a superblock of bcache."""
    return Machine(tmp_path, signatures={"sda": SUPERBLOCK}, superblocks={"sda": superblock})


@pytest.mark.parametrize("version", ["0", "3", "5"])
def test_a_cache_device_is_refused_as_backing_device(version: str, tmp_path: Path) -> None:
    machine = attach_made(tmp_path, CACHE_SUPERBLOCK.replace("3", version, 1))
    argv = ("bcache-attach", "--yes", "--force", "/dev/sda", "/dev/sdb")
    refused(machine, argv, 64, "/dev/sda is a cache device of bcache")


@pytest.mark.parametrize(
    ("superblock", "code", "text"),
    [
        ("", 69, "has an unknown version"),
        (
            BACKING_SUPERBLOCK.replace("0 [detached]", "2 [dirty]"),
            64,
            "without its cache: 2 [dirty]",
        ),
    ],
)
def test_a_backing_device_with_dirty_data_elsewhere_is_refused(
    superblock: str, code: int, text: str, tmp_path: Path
) -> None:
    machine = attach_made(tmp_path, superblock)
    refused(machine, ("bcache-attach", "--yes", "/dev/sda", "/dev/sdb"), code, text)


def test_an_unregistered_cache_device_does_not_count_as_blank(tmp_path: Path) -> None:
    machine = Machine(tmp_path, signatures={"sdb": SUPERBLOCK})
    argv = ("bcache-attach", "--yes", "/dev/sda", "/dev/sdb")
    refused(machine, argv, 64, "if you need its set: echo /dev/sdb > /sys/fs/bcache/register")


# ---- what --force does, and what a roll back restores ------------------------------------------


def test_force_saves_and_removes_the_signatures_that_the_check_found(tmp_path: Path) -> None:
    machine = Machine(tmp_path, signatures={"sdb": "0x1fe,dos\n0x438,ext4\n"})
    assert machine.run(*FORCE).endswith("exit 0\n")
    assert machine.steps()[:2] == [
        "wipefs --backup --offset 0x1fe --types dos /dev/sdb",
        "wipefs --backup --offset 0x438 --types ext4 /dev/sdb",
    ]
    assert len(list((tmp_path / "home").iterdir())) == 2


def test_a_roll_back_restores_nothing_of_an_older_backup(tmp_path: Path) -> None:
    """Another disk had the name, and a longer signature at the same place."""
    machine = Machine(tmp_path, signatures={"sdb": "0x0,xfs\n0x438,ext4\n"}, fault="2 fails")
    machine.install()
    older = machine.file("home/wipefs-sdb-0x00000000.bak", "0x0,crypto_LUKS\n")
    before = machine.state()
    text = machine.run(*FORCE)
    assert "everything that this run changed is as it was before" in text
    assert machine.state() == before
    assert older.with_name(f"{older.name}.old").read_text() == "0x0,crypto_LUKS\n"


def test_a_signature_that_appears_after_the_check_ends_the_run(tmp_path: Path) -> None:
    machine = Machine(tmp_path, signatures={"sdb": "0x438,ext4\n"})
    machine.install()
    # The second call of wipefs is right before the first step.
    late = tmp_path / "bin/wipefs"
    late.unlink()
    late.write_text(
        f"#!/bin/sh\necho >>{tmp_path}/asked\n"
        f'[ "$(wc -l <{tmp_path}/asked)" = 1 ] || echo 0x0,xfs >>{tmp_path}/state/signatures.sdb\n'
        f'exec sh -c ". {(tmp_path / "bin/lvs").resolve()}" wipefs "$@"\n'
    )
    late.chmod(0o755)
    text = machine.run(*FORCE)
    assert "/dev/sdb has changed since the check" in text
    assert text.endswith("exit 74\n")
    assert machine.steps() == []


def test_a_roll_back_restores_signatures_and_lists_what_it_cannot_restore(tmp_path: Path) -> None:
    scenario = SCENARIOS["lvmcache-attach-force"]
    machine = Machine(tmp_path, **scenario.machine, fault="4 fails")
    text = machine.run(*scenario.argv)
    assert text.endswith(
        "NOT as it was before this run:\n"
        "  what /dev/sdb carried (dos ext4) may be damaged: it has been written over\n"
        "everything else that this run changed is as it was before\n"
        "to try again:\n"
        "  lvm-scripts/lvmcache-attach --yes --mode writeback --force vg/data /dev/sdb\n"
        "exit 74\n"
    )
    assert sorted(machine.state()["state/signatures.sdb"].split()) == ["0x1fe,dos", "0x438,ext4"]


def test_a_roll_back_restores_partitions_with_their_table(tmp_path: Path) -> None:
    signatures = {"sdb": "0x200,gpt\n0x1fe,PMBR\n"}
    machine = Machine(tmp_path, sysfs=PARTITION, signatures=signatures, fault="2 fails")
    text = machine.run(*FORCE)
    assert (
        f"seek={0x200} conv=notrunc,fsync status=none\nundo: blockdev --rereadpt /dev/sdb\n" in text
    )
    assert "NOT as it was" not in text


def test_force_loses_nothing_before_the_device_is_overwritten(tmp_path: Path) -> None:
    scenario = SCENARIOS["lvmcache-attach-force"]
    text = Machine(tmp_path, **scenario.machine, fault="2 fails").run(*scenario.argv)
    assert "everything that this run changed is as it was before\nto try again:" in text
    assert "NOT as it was" not in text


def test_an_early_end_after_the_point_of_no_return_is_reported(tmp_path: Path) -> None:
    scenario = SCENARIOS["lvmcache-detach-free"]
    # The third step makes the volume of the cache active, to check its metadata.
    text = Machine(tmp_path, **scenario.machine, fault="3 TERM").run(*scenario.argv)
    assert "vg/data has no cache any more; all its data is on its own devices" in text
    assert "to try again" not in text
    assert text.endswith("exit 130\n")


# ---- decisions ---------------------------------------------------------------------------------


def test_a_device_that_other_volumes_use_stays_in_the_group(tmp_path: Path) -> None:
    scenario = SCENARIOS["lvmcache-detach-shared"]
    machine = Machine(tmp_path, **scenario.machine)
    dry = machine.run(scenario.argv[0], "-n", *scenario.argv[1:])
    assert "# /dev/sdb stays in vg: other on it\n" in dry
    assert "vgreduce" not in dry
    assert "/dev/sdb stays in vg: other on it\n" in machine.run(*scenario.argv)


def test_stack_status_fails_if_dmsetup_fails(tmp_path: Path) -> None:
    machine = Machine(tmp_path, **STACK, dm_status=WRITEBACK, faults={"dmsetup": "fails"})
    text = machine.run("stack-status")
    assert "a check failed: dmsetup table --target cache" in text
    assert text.endswith("exit 69\n")


def test_stack_status_omits_lvm_names_if_lvs_fails(tmp_path: Path) -> None:
    machine = Machine(tmp_path, **STACK, dm_status=WRITEBACK, faults={"lvs": "fails"})
    text = machine.run("stack-status")
    assert "lvs failed: volumes are shown without their LVM names" in text
    assert "vg-data  dm-cache writeback" in text


def test_a_failing_lvs_does_not_count_as_a_missing_volume(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lvs=VOL_LVS, faults={"lvs": "fails"})
    refused(machine, ("lvmcache-detach", "--yes", "vg/data"), 69, "a check failed: lvs")


def test_a_closed_output_does_not_stop_a_roll_back(tmp_path: Path) -> None:
    """As with `script 2>&1 | tee log` and Ctrl-C, which also ends tee."""
    scenario = SCENARIOS["lvmcache-attach"]
    machine = Machine(tmp_path, **scenario.machine)
    machine.install()
    before = machine.state()
    machine = replace(machine, fault="3 TERM")
    machine.file("fault", "3 TERM\n")
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [f"lvm-scripts/{scenario.argv[0]}", *scenario.argv[1:]],
        cwd=Path(__file__).resolve().parents[2],
        env=machine.environment(),
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=writer,
    )
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    process.wait(50)
    assert machine.state() == before
