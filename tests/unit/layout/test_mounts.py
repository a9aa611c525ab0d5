# SPDX-License-Identifier: GPL-2.0-only
"""File systems are known by the mount of an open file; those without places are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ebbgate.layout.mounts import Mount, Mounts

MOUNTINFO = """\
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
35 21 0:31 /vol /srv\\040x rw master:2 propagate_from:1 - btrfs /dev/sdb rw,subvol=/vol
36 21 254:0 /data/mysql /var/my\\134sql\x85\r rw,relatime shared:1 - ext4 /dev/root rw
"""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "self/fdinfo").mkdir(parents=True)
    (tmp_path / "self/mountinfo").write_bytes(MOUNTINFO.encode())
    return tmp_path


@contextmanager
def opened(proc: Path, number: str, path: Path = Path(__file__)) -> Iterator[int]:
    """Open a file that seems to be on the mount of this number."""
    with path.open() as file:
        handle = file.fileno()
        text = f"pos:\t0\nflags:\t0100000\nmnt_id:\t{number}\nino:\t5\n"
        (proc / f"self/fdinfo/{handle}").write_text(text)
        yield handle


@pytest.mark.parametrize(
    ("number", "mount"),
    [
        ("21", Mount("ext4", "/")),
        ("35", Mount("btrfs", "/srv x")),
        ("36", Mount("ext4", "/var/my\\sql\x85\r")),
        ("9", Mount("")),
    ],
)
def test_the_file_system_is_that_of_the_mount(proc: Path, number: str, mount: Mount) -> None:
    with opened(proc, number) as handle:
        assert Mounts(proc).of(handle) == mount


def test_the_list_of_mounts_is_read_once_for_all_files_of_one(proc: Path) -> None:
    mounts = Mounts(proc)
    with opened(proc, "21") as handle:
        found = mounts.of(handle)
    (proc / "self/mountinfo").unlink()
    with opened(proc, "21") as handle:
        assert mounts.of(handle) == found == Mount("ext4", "/")
    with opened(proc, "36") as handle:
        assert mounts.of(handle) == Mount("")


def test_a_mount_of_another_device_with_the_number_of_one_is_looked_for(proc: Path) -> None:
    mounts = Mounts(proc)
    with opened(proc, "21") as handle:
        assert mounts.of(handle) == Mount("ext4", "/")
    (proc / "self/mountinfo").write_text("21 1 0:4 / /proc rw - proc proc rw\n")
    with opened(proc, "21", Path("/proc/self/status")) as handle:
        assert mounts.of(handle) == Mount("proc", "/proc")


def test_an_unreadable_proc_is_an_unknown_file_system(tmp_path: Path) -> None:
    assert Mounts(tmp_path).of(7) == Mount("")
    assert Mount("").refusal


@pytest.mark.parametrize("filesystem", ["ext4", "ext3", "ext2", "xfs"])
def test_extents_of_ext4_and_xfs_are_used(filesystem: str) -> None:
    assert Mount(filesystem).refusal == ""


@pytest.mark.parametrize(
    ("filesystem", "step"),
    [
        ("btrfs", "warm it by reading the file"),
        ("f2fs", "warm it by reading the file"),
        ("zfs", "it is not supported"),
        ("overlay", "name the file in the folder below"),
        ("tmpfs", "in memory"),
    ],
)
def test_other_file_systems_are_refused_with_the_next_step(filesystem: str, step: str) -> None:
    assert step in Mount(filesystem).refusal
