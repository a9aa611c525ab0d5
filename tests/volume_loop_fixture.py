# SPDX-License-Identifier: GPL-2.0-only
"""A loop of a volume on a fake machine, with a clock that a test moves. I/O: files of the fake."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.model.decision import Decision, GateKind, JournalEntry, Outcome
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge
from ebbgate.model.status import VolumeStatus
from ebbgate.model.status_json import status_to_json
from ebbgate.model.volume import Mode
from ebbgate.policy.defaults import Policy
from ebbgate.probes.volume_state import read_knobs
from ebbgate.units import NS_PER_MS
from tests.builders import busy_edge, idle_edge, queue_sample, tick, volume, volume_state
from tests.fake_journal import NoJournal
from tests.fake_sysfs import WatchedSysfs, fake_bcache
from tests.waiting import until

DEADLINE_S = 20.0


class RecordingSink(NoJournal):
    """An event sink and a journal that record what the loop sends."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.numbered: list[tuple[int, Decision]] = []
        self.written: list[Outcome] = []
        self.latencies: list[int] = []
        self.status = VolumeStatus()
        self.late_ns: list[int] = []
        self.sampled: list[Frame] = []
        self.open: set[str] = set()

    def decision(self, decision: Decision, number: int) -> None:
        self.decisions.append(decision)
        self.numbered.append((number, decision))

    def outcomes(self, outcomes: list[Outcome], latency_ns: int | None) -> None:
        self.written += outcomes
        if latency_ns is not None:
            self.latencies.append(latency_ns)

    @property
    def document(self) -> dict[str, Any]:
        """Return the last status as JSON."""
        return status_to_json(self.status)

    def live(self, volume: str, status: VolumeStatus) -> None:
        self.status = status

    def sample(self, frame: Frame) -> None:
        self.sampled.append(frame)

    def edge(self, edge: Edge, late_ns: int) -> None:
        self.late_ns.append(late_ns)

    def put(self, entry: JournalEntry) -> JournalEntry:
        self.open.add(entry.knob)
        return entry

    def close(self, volume: str, knob: str, how: str) -> None:
        super().close(volume, knob, how)
        self.open.discard(knob)


class LoopHarness:
    """A loop on the ordinary machine, with a clock that a test moves."""

    def __init__(self, root: Path, mode: Mode) -> None:
        self.set_up(root)
        self.kept = RecordingSink()
        self.said: list[str] = []
        self.now_ms = 10_000
        self.loop = VolumeLoop(
            volume=self.volume,
            writer=KnobWriter(self.sysfs, self.volume, self.kept, "this boot", now_ns=self.now_ns),
            policy=self.policy,
            events=self.kept,
            send=self.said.append,
            mode=mode,
            now_ns=self.now_ns,
        )
        self.before = self.knobs()

    def set_up(self, root: Path) -> None:
        """Make the machine and name its volume."""
        self.volume, self.policy = volume(), Policy()
        self.fake = fake_bcache(root)
        self.fake.write(f"/sys/fs/bcache/{self.volume.set_uuid}/internal/trigger_gc", "")
        self.sysfs = WatchedSysfs(root)

    def now_ns(self) -> int:
        return self.now_ms * NS_PER_MS

    def knobs(self) -> dict[str, str]:
        return dict(read_knobs(self.sysfs, self.volume))

    def knob(self, name: str) -> str:
        return self.knobs()[name]

    def someone_writes(self, knob: str, value: str) -> None:
        self.fake.write(f"/sys/block/bcache0/bcache/{knob}", value)

    def plug_in_again(self, disk: str) -> None:
        """Replace the disk's folder: the kernel makes another one for a new disk of that name."""
        here = self.sysfs.real(f"/sys/block/{disk}")
        assert here is not None
        folder = self.sysfs.locate(here)
        old = folder.with_name(f"{disk}-old")
        folder.rename(old)
        shutil.copytree(old, folder, symlinks=True)

    def tick(self, *, probe: bool = True, state: str = "busy", **seen: Any) -> None:
        """A quarter of a second: a record of the probe (or none), and a look at sysfs."""
        self.now_ms += 250
        now_ns = self.now_ms * NS_PER_MS
        if probe:
            self.loop.on_record(tick(ns=now_ns, state=state, last_ns=now_ns))
        self.loop.on_tick(
            volume_state(at_ns=now_ns, **{"knobs": self.knobs(), **seen}), knobs_settled=True
        )
        self.settle()

    def idle(self) -> None:
        """The load went away."""
        self.now_ms += 300
        self.loop.on_record(idle_edge(self.now_ms, name=self.volume.name))
        self.settle()

    def busy(self) -> None:
        """A request came."""
        self.now_ms += 10
        self.loop.on_record(busy_edge(self.now_ms, name=self.volume.name))
        self.settle()

    def settle(self) -> None:
        until(lambda: self.loop.worker.idle)

    def gate(self) -> GateKind:
        """As the knobs show it."""
        if not any(knob in self.kept.open for knob in ("writeback_percent", "writeback_rate")):
            return GateKind.RELEASED
        if self.knob("writeback_percent") == "0":
            return GateKind.OPEN
        sectors_per_s = int(self.knob("writeback_rate"))
        return GateKind.CLOSED if sectors_per_s < 8192 // 512 else GateKind.PACED

    def gap_and_back(self) -> None:
        """Users, a gap with one look at the queue, users again."""
        self.tick()
        self.idle()
        self.loop.on_record(queue_sample(self.now_ms + 10, 3, 5))
        self.busy()
        self.tick()
