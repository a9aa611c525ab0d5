# SPDX-License-Identifier: GPL-2.0-only
"""What undoes a detach of LVM's caches, and dm-caches that the attach does not make."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.shell.machines import POOL_LVS, RAID_POOL_LVS, SCENARIOS, VOL_LVS
from tests.shell.recorded import Machine

DETACH = SCENARIOS["lvmcache-detach-free"]
WRITECACHE_DETACH = SCENARIOS["writecache-detach-free"]
SETTINGS = "migration_threshold=16384,random_threshold=8"
TUNED = VOL_LVS.replace("smq|65536|", f"smq|65536|{SETTINGS}")

_SPARE = "lvol0_pmspare|linear|||4194304|0|||||/dev/sdb(116)\n"
POOL_AND_SPARE = POOL_LVS.replace("/dev/sdc", "/dev/sdb") + _SPARE


def machine(tmp_path: Path, lvs: str) -> Machine:
    return Machine(tmp_path, **{**DETACH.machine, "lvs": lvs})


def dry_run(found: Machine, *options: str) -> list[str]:
    text = found.run("lvmcache-detach", "-n", *options, "vg/data")
    assert text.endswith("exit 0\n"), text
    return text.splitlines()[1:-1]


def test_the_undo_of_a_detach_has_the_settings_of_the_cache(tmp_path: Path) -> None:
    there = machine(tmp_path, TUNED)
    text = there.run("lvmcache-detach", "--yes", "vg/data")
    (undo,) = (line for line in text.splitlines() if line.startswith("# to undo: "))
    assert "--setting migration_threshold=16384 --setting random_threshold=8" in undo
    words = shlex.split(undo.removeprefix("# to undo: "))
    again = there.run(Path(words[0]).name, *words[1:])
    assert again.endswith("exit 0\n"), again
    assert TUNED.splitlines()[0] in there.state()["state/lvs"].splitlines()


@pytest.mark.parametrize(
    ("lvs", "option"), [(VOL_LVS, "--remove"), (VOL_LVS, "--free"), (POOL_AND_SPARE, "--remove")]
)
def test_the_undo_of_a_detach_makes_a_cache_of_the_same_size(
    lvs: str, option: str, tmp_path: Path
) -> None:
    """With all of its device, the chunks of a cache that had a part of it may be too many."""
    there = machine(tmp_path, lvs)
    text = there.run("lvmcache-detach", "--yes", option, "vg/data")
    (undo,) = (line for line in text.splitlines() if line.startswith("# to undo: "))
    words = shlex.split(undo.removeprefix("# to undo: "))
    again = there.run(Path(words[0]).name, *words[1:])
    assert again.endswith("exit 0\n"), again
    made = next(step for step in there.steps() if step.startswith("lvcreate"))
    assert " -l 100 " in made


@pytest.mark.parametrize("option", ["--remove", "--free"])
def test_the_undo_of_a_detach_makes_a_writecache_of_the_same_size(
    option: str, tmp_path: Path
) -> None:
    there = Machine(tmp_path, **WRITECACHE_DETACH.machine)
    text = there.run("writecache-detach", "--yes", option, "vg/data")
    (undo,) = (line for line in text.splitlines() if line.startswith("# to undo: "))
    assert " --size 400m " in undo
    words = shlex.split(undo.removeprefix("# to undo: "))
    again = there.run(Path(words[0]).name, *words[1:])
    assert again.endswith("exit 0\n"), again
    made = next(step for step in there.steps() if step.startswith("lvcreate"))
    assert " -l 100 " in made


def test_the_undo_leaves_the_size_of_a_pool_open_where_its_spare_stays(tmp_path: Path) -> None:
    """The attach counts a spare, for which there is no space then."""
    other = "slow|cache,pool|||4194304|0|writethrough|smq|65536||slow_cdata(0)\n"
    lines = dry_run(machine(tmp_path, POOL_AND_SPARE + other), "--free")
    assert "--size" not in lines[-1]


def test_a_roll_back_of_a_detach_restores_the_settings_of_the_cache(tmp_path: Path) -> None:
    there = machine(tmp_path, TUNED)
    there.install()
    before = there.state()
    there = replace(there, fault="2 fails-late")
    there.file("fault", "2 fails-late\n")
    text = there.run("lvmcache-detach", "--yes", "vg/data")
    assert text.endswith("exit 74\n")
    assert "INCONSISTENT" not in text
    assert there.state()["state/lvs"] == before["state/lvs"]


@pytest.mark.parametrize(
    ("now", "note", "undo"),
    [
        ("passthrough|smq", "a cache in writethrough; it was in passthrough", "writethrough"),
        ("writeback|cleaner", "a cache with the policy smq; it was cleaner", "writeback"),
    ],
)
def test_an_undo_names_what_the_attach_does_not_make(
    now: str, note: str, undo: str, tmp_path: Path
) -> None:
    lines = dry_run(machine(tmp_path, VOL_LVS.replace("writeback|smq", now)))
    assert f"# the undo makes {note}" in lines
    assert f"--mode {undo} --policy smq " in lines[-1]


def test_a_mirrored_cache_pool_can_be_detached(tmp_path: Path) -> None:
    lines = dry_run(machine(tmp_path, RAID_POOL_LVS))
    assert lines[:2] == [
        "lvchange --yes --cachemode writethrough vg/data",
        "lvconvert --yes --splitcache vg/data",
    ]
    assert lines[-1].endswith("--cache-lv fast vg/data")


def test_both_disks_of_a_mirrored_cache_pool_become_free(tmp_path: Path) -> None:
    lines = dry_run(machine(tmp_path, RAID_POOL_LVS), "--free")
    assert [line for line in lines if line.startswith("vgreduce")] == [
        "vgreduce vg /dev/sdb",
        "vgreduce vg /dev/sdc",
    ]
    assert "# the undo makes a linear cache volume; it was raid,raid1" in lines
