# SPDX-License-Identifier: GPL-2.0-only
"""bcache-attach, bcache-detach, writecache-attach and writecache-detach on a stock kernel."""

from __future__ import annotations

import signal

import pytest

from tests.lab.script_fixture import DM, MOUNT, VOLUME, ScriptHarness, again_of, undo_of

LVM_DEVICE = f"/dev/{VOLUME}"
BCACHE = "/dev/bcache0"
KNOBS = "cd /sys/block/bcache0/bcache && head cache_mode writeback_percent writeback_delay"


def hold_bcache_dirty(harness: ScriptHarness) -> None:
    """Nothing is written back by itself, and nothing goes past the cache."""
    harness.shell(
        "cd /sys/block/bcache0/bcache && echo 40 > writeback_percent && echo 0 > writeback_delay"
        " && echo 0 > sequential_cutoff && echo 0 > cache/congested_write_threshold_us"
    )


def test_dirty_data_survives_the_detach_of_bcache_and_the_undo(harness: ScriptHarness) -> None:
    attached = harness.ok("bcache-attach", "--yes", "--mode", "writeback", harness.hdd, harness.ssd)
    hold_bcache_dirty(harness)
    harness.make_files(BCACHE)
    knobs = harness.shell(KNOBS)
    stack = harness.status()
    assert stack["status"]["dirty_bytes"] > 0
    assert {part["role"]: part["device"] for part in stack["parts"]} == {
        "cache": harness.ssd,
        "backing": harness.hdd,
    }
    detached = harness.pasted(undo_of(attached))
    assert "MiB dirty" in detached.stderr
    assert harness.shell(KNOBS) == knobs
    assert harness.shell(f"wipefs --no-act {harness.ssd}") == ""
    harness.add_file("meanwhile")
    harness.pasted(undo_of(detached))
    assert harness.status()["status"]["mode"] == "writeback"
    harness.check_files(BCACHE)


def test_a_lost_cache_without_dirty_data_is_replaced_as_the_error_says(
    harness: ScriptHarness,
) -> None:
    harness.ok("bcache-attach", "--yes", harness.hdd, harness.ssd)
    harness.make_files(BCACHE)
    backing, cache = (
        f"/sys/class/block/{device.rpartition('/')[2]}/bcache"
        for device in (harness.hdd, harness.ssd)
    )
    harness.shell(f"umount {MOUNT}; echo 1 > {cache}/set/stop")
    harness.shell(f"while [ -e {backing} ] || [ -e {cache} ]; do sleep 0.1; done")
    harness.shell(f"wipefs -q -a {harness.ssd}; echo {harness.hdd} > /sys/fs/bcache/register")
    harness.shell(f"until [ -e {backing}/state ]; do sleep 0.1; done")
    assert harness.shell(f"cat {backing}/state") == "clean\n"
    refused = harness.run("bcache-attach", "--yes", harness.hdd, harness.ssd)
    (line,) = (each for each in refused.stderr.splitlines() if "NEW_CACHE" in each)
    stop, attach = line.partition("with it: ")[2].split("; then ")
    harness.pasted(f"{stop}; while [ -e {backing} ]; do sleep 0.1; done")
    words = attach.replace("NEW_CACHE", harness.ssd).split()
    harness.ok(words[0], "--yes", *words[1:])
    assert harness.status()["status"]["mode"] == "writethrough"
    harness.check_files(BCACHE)


def test_force_keeps_a_disk_whose_volume_group_is_not_active(harness: ScriptHarness) -> None:
    """Without an active volume the kernel names no holder of it, and lets it be wiped."""
    harness.make_volume(64)
    harness.shell("vgchange -q -an vg")
    for backing, cache in ((harness.hdd, harness.ssd), (harness.ssd, harness.hdd)):
        refused = harness.run("bcache-attach", "--yes", "--force", backing, cache)
        assert (refused.rc, "belongs to the volume group vg" in refused.stderr) == (64, True)
    harness.shell("vgchange -q -ay vg")
    assert harness.shell("lvs --noheadings -o lv_name,lv_active vg").split() == ["data", "active"]


@pytest.mark.full
def test_an_interrupted_detach_of_bcache_leaves_it_as_it_was(harness: ScriptHarness) -> None:
    harness.ok("bcache-attach", "--yes", "--mode", "writeback", harness.hdd, harness.ssd)
    hold_bcache_dirty(harness)
    harness.make_files(BCACHE)
    harness.add_file("second", 16)
    knobs = harness.shell(KNOBS)
    harness.hdd_scale(50)
    process = harness.start("bcache-detach", "--yes", BCACHE)
    stopped = harness.interrupt(process, "MiB dirty", signal.SIGINT)
    harness.hdd_scale(1)
    assert stopped.rc == 130
    assert harness.shell(KNOBS) == knobs
    assert harness.status()["status"]["state"] == "dirty"
    harness.pasted(again_of(stopped))
    assert harness.shell("cat /sys/block/bcache0/bcache/state") == "no cache\n"
    harness.check_files(BCACHE)


