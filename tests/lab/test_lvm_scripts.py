# SPDX-License-Identifier: GPL-2.0-only
"""lvmcache-attach, lvmcache-detach and stack-status on real LVM and a stock kernel."""

from __future__ import annotations

import signal

import pytest

from tests.lab.script_fixture import DM, VOLUME, ScriptHarness, again_of, undo_of

DEVICE = f"/dev/{VOLUME}"


def layout(harness: ScriptHarness) -> str:
    """Volumes of LVM with their layout, and the devices of the group."""
    volumes = harness.shell("lvs --noheadings -a -o lv_name,lv_layout,cache_mode vg")
    return volumes + harness.shell("pvs --noheadings -o pv_name,vg_name")


def cache_settings(harness: ScriptHarness) -> tuple[str, ...]:
    """What LVM keeps of the settings of the cache's policy."""
    return tuple(harness.shell(f"lvs --noheadings -o cache_settings {VOLUME}").strip().split(","))


def test_dirty_data_survives_attach_and_detach_of_a_mounted_volume(harness: ScriptHarness) -> None:
    harness.make_volume()
    harness.make_files(DEVICE)
    before = layout(harness)
    attached = harness.ok("lvmcache-attach", "--yes", "--mode", "writeback", VOLUME, harness.ssd)
    harness.hold_dirty()
    harness.add_file("second", 8)
    stack = harness.status()
    assert stack["status"]["dirty"] > 0
    assert stack["status"]["mode"] == "writeback"
    assert {part["role"]: part["physical"] for part in stack["parts"]} == {
        "cache": [harness.ssd],
        "metadata": [harness.ssd],
        "backing": [harness.hdd],
    }
    detached = harness.pasted(undo_of(attached))
    assert "MiB dirty" in detached.stderr
    assert "clean: nothing is dirty" in detached.stderr
    assert "cache_check" in detached.stderr
    assert layout(harness) == before
    harness.check_files(DEVICE)


@pytest.mark.full
def test_a_cachepool_of_larger_chunks_comes_and_goes(harness: ScriptHarness) -> None:
    harness.make_volume()
    harness.make_files(DEVICE)
    options = ["--yes", "--cachepool", "--chunk", "128k", "--mode", "writeback"]
    settings = ("migration_threshold=4096",)
    for each in settings:
        options += ["--setting", each]
    harness.ok("lvmcache-attach", *options, VOLUME, harness.ssd)
    assert cache_settings(harness) == settings
    harness.hold_dirty()
    harness.add_file("second")
    assert harness.status()["status"]["block_bytes"] == 128 * 1024
    detached = harness.ok("lvmcache-detach", "--yes", VOLUME)
    assert "data_cache" in layout(harness)
    again = harness.pasted(undo_of(detached))
    assert "+ lvconvert" in again.stderr
    assert cache_settings(harness) == settings
    assert harness.status()["status"]["block_bytes"] == 128 * 1024
    harness.check_files(DEVICE)


def test_a_device_that_carries_data_is_refused_and_left_alone(harness: ScriptHarness) -> None:
    harness.make_volume(64)
    harness.shell(f"mkfs.ext4 -q {harness.ssd}")
    before = harness.shell(f"head -c 65536 {harness.ssd} | sha256sum")
    refused = harness.run("lvmcache-attach", "--yes", VOLUME, harness.ssd)
    assert (refused.rc, "carries data: ext4" in refused.stderr) == (64, True)
    assert harness.shell(f"head -c 65536 {harness.ssd} | sha256sum") == before
    harness.ok("lvmcache-attach", "--yes", "--force", VOLUME, harness.ssd)
    assert harness.status()["status"]["mode"] == "writethrough"


