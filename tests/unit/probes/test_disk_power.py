# SPDX-License-Identifier: GPL-2.0-only
"""Which disks are asked for their power state, and what a volume of several disks shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ebbgate.model.power import DiskPower, PowerState, of_all
from ebbgate.probes.disk_power import DiskPowerReader
from tests.builders import device
from tests.fake_sysfs import FakeSysfs

ACTIVE, IDLE, STANDBY, UNKNOWN = PowerState


class PowerHarness:
    """Disks that all answer `answer`; `asked`: the nodes that were asked."""

    def __init__(self, folder: Path) -> None:
        self.fake = FakeSysfs(folder)
        self.answer = DiskPower(STANDBY)
        self.asked: list[str] = []

    def reader(self, *names: str) -> DiskPowerReader:
        return DiskPowerReader(self.fake.sysfs, tuple(map(device, names)), self.ask)

    def stat(self, disk: str, reads: int = 5, writes: int = 7, in_flight: int = 0) -> None:
        counts = [reads, 0, 0, 0, writes, 0, 0, 0, in_flight, 0, 0]
        self.fake.write(f"/sys/block/{disk}/stat", " ".join(map(str, counts)))

    def ask(self, node: Path) -> DiskPower:
        self.asked.append(str(node))
        return self.answer


@pytest.fixture
def harness(tmp_path: Path) -> PowerHarness:
    return PowerHarness(tmp_path)


def test_a_disk_without_requests_is_asked(harness: PowerHarness) -> None:
    reader = harness.reader("sda")
    harness.stat("sda")
    assert (reader.read().state, reader.read().state) == (STANDBY, STANDBY)
    assert harness.asked == ["/dev/sda", "/dev/sda"]


@pytest.mark.parametrize("changed", [{"reads": 6}, {"writes": 8}, {"in_flight": 1}])
def test_a_disk_with_requests_since_the_last_look_is_active_and_not_asked(
    harness: PowerHarness, changed: dict[str, int]
) -> None:
    reader = harness.reader("sda")
    harness.stat("sda")
    reader.read()
    harness.stat("sda", **changed)
    assert reader.read().state is ACTIVE
    assert len(harness.asked) == 1


def test_a_disk_that_the_kernel_has_suspended_sleeps_and_is_not_asked(
    harness: PowerHarness,
) -> None:
    harness.fake.write("/sys/block/sda/device/power/runtime_status", "suspended")
    assert harness.reader("sda").read().state is STANDBY
    assert harness.asked == []


@pytest.mark.parametrize(
    ("control", "delay_ms", "state", "asked"),
    [
        ("auto", "60000", ACTIVE, 0),
        ("auto", "0", ACTIVE, 0),
        ("auto", "-1", STANDBY, 1),
        ("on", "60000", STANDBY, 1),
    ],
)
def test_a_disk_that_the_kernel_will_suspend_is_not_asked(
    harness: PowerHarness, control: str, delay_ms: str, state: PowerState, asked: int
) -> None:
    """A question would count as use, and the disk would never be suspended."""
    power = "/sys/block/sda/device/power"
    harness.fake.write(f"{power}/control", control)
    harness.fake.write(f"{power}/autosuspend_delay_ms", delay_ms)
    harness.fake.write(f"{power}/runtime_status", "active")
    assert harness.reader("sda").read().state is state
    assert len(harness.asked) == asked


def no_hard_disk(harness: PowerHarness) -> DiskPowerReader:
    return DiskPowerReader(harness.fake.sysfs, (device("sda", rotational=False),), harness.ask)


@pytest.mark.parametrize("make", [lambda harness: harness.reader("vda"), no_hard_disk])
def test_other_disks_are_unknown_and_not_asked(
    harness: PowerHarness, make: Callable[[PowerHarness], DiskPowerReader]
) -> None:
    found = make(harness).read()
    assert found.state is UNKNOWN
    assert "is no hard disk" in found.why
    assert harness.asked == []


def test_a_reason_names_its_disk(harness: PowerHarness) -> None:
    harness.answer = DiskPower(UNKNOWN, "it does not report its power state")
    assert harness.reader("sda").read().why == "sda: it does not report its power state"


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ([STANDBY, ACTIVE, UNKNOWN], ACTIVE),
        ([STANDBY, IDLE], IDLE),
        ([STANDBY, UNKNOWN, IDLE], UNKNOWN),
        ([STANDBY, STANDBY], STANDBY),
        ([], UNKNOWN),
    ],
)
def test_of_several_disks_the_most_awake_one_counts(
    states: list[PowerState], found: PowerState
) -> None:
    assert of_all([DiskPower(state) for state in states]).state is found