@pytest.mark.full
def test_an_attach_of_bcache_that_is_terminated_leaves_the_devices_blank(
    harness: ScriptHarness,
) -> None:
    process = harness.start("bcache-attach", "--yes", harness.hdd, harness.ssd)
    stopped = harness.interrupt(process, "make-bcache --cache", signal.SIGTERM)
    assert stopped.rc == 130
    assert harness.leftovers() == ""
    assert harness.shell(f"wipefs --no-act {harness.hdd} {harness.ssd}") == ""
    harness.pasted(again_of(stopped))
    assert harness.status()["status"]["state"] == "clean"


def said_commands(harness: ScriptHarness, *argv: str) -> list[str]:
    """What a dry run prints, without its remarks."""
    lines = harness.ok(argv[0], "--dry-run", *argv[1:]).stdout.splitlines()
    return [line for line in lines if not line.startswith("#")]


def started(stderr: str) -> list[str]:
    """What a real run says that it starts."""
    return [line[2:] for line in stderr.splitlines() if line.startswith("+ ")]


def test_a_set_with_a_flash_only_volume_is_not_freed(harness: ScriptHarness) -> None:
    harness.ok("bcache-attach", "--yes", "--mode", "writeback", harness.hdd, harness.ssd)
    hold_bcache_dirty(harness)
    harness.make_files(BCACHE)
    harness.shell("echo 16M > /sys/fs/bcache/*-*/flash_vol_create")
    flash = "/dev/bcache1"
    harness.shell(
        f"head -c 1M /dev/urandom > /run/lab/noise; dd if=/run/lab/noise of={flash} bs=1M"
    )
    planned = said_commands(harness, "bcache-detach", "--free", BCACHE)
    detached = harness.ok("bcache-detach", "--yes", "--free", BCACHE)
    assert started(detached.stderr) == planned
    assert "stays: volume1 on it" in detached.stderr
    harness.shell(f"echo 3 > /proc/sys/vm/drop_caches; cmp -n 1048576 /run/lab/noise {flash}")
    assert "bcache" in harness.shell(f"wipefs --no-act {harness.ssd}")
    harness.check_files(BCACHE)
    harness.shell("rm /run/lab/noise")


def test_a_set_with_dirty_data_of_an_absent_device_is_not_freed(harness: ScriptHarness) -> None:
    harness.ok("bcache-attach", "--yes", "--mode", "writeback", harness.hdd, harness.ssd)
    harness.ok("bcache-attach", "--yes", "--mode", "writeback", harness.other_ssd, harness.ssd)
    other = "/sys/block/bcache1/bcache"
    harness.shell(f"cd {other} && echo 40 > writeback_percent && echo 0 > sequential_cutoff")
    harness.shell("head -c 1M /dev/urandom > /run/lab/noise")
    harness.shell("dd if=/run/lab/noise of=/dev/bcache1 bs=64k oflag=direct")
    assert harness.shell(f"cat {other}/state") == "dirty\n"
    harness.shell(f"echo 1 > {other}/stop; while [ -e {other} ]; do sleep 0.1; done")
    assert "bdev1" not in harness.shell("ls /sys/fs/bcache/*-*")
    for dry in ([], ["--dry-run"]):
        refused = harness.run("bcache-detach", "--yes", "--free", *dry, BCACHE)
        assert (refused.rc, "dirty data of a device that is not regis" in refused.stderr) == (
            64,
            True,
        )
    assert harness.shell("ls -d /sys/fs/bcache/*-*/bdev0")
    # It is there again with what only the cache had.
    harness.shell(f"echo {harness.other_ssd} > /sys/fs/bcache/register")
    harness.shell(
        "until [ -e /dev/bcache1 ]; do sleep 0.1; done; cmp -n 1048576 /run/lab/noise /dev/bcache1"
    )
    harness.shell("rm /run/lab/noise")
    detached = harness.ok("bcache-detach", "--yes", "--free", "/dev/bcache1")
    assert "stays: bdev0 on it" in detached.stderr
    planned = said_commands(harness, "bcache-detach", "--free", BCACHE)
    detached = harness.ok("bcache-detach", "--yes", "--free", BCACHE)
    assert started(detached.stderr) == planned
    assert harness.shell(f"wipefs --no-act {harness.ssd}") == ""


@pytest.mark.full
def test_a_cache_device_is_not_turned_into_a_backing_device(harness: ScriptHarness) -> None:
    harness.shell(f"make-bcache --cache {harness.ssd}")
    for device in (harness.ssd, "/run/lab/alias"):
        harness.shell(f"ln -sf {harness.ssd} /run/lab/alias")
        refused = harness.run("bcache-attach", "--yes", device, harness.other_ssd)
        assert (refused.rc, "is a cache device of bcache" in refused.stderr) == (64, True)
    harness.shell("rm /run/lab/alias")
    assert harness.leftovers() == ""


