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
from typing import Final

from ebbgate.actuators.gate_worker import GateWorker
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.reason import Reason
from ebbgate.control.cleaner import Cleaner
from ebbgate.control.knob_driver import EventSink, KnobDriver
from ebbgate.control.knob_jobs import garbage_job
from ebbgate.control.overrides import VolumeOverrides
from ebbgate.control.status_document import StatusInputs, volume_status
from ebbgate.control.volume_signals import SignalRecord, VolumeSignals
from ebbgate.log_messages.volumes import DECISION, TABLE_RELOADED, VOLUME_POLICY
from ebbgate.model.decision import Decision
from ebbgate.model.frame import Frame
from ebbgate.model.hot_set import HotSet
from ebbgate.model.override import ActiveOverride
from ebbgate.model.pin import PinStatus
from ebbgate.model.promotion import ChunksMoved, MoverStatus, Promotion
from ebbgate.model.records import (
    Edge,
    EdgeKind,
    QueueSample,
    Record,
)
from ebbgate.model.status import LayoutStatus
from ebbgate.model.volume import DiskUsers, Mode, Volume, VolumeState
from ebbgate.model.warm import JobStatus
from ebbgate.policy.cleaning import Cleaning
from ebbgate.policy.engine import (
    DecisionKey,
    Event,
    Outcome,
    Policy,
    ProbeSettings,
    PromoteState,
    State,
    WarmChange,
    step,
)
from ebbgate.policy.other_knobs import GATE_MANUAL, RELEASE_FAILED, WARMED, other_knobs
from ebbgate.units import NS_PER_MS, NS_PER_S
from ebbgate.warm.promotion_watch import PromotionWatch

Later = Callable[[int, Callable[[], None]], object]
"""Calls a function after a delay in ns, on the event loop."""
_LOG = logging.getLogger(__name__)
EACH_SECOND_NS: Final = NS_PER_S - 50 * NS_PER_MS
"""What is due once a second is done at the first tick after this time: ticks come early or late. A
status is sent then, and at the tick after each decision.
"""


