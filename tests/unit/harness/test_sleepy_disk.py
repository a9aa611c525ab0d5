# SPDX-License-Identifier: GPL-2.0-only
"""The simulated disk that sleeps, and bcache's thread with writeback_running 0."""

from __future__ import annotations

import random

from ebbgate.model.power import PowerState
from ebbgate.units import KIB, NS_PER_S
from tests.lab.hdd_model import HddModel
from tests.sim.clock import Clock
from tests.sim.disk import Request
from tests.sim.simulation import DISK_BYTES, scattered
from tests.sim.sleepy_disk import SPIN_UP_NS, STANDBY_AFTER_NS, SleepyDisk
from tests.sim.writeback import KEY_BUFFER, Writeback


class SleepHarness:
    """A disk and so many dirty pieces of 4 KiB; `done_ns`: when each read of the test ended."""

    def __init__(self, pieces: int = 0) -> None:
        self.clock = Clock()
        model = HddModel(DISK_BYTES, random.Random(1))
        self.disk = SleepyDisk(self.clock, model)
        dirty = scattered(4 * KIB, 4 * KIB * pieces)
        self.writeback = Writeback(self.clock, self.disk, dirty, marks=True)
        self.done_ns: list[int] = []

    def read(self) -> None:
        self.disk.submit(Request(0, 4096, destage=False, done=self._done))

    def _done(self) -> None:
        self.done_ns.append(self.clock.now_ns)

    def run(self, seconds: float) -> None:
        self.clock.run_until(self.clock.now_ns + round(seconds * NS_PER_S))


def test_the_disk_stops_after_ten_minutes_and_a_request_starts_it() -> None:
    harness = SleepHarness()
    seen = []
    for seconds in (599, 2):
        harness.run(seconds)
        seen.append(harness.disk.power.state)
    assert seen == [PowerState.ACTIVE, PowerState.STANDBY]
    began_ns = harness.clock.now_ns
    harness.read()
    harness.read()
    harness.run(20)
    assert harness.disk.spin_ups == 1
    assert all(SPIN_UP_NS <= done - began_ns < SPIN_UP_NS + NS_PER_S for done in harness.done_ns)
    assert harness.disk.asleep_ns == began_ns - STANDBY_AFTER_NS


def test_a_stopped_thread_empties_its_key_buffer_and_takes_no_more() -> None:
    harness = SleepHarness(2 * KEY_BUFFER)
    harness.writeback.percent = 0
    harness.run(0.05)
    harness.writeback.run(on=False)
    before = harness.writeback.done_ios + harness.writeback.in_flight_ios
    harness.run(30)
    assert harness.writeback.done_ios == before + KEY_BUFFER
    harness.writeback.add((0, 4 * KIB))
    harness.run(30)
    assert harness.writeback.done_ios == before + KEY_BUFFER
    harness.writeback.run(on=True)
    harness.run(30)
    assert harness.writeback.dirty_bytes == 0


def test_only_a_clean_cache_is_marked_at_its_first_write() -> None:
    harness = SleepHarness()
    harness.run(1)
    assert harness.writeback.marked_ios == 0
    harness.writeback.run(on=False)
    for offset in (0, 8 * KIB):
        harness.writeback.add((offset, 4 * KIB))
    harness.run(30)
    assert (harness.writeback.marked_ios, harness.writeback.done_ios) == (1, 0)
