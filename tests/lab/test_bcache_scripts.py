# SPDX-License-Identifier: GPL-2.0-only
"""bcache-attach, bcache-detach, writecache-attach and writecache-detach on a stock kernel."""

from __future__ import annotations

import signal

import pytest

from tests.lab.script_fixture import DM, VOLUME, ScriptBench, again_of, undo_of

LVM_DEVICE = f"/dev/{VOLUME}"
BCACHE = "/dev/bcache0"
KNOBS = "cd /sys/block/bcache0/bcache && head cache_mode writeback_percent writeback_delay"


def hold_bcache_dirty(bench: ScriptBench) -> None:
    """Nothing is written back by itself, and nothing goes past the cache."""
    bench.shell(
        "cd /sys/block/bcache0/bcache && echo 40 > writeback_percent && echo 0 > writeback_delay"
        " && echo 0 > sequential_cutoff && echo 0 > cache/congested_write_threshold_us"
    )


def test_dirty_data_survives_the_detach_of_bcache_and_the_undo(bench: ScriptBench) -> None:
    attached = bench.ok("bcache-attach", "--yes", "--mode", "writeback", bench.hdd, bench.ssd)
    hold_bcache_dirty(bench)
    bench.make_files(BCACHE)
    knobs = bench.shell(KNOBS)
    stack = bench.status()
    assert stack["status"]["dirty_bytes"] > 0
    assert {part["role"]: part["device"] for part in stack["parts"]} == {
        "cache": bench.ssd,
        "backing": bench.hdd,
    }
    detached = bench.pasted(undo_of(attached))
    assert "MiB dirty" in detached.stderr
    assert bench.shell(KNOBS) == knobs
    assert bench.shell(f"wipefs --no-act {bench.ssd}") == ""
    bench.add_file("meanwhile")
    bench.pasted(undo_of(detached))
    assert bench.status()["status"]["mode"] == "writeback"
    bench.check_files(BCACHE)


@pytest.mark.full
def test_an_interrupted_detach_of_bcache_leaves_it_as_it_was(bench: ScriptBench) -> None:
    bench.ok("bcache-attach", "--yes", "--mode", "writeback", bench.hdd, bench.ssd)
    hold_bcache_dirty(bench)
    bench.make_files(BCACHE)
    bench.add_file("second", 16)
    knobs = bench.shell(KNOBS)
    bench.hdd_scale(50)
    process = bench.start("bcache-detach", "--yes", BCACHE)
    stopped = bench.interrupt(process, "MiB dirty", signal.SIGINT)
    bench.hdd_scale(1)
    assert stopped.rc == 130
    assert bench.shell(KNOBS) == knobs
    assert bench.status()["status"]["state"] == "dirty"
    bench.pasted(again_of(stopped))
    assert bench.shell("cat /sys/block/bcache0/bcache/state") == "no cache\n"
    bench.check_files(BCACHE)


@pytest.mark.full
def test_an_attach_of_bcache_that_is_terminated_leaves_the_devices_blank(
    bench: ScriptBench,
) -> None:
    process = bench.start("bcache-attach", "--yes", bench.hdd, bench.ssd)
    stopped = bench.interrupt(process, "make-bcache --cache", signal.SIGTERM)
    assert stopped.rc == 130
    assert bench.leftovers() == ""
    assert bench.shell(f"wipefs --no-act {bench.hdd} {bench.ssd}") == ""
    bench.pasted(again_of(stopped))
    assert bench.status()["status"]["state"] == "clean"


def said_commands(bench: ScriptBench, *argv: str) -> list[str]:
    """What a dry run prints, without its remarks."""
    lines = bench.ok(argv[0], "--dry-run", *argv[1:]).stdout.splitlines()
    return [line for line in lines if not line.startswith("#")]


def started(stderr: str) -> list[str]:
    """What a real run says that it starts."""
    return [line[2:] for line in stderr.splitlines() if line.startswith("+ ")]


