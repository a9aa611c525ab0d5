# SPDX-License-Identifier: GPL-2.0-only
"""The power state is read beside the event loop, seldom, and never twice at once."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from ebbgate.daemon.power_watch import PERIOD_NS, PowerWatch
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.power import DiskPower, PowerState
from ebbgate.probes.disk_power import DiskPowerReader
from ebbgate.units import NS_PER_S
from tests.builders import device
from tests.fake_sysfs import NO_DM
from tests.waiting import until


class WatchHarness:
    """A disk that answers once `answering` is set; `count`: how often it was asked."""

    def __init__(self) -> None:
        self.count = 0
        self.answering = Event()
        self.answering.set()
        reader = DiskPowerReader(Sysfs(dm=NO_DM), (device("sdzz"),), self._ask)
        self.watch = PowerWatch("bcache0", reader)

    def _ask(self, _node: object) -> DiskPower:
        self.count += 1
        self.answering.wait(10)
        return DiskPower(PowerState.STANDBY)

    def state(self, now_ns: int) -> PowerState:
        return self.watch.look(now_ns).state


@pytest.fixture
def harness() -> Iterator[WatchHarness]:
    made = WatchHarness()
    yield made
    made.answering.set()
    made.watch.end()


def test_the_disk_is_asked_once_in_thirty_seconds(harness: WatchHarness) -> None:
    assert harness.watch.look(0).why == "not asked yet"
    until(lambda: harness.state(NS_PER_S) is PowerState.STANDBY)
    for second in range(30):
        harness.state(second * NS_PER_S)
    assert harness.count == 1
    harness.state(PERIOD_NS)
    until(lambda: harness.count == 2)


def test_a_disk_that_hangs_is_unknown_and_not_asked_again(harness: WatchHarness) -> None:
    harness.answering.clear()
    harness.state(0)
    until(lambda: harness.count == 1)
    found = harness.watch.look(90 * NS_PER_S)
    assert (found.state, found.why) == (PowerState.UNKNOWN, "the disk has not answered for 90 s")
    harness.answering.set()
    until(lambda: harness.state(91 * NS_PER_S) is PowerState.STANDBY)
    until(lambda: harness.count == 2)


def test_an_error_of_the_reader_is_told_as_the_reason(harness: WatchHarness) -> None:
    def fail(_node: object) -> DiskPower:
        raise ValueError("no such thing")

    reader = DiskPowerReader(Sysfs(dm=NO_DM), (device("sdzz"),), fail)
    watch = PowerWatch("bcache0", reader)
    until(lambda: watch.look(0).why == "no such thing")
    watch.end()
