# SPDX-License-Identifier: GPL-2.0-only
"""Runs one volume: takes records in, builds frames, asks the engine, drives the knobs.

I/O: through the knob driver and the event sink. The event loop calls it; it never blocks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from ebbgate.actuators.gate_worker import GateWorker, Later
from ebbgate.actuators.knob_writer import KnobWriter
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
from ebbgate.policy.other_knobs import other_knobs
from ebbgate.signals import kernel_sleep
from ebbgate.signals.frame import FrameState, absorb, begin_anew, build, totals, tracked
from ebbgate.signals.kernel_sleep import KernelSleep
from ebbgate.signals.reload import table_reloaded
from ebbgate.signals.totals import Totals
from ebbgate.units import NS_PER_MS, NS_PER_S

_LOG = logging.getLogger(__name__)
_STATUS_NS = NS_PER_S - 50 * NS_PER_MS
"""A status is sent once a second, and at the tick after each decision."""


@dataclass(slots=True)
class VolumeLoop:
    """One volume.

    `send`: gives the probe a command. `now_ns`: CLOCK_MONOTONIC. `frozen`: every knob stays where
    it is. `last_sent`: what the probe was told last, and `last_sent_wait_ns`: when it was told the
    wait. `decision_count`: the number of the last recorded decision. `since_unix_ns`: when the
    daemon began to follow the volume.
    """

    volume: Volume
    writer: KnobWriter
    policy: Policy
    events: EventSink
    send: Callable[[str], None]
    mode: Mode = Mode.ADVISE
    frozen: bool = False
    now_ns: Callable[[], int] = time.monotonic_ns
    frames: FrameState = field(default_factory=FrameState)
    state: State = field(default_factory=State)
    last_sent: ProbeSettings | None = None
    last_sent_wait_ns: int = 0
    decision_count: int = 0
    last_key: DecisionKey = ()
    lost: dict[str, int] = field(default_factory=dict)
    kernel_sleep: KernelSleep | None = None
    decision_log: DecisionLog = field(default_factory=DecisionLog)
    call_later: Later | None = None
    last_sent_status_ns: int = 0
    since_unix_ns: int = field(default_factory=time.time_ns)
    last_seen: VolumeState | None = None
    driver: KnobDriver = field(init=False)
    overrides: VolumeOverrides = field(init=False)
    cleaner: Cleaner = field(init=False)

    def __post_init__(self) -> None:
        self.driver = KnobDriver(self.writer, self.events, self.call_later, self.now_ns)
        self.cleaner = Cleaner(self.volume, self.driver, self.now_ns)
        self.overrides = VolumeOverrides(self.driver, self.now_ns)

    @property
    def worker(self) -> GateWorker:
        """Return the worker that writes the knobs."""
        return self.driver.worker

    @property
    def urgent(self) -> bool:
        """Whether a gate is open that the next request closes."""
        return self._acts() and self._outcome().closes_on_arrival

    # ---- what comes in -------------------------------------------------------------------------
    def on_record(self, record: Record) -> None:
        """Take a record of this volume from the probe."""
        if isinstance(record, QueueSample):
            outcome = self._step(record)
            self._drive_gate(outcome, self.decision_count)
            self._send_probe_settings(outcome)
        elif isinstance(record, Edge):
            self._on_edge(record)
        elif isinstance(record, Tracked):
            self.frames = tracked(self.frames, record)
        elif isinstance(record, Tick):
            self.frames = absorb(self.frames, record)
            self.lost = dict(record.lost)
            # The end of the kernel thread's sleep is known once we have changed its delay.
            delay = self.writer.owned.get(DELAY)
            ours = (delay.owned_since_ns, delay.original) if delay else None
            self.kernel_sleep = kernel_sleep.followed(self.kernel_sleep, ours, record)

    def _on_edge(self, edge: Edge) -> None:
        """Write the gate first, since a request waits for it; then do all that can wait."""
        outcome = self._step(edge)
        self.driver.hold_outcomes()
        try:
            self._drive_gate(outcome, self.decision_count + 1, since_ns=edge.at_ns)
            self._send_probe_settings(outcome)
            self.events.edge(edge, self._late_ns(edge))
            self._record_decision(outcome)
        finally:
            self.driver.send_outcomes()

    def on_tick(self, seen: VolumeState, knobs_settled: bool) -> None:
        """Take a look at sysfs. `knobs_settled`: no knob was being written meanwhile."""
        frame = build(self.frames, seen, self.volume.name, self.now_ns())
        self.cleaner.watch(seen)
        if knobs_settled and self.cleaning is None:
            self._look_at_knobs(seen)
            self.overrides.watch(seen, frame)
        self.last_seen = seen
        outcome = self._step(frame)
        decision = self._record_decision(outcome)
        drifted = self.driver.rate_drifted(seen, steady=outcome.steady)
        again = knobs_settled and (self.driver.unsure or drifted)
        self._drive_gate(outcome, self.decision_count, again=again)
        if self._acts():
            self.driver.apply_other_knobs(
                other_knobs(decision), self.decision_count, retry=knobs_settled
            )
        elif knobs_settled and self.mode is not Mode.ENFORCE:
            self.driver.release_again()
        self._send_probe_settings(outcome)
        if frame.at_ns - self.last_sent_status_ns >= _STATUS_NS:
            self.last_sent_status_ns = frame.at_ns
            # In a turn of its own, if there is an event loop: an edge that waits goes first.
            (self.call_later or _now)(0, lambda: self._send_status(frame))

    def _send_status(self, frame: Frame) -> None:
        self.events.sample(frame)
        status = volume_status(self._status_inputs(), frame, self._outcome())
        self.events.live(self.volume.name, status_to_json(status))

    def probe_restarted(self) -> None:
        """Send the probe its settings again: a new child knows nothing."""
        self.last_sent = None
        self.frames = begin_anew(self.frames)
        self._send_probe_settings(self._outcome())

    # ---- what people want ----------------------------------------------------------------------
    def set_mode(self, mode: Mode, why: str) -> None:
        """Change the mode; leaving `enforce` puts every knob back."""
        if mode is Mode.ENFORCE:
            self.driver.resume_control()
        elif self.mode is Mode.ENFORCE:
            self.release(why)
        self.mode = mode
        self.frozen = False
        self.last_key = ()

    def set_policy(self, policy: Policy) -> None:
        """Change the policy; what was learned of the volume stays."""
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
        """Send the status now."""
        frame = self.state.current_frame
        if frame is not None:
            self._send_status(frame)

    def resume_control(self, knob: str | None) -> tuple[str, ...]:
        """Drive manual knobs again: this one, or all of them; return which."""
        taken = tuple(sorted(each for each in self.writer.manual if knob in (None, each)))
        for each in taken:
            self.driver.resume_control(each)
        return taken

    def freeze(self, on: bool) -> None:
        """Freeze every knob where it is, or end that."""
        self.frozen = on

    def clean(self, within_ns: int, who: str) -> str:
        """Begin a cleaning; return what is done, in words. Raises ActuationError."""
        return self.cleaner.begin(self.last_seen, within_ns, who)

    @property
    def cleaning(self) -> Cleaning | None:
        """Return the cleaning under way."""
        return self.cleaner.cleaning

    def release(self, why: str) -> None:
        """Restore every knob of this volume, except those that somebody else has written."""
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
        return self.mode is Mode.ENFORCE and not self.frozen and self.cleaning is None

    def _drive_gate(
        self, outcome: Outcome, decision: int, *, since_ns: int | None = None, again: bool = False
    ) -> None:
        if self._acts():
            self.driver.gate(outcome.ruling, decision, since_ns=since_ns, reassert=again)

    def _send_probe_settings(self, outcome: Outcome) -> None:
        settings = outcome.probe_settings
        if not self._acts():
            settings = ProbeSettings(settings.wait_ns, 0)
        last, name = self.last_sent, self.volume.name
        if last is None or last.wait_ns != settings.wait_ns:
            self.send(f"wait {name} {settings.wait_ns}")
            self.last_sent_wait_ns = self.now_ns()
        if last is None or last.pace != settings.pace:
            self.send(f"pace {name} {' '.join(str(word) for word in settings.pace)}")
        self.last_sent = settings

    def _late_ns(self, edge: Edge) -> int:
        """Return how long after it was due the edge is handled.

        A busy edge is due when the request arrives, an idle one when the wait is over. A wait that
        became shorter during an idle time is over at once.
        """
        due_ns = edge.at_ns
        if edge.kind is EdgeKind.IDLE and self.last_sent is not None:
            due_ns += self.last_sent.wait_ns - edge.length_ns
            due_ns = max(due_ns, self.last_sent_wait_ns)
        return self.now_ns() - due_ns

    def _status_inputs(self) -> StatusInputs:
        return StatusInputs(
            volume=self.volume,
            policy=self.policy.name,
            overlay=self.policy.overlay,
            mode=self.mode,
            frozen=self.frozen,
            gate=self.driver.applied.gate,
            gate_since_ns=self.driver.gate_since_ns,
            originals=self._originals(),
            manual=frozenset(self.writer.manual),
            lost=self.lost,
            cleaning=self.cleaning,
            overrides=self.overrides.active,
            destage=self.policy.destage,
            sleep_left_s=kernel_sleep.left_s(self.kernel_sleep, self.now_ns()),
            totals=self._totals(),
        )

    def _originals(self) -> dict[str, str]:
        return {knob: owned.original for knob, owned in list(self.writer.owned.items())}

    def _totals(self) -> Totals:
        trips, changes = self.state.arbiter.rollback.trips(), self.driver.changes
        return Totals(self.since_unix_ns, totals(self.frames), changes, self.decision_count, trips)

    def _record_decision(self, outcome: Outcome) -> Decision:
        decision = outcome.decision()
        key = outcome.key(decision)
        if key != self.last_key and self.mode is not Mode.OBSERVE:
            self.last_key = key
            self.last_sent_status_ns = 0
            decision = outcome.explained()
            self.decision_count += 1
            self.events.decision(decision, self.decision_count)
            suffix = "" if self._acts() else f" [{self.mode}: not applied]"
            self.decision_log.log(self.volume.name, decision, suffix)
        return decision

    def _look_at_knobs(self, seen: VolumeState) -> None:
        if not (self._acts() or self.overrides.pins):
            return
        if table_reloaded(self.last_seen, seen, self._originals()):
            _LOG.warning("%s: its table was reloaded; the knobs are set again", self.volume.title)
            self.driver.on_table_reload(seen)
            return
        self.overrides.on_conflict(taken := self.writer.check_manual(seen.knobs))
        self.driver.mark_manual(taken, seen)


def _now(_: int, call: Callable[[], None]) -> None:
    call()
