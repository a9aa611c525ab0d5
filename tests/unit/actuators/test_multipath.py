# SPDX-License-Identifier: GPL-2.0-only
"""Above a multipath device its own queue is set, not those of its paths, and restored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from ebbgate.actuators.gate_worker import drive
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.restore import restore
from ebbgate.control.knob_jobs import scheduler_job
from ebbgate.errors import UsageError
from ebbgate.knobs.settable import check_knob
from ebbgate.model.decision import Gate, GateKind, OutcomeKind
from ebbgate.probes.topology import discover
from tests.fake_sysfs import (
    FakeSysfs,
    WatchedSysfs,
    fake_multipath,
    switch_resets_length,
    switch_resets_settings,
)
from tests.knob_writer_fixture import REASON, RELEASED, RecordingJournal, kinds

OPEN = Gate(GateKind.OPEN, queue_depth=8)
QUEUE = "/sys/block/dm-0/queue"


@dataclass
class Machine:
    """A bcache volume on a multipath device."""

    fake: FakeSysfs
    writer: KnobWriter
    journal: RecordingJournal

    def queues(self) -> dict[str, tuple[str, str]]:
        """The scheduler and the longest request of each device."""
        names = ("scheduler", "max_sectors_kb")
        found = {}
        for device in ("dm-0", "sda", "sdb"):
            scheduler, longest = (self.fake.read(f"/sys/block/{device}/queue/{n}") for n in names)
            found[device] = (scheduler, longest)
        return found

    def depths(self) -> list[str]:
        """The depth of each path."""
        return [self.fake.read(f"/sys/block/{path}/device/queue_depth") for path in ("sda", "sdb")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    fake = fake_multipath(tmp_path)
    fake.bcache(backing="dm-0", cache="sdc")
    sysfs = WatchedSysfs(tmp_path)
    switch_resets_length(fake, sysfs, "dm-0", depth=2048)
    switch_resets_settings(fake, sysfs, "dm-0")
    journal = RecordingJournal(sysfs)
    (volume,) = discover(fake.sysfs)
    return Machine(fake, KnobWriter(sysfs, volume, journal, "this boot"), journal)


def test_the_scheduler_of_the_multipath_device_is_switched_and_restored(machine: Machine) -> None:
    before, length = machine.queues(), machine.fake.read(f"{QUEUE}/nr_requests")
    scheduler_job("bfq", REASON)(machine.writer)
    after = machine.queues()
    assert after["dm-0"][0] == "bfq"
    assert (after["sda"], after["sdb"]) == (before["sda"], before["sdb"])
    scheduler_job("", REASON)(machine.writer)
    assert machine.fake.read(f"{QUEUE}/scheduler") == "mq-deadline"
    assert (machine.fake.read(f"{QUEUE}/nr_requests"), machine.writer.owned) == (length, {})


def test_no_path_gets_a_shorter_longest_request(machine: Machine) -> None:
    """It would refuse the longer requests of the multipath device, which then counts it failed."""
    before = machine.queues()
    drive(machine.writer, OPEN, REASON)
    during = machine.queues()
    assert (during["sda"], during["sdb"]) == (before["sda"], before["sdb"])
    assert (during["dm-0"][1], machine.depths()) == ("512", ["8", "8"])
    drive(machine.writer, RELEASED, REASON)
    assert (machine.queues(), machine.depths()) == (before, ["32", "32"])


def test_restore_without_a_daemon_puts_the_multipath_device_back(machine: Machine) -> None:
    scheduler_job("bfq", REASON)(machine.writer)
    drive(machine.writer, OPEN, REASON)
    outcomes = restore(machine.journal, machine.writer.sysfs, "this boot")
    assert OutcomeKind.FAILED not in kinds(outcomes)
    assert machine.queues()["dm-0"] == ("mq-deadline", "1280")
    assert machine.depths() == ["32", "32"]


def test_a_person_sets_no_longest_request_of_a_path(machine: Machine) -> None:
    check_knob(machine.writer.volume, "max_sectors_kb:dm-0")
    check_knob(machine.writer.volume, "queue_depth:sda")
    with pytest.raises(UsageError, match="no knob max_sectors_kb:sda"):
        check_knob(machine.writer.volume, "max_sectors_kb:sda")
