# SPDX-License-Identifier: GPL-2.0-only
"""The imperative shell of one volume: records in, frames built, policy asked, knobs driven.

I/O: through the gate thread and the outbox. The event loop calls it; it never blocks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from ebbgate.actuators.gate_worker import GateWorker, Later
from ebbgate.actuators.knob_writer import KnobWriter, Reason
from ebbgate.control.cleaner import Cleaner
from ebbgate.control.decision_log import DecisionLog
from ebbgate.control.knob_driver import EventSink, KnobDriver
from ebbgate.control.overrides import VolumeOverrides
from ebbgate.control.status_document import StatusInputs, volume_status
from ebbgate.knobs.catalog import DELAY
from ebbgate.model.decision import Decision
from ebbgate.model.frame import Frame
from ebbgate.model.override import ActiveOverride
from ebbgate.model.records import Edge, EdgeKind, QueueSample, Record, Tick, Tracked
from ebbgate.model.status_json import status_to_json
from ebbgate.model.volume import Mode, Volume, VolumeState
from ebbgate.policy.cleaning import Cleaning
from ebbgate.policy.engine import DecisionKey, Event, Outcome, Policy, ProbeSettings, State, step
from ebbgate.signals import kernel_sleep
from ebbgate.signals.frame import FrameState, absorb, begin_anew, build, totals, tracked
from ebbgate.signals.kernel_sleep import KernelSleep
from ebbgate.signals.reload import table_reloaded
from ebbgate.signals.totals import Totals
from ebbgate.units import NS_PER_MS, NS_PER_S

_LOG = logging.getLogger(__name__)
_TELL_NS = NS_PER_S - 50 * NS_PER_MS
"""People and the history get a new document once a second, and at the tick after each decision."""


@dataclass(slots=True)
class VolumeLoop:
    """One volume. `send` gives the probe a command; `now_ns` is CLOCK_MONOTONIC. `decided`: the
    number of the last decision that was told; `told_wait_ns`: when the probe was told the wait;
    `since_unix_ns`: from when on it is followed.
    """

    volume: Volume
    writer: KnobWriter
    policy: Policy
    outbox: EventSink
    send: Callable[[str], None]
    mode: Mode = Mode.ADVISE
    held: bool = False
    now_ns: Callable[[], int] = time.monotonic_ns
    frames: FrameState = field(default_factory=FrameState)
    state: State = field(default_factory=State)
    told: ProbeSettings | None = None
    told_wait_ns: int = 0
    decided: int = 0
    last_key: DecisionKey = ()
    lost: dict[str, int] = field(default_factory=dict)
    asleep: KernelSleep | None = None
    said: DecisionLog = field(default_factory=DecisionLog)
    later: Later | None = None
    told_live_ns: int = 0
    since_unix_ns: int = field(default_factory=time.time_ns)
    last_seen: VolumeState | None = None
    driver: KnobDriver = field(init=False)
    overrides: VolumeOverrides = field(init=False)
    cleaner: Cleaner = field(init=False)

    def __post_init__(self) -> None:
        self.driver = KnobDriver(self.writer, self.outbox, self.later, self.now_ns)
        self.cleaner = Cleaner(self.volume, self.driver, self.now_ns)
        self.overrides = VolumeOverrides(self.driver, self.now_ns)

    @property
    def worker(self) -> GateWorker:
        """The thread that owns the knobs."""
        return self.driver.worker

    @property
    def urgent(self) -> bool:
        """Is a gate open that the next request closes?"""
        return self._acts() and self._outcome().closes_on_arrival

    # ---- what comes in -------------------------------------------------------------------------
    def on_record(self, record: Record) -> None:
        """A record of this volume from the probe."""
        if isinstance(record, QueueSample):
            outcome = self._step(record)
            self._drive_gate(outcome, self.decided)
            self._tell_probe(outcome)
        elif isinstance(record, Edge):
            self._on_edge(record)
        elif isinstance(record, Tracked):
            self.frames = tracked(self.frames, record)
        elif isinstance(record, Tick):
            self.frames = absorb(self.frames, record)
            self.lost = dict(record.lost)
            # From the moment the delay is ours the thread's sleep is known to end.
            delay = self.writer.owned.get(DELAY)
            ours = (delay.owned_since_ns, delay.original) if delay else None
            self.asleep = kernel_sleep.followed(self.asleep, ours, record)

    def _on_edge(self, edge: Edge) -> None:
        """The gate first: a request waits for it. Then all that can wait."""
        outcome = self._step(edge)
        self.driver.keep_outcomes()
        try:
            self._drive_gate(outcome, self.decided + 1, since_ns=edge.at_ns)
            self._tell_probe(outcome)
            self.outbox.edge(edge, self._late_ns(edge))
            self._record_decision(outcome)
        finally:
            self.driver.tell_outcomes()

    def on_tick(self, seen: VolumeState, quiet: bool) -> None:
        """A look at sysfs; `quiet`: no knob was being written meanwhile."""
        frame = build(self.frames, seen, self.volume.name, self.now_ns())
        self.cleaner.watch(seen)
        if quiet and self.cleaning is None:
            self._look_at_knobs(seen)
            self.overrides.watch(seen, frame)
        self.last_seen = seen
        outcome = self._step(frame)
        decision = self._record_decision(outcome)
        drifted = self.driver.rate_drifted(seen, steady=outcome.steady)
        again = quiet and (self.driver.unsure or drifted)
        self._drive_gate(outcome, self.decided, reassert=again)
        if self._acts():
            self.driver.rest(decision, self.decided, retry=quiet)
        elif quiet and self.mode is not Mode.ENFORCE:
            self.driver.release_again()
        self._tell_probe(outcome)
        if frame.at_ns - self.told_live_ns >= _TELL_NS:
            self.told_live_ns = frame.at_ns
            # By itself, where there is a loop: an edge that waits goes first.
            (self.later or _now)(0, lambda: self._tell_people(frame))

    def _tell_people(self, frame: Frame) -> None:
        self.outbox.sample(frame)
        status = volume_status(self._status_inputs(), frame, self._outcome())
        self.outbox.live(self.volume.name, status_to_json(status))

    def probe_restarted(self) -> None:
        """The probe knows nothing of us any more."""
        self.told = None
        self.frames = begin_anew(self.frames)
        self._tell_probe(self._outcome())

    # ---- what people want ----------------------------------------------------------------------
    def set_mode(self, mode: Mode, why: str) -> None:
        """Change the mode; leaving `enforce` puts every knob back."""
        if mode is Mode.ENFORCE:
            self.driver.take_back()
        elif self.mode is Mode.ENFORCE:
            self.release(why)
        self.mode = mode
        self.held = False
        self.last_key = ()

    def set_policy(self, policy: Policy) -> None:
        """From now on another policy; what was learned of the volume stays."""
        if policy == self.policy:
            return
        _LOG.info("%s: policy %s %s", self.volume.title, policy.name, policy.overlay)
        self.policy = policy
        self.last_key = ()

    def set_overrides(self, active: Iterable[ActiveOverride]) -> None:
        """Put these overrides in force in place of the former ones."""
        self._step(self.overrides.apply(active))
        self.last_key = ()

    def settled(self) -> Future[None]:
        """Return a future that is done when the knob writes that were begun are."""
        return self.driver.settled()

    def publish(self) -> None:
        """Tell people how the volume is now."""
        frame = self.state.current_frame
        if frame is not None:
            self._tell_people(frame)

    def take_back(self, knob: str | None) -> tuple[str, ...]:
        """Take the knob (without a name: every one) that somebody else has written back; which."""
        taken = tuple(sorted(each for each in self.writer.manual if knob in (None, each)))
        for each in taken:
            self.driver.take_back(each)
        return taken

    def hold(self, on: bool) -> None:
        """Freeze every knob where it is, or go on."""
        self.held = on

    def clean(self, within_ns: int, who: str) -> str:
        """Have the cleaner write everything back; what is done, in words. Raises ActuationError."""
        return self.cleaner.begin(self.last_seen, within_ns, who)

    @property
    def cleaning(self) -> Cleaning | None:
        """The cleaning under way."""
        return self.cleaner.cleaning

    def release(self, why: str) -> None:
        """Put every knob of this volume back, but for those that somebody else has written."""
        self.driver.release(why)

    # ---- what goes out -------------------------------------------------------------------------
    def _step(self, event: Event) -> Outcome:
        self.state, outcome = step(
            self.state, event, self.policy, self.now_ns(), applied=self._acts()
        )
        return outcome

    def _outcome(self) -> Outcome:
        return Outcome(self.state, self.policy, self.now_ns())

    def _acts(self) -> bool:
        return self.mode is Mode.ENFORCE and not self.held and self.cleaning is None

    def _drive_gate(
        self,
        outcome: Outcome,
        decision: int,
        *,
        since_ns: int | None = None,
        reassert: bool = False,
    ) -> None:
        if self._acts():
            ruling = outcome.ruling
            reason = Reason(ruling.by, ruling.why, decision)
            self.driver.gate(ruling.gate, reason, since_ns=since_ns, reassert=reassert)

    def _tell_probe(self, outcome: Outcome) -> None:
        wished = outcome.probe_settings
        if not self._acts():
            wished = ProbeSettings(wished.wait_ns, 0)
        told, name = self.told, self.volume.name
        if told is None or told.wait_ns != wished.wait_ns:
            self.send(f"wait {name} {wished.wait_ns}")
            self.told_wait_ns = self.now_ns()
        if told is None or told.pace != wished.pace:
            self.send(f"pace {name} {' '.join(str(word) for word in wished.pace)}")
        self.told = wished

    def _late_ns(self, edge: Edge) -> int:
        """A busy edge is due when the request arrives, an idle one when the wait is over.

        A wait that became shorter while all was quiet is over at once.
        """
        due_ns = edge.at_ns
        if edge.kind is EdgeKind.IDLE and self.told is not None:
            due_ns += self.told.wait_ns - edge.length_ns
            due_ns = max(due_ns, self.told_wait_ns)
        return self.now_ns() - due_ns

    def _status_inputs(self) -> StatusInputs:
        return StatusInputs(
            volume=self.volume,
            policy=self.policy.name,
            overlay=self.policy.overlay,
            mode=self.mode,
            frozen=self.held,
            gate=self.driver.applied.gate,
            gate_since_ns=self.driver.gate_since_ns,
            originals=self._originals(),
            manual=frozenset(self.writer.manual),
            lost=self.lost,
            cleaning=self.cleaning,
            overrides=self.overrides.active,
            destage=self.policy.destage,
            sleep_left_s=kernel_sleep.left_s(self.asleep, self.now_ns()),
            totals=self._totals(),
        )

    def _originals(self) -> dict[str, str]:
        return {knob: held.original for knob, held in list(self.writer.owned.items())}

    def _totals(self) -> Totals:
        trips, changes = self.state.arbiter.rollback.trips(), self.driver.changes
        return Totals(self.since_unix_ns, totals(self.frames), changes, self.decided, trips)

    def _record_decision(self, outcome: Outcome) -> Decision:
        decision = outcome.decision()
        key = outcome.key(decision)
        if key != self.last_key and self.mode is not Mode.OBSERVE:
            self.last_key = key
            self.told_live_ns = 0
            decision = outcome.explained()
            self.decided += 1
            self.outbox.decision(decision, self.decided)
            suffix = "" if self._acts() else f" [{self.mode}: not applied]"
            self.said.log(self.volume.name, decision, suffix)
        return decision

    def _look_at_knobs(self, seen: VolumeState) -> None:
        if not (self._acts() or self.overrides.pins):
            return
        if table_reloaded(self.last_seen, seen, self._originals()):
            _LOG.warning("%s: its table was loaded anew: set again", self.volume.title)
            self.driver.on_table_reload(seen)
            return
        self.overrides.on_conflict(taken := self.writer.check_manual(seen.knobs))
        self.driver.leave_alone(taken, seen)


def _now(_: int, call: Callable[[], None]) -> None:
    call()
