# SPDX-License-Identifier: GPL-2.0-only
"""Replays a recording to the loop of a volume, and records what it writes. I/O: a fake machine.

The real loop writes knobs of a fake /sys; these replace the knobs of the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.control.volume_loop import EACH_SECOND_NS, VolumeLoop
from ebbgate.model.decision import Decision, Outcome
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge
from ebbgate.model.status import VolumeStatus
from ebbgate.model.status_json import status_to_json
from ebbgate.model.volume import Kind, Mode, Volume
from ebbgate.policy.defaults import default_policy
from ebbgate.probes.recording import Damaged, RecordingHeader, SysfsSnapshot, recorded_kind
from ebbgate.probes.volume_state import read_knobs
from tests.builders import dm_volume, volume
from tests.fake_journal import NoJournal
from tests.fake_sysfs import WatchedSysfs, fake_bcache
from tests.history_fixture import at_ns, recorded
from tests.waiting import until

_SETTLES_S = 5.0


@dataclass(slots=True)
class Tape(NoJournal):
    """The event sink and journal of the loop; each entry with its time (ns from the start)."""

    length_ns: int = 0
    now_ns: int = 0
    begin_ns: int = 0
    decisions: list[tuple[int, int, Decision]] = field(default_factory=list)
    written: list[tuple[int, list[Outcome], int | None]] = field(default_factory=list)
    documents: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    frames: list[tuple[int, Frame]] = field(default_factory=list)
    edges: list[tuple[int, Edge, int]] = field(default_factory=list)

    def decision(self, decision: Decision, number: int) -> None:
        self.decisions.append((self._at(), number, decision))

    def outcomes(self, outcomes: list[Outcome], latency_ns: int | None) -> None:
        self.written.append((self._at(), outcomes, latency_ns))

    def live(self, volume: str, status: VolumeStatus) -> None:
        self.documents.append((self._at(), status_to_json(status)))

    def sample(self, frame: Frame) -> None:
        """Keep one a second, as the recorder does."""
        if not self.frames or frame.at_ns - self.frames[-1][1].at_ns >= EACH_SECOND_NS:
            self.frames.append((self._at(), frame))

    def edge(self, edge: Edge, late_ns: int) -> None:
        self.edges.append((self._at(), edge, 1_000_000))

    def _at(self) -> int:
        return self.now_ns - self.begin_ns


def play(recording: str, mode: Mode, folder: Path) -> Tape:
    """Replay a recording of tests/replay, by name, to the loop of a volume in this mode."""
    events = [e for e in recorded(recording) if not isinstance(e, RecordingHeader | Damaged)]
    times = [at_ns(event) for event in events]
    tape = Tape(begin_ns=min(times), length_ns=max(times) - min(times))
    fake = fake_bcache(folder)
    fake.write(f"/sys/fs/bcache/{volume().set_uuid}/internal/trigger_gc", "")
    sysfs = WatchedSysfs(folder)
    played = volume() if recorded_kind(events) is Kind.BCACHE else dm_volume()
    loop = _loop(played, sysfs, tape, mode)
    try:
        for event in events:
            tape.now_ns = max(tape.now_ns, at_ns(event))
            if isinstance(event, SysfsSnapshot):
                own = dict(event.state.knobs)
                if played.kind is Kind.BCACHE:
                    own |= read_knobs(sysfs, played)
                loop.on_tick(replace(event.state, knobs=own), knobs_settled=True)
            else:
                loop.on_record(event)
            _settle(loop)
    finally:
        assert loop.worker.stop(_SETTLES_S)
    return tape


def _loop(played: Volume, sysfs: WatchedSysfs, tape: Tape, mode: Mode) -> VolumeLoop:
    now_ns: Callable[[], int] = lambda: tape.now_ns  # noqa: E731 - a clock
    return VolumeLoop(
        volume=played,
        writer=KnobWriter(sysfs, played, tape, "this boot", now_ns=now_ns),
        policy=default_policy(played.kind),
        events=tape,
        send=lambda _: None,
        mode=mode,
        now_ns=now_ns,
    )


def _settle(loop: VolumeLoop) -> None:
    until(lambda: loop.worker.idle, "a knob is written", _SETTLES_S)
