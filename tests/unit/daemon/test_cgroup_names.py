# SPDX-License-Identifier: GPL-2.0-only
"""Cgroups that missed the cache get the names of their folders."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ebbgate.daemon import cgroup_names
from ebbgate.daemon.cgroup_names import PERIOD_NS, CgroupNames, read_names
from ebbgate.model.attribution import AttributionPeriod, Misses
from ebbgate.model.records import AttributionRecord
from ebbgate.model.volume import Mode
from ebbgate.units import NS_PER_S
from tests.volume_loop_fixture import LoopHarness
from tests.waiting import until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A hierarchy of version 2. Like cgroupfs, its folders are known by their inodes."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory\n")
    (tmp_path / "a.slice" / "b.service").mkdir(parents=True)
    (tmp_path / "a.slice" / "cgroup.procs").write_text("1\n")
    (tmp_path / "c\n\x1b[31mred").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a.slice")
    return tmp_path


def test_every_folder_has_its_path(root: Path) -> None:
    assert read_names(root) == {
        root.stat().st_ino: "/",
        (root / "a.slice").stat().st_ino: "/a.slice",
        (root / "a.slice" / "b.service").stat().st_ino: "/a.slice/b.service",
        (root / "c\n\x1b[31mred").stat().st_ino: "/c ?[31mred",
    }


def test_io_is_charged_in_the_hierarchy_that_has_its_controller(root: Path) -> None:
    old = root / "blkio"
    (old / "x").mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory\n")
    assert read_names(root) == {
        old.stat().st_ino: "/",
        (old / "x").stat().st_ino: "/x",
    }


def test_so_many_folders_are_read_at_most_the_nearest_first(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup_names, "_FOLDERS_MAX", 15)
    for number in range(9):
        (root / f"folder{number}" / "below").mkdir(parents=True)
    for number in range(100):
        (root / "a.slice" / "b.service" / f"user{number}").mkdir()
    paths = read_names(root).values()
    assert len(paths) == 1 + 15
    assert {"/a.slice", *(f"/folder{number}" for number in range(9))} < set(paths)
    assert not any("user" in path for path in paths)


def test_folders_are_read_to_a_depth(root: Path) -> None:
    deep = root.joinpath(*["d" * 99] * 30)
    deep.mkdir(parents=True)
    folders = [folder for folder in deep.parents if folder.is_relative_to(root)]
    known = read_names(root).keys() & {folder.stat().st_ino for folder in folders}
    assert len(known) == 1 + 10


def test_names_are_read_once_a_cgroup_without_one_missed(
    make_loop: Callable[[Mode], LoopHarness], root: Path
) -> None:
    loop, now_ns = make_loop(Mode.ADVISE).loop, 0
    names = CgroupNames({"bcache0": loop}, root, lambda: now_ns)
    names.poll()
    time.sleep(0.05)
    names.poll()
    assert loop.signals.cgroups == {}

    def miss(cgroup: int) -> None:
        period = AttributionPeriod(0, 10 * NS_PER_S, {cgroup: Misses(3, 0)}, {})
        loop.on_record(AttributionRecord("bcache0", 10 * NS_PER_S, period))

    def name() -> str:
        names.poll()
        return loop.signals.attribution().cgroups[0].name

    slice_ = (root / "a.slice").stat().st_ino
    miss(slice_)
    until(lambda: name() == "/a.slice")
    # One that is gone is looked for now and then only.
    new = root / "new"
    new.mkdir()
    for _ in range(5):
        miss(new.stat().st_ino)
    time.sleep(0.05)
    assert name() == f"cgroup {new.stat().st_ino}"
    now_ns += PERIOD_NS
    until(lambda: name() == "/new")
