# SPDX-License-Identifier: GPL-2.0-only
"""What `layout show` says of a file is where a real kernel has its data. I/O: the guest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from ebbgate.layout import guest_agent
from tests.bench.product import PYTHON, stage
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import CHECKOUT
from tests.lab.layout_pattern import BLOCK
from tests.lab.layout_stacks import (
    IMAGE,
    MOUNT,
    linear,
    logical_volume,
    loop,
    mounted,
    partition,
    show,
    striped,
    surveyed,
)
from tests.lab.session import Session
from tests.lab.wait import wait_until

PATTERN: Final = CHECKOUT / "tests/lab/layout_pattern.py"
DATA: Final = f"{MOUNT}/data"
WRITTEN_BYTES: Final = sum(1 + number % 12 for number in range(200)) * BLOCK


@pytest.fixture(scope="module", autouse=True)
def staged() -> None:
    stage()


def check_file(guest: Session) -> dict[str, Any]:
    """Write a file, and compare it; return what was said of it."""
    guest.check([PYTHON, str(PATTERN), "write", DATA])
    # Once more for a file system below a loop device: it was told to write by the first.
    guest.check("sync; sync")
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
        pytest.param(
            "ext4",
            loop,
            ["file", "loop", "file", "dm", "partition", "volume"],
            marks=pytest.mark.full,
        ),
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


@pytest.mark.full
def test_a_file_on_a_cached_logical_volume_is_found(guest: Session) -> None:
    with DmCacheStack(guest) as stack, mounted(guest, "xfs", stack.device):
        found = check_file(guest)
        assert [layer["kind"] for layer in found["layers"]] == ["file", "volume"]
        assert {each["volume"] for each in found["ranges"]} == {stack.lvm_name}


@pytest.mark.full
def test_a_file_that_pvmove_moves_is_refused(guest: Session) -> None:
    guest.check("modprobe dm-mirror")
    with (
        BcacheStack(guest) as stack,
        logical_volume(guest, stack, "-L", "300M") as device,
        mounted(guest, "ext4", device),
    ):
        before = check_file(guest)
        move = guest.spawn(["pvmove", "-i", "1", f"{stack.device}p1"])
        table = ["dmsetup", "table", "vgl-pvmove0"]
        wait_until(lambda: "mirror" in guest.run(table).stdout, 60, "pvmove to begin")
        refused = show(guest, DATA)
        assert refused.rc == 69
        assert "pvmove is moving its data (vgl-pvmove0)" in refused.stderr
        assert move.wait(300).rc == 0
        assert mapped(guest)["ranges"] != before["ranges"]


@pytest.mark.full
def test_a_file_on_another_device_is_refused(guest: Session) -> None:
    with BcacheStack(guest) as stack, mounted(guest, "ext4", f"/dev/{guest.device('hdd1')}"):
        guest.check([PYTHON, str(PATTERN), "write", DATA])
        refused = show(guest, DATA)
        assert refused.rc == 66
        error = json.loads(refused.stderr)["error"]
        assert error["message"] == f"{DATA} lies on {guest.device('hdd1')}, which is not cached"
        assert error["hint"] == f"cached volumes here: {stack.volume}"


@pytest.mark.full
def test_a_file_of_a_guest_is_found_through_the_image_of_its_disk(guest: Session) -> None:
    """The loop device stands for the guest's disk."""
    with (
        BcacheStack(guest) as stack,
        loop(guest, stack, "0") as device,
        mounted(guest, "ext4", device),
    ):
        direct = check_file(guest)
        agent = Path(guest_agent.__file__).read_text()
        said = guest.check([PYTHON, "-I", "-", DATA], stdin=agent)
        shown = show(guest, "--image", "raw", IMAGE, "--agent", "-", stdin=said).check().stdout
        (found,) = json.loads(shown)["files"]
        assert found["path"] == f"guest:{DATA}"
        assert found["ranges"] == direct["ranges"]
        guest.put_file(f"{IMAGE}.guest.json", said)
        names, known = surveyed(guest, stack, IMAGE, "secret")
        assert names == {f"{IMAGE}, guest:{DATA}"}
        assert (known["files"], known["bytes"]) == (1, WRITTEN_BYTES)