def test_a_mounted_device_is_refused_even_with_force(harness: ScriptHarness) -> None:
    harness.make_volume(64)
    harness.make_files(harness.ssd)
    refused = harness.run("lvmcache-attach", "--yes", "--force", VOLUME, harness.ssd)
    assert (refused.rc, "is mounted at" in refused.stderr) == (64, True)
    # Why --force cannot help: the kernel lets no other program open it.
    for tool in ("pvcreate -ff -y", "make-bcache --wipe-bcache -C"):
        assert harness.session.run(f"{tool} {harness.ssd}").rc != 0
    harness.check_files(harness.ssd)


@pytest.mark.full
def test_swap_is_refused_even_with_force(harness: ScriptHarness) -> None:
    harness.make_volume(64)
    harness.shell(f"mkswap {harness.ssd} && swapon {harness.ssd}")
    try:
        refused = harness.run("lvmcache-attach", "--yes", "--force", VOLUME, harness.ssd)
    finally:
        harness.shell(f"swapoff {harness.ssd}")
    assert (refused.rc, "is swap: swapoff it first" in refused.stderr) == (64, True)


@pytest.mark.full
def test_another_command_of_lvm_is_waited_for(harness: ScriptHarness) -> None:
    harness.make_volume(64)
    harness.shell("flock /run/lock/lvm/V_vg sleep 5 </dev/null >/dev/null 2>&1 &")
    done = harness.ok("lvmcache-attach", "--dry-run", VOLUME, harness.ssd)
    assert "waiting for another command of LVM on vg" in done.stderr


@pytest.mark.full
def test_an_attach_that_fails_half_way_is_taken_back(harness: ScriptHarness) -> None:
    harness.make_volume(64)
    before = layout(harness)
    options = ["--yes", "--block-size", "4096", "--setting", "nonsense=1"]
    failed = harness.run("writecache-attach", *options, VOLUME, harness.ssd)
    assert (failed.rc, "failed: lvconvert" in failed.stderr) == (74, True)
    assert "undo: lvremove" in failed.stderr
    assert layout(harness) == before
    assert harness.shell(f"wipefs --no-act {harness.ssd}") == ""


def test_a_forced_attach_that_fails_puts_every_signature_back(harness: ScriptHarness) -> None:
    harness.make_volume(64)
    harness.shell(f"mkfs.ext4 -q {harness.ssd}; rm -f /run/lab/wipefs-*")
    # A boot sector's signature, which wipefs takes for a table of partitions.
    harness.shell(
        f"printf '\\125\\252' | dd of={harness.ssd} bs=1 seek=510 conv=notrunc status=none"
    )
    before = harness.shell(f"wipefs --no-act --parsable {harness.ssd}")
    assert "ext4" in before
    options = ["--yes", "--force", "--block-size", "4096", "--setting", "nonsense=1"]
    failed = harness.run("writecache-attach", *options, VOLUME, harness.ssd)
    assert (failed.rc, "undo: dd if=/run/lab/wipefs-" in failed.stderr) == (74, True)
    assert "may be damaged: it has been written over" in failed.stderr
    after = harness.shell(f"wipefs --no-act --parsable {harness.ssd}")
    assert offsets(after) == offsets(before)
    harness.shell("rm -f /run/lab/wipefs-*")


def offsets(parsable: str) -> set[str]:
    """Where wipefs finds a signature."""
    return {line.split(",")[0] for line in parsable.splitlines() if line.startswith("0x")}


@pytest.mark.full
def test_pvcreate_refuses_a_signature_that_came_after_the_check(harness: ScriptHarness) -> None:
    harness.shell(f"mkfs.ext4 -q {harness.ssd}")
    assert harness.session.run(f"pvcreate {harness.ssd} </dev/null").rc != 0
    assert "ext4" in harness.shell(f"wipefs --no-act {harness.ssd}")


