# SPDX-License-Identifier: GPL-2.0-only
"""A gate of dm-cache closes while the original of another table is journalled.

Wherever the daemon is killed then, the threshold gets an original back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from queue import Queue
from threading import Event

import pytest

from ebbgate.actuators.gate_worker import GateWorker, drive
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.restore import restore
from ebbgate.kernel.device_mapper import Target
from ebbgate.knobs.catalog import THRESHOLD
from ebbgate.model.decision import Gate, GateKind, JournalEntry, Outcome
from ebbgate.probes.topology import find
from ebbgate.store.journal import read
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from tests.fake_dm import CACHE_TABLE, LENGTH_SECTORS, lvm_disks, lvm_machine
from tests.fake_journal import FakeJournal
from tests.gate_worker_fixture import CLOSED, DEADLINE_S, REASON
from tests.waiting import until

BOOT = "this boot"
PACED = Gate(GateKind.PACED, 0, depth_ios=4)
TABLE = CACHE_TABLE.replace("mq 10", "mq 12") + " migration_threshold 4096"


class HeldJournal(JournalWriter):
    """Waits before or after an original is replaced, as on a slow disk."""

    hold = ""

    def __init__(self, path: Path, last: LastWritten) -> None:
        self.stuck, self.let_go = Event(), Event()
        super().__init__(path, last)

    def replace(self, entry: JournalEntry, older: JournalEntry, values: tuple[str, str]) -> None:
        self._wait("before")
        super().replace(entry, older, values)
        self._wait("after")

    def _wait(self, place: str) -> None:
        if self.hold == place:
            self.stuck.set()
            assert self.let_go.wait(DEADLINE_S)


class TableHarness:
    """A paced gate of vg/data, whose table was loaded again and the gate written since."""

    def __init__(self, folder: Path, last: LastWritten) -> None:
        self.folder = folder
        self.sysfs, self.dm = lvm_machine(lvm_disks(folder / "sys"))
        self.journal = HeldJournal(folder / "journal.db", last)
        self.writer = KnobWriter(self.sysfs, find(self.sysfs, "vg/data"), self.journal, BOOT)
        self.reports: Queue[tuple[str, list[Outcome]]] = Queue()
        self.worker = GateWorker(
            self.writer, lambda name, outcomes, _since_ns: self.reports.put((name, outcomes))
        )
        self.worker.set_gate(PACED, REASON)
        assert self.report()[0] == "gate"
        until(lambda: self.worker.idle)
        self.dm.reload("vg-data", (Target(0, LENGTH_SECTORS, "cache", TABLE),))
        self.dm.devices[0].threshold = 512

    @property
    def threshold(self) -> int:
        return self.dm.devices[0].threshold

    def report(self) -> tuple[str, list[Outcome]]:
        return self.reports.get(timeout=DEADLINE_S)

    def refresh(self, hold: str) -> None:
        """Have the journal wait with the original of the new table."""
        self.journal.hold = hold
        self.worker.submit("table", lambda writer: writer.refresh_table_threshold(lends=True))
        if hold:
            assert self.journal.stuck.wait(DEADLINE_S)

    def restored(self) -> int:
        """The threshold after a restore with what is in the files now."""
        journal = FakeJournal(entries := read(self.folder / "journal.db"))
        with closing(LastWritten(self.folder / "last-written")) as last:
            for entry in entries:
                values = last.values(entry)
                assert values is not None
                journal.last[entry.knob] = values
        restore(journal, self.sysfs, BOOT)
        assert THRESHOLD not in journal.open
        return self.threshold


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[TableHarness]:
    with closing(LastWritten(tmp_path / "last-written")) as last:
        made = TableHarness(tmp_path, last)
        yield made
        made.journal.let_go.set()
        assert made.worker.stop(DEADLINE_S)
        made.journal.stop()


@pytest.mark.parametrize("hold", ["before", "after"])
def test_a_close_does_not_wait_for_the_original_of_another_table(
    harness: TableHarness, hold: str
) -> None:
    harness.refresh(hold)
    harness.worker.set_gate(CLOSED, REASON)
    assert harness.threshold == 0, "set before the call returns"
    assert harness.report()[0] == "gate"
    harness.journal.let_go.set()
    assert harness.report() == ("table", [])
    until(lambda: harness.worker.idle)
    owned = harness.writer.owned[THRESHOLD]
    assert (owned.original, owned.written) == ("4096", "0")
    harness.worker.set_gate(PACED, REASON)
    harness.report()
    harness.worker.set_gate(Gate(GateKind.RELEASED), REASON)
    harness.report()
    harness.journal.flush()
    assert (harness.threshold, read(harness.folder / "journal.db")) == (4096, [])


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(("hold", "original"), [("before", 2048), ("after", 4096)])
def test_a_daemon_that_is_killed_then_leaves_an_original(
    harness: TableHarness, hold: str, original: int, closed: bool
) -> None:
    harness.refresh(hold)
    if closed:
        harness.worker.set_gate(CLOSED, REASON)
        assert harness.threshold == 0
    assert harness.restored() == original


def test_what_was_written_before_is_known_afterwards(harness: TableHarness) -> None:
    harness.refresh("")
    assert harness.report() == ("table", [])
    assert harness.restored() == 4096


def test_after_a_failed_write_the_gate_waits_and_both_values_stay_known(
    harness: TableHarness,
) -> None:
    """Of 512 and 1024 nobody knows which one it has: a record has no room for a third."""
    harness.writer.owned[THRESHOLD].tried = "1024"
    harness.dm.devices[0].threshold = 1024
    harness.refresh("after")
    harness.worker.set_gate(CLOSED, REASON)
    assert harness.threshold == 1024
    assert harness.restored() == 4096


def test_a_journal_that_refuses_leaves_the_older_original_usable(
    harness: TableHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError("the disk of the journal does not answer")

    monkeypatch.setattr(harness.journal, "replace", refuse)
    harness.refresh("")
    (outcome,) = harness.report()[1]
    assert "does not answer" in outcome.error
    until(lambda: harness.worker.idle)
    harness.worker.set_gate(CLOSED, REASON)
    assert harness.threshold == 0
    assert harness.restored() == 2048


def test_an_original_of_an_earlier_daemon_follows_a_table_that_is_loaded_later(
    tmp_path: Path,
) -> None:
    sysfs, machine = lvm_machine(lvm_disks(tmp_path / "sys"))
    volume, journal = find(sysfs, "vg/data"), FakeJournal()
    killed, later = (KnobWriter(sysfs, volume, journal, BOOT) for _ in range(2))
    drive(killed, PACED, REASON)
    left = killed.owned[THRESHOLD]
    later.adopt(left.entry, (left.written, left.written))
    machine.reload("vg-data", (Target(0, LENGTH_SECTORS, "cache", TABLE),))
    machine.devices[0].threshold = int(left.written)
    assert later.refresh_table_threshold() == []
    assert (left.original, later.owned[THRESHOLD].original) == ("2048", "4096")
