# SPDX-License-Identifier: GPL-2.0-only
"""A KnobWriter on a fake machine, with a journal that a test reads. I/O: a fake sysfs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ebbgate.actuators.gate_worker import drive
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.reason import Reason
from ebbgate.knobs.places import knob_path
from ebbgate.model.decision import Gate, GateKind, JournalEntry, Outcome, OutcomeKind
from ebbgate.probes.volume_state import read_knobs
from ebbgate.units import MIB, NS_PER_MS
from tests.builders import device, volume
from tests.fake_journal import FakeJournal
from tests.fake_sysfs import WatchedSysfs, fake_bcache

REASON = Reason("idle_destage", "idle for 410 ms (needs 300)")
PACED = Gate(GateKind.PACED, 8 * MIB)
CLOSED = Gate(GateKind.CLOSED, 512)
HELD = Gate(GateKind.HELD)
RELEASED = Gate(GateKind.RELEASED)


class RecordingJournal(FakeJournal):
    """A journal that a test reads. `put_at`: each knob's value when its original was journalled."""

    def __init__(self, sysfs: WatchedSysfs) -> None:
        super().__init__()
        self.sysfs = sysfs
        self.put_at: dict[str, str | None] = {}
        self.kept: dict[str, JournalEntry] = {}

    def put(self, entry: JournalEntry) -> JournalEntry:
        self.kept[entry.knob] = super().put(entry)
        self.put_at[entry.knob] = self.sysfs.read_text(entry.path)
        return entry


class WriterHarness:
    """A KnobWriter on the machine of `fake_bcache`. `disks`: those below the volume."""

    def __init__(self, root: Path, disks: tuple[str, ...] = ("vda",)) -> None:
        self.fake = fake_bcache(root)
        self.fake.write(f"/sys/fs/bcache/{volume().set_uuid}/internal/trigger_gc", "")
        self.sysfs = WatchedSysfs(root)
        self.journal = RecordingJournal(self.sysfs)
        self.now_ms = 1000
        self.volume = replace(volume(), disks=tuple(device(name) for name in disks))
        self.writer = KnobWriter(
            self.sysfs,
            self.volume,
            self.journal,
            "this boot",
            wall_ns=lambda: 5,
            now_ns=lambda: self.now_ms * NS_PER_MS,
        )

    def path(self, knob: str) -> str:
        found = knob_path(self.volume, knob)
        assert found is not None
        return str(found)

    def value(self, knob: str) -> str:
        return self.fake.read(self.path(knob))

    def someone_writes(self, knob: str, value: str) -> None:
        self.fake.write(self.path(knob), value)

    def look(self) -> list[str]:
        return self.writer.check_manual(read_knobs(self.sysfs, self.volume))

    def drive(self, gate: Gate) -> list[Outcome]:
        return drive(self.writer, gate, REASON)


def kinds(outcomes: list[Outcome]) -> list[OutcomeKind]:
    return [outcome.kind for outcome in outcomes]
