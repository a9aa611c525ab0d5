# SPDX-License-Identifier: GPL-2.0-only
"""lvmcache-attach, lvmcache-detach and stack-status on real LVM and a stock kernel."""

from __future__ import annotations

import signal

import pytest

from tests.lab.script_fixture import DM, VOLUME, ScriptBench, again_of, undo_of

DEVICE = f"/dev/{VOLUME}"


def layout(bench: ScriptBench) -> str:
    """Volumes of LVM with their layout, and the devices of the group."""
    volumes = bench.shell("lvs --noheadings -a -o lv_name,lv_layout,cache_mode vg")
    return volumes + bench.shell("pvs --noheadings -o pv_name,vg_name")


def test_dirty_data_survives_attach_and_detach_of_a_mounted_volume(bench: ScriptBench) -> None:
    bench.make_volume()
    bench.make_files(DEVICE)
    before = layout(bench)
    attached = bench.ok("lvmcache-attach", "--yes", "--mode", "writeback", VOLUME, bench.ssd)
    bench.hold_dirty()
    bench.add_file("second", 8)
    stack = bench.status()
    assert stack["status"]["dirty"] > 0
    assert stack["status"]["mode"] == "writeback"
    assert {part["role"]: part["physical"] for part in stack["parts"]} == {
        "cache": [bench.ssd],
        "metadata": [bench.ssd],
        "backing": [bench.hdd],
    }
    detached = bench.pasted(undo_of(attached))
    assert "MiB dirty" in detached.stderr
    assert "clean: nothing is dirty" in detached.stderr
    assert "cache_check" in detached.stderr
    assert layout(bench) == before
    bench.check_files(DEVICE)


@pytest.mark.full
def test_a_cachepool_of_larger_chunks_comes_and_goes(bench: ScriptBench) -> None:
    bench.make_volume()
    bench.make_files(DEVICE)
    options = ["--yes", "--cachepool", "--chunk", "128k", "--mode", "writeback"]
    bench.ok("lvmcache-attach", *options, VOLUME, bench.ssd)
    bench.hold_dirty()
    bench.add_file("second")
    assert bench.status()["status"]["block_bytes"] == 128 * 1024
    detached = bench.ok("lvmcache-detach", "--yes", VOLUME)
    assert "data_cache" in layout(bench)
    again = bench.pasted(undo_of(detached))
    assert "+ lvconvert" in again.stderr
    assert bench.status()["status"]["block_bytes"] == 128 * 1024
    bench.check_files(DEVICE)


def test_a_device_that_carries_data_is_refused_and_left_alone(bench: ScriptBench) -> None:
    bench.make_volume(64)
    bench.shell(f"mkfs.ext4 -q {bench.ssd}")
    before = bench.shell(f"head -c 65536 {bench.ssd} | sha256sum")
    refused = bench.run("lvmcache-attach", "--yes", VOLUME, bench.ssd)
    assert (refused.rc, "carries data: ext4" in refused.stderr) == (64, True)
    assert bench.shell(f"head -c 65536 {bench.ssd} | sha256sum") == before
    bench.ok("lvmcache-attach", "--yes", "--force", VOLUME, bench.ssd)
    assert bench.status()["status"]["mode"] == "writethrough"


def test_a_mounted_device_is_refused_even_with_force(bench: ScriptBench) -> None:
    bench.make_volume(64)
    bench.make_files(bench.ssd)
    refused = bench.run("lvmcache-attach", "--yes", "--force", VOLUME, bench.ssd)
    assert (refused.rc, "is mounted at" in refused.stderr) == (64, True)
    # Why --force cannot help: the kernel lets nobody else open it, whatever a tool is told.
    for tool in ("pvcreate -ff -y", "make-bcache --wipe-bcache -C"):
        assert bench.session.run(f"{tool} {bench.ssd}").rc != 0
    bench.check_files(bench.ssd)


@pytest.mark.full
def test_swap_is_refused_even_with_force(bench: ScriptBench) -> None:
    bench.make_volume(64)
    bench.shell(f"mkswap {bench.ssd} && swapon {bench.ssd}")
    try:
        refused = bench.run("lvmcache-attach", "--yes", "--force", VOLUME, bench.ssd)
    finally:
        bench.shell(f"swapoff {bench.ssd}")
    assert (refused.rc, "is swap: swapoff it first" in refused.stderr) == (64, True)


@pytest.mark.full
def test_another_command_of_lvm_is_waited_for(bench: ScriptBench) -> None:
    bench.make_volume(64)
    bench.shell("flock /run/lock/lvm/V_vg sleep 5 </dev/null >/dev/null 2>&1 &")
    done = bench.ok("lvmcache-attach", "--dry-run", VOLUME, bench.ssd)
    assert "waiting for another command of LVM on vg" in done.stderr


@pytest.mark.full
def test_an_attach_that_fails_half_way_is_taken_back(bench: ScriptBench) -> None:
    bench.make_volume(64)
    before = layout(bench)
    options = ["--yes", "--block-size", "4096", "--setting", "nonsense=1"]
    failed = bench.run("writecache-attach", *options, VOLUME, bench.ssd)
    assert (failed.rc, "failed: lvconvert" in failed.stderr) == (74, True)
    assert "undo: lvremove" in failed.stderr
    assert layout(bench) == before
    assert bench.shell(f"wipefs --no-act {bench.ssd}") == ""


