# SPDX-License-Identifier: GPL-2.0-only
"""A missing attribute is None; an attribute that cannot be written is an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.kernel.sysfs import Sysfs
from tests.fake_sysfs import FakeSysfs


@pytest.fixture
def fake(tmp_path: Path) -> FakeSysfs:
    return FakeSysfs(tmp_path / "sys")


def test_only_the_line_end_of_an_attribute_is_removed(fake: FakeSysfs) -> None:
    fake.write("/sys/a/b", " 4.0M ")
    assert fake.sysfs.read_text("/sys/a/b") == " 4.0M "


def test_a_missing_file_and_a_folder_read_as_none(fake: FakeSysfs) -> None:
    assert fake.sysfs.read_text("/sys/no/such/file") is None
    assert fake.sysfs.read_text("/sys/block") is None


def test_an_odd_number_is_unknown_and_not_zero(fake: FakeSysfs) -> None:
    fake.write("/sys/a", "12")
    fake.write("/sys/b", "many")
    assert fake.sysfs.read_int("/sys/a") == 12
    assert fake.sysfs.read_int("/sys/b") is None
    assert fake.sysfs.read_int("/sys/c") is None


def test_writing_a_missing_knob_fails_and_creates_nothing(fake: FakeSysfs) -> None:
    with pytest.raises(FileNotFoundError):
        fake.sysfs.write_text("/sys/block/new", "1")
    assert not fake.sysfs.exists("/sys/block/new")


def test_the_refusal_of_the_kernel_keeps_its_errno() -> None:
    with pytest.raises(OSError, match="No space left"):
        Sysfs(Path("/dev")).write_text("/sys/full", "1")


def test_a_path_outside_sys_is_refused(fake: FakeSysfs) -> None:
    with pytest.raises(ValueError, match="subpath"):
        fake.sysfs.read_text("/etc/passwd")


def test_links_and_globs_have_the_paths_of_a_real_machine(fake: FakeSysfs) -> None:
    fake.disk("sda", "8:0")
    real = fake.sysfs.real("/sys/block/sda")
    assert real == Path("/sys/devices/pci0/sda/block/sda")
    assert fake.sysfs.glob("/sys/block/sd*") == (Path("/sys/block/sda"),)
    assert fake.sysfs.real("/sys/block/gone") is None


def test_a_folder_that_vanishes_while_it_is_searched_has_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device was unplugged between the look at its folder and the search in it."""
    gone, there = (tmp_path / "block" / each / "slaves" for each in ("sda", "sdb"))
    for each in (gone, there / "md0"):
        each.mkdir(parents=True)
    scandir = os.scandir

    def unplugged(folder: Path) -> Iterator[os.DirEntry[str]]:
        if folder == gone and gone.exists():
            gone.rmdir()
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", unplugged)
    found = Sysfs(tmp_path).glob("/sys/block/*/slaves/*")
    assert [str(path) for path in found] == ["/sys/block/sdb/slaves/md0"]


def test_a_root_that_is_itself_a_link_works(tmp_path: Path) -> None:
    FakeSysfs(tmp_path / "real").disk("sda", "8:0")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    sysfs = Sysfs(tmp_path / "link")
    assert sysfs.real("/sys/block/sda") == Path("/sys/devices/pci0/sda/block/sda")