@pytest.mark.full
def test_another_path_to_the_backing_device_is_no_cache_device(harness: ScriptHarness) -> None:
    harness.shell(f"cp -a {harness.hdd} /run/lab/alias")
    same = harness.run("bcache-attach", "--yes", "--force", harness.hdd, "/run/lab/alias")
    harness.shell("rm /run/lab/alias")
    assert (same.rc, "are the same device" in same.stderr) == (64, True)
    assert harness.leftovers() == ""


@pytest.mark.full
def test_an_attach_of_bcache_that_is_terminated_at_any_step_leaves_nothing(
    harness: ScriptHarness,
) -> None:
    folder = f"/sys/block/{harness.hdd.rpartition('/')[2]}/bcache"
    steps = (
        "+ make-bcache --bdev",
        f"+ echo {harness.hdd} >",
        "+ make-bcache --cache",
        f"+ echo {harness.ssd} >",
        "bcache/attach",
        "bcache/cache_mode",
    )
    for step in steps:
        process = harness.start("bcache-attach", "--yes", harness.hdd, harness.ssd)
        stopped = harness.interrupt(process, step, signal.SIGTERM)
        if stopped.rc == 0:
            harness.pasted(undo_of(stopped))
            harness.shell(f"echo 1 > {folder}/stop")
            harness.shell(f"until wipefs --all {harness.hdd}; do sleep 0.1; done")
            continue
        assert stopped.rc == 130, stopped.stderr
        assert "everything that this run changed is as it was before" in stopped.stderr
        assert harness.leftovers() == ""
        assert harness.shell(f"wipefs --no-act {harness.hdd} {harness.ssd}") == ""


@pytest.mark.full
def test_a_kill_between_two_steps_of_an_attach_of_bcache_can_be_gone_on_from(
    harness: ScriptHarness,
) -> None:
    process = harness.start("bcache-attach", "--yes", harness.hdd, harness.ssd)
    killed = harness.interrupt(process, "make-bcache --cache", signal.SIGKILL)
    assert killed.rc != 0
    again = harness.run("bcache-attach", "--yes", harness.hdd, harness.ssd)
    if "has a cache already" in again.stderr:
        # On a slow machine the kill comes after the last step.
        assert again.rc == 64
    elif again.rc != 0:
        # Made and not registered: the next step is named.
        assert f"echo {harness.ssd} > /sys/fs/bcache/register" in again.stderr
        harness.shell(f"echo {harness.ssd} > /sys/fs/bcache/register")
        harness.ok("bcache-attach", "--yes", harness.hdd, harness.ssd)
    assert harness.status()["status"]["state"] == "clean"


@pytest.mark.full
def test_a_file_system_is_not_turned_into_a_backing_device(harness: ScriptHarness) -> None:
    harness.shell(f"mkfs.ext4 -q {harness.ssd}")
    for words in ((harness.ssd, harness.other_ssd), (harness.hdd, harness.ssd)):
        refused = harness.run("bcache-attach", "--yes", *words)
        assert (refused.rc, "carries data: ext4" in refused.stderr) == (64, True)
    assert harness.leftovers() == ""


@pytest.mark.full
def test_writes_survive_attach_and_detach_of_a_writecache(harness: ScriptHarness) -> None:
    harness.make_volume()
    harness.make_files(LVM_DEVICE)
    options = ["--yes", "--setting", "high_watermark=90", "--setting", "low_watermark=80"]
    harness.ok("writecache-attach", *options, VOLUME, harness.ssd)
    harness.add_file("second", 16)
    stack = harness.status()
    assert stack["kind"] == "dm-writecache"
    assert stack["status"]["dirty"] > 0
    harness.hdd_scale(50)
    process = harness.start("writecache-detach", "--yes", VOLUME)
    stopped = harness.interrupt(process, "MiB dirty", signal.SIGINT)
    harness.hdd_scale(1)
    assert stopped.rc == 130
    assert "cleaner" not in harness.shell(f"dmsetup table {DM}")
    detached = harness.pasted(again_of(stopped))
    again = harness.pasted(undo_of(detached))
    assert "high_watermark 90" in harness.shell(f"dmsetup table {DM}")
    harness.pasted(undo_of(again))
    harness.check_files(LVM_DEVICE)


@pytest.mark.full
def test_a_volume_of_unknown_content_needs_a_block_size(harness: ScriptHarness) -> None:
    harness.make_volume(64)
    refused = harness.run("writecache-attach", "--yes", VOLUME, harness.ssd)
    assert (refused.rc, "--block-size" in refused.stderr) == (64, True)
