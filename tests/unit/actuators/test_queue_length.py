# SPDX-License-Identifier: GPL-2.0-only
"""The depth for requests that nobody waits for follows the length of the queue, also back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ebbgate.actuators.queue_length import write_value
from tests.fake_sysfs import FakeSysfs, WatchedSysfs, failing

QUEUE = "/sys/block/sda/queue"
LENGTH, DEPTH = f"{QUEUE}/nr_requests", f"{QUEUE}/iosched/async_depth"
KNOB = "nr_requests:sda"


def three_quarters(length: int) -> int:
    return max(1, length * 3 // 4)


def whole(length: int) -> int:
    return length


@pytest.fixture
def fake(tmp_path: Path) -> FakeSysfs:
    fake = FakeSysfs(tmp_path / "sys")
    fake.disk("sda", "8:0", nr_requests=64)
    return fake


def kernel(
    fake: FakeSysfs, depth_of: Callable[[int], int], depth: str, *, late: bool
) -> WatchedSysfs:
    """Set the depth at each write of the length, of the one before if it is `late`."""
    sysfs = WatchedSysfs(fake.root)
    fake.write(DEPTH, depth)
    lengths = [64]

    def set_depth() -> None:
        lengths.append(int(fake.read(LENGTH)))
        fake.write(DEPTH, str(depth_of(lengths[-2 if late else -1])))

    sysfs.after["nr_requests"] = set_depth
    return sysfs


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(
    ("depth_of", "depth"),
    [(three_quarters, "48"), (whole, "64"), (three_quarters, "10"), (whole, "10")],
)
def test_the_depth_is_back_with_the_length(
    fake: FakeSysfs, depth_of: Callable[[int], int], depth: str, late: bool
) -> None:
    sysfs = kernel(fake, depth_of, depth, late=late)
    for length in ("768", "512", "64"):
        write_value(sysfs, KNOB, LENGTH, length)
        assert fake.read(LENGTH) == length
    assert fake.read(DEPTH) == depth


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(
    ("depth_of", "depth", "wanted"), [(three_quarters, "48", "576"), (whole, "64", "768")]
)
def test_a_longer_queue_holds_more_of_them(
    fake: FakeSysfs, depth_of: Callable[[int], int], depth: str, wanted: str, late: bool
) -> None:
    sysfs = kernel(fake, depth_of, depth, late=late)
    write_value(sysfs, KNOB, LENGTH, "768")
    assert fake.read(DEPTH) == wanted


def test_a_process_killed_before_the_depth_was_written_leaves_no_trace(fake: FakeSysfs) -> None:
    sysfs = kernel(fake, whole, "64", late=True)
    sysfs.before["async_depth"] = failing(22)
    with pytest.raises(OSError, match="Invalid argument"):
        write_value(sysfs, KNOB, LENGTH, "768")
    del sysfs.before["async_depth"]
    write_value(sysfs, KNOB, LENGTH, "64")
    assert (fake.read(LENGTH), fake.read(DEPTH)) == ("64", "64")


def test_what_a_person_has_chosen_stays_beside_another_length(fake: FakeSysfs) -> None:
    sysfs = kernel(fake, whole, "10", late=False)
    write_value(sysfs, KNOB, LENGTH, "768")
    assert fake.read(DEPTH) == "10"


def test_a_scheduler_without_that_depth_has_only_its_length(fake: FakeSysfs) -> None:
    sysfs = WatchedSysfs(fake.root)
    write_value(sysfs, KNOB, LENGTH, "768")
    assert sysfs.log == [("nr_requests", "768")]


@pytest.mark.parametrize("refused", ["async_depth", "nr_requests"])
def test_what_the_kernel_refuses_is_no_success(fake: FakeSysfs, refused: str) -> None:
    sysfs = kernel(fake, three_quarters, "10", late=True)
    sysfs.before[refused] = failing(22)
    with pytest.raises(OSError, match="Invalid argument"):
        write_value(sysfs, KNOB, LENGTH, "768")


def test_a_scheduler_that_goes_meanwhile_takes_its_depth_along(fake: FakeSysfs) -> None:
    sysfs = kernel(fake, three_quarters, "10", late=True)
    sysfs.after["nr_requests"] = lambda: fake.remove(DEPTH)
    write_value(sysfs, KNOB, LENGTH, "768")
    assert fake.read(LENGTH) == "768"


def test_other_knobs_are_written_alone(fake: FakeSysfs) -> None:
    sysfs = kernel(fake, whole, "10", late=False)
    write_value(sysfs, "max_sectors_kb:sda", f"{QUEUE}/max_sectors_kb", "64")
    assert sysfs.log == [("max_sectors_kb", "64")]