def test_a_set_with_a_flash_only_volume_is_not_freed(bench: ScriptBench) -> None:
    bench.ok("bcache-attach", "--yes", "--mode", "writeback", bench.hdd, bench.ssd)
    hold_bcache_dirty(bench)
    bench.make_files(BCACHE)
    bench.shell("echo 16M > /sys/fs/bcache/*-*/flash_vol_create")
    flash = "/dev/bcache1"
    bench.shell(f"head -c 1M /dev/urandom > /run/lab/noise; dd if=/run/lab/noise of={flash} bs=1M")
    planned = said_commands(bench, "bcache-detach", "--free", BCACHE)
    detached = bench.ok("bcache-detach", "--yes", "--free", BCACHE)
    assert started(detached.stderr) == planned
    assert "stays: volume1 on it" in detached.stderr
    bench.shell(f"echo 3 > /proc/sys/vm/drop_caches; cmp -n 1048576 /run/lab/noise {flash}")
    assert "bcache" in bench.shell(f"wipefs --no-act {bench.ssd}")
    bench.check_files(BCACHE)
    bench.shell("rm /run/lab/noise")


def test_a_set_with_dirty_data_of_an_absent_device_is_not_freed(bench: ScriptBench) -> None:
    bench.ok("bcache-attach", "--yes", "--mode", "writeback", bench.hdd, bench.ssd)
    bench.ok("bcache-attach", "--yes", "--mode", "writeback", bench.other_ssd, bench.ssd)
    other = "/sys/block/bcache1/bcache"
    bench.shell(f"cd {other} && echo 40 > writeback_percent && echo 0 > sequential_cutoff")
    bench.shell("head -c 1M /dev/urandom > /run/lab/noise")
    bench.shell("dd if=/run/lab/noise of=/dev/bcache1 bs=64k oflag=direct")
    assert bench.shell(f"cat {other}/state") == "dirty\n"
    bench.shell(f"echo 1 > {other}/stop; while [ -e {other} ]; do sleep 0.1; done")
    assert "bdev1" not in bench.shell("ls /sys/fs/bcache/*-*")
    for dry in ([], ["--dry-run"]):
        refused = bench.run("bcache-detach", "--yes", "--free", *dry, BCACHE)
        assert (refused.rc, "dirty data of a device that is not regis" in refused.stderr) == (
            64,
            True,
        )
    assert bench.shell("ls -d /sys/fs/bcache/*-*/bdev0")
    # It is there again with what only the cache had.
    bench.shell(f"echo {bench.other_ssd} > /sys/fs/bcache/register")
    bench.shell(
        "until [ -e /dev/bcache1 ]; do sleep 0.1; done; cmp -n 1048576 /run/lab/noise /dev/bcache1"
    )
    bench.shell("rm /run/lab/noise")
    detached = bench.ok("bcache-detach", "--yes", "--free", "/dev/bcache1")
    assert "stays: bdev0 on it" in detached.stderr
    planned = said_commands(bench, "bcache-detach", "--free", BCACHE)
    detached = bench.ok("bcache-detach", "--yes", "--free", BCACHE)
    assert started(detached.stderr) == planned
    assert bench.shell(f"wipefs --no-act {bench.ssd}") == ""


@pytest.mark.full
def test_a_cache_device_is_not_turned_into_a_backing_device(bench: ScriptBench) -> None:
    bench.shell(f"make-bcache --cache {bench.ssd}")
    for device in (bench.ssd, "/run/lab/alias"):
        bench.shell(f"ln -sf {bench.ssd} /run/lab/alias")
        refused = bench.run("bcache-attach", "--yes", device, bench.other_ssd)
        assert (refused.rc, "is a cache device of bcache" in refused.stderr) == (64, True)
    bench.shell("rm /run/lab/alias")
    assert bench.leftovers() == ""


@pytest.mark.full
def test_another_path_to_the_backing_device_is_no_cache_device(bench: ScriptBench) -> None:
    bench.shell(f"cp -a {bench.hdd} /run/lab/alias")
    same = bench.run("bcache-attach", "--yes", "--force", bench.hdd, "/run/lab/alias")
    bench.shell("rm /run/lab/alias")
    assert (same.rc, "are the same device" in same.stderr) == (64, True)
    assert bench.leftovers() == ""