@dataclass(slots=True)
class VolumeLoop:
    """One volume.

    `send`: gives the probe a command. `now_ns`: CLOCK_MONOTONIC. `frozen`: every knob stays where
    it is. `last_sent`: the last settings of the probe, and `last_sent_wait_ns`: when the wait was
    sent. `decision_count`: the number of the last recorded decision. `last_logged`: the reason that
    was logged of each strategy. `jobs`, `pins`, `layout`: the warm-ups and pinned files of this
    volume, and what is known of its files, for people. `promotion`: what is to be moved into the
    cache now; `mover`: what has become of it. `promoted`: what users' misses bring into it.
    """

    volume: Volume
    writer: KnobWriter
    policy: Policy
    events: EventSink
    send: Callable[[str], None]
    mode: Mode = Mode.ADVISE
    frozen: bool = False
    now_ns: Callable[[], int] = time.monotonic_ns
    state: State = field(default_factory=State)
    last_sent: ProbeSettings | None = None
    last_sent_wait_ns: int = 0
    decision_count: int = 0
    last_key: DecisionKey = ()
    last_logged: dict[str, str] = field(default_factory=dict)
    call_later: Later | None = None
    last_sent_status_ns: int = 0
    jobs: tuple[JobStatus, ...] = ()
    layout: LayoutStatus | None = None
    promotion: Promotion | None = None
    mover: MoverStatus = field(default_factory=MoverStatus)
    promoted: PromotionWatch = field(default_factory=PromotionWatch)
    pins: tuple[PinStatus, ...] = ()
    signals: VolumeSignals = field(init=False)
    driver: KnobDriver = field(init=False)
    overrides: VolumeOverrides = field(init=False)
    cleaner: Cleaner = field(init=False)

    def __post_init__(self) -> None:
        self.signals = VolumeSignals(self.writer, self.now_ns, time.time_ns())
        self.driver = KnobDriver(self.writer, self.events, self.now_ns)
        self.cleaner = Cleaner(self.volume, self.driver, self.now_ns)
        self.overrides = VolumeOverrides(self.driver, self.now_ns)

    @property
    def last_seen(self) -> VolumeState | None:
        """Return the last look at sysfs."""
        return self.signals.last_seen

    @property
    def worker(self) -> GateWorker:
        """Return the worker that writes the knobs."""
        return self.driver.worker

    @property
    def urgent(self) -> bool:
        """Whether a gate is open that the next request closes."""
        return self.acts and self.writer.gate_is_ours and self._outcome().closes_on_arrival

    def return_is_near(self, within_ns: int) -> bool:
        """Return whether users, who are away now, are likely to be back in this time."""
        return self._outcome().return_is_near(within_ns)

    # ---- what comes in -------------------------------------------------------------------------
    def on_record(self, record: Record) -> None:
        """Take a record of this volume from the probe."""
        if isinstance(record, QueueSample):
            outcome = self._step(record)
            self._drive_gate(outcome, self.decision_count)
            self._send_probe_settings(outcome)
        elif isinstance(record, Edge):
            self._on_edge(record)
        elif isinstance(record, SignalRecord):
            self.signals.on_record(record)

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
        frame = self.signals.frame(seen)
        self.promoted.on_frame(frame)
        self.cleaner.watch(seen)
        if knobs_settled and self.cleaning is None:
            self._look_at_knobs(seen)
            self.overrides.watch(seen, frame)
            self.driver.release_leftovers(RELEASE_FAILED)
        self.signals.last_seen = seen
        outcome = self._step(frame)
        decision = self._record_decision(outcome)
        drifted = self.driver.rate_drifted(seen, steady=outcome.steady)
        again = knobs_settled and (self.driver.gate_is_due or drifted)
        self._drive_gate(outcome, self.decision_count, again=again)
        if self.acts:
            self.driver.apply_other_knobs(
                other_knobs(decision, self.policy), self.decision_count, retry=knobs_settled
            )
        self.promotion = decision.promotion if self.acts else None
        self._send_probe_settings(outcome)
        self.events.sample(frame)
        if frame.at_ns - self.last_sent_status_ns >= EACH_SECOND_NS:
            self.last_sent_status_ns = frame.at_ns
            # In a turn of its own, if there is an event loop: an edge that waits goes first.
            (self.call_later or _now)(0, lambda: self._send_status(frame))

    def _send_status(self, frame: Frame) -> None:
        status = volume_status(self._status_inputs(frame), frame, self._outcome())
        self.events.live(self.volume.name, status)

    def on_chunks_moved(self, report: ChunksMoved) -> None:
        """Take a report of the mover."""
        self._step(report)

    def probe_restarted(self) -> None:
        """Send the probe its settings again: a new child has no settings."""
        self.signals.on_probe_restart()
        self.resend_probe_settings()

    def resend_probe_settings(self) -> None:
        """Send the probe its settings again, which it forgets where it does not follow a volume."""
        self.last_sent = None
        self._send_probe_settings(self._outcome())

    # ---- what people want ----------------------------------------------------------------------
    def set_mode(self, mode: Mode, why: str) -> None:
        """Change the mode; leaving `enforce` puts every knob back."""
        if mode is self.mode is Mode.ENFORCE:
            # What was applied is still in force, and is changed or released from there.
            self.resume_control(None)
        elif mode is Mode.ENFORCE:
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
        _LOG.info(VOLUME_POLICY, self.volume.title, policy.name, policy.overlay)
        self.policy = policy
        self.last_key = ()

    def set_disk_users(self, users: DiskUsers) -> None:
        """Tell what else is on the disks; disks that become shared get their depth back."""
        before, self.writer.disk_users = self.writer.disk_users, users
        if users.volumes and not before.volumes:
            self.driver.release_queues(f"also used by {', '.join(users.volumes)}")

    def set_overrides(self, active: Iterable[ActiveOverride]) -> None:
        """Put these overrides in force in place of the former ones."""
        self._step(self.overrides.apply(active))
        self.last_key = ()

    @property
    def acts(self) -> bool:
        """Are decisions carried out now?"""
        return self.mode is Mode.ENFORCE and not self.frozen and self.cleaning is None

    def keep_cutoff(self, least_bytes: int | None) -> None:
        """Let no strategy set a lower cutoff while a warm-up reads; None: it is over."""
        self._step(WarmChange(least_bytes))

    def collect_garbage(self) -> None:
        """Have bcache collect its garbage now, while nothing is read into the cache."""
        if self.acts:
            job = garbage_job(Reason(*WARMED, self.decision_count))
            self.driver.submit("gc", job)

    def hot_set(self) -> HotSet:
        """Return the parts of the volume that were used last."""
        return self.signals.hot_set()

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
        return self.cleaner.begin(self.signals.last_seen, within_ns, who)

    @property
    def cleaning(self) -> Cleaning | None:
        """Return the cleaning under way."""
        return self.cleaner.cleaning

    def release(self, why: str) -> None:
        """Restore every knob of this volume, except those that somebody else has written."""
        self.driver.release(why)

    # ---- what goes out -------------------------------------------------------------------------
    def _step(self, event: Event) -> Outcome:
        self.state, outcome = step(self.state, event, self.policy, self.now_ns(), applied=self.acts)
        return outcome

    def _outcome(self) -> Outcome:
        return Outcome(self.state, self.policy, self.now_ns())

    def _drive_gate(
        self, outcome: Outcome, decision: int, *, since_ns: int | None = None, again: bool = False
    ) -> None:
        if self.acts:
            self.driver.gate(outcome.ruling, decision, since_ns=since_ns, reassert=again)

    def _send_probe_settings(self, outcome: Outcome) -> None:
        settings = outcome.probe_settings
        if not self.acts:
            settings = ProbeSettings(settings.wait_ns, 0)
        last, name = self.last_sent, self.volume.name
        if last is None or last.wait_ns != settings.wait_ns:
            self.send(f"wait {name} {settings.wait_ns}")
            self.last_sent_wait_ns = self.now_ns()
        if last is None or last.pace_period_ns != settings.pace_period_ns:
            self.send(f"pace {name} {settings.pace_period_ns}")
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

    def _status_inputs(self, frame: Frame) -> StatusInputs:
        rollbacks = self.state.arbiter.rollback.rollbacks()
        promotes = self.policy.promotion is not None
        promote = self.state.promotion if promotes else PromoteState()
        return StatusInputs(
            volume=self.volume,
            policy=self.policy.name,
            overlay=self.policy.overlay,
            mode=self.mode,
            frozen=self.frozen,
            gate=self.driver.applied.gate,
            gate_is_refused=self.driver.gate_is_refused,
            gate_is_ours=self.writer.gate_is_ours,
            gate_since_ns=self.driver.gate_since_ns,
            originals=self.signals.originals(),
            manual=frozenset(self.writer.manual),
            lost=self.signals.lost,
            cleaning=self.cleaning,
            overrides=self.overrides.active,
            destage=self.policy.destage,
            sleep_left_s=self.signals.sleep_left_s(),
            miss_ratio=self.signals.miss_ratio(frame.cache_bytes),
            jobs=self.jobs,
            layout=self.layout,
            pins=self.pins,
            promotes=promotes,
            heat=self.signals.heat(frame, promote),
            attribution=self.signals.attribution(),
            mover=self.mover,
            totals=self.signals.totals(self.driver.changes, self.decision_count, rollbacks),
        )

    def _record_decision(self, outcome: Outcome) -> Decision:
        decision = outcome.decision()
        key = outcome.key(decision)
        if key != self.last_key and self.mode is not Mode.OBSERVE:
            self.last_key = key
            self.last_sent_status_ns = 0
            decision = outcome.explained()
            self.decision_count += 1
            self.events.decision(decision, self.decision_count)
            self._log_decision(decision)
        return decision

    def _log_decision(self, decision: Decision) -> None:
        """Log each strategy whose reason has another beginning than last time."""
        suffix = "" if self.acts else f" [{self.mode}: not applied]"
        for each in decision.proposals:
            reason = each.reason.split(":", 1)[0] + suffix
            if self.last_logged.get(each.strategy) != reason:
                self.last_logged[each.strategy] = reason
                _LOG.info(DECISION, self.volume.name, each.strategy, each.reason, suffix)

    def _look_at_knobs(self, seen: VolumeState) -> None:
        if not (self.acts or self.frozen or self.writer.pinned):
            return
        if self.signals.table_reloaded(seen) or self.writer.has_other_table(seen.knobs):
            _LOG.warning(TABLE_RELOADED, self.volume.title)
            self.signals.reloaded = False
            self.driver.on_table_reload(seen)
            return
        if not (self.acts or self.writer.pinned):
            return
        owned = set(self.writer.owned)
        self.overrides.on_conflict(taken := self.writer.check_manual(seen.knobs))
        for knob in owned.difference(self.writer.owned, taken):
            # Its device was reset: what ebbgate wrote is due again.
            self.driver.forget(knob)
        self.driver.mark_manual(taken, seen)
        if any(knob in self.writer.plan.knobs for knob in taken):
            # The knobs of the gate make sense only together.
            self.driver.release_gate(Reason(*GATE_MANUAL))


def _now(_: int, call: Callable[[], None]) -> None:
    call()
