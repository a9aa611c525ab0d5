# SPDX-License-Identifier: GPL-2.0-only
"""A gate worker on a fake bcache volume, and a journal that a test keeps waiting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from queue import Queue
from threading import Event

from ebbgate.actuators.gate_worker import GateWorker
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.reason import Reason
from ebbgate.model.decision import Gate, GateKind, JournalEntry, Outcome
from ebbgate.units import MIB
from tests.builders import volume
from tests.fake_journal import FakeJournal
from tests.fake_sysfs import WatchedSysfs, fake_bcache
from tests.waiting import until

REASON = Reason("idle_destage", "a test")
CLOSED = Gate(GateKind.CLOSED, 512)
OPEN = Gate(GateKind.OPEN)
DEADLINE_S = 20.0


class SlowJournal(FakeJournal):
    """A journal whose disk a test keeps waiting. `before`: called before a knob is journalled."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, Callable[[], object]] = {}

    def put(self, entry: JournalEntry) -> JournalEntry:
        if entry.knob in self.before:
            self.before[entry.knob]()
        return super().put(entry)


class GateHarness:
    """A gate worker whose reports a test waits for."""

    def __init__(self, root: Path) -> None:
        fake_bcache(root)
        self.sysfs = WatchedSysfs(root)
        self.reports: Queue[tuple[str, list[Outcome], int | None]] = Queue()
        self.journal = SlowJournal()
        writer = KnobWriter(self.sysfs, volume(), self.journal, "this boot")
        self.worker = GateWorker(writer, lambda *report: self.reports.put(report))
        self.stuck = Event()
        self.let_go = Event()

    def report(self) -> tuple[str, list[Outcome], int | None]:
        return self.reports.get(timeout=DEADLINE_S)

    def hang_at(self, knob: str) -> None:
        """The next write to the knob hangs until `let_go`."""
        self.sysfs.before[knob] = self._hang

    def hang_in_journal(self, knob: str) -> None:
        """The journalling of the knob's original hangs until `let_go`."""
        self.journal.before[knob] = self._hang

    def _hang(self) -> None:
        self.stuck.set()
        assert self.let_go.wait(DEADLINE_S)

    def set_gate(self, gate: Gate, name: str = "gate", since_ns: int | None = None) -> None:
        self.worker.set_gate(gate, REASON, name, since_ns)


def paced(rate_mib: int) -> Gate:
    return Gate(GateKind.PACED, rate_mib * MIB)


def ours(harness: GateHarness) -> None:
    """Write the knobs of the gate once, so that they are owned."""
    harness.set_gate(paced(1))
    harness.report()
    until(lambda: harness.worker.idle)
