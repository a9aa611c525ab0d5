# SPDX-License-Identifier: GPL-2.0-only
"""What `layout show` says of a file is where a real kernel has its data. I/O: the guest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from tests.bench.product import PYTHON, SITE, stage
from tests.lab import dm_parts
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import MIB
from tests.lab.guest import CHECKOUT
from tests.lab.layout_pattern import BLOCK
from tests.lab.session import Completed, Session
from tests.lab.stack import Stack

PATTERN: Final = CHECKOUT / "tests/lab/layout_pattern.py"
MOUNT: Final = "/run/layout"
DATA: Final = f"{MOUNT}/data"
PART_SECTORS: Final = 400 * MIB // 512
WRITTEN_BYTES: Final = sum(1 + number % 12 for number in range(200)) * BLOCK


@pytest.fixture(scope="module", autouse=True)
def staged() -> None:
    stage()


def show(guest: Session, *words: str) -> Completed:
    argv = [PYTHON, "-m", "ebbgate", "layout", "show", "--json", *words]
    return guest.run(argv, env={"PYTHONPATH": str(SITE)})


@contextmanager
def mounted(guest: Session, filesystem: str, device: str, folder: str = MOUNT) -> Iterator[None]:
    """A new file system on a device."""
    make = {"ext4": "mkfs.ext4 -q -F -E nodiscard", "xfs": "mkfs.xfs -q -f -K"}[filesystem]
    guest.check(f"modprobe {filesystem}; {make} {device} && mkdir -p {folder}")
    guest.check(f"mount -t {filesystem} {device} {folder}")
    try:
        yield
    finally:
        guest.check(["umount", folder])


@contextmanager
def partition(guest: Session, stack: Stack) -> Iterator[str]:
    with partitions(guest, stack) as (_, second):
        yield second


@contextmanager
def partitions(guest: Session, stack: Stack) -> Iterator[tuple[str, str]]:
    """Two partitions of a volume, as the kernel has them of a table."""
    starts = (2048, 4096 + PART_SECTORS)
    for number, start in enumerate(starts, start=1):
        guest.check(["addpart", stack.device, str(number), str(start), str(PART_SECTORS)])
    try:
        yield f"{stack.device}p1", f"{stack.device}p2"
    finally:
        for number in (1, 2):
            guest.check(["delpart", stack.device, str(number)])


@contextmanager
def logical_volume(guest: Session, stack: Stack, *options: str) -> Iterator[str]:
    dm_parts.prepare(guest, ())
    with partitions(guest, stack) as parts:
        guest.check(["pvcreate", "-qq", "-y", "-ff", *parts])
        guest.check(["vgcreate", "-qq", "vgl", *parts])
        guest.check(["lvcreate", "-qq", "-y", "-Wn", "-n", "files", *options, "vgl"])
        try:
            yield "/dev/vgl/files"
        finally:
            guest.check(["vgchange", "-qq", "-an", "vgl"])
            guest.check("rm -rf /run/lvm/hints /dev/vgl")


def linear(guest: Session, stack: Stack) -> Any:
    """It reaches from one partition into the other."""
    return logical_volume(guest, stack, "-L", "600M")


def striped(guest: Session, stack: Stack) -> Any:
    return logical_volume(guest, stack, "-L", "512M", "-i", "2", "-I", "64k")


def check_file(guest: Session) -> dict[str, Any]:
    """Write a file, and compare it; return what was said of it."""
    guest.check([PYTHON, str(PATTERN), "write", DATA])
    return mapped(guest)


def mapped(guest: Session) -> dict[str, Any]:
    """Compare each mapped block of the file on the volume; return what was said of the file."""
    shown = show(guest, DATA).check().stdout
    compared = json.loads(guest.check([PYTHON, str(PATTERN), "compare"], stdin=shown))
    assert compared == {"bytes": WRITTEN_BYTES, "bad": []}
    (found,) = json.loads(shown)["files"]
    whys = {each["why"] for each in found["left_out"]}
    assert whys == {"a hole", "allocated but never written"}
    return dict(found)


@pytest.mark.parametrize(
    ("filesystem", "make", "kinds"),
    [
        ("ext4", striped, ["file", "dm", "partition", "volume", "partition"]),
        pytest.param(
            "xfs",
            linear,
            ["file", "dm", "partition", "volume", "partition"],
            marks=pytest.mark.full,
        ),
        pytest.param(
            "xfs",
            striped,
            ["file", "dm", "partition", "volume", "partition"],
            marks=pytest.mark.full,
        ),
        pytest.param(
            "ext4",
            linear,
            ["file", "dm", "partition", "volume", "partition"],
            marks=pytest.mark.full,
        ),
        pytest.param("ext4", partition, ["file", "partition", "volume"], marks=pytest.mark.full),
        pytest.param("xfs", partition, ["file", "partition", "volume"], marks=pytest.mark.full),
    ],
)
def test_each_mapped_block_of_a_file_is_on_the_volume_where_it_was_said(
    guest: Session, filesystem: str, make: Callable[..., Any], kinds: list[str]
) -> None:
    with (
        BcacheStack(guest) as stack,
        make(guest, stack) as device,
        mounted(guest, filesystem, device),
    ):
        found = check_file(guest)
        assert [layer["kind"] for layer in found["layers"]] == kinds
        assert {each["volume"] for each in found["ranges"]} == {stack.volume}