@pytest.mark.full
def test_an_attach_of_bcache_that_is_terminated_at_any_step_leaves_nothing(
    bench: ScriptBench,
) -> None:
    folder = f"/sys/block/{bench.hdd.rpartition('/')[2]}/bcache"
    steps = (
        "+ make-bcache --bdev",
        f"+ echo {bench.hdd} >",
        "+ make-bcache --cache",
        f"+ echo {bench.ssd} >",
        "bcache/attach",
        "bcache/cache_mode",
    )
    for step in steps:
        process = bench.start("bcache-attach", "--yes", bench.hdd, bench.ssd)
        stopped = bench.interrupt(process, step, signal.SIGTERM)
        if stopped.rc == 0:
            bench.pasted(undo_of(stopped))
            bench.shell(f"echo 1 > {folder}/stop")
            bench.shell(f"until wipefs --all {bench.hdd}; do sleep 0.1; done")
            continue
        assert stopped.rc == 130, stopped.stderr
        assert "everything that this run changed is as it was before" in stopped.stderr
        assert bench.leftovers() == ""
        assert bench.shell(f"wipefs --no-act {bench.hdd} {bench.ssd}") == ""


@pytest.mark.full
def test_a_kill_between_two_steps_of_an_attach_of_bcache_can_be_gone_on_from(
    bench: ScriptBench,
) -> None:
    process = bench.start("bcache-attach", "--yes", bench.hdd, bench.ssd)
    killed = bench.interrupt(process, "make-bcache --cache", signal.SIGKILL)
    assert killed.rc != 0
    again = bench.run("bcache-attach", "--yes", bench.hdd, bench.ssd)
    if "has a cache already" in again.stderr:
        # On a slow machine the kill comes after the last step.
        assert again.rc == 64
    elif again.rc != 0:
        # Made and not registered: the next step is named.
        assert f"echo {bench.ssd} > /sys/fs/bcache/register" in again.stderr
        bench.shell(f"echo {bench.ssd} > /sys/fs/bcache/register")
        bench.ok("bcache-attach", "--yes", bench.hdd, bench.ssd)
    assert bench.status()["status"]["state"] == "clean"


@pytest.mark.full
def test_a_file_system_is_not_turned_into_a_backing_device(bench: ScriptBench) -> None:
    bench.shell(f"mkfs.ext4 -q {bench.ssd}")
    for words in ((bench.ssd, bench.other_ssd), (bench.hdd, bench.ssd)):
        refused = bench.run("bcache-attach", "--yes", *words)
        assert (refused.rc, "carries data: ext4" in refused.stderr) == (64, True)
    assert bench.leftovers() == ""


def test_writes_survive_attach_and_detach_of_a_writecache(bench: ScriptBench) -> None:
    bench.make_volume()
    bench.make_files(LVM_DEVICE)
    options = ["--yes", "--setting", "high_watermark=90", "--setting", "low_watermark=80"]
    bench.ok("writecache-attach", *options, VOLUME, bench.ssd)
    bench.add_file("second", 16)
    stack = bench.status()
    assert stack["kind"] == "dm-writecache"
    assert stack["status"]["dirty"] > 0
    bench.hdd_scale(50)
    process = bench.start("writecache-detach", "--yes", VOLUME)
    stopped = bench.interrupt(process, "MiB dirty", signal.SIGINT)
    bench.hdd_scale(1)
    assert stopped.rc == 130
    assert "cleaner" not in bench.shell(f"dmsetup table {DM}")
    detached = bench.pasted(again_of(stopped))
    again = bench.pasted(undo_of(detached))
    assert "high_watermark 90" in bench.shell(f"dmsetup table {DM}")
    bench.pasted(undo_of(again))
    bench.check_files(LVM_DEVICE)


@pytest.mark.full
def test_a_volume_of_unknown_content_needs_its_block_size_said(bench: ScriptBench) -> None:
    bench.make_volume(64)
    refused = bench.run("writecache-attach", "--yes", VOLUME, bench.ssd)
    assert (refused.rc, "--block-size" in refused.stderr) == (64, True)