def test_a_forced_attach_that_fails_puts_every_signature_back(bench: ScriptBench) -> None:
    bench.make_volume(64)
    bench.shell(f"mkfs.ext4 -q {bench.ssd}; rm -f /run/lab/wipefs-*")
    # A boot sector's signature, which wipefs takes for a table of partitions.
    bench.shell(f"printf '\\125\\252' | dd of={bench.ssd} bs=1 seek=510 conv=notrunc status=none")
    before = bench.shell(f"wipefs --no-act --parsable {bench.ssd}")
    assert "ext4" in before
    options = ["--yes", "--force", "--block-size", "4096", "--setting", "nonsense=1"]
    failed = bench.run("writecache-attach", *options, VOLUME, bench.ssd)
    assert (failed.rc, "undo: dd if=/run/lab/wipefs-" in failed.stderr) == (74, True)
    assert "may be damaged: it has been written over" in failed.stderr
    after = bench.shell(f"wipefs --no-act --parsable {bench.ssd}")
    assert offsets(after) == offsets(before)
    bench.shell("rm -f /run/lab/wipefs-*")


def offsets(parsable: str) -> set[str]:
    """Where wipefs finds a signature."""
    return {line.split(",")[0] for line in parsable.splitlines() if line.startswith("0x")}


@pytest.mark.full
def test_pvcreate_refuses_a_signature_that_came_after_the_check(bench: ScriptBench) -> None:
    bench.shell(f"mkfs.ext4 -q {bench.ssd}")
    assert bench.session.run(f"pvcreate {bench.ssd} </dev/null").rc != 0
    assert "ext4" in bench.shell(f"wipefs --no-act {bench.ssd}")


@pytest.mark.full
def test_a_device_with_other_volumes_stays_and_the_dry_run_says_so(bench: ScriptBench) -> None:
    bench.make_volume(64)
    bench.ok("lvmcache-attach", "--yes", "--size", "64m", VOLUME, bench.ssd)
    bench.shell(f"lvcreate -q -y -n other -L 16m vg {bench.ssd}")
    dry = bench.ok("lvmcache-detach", "--dry-run", "--free", VOLUME).stdout
    assert f"# {bench.ssd} stays in vg: other on it" in dry
    real = bench.ok("lvmcache-detach", "--yes", "--free", VOLUME).stderr
    planned = [line for line in dry.splitlines() if not line.startswith("#")]
    assert [line[2:] for line in real.splitlines() if line.startswith("+ ")] == planned
    assert "other" in layout(bench)
    assert "data_cache" not in layout(bench)


@pytest.mark.full
def test_a_kill_between_two_steps_of_an_attach_can_be_gone_on_from(bench: ScriptBench) -> None:
    bench.make_volume(64)
    process = bench.start("lvmcache-attach", "--yes", VOLUME, bench.ssd)
    assert bench.interrupt(process, "+ vgextend", signal.SIGKILL).rc != 0
    again = bench.run("lvmcache-attach", "--yes", VOLUME, bench.ssd)
    if again.rc != 0:
        assert f"pvremove {bench.ssd} makes it blank" in again.stderr
        bench.shell(f"pvremove {bench.ssd}")
        bench.ok("lvmcache-attach", "--yes", VOLUME, bench.ssd)
    assert bench.status()["status"]["mode"] == "writethrough"


@pytest.mark.full
def test_an_attach_that_is_terminated_at_any_step_leaves_nothing(bench: ScriptBench) -> None:
    bench.make_volume(64)
    before = layout(bench)
    for step in ("+ pvcreate", "+ vgextend", "+ lvcreate", "+ lvconvert"):
        process = bench.start("lvmcache-attach", "--yes", VOLUME, bench.ssd)
        stopped = bench.interrupt(process, step, signal.SIGTERM)
        if stopped.rc == 0:
            bench.pasted(undo_of(stopped))
        else:
            assert stopped.rc == 130, stopped.stderr
            assert "everything that this run changed is as it was before" in stopped.stderr
        assert layout(bench) == before
        assert bench.shell(f"wipefs --no-act {bench.ssd}") == ""


def test_an_attach_that_is_terminated_leaves_nothing_behind(bench: ScriptBench) -> None:
    bench.make_volume()
    bench.make_files(DEVICE)
    before = layout(bench)
    process = bench.start("lvmcache-attach", "--yes", VOLUME, bench.ssd)
    stopped = bench.interrupt(process, "+ lvcreate", signal.SIGTERM)
    assert stopped.rc == 130
    assert layout(bench) == before
    bench.pasted(again_of(stopped))
    bench.ok("lvmcache-detach", "--yes", "--free", VOLUME)
    assert layout(bench) == before
    bench.check_files(DEVICE)


@pytest.mark.full
def test_an_interrupted_detach_puts_the_cache_back(bench: ScriptBench) -> None:
    bench.make_volume()
    bench.make_files(DEVICE)
    bench.ok("lvmcache-attach", "--yes", "--mode", "writeback", VOLUME, bench.ssd)
    bench.hold_dirty()
    bench.add_file("second", 32)
    before = layout(bench)
    # Some 30 MiB then take a minute; so does LVM itself on a disk that is much slower.
    bench.hdd_scale(12)
    process = bench.start("lvmcache-detach", "--yes", "--free", VOLUME)
    stopped = bench.interrupt(process, "MiB dirty", signal.SIGINT)
    assert stopped.rc == 130
    assert layout(bench) == before
    late = bench.run("lvmcache-detach", "--yes", "--free", "--timeout", "1", VOLUME)
    bench.hdd_scale(1)
    assert (late.rc, "still dirty after 1 s" in late.stderr) == (74, True)
    assert layout(bench) == before
    assert "writeback smq" in bench.shell(f"dmsetup table {DM}").replace(" mq ", " smq ")
    bench.pasted(again_of(stopped))
    assert "data_cache" not in layout(bench)
    bench.check_files(DEVICE)