@pytest.mark.full
def test_a_device_with_other_volumes_stays_also_in_the_dry_run(harness: ScriptHarness) -> None:
    harness.make_volume(64)
    harness.ok("lvmcache-attach", "--yes", "--size", "64m", VOLUME, harness.ssd)
    harness.shell(f"lvcreate -q -y -n other -L 16m vg {harness.ssd}")
    dry = harness.ok("lvmcache-detach", "--dry-run", "--free", VOLUME).stdout
    assert f"# {harness.ssd} stays in vg: other on it" in dry
    real = harness.ok("lvmcache-detach", "--yes", "--free", VOLUME).stderr
    planned = [line for line in dry.splitlines() if not line.startswith("#")]
    assert [line[2:] for line in real.splitlines() if line.startswith("+ ")] == planned
    assert "other" in layout(harness)
    assert "data_cache" not in layout(harness)


@pytest.mark.full
def test_a_kill_between_two_steps_of_an_attach_can_be_gone_on_from(harness: ScriptHarness) -> None:
    harness.make_volume(64)
    process = harness.start("lvmcache-attach", "--yes", VOLUME, harness.ssd)
    assert harness.interrupt(process, "+ vgextend", signal.SIGKILL).rc != 0
    again = harness.run("lvmcache-attach", "--yes", VOLUME, harness.ssd)
    if again.rc != 0:
        assert f"pvremove {harness.ssd} makes it blank" in again.stderr
        harness.shell(f"pvremove {harness.ssd}")
        harness.ok("lvmcache-attach", "--yes", VOLUME, harness.ssd)
    assert harness.status()["status"]["mode"] == "writethrough"


@pytest.mark.full
def test_an_attach_that_is_terminated_at_any_step_leaves_nothing(harness: ScriptHarness) -> None:
    harness.make_volume(64)
    before = layout(harness)
    for step in ("+ pvcreate", "+ vgextend", "+ lvcreate", "+ lvconvert"):
        process = harness.start("lvmcache-attach", "--yes", VOLUME, harness.ssd)
        stopped = harness.interrupt(process, step, signal.SIGTERM)
        if stopped.rc == 0:
            harness.pasted(undo_of(stopped))
        else:
            assert stopped.rc == 130, stopped.stderr
            assert "everything that this run changed is as it was before" in stopped.stderr
        assert layout(harness) == before
        assert harness.shell(f"wipefs --no-act {harness.ssd}") == ""


def test_an_attach_that_is_terminated_leaves_nothing_behind(harness: ScriptHarness) -> None:
    harness.make_volume()
    harness.make_files(DEVICE)
    before = layout(harness)
    process = harness.start("lvmcache-attach", "--yes", VOLUME, harness.ssd)
    stopped = harness.interrupt(process, "+ lvcreate", signal.SIGTERM)
    assert stopped.rc == 130
    assert layout(harness) == before
    harness.pasted(again_of(stopped))
    harness.ok("lvmcache-detach", "--yes", "--free", VOLUME)
    assert layout(harness) == before
    harness.check_files(DEVICE)


@pytest.mark.full
def test_an_interrupted_detach_puts_the_cache_back(harness: ScriptHarness) -> None:
    harness.make_volume()
    harness.make_files(DEVICE)
    harness.ok("lvmcache-attach", "--yes", "--mode", "writeback", VOLUME, harness.ssd)
    harness.hold_dirty()
    harness.add_file("second", 32)
    before = layout(harness)
    # Some 30 MiB then take a minute; so does LVM itself on a disk that is much slower.
    harness.hdd_scale(12)
    process = harness.start("lvmcache-detach", "--yes", "--free", VOLUME)
    stopped = harness.interrupt(process, "MiB dirty", signal.SIGINT)
    assert stopped.rc == 130
    assert layout(harness) == before
    late = harness.run("lvmcache-detach", "--yes", "--free", "--timeout", "1", VOLUME)
    harness.hdd_scale(1)
    assert (late.rc, "still dirty after 1 s" in late.stderr) == (74, True)
    assert layout(harness) == before
    assert "writeback smq" in harness.shell(f"dmsetup table {DM}").replace(" mq ", " smq ")
    harness.pasted(again_of(stopped))
    assert "data_cache" not in layout(harness)
    harness.check_files(DEVICE)
