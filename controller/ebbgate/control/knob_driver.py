# SPDX-License-Identifier: GPL-2.0-only
"""Turns decisions into knob writes of one volume; repeats what failed or was overwritten.

I/O: through the gate worker and the event sink. The event loop calls it; it never blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from threading import Lock
from typing import Protocol

from ebbgate.actuators.bcache_steps import Step, congestion_off_steps
from ebbgate.actuators.gate_worker import GateWorker, Job
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.reason import Reason
from ebbgate.control import knob_jobs
from ebbgate.control.applied import Applied
from ebbgate.control.job_repeats import BAD, JobRepeats
from ebbgate.control.paced_writes import PacedWrites
from ebbgate.control.queue_requests import request_queues
from ebbgate.knobs.catalog import (
    CONGESTED,
    CUTOFF,
    FLUSH,
    MAX_SECTORS,
    RATE,
    TABLE,
)
from ebbgate.log_messages.volumes import (
    KNOB_CHANGED_BY_OTHERS,
    KNOB_LEFT_ALONE,
    KNOB_NOT_WRITTEN,
    KNOB_WRITABLE_AGAIN,
)
from ebbgate.model.decision import (
    CLEAN,
    RESTORE,
    Action,
    Decision,
    Gate,
    GateKind,
    Outcome,
    OutcomeKind,
)
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge
from ebbgate.model.status import VolumeStatus
from ebbgate.model.volume import VolumeState
from ebbgate.policy.engine import Ruling
from ebbgate.policy.other_knobs import FOUND, GARBAGE, OtherKnobs
from ebbgate.signals import totals
from ebbgate.signals.totals import MANUAL, Changes
from ebbgate.units import NS_PER_S, sectors_to_bytes

_LOG = logging.getLogger(__name__)
_IN_GAP = (GateKind.OPEN, GateKind.PACED, GateKind.RESTING)
_RELEASE_AGAIN_NS = 10 * NS_PER_S
_RELEASES = ("restore", "unpin", "manual", "queues", "leftovers")
"""Jobs that release knobs of their own. The other jobs decide anew when they are repeated."""
_RELEASED = Gate(GateKind.RELEASED)


class EventSink(Protocol):
    """Takes what a volume's loop reports; in the daemon the recorder. All calls return at once."""

    def decision(self, decision: Decision, number: int) -> None:
        """A decision that differs from the last one; actions name it by its number."""

    def outcomes(self, outcomes: list[Outcome], latency_ns: int | None) -> None:
        """Knob writes that were carried out; `latency_ns` from the edge to the last write."""

    def live(self, volume: str, status: VolumeStatus) -> None:
        """The volume's status."""

    def sample(self, frame: Frame) -> None:
        """The frame of each tick; the history keeps one a second."""

    def edge(self, edge: Edge, late_ns: int) -> None:
        """An edge, and how long after it was due it was handled."""


class KnobDriver:
    """Drives one volume's knobs. `decision`: the number of the decision behind a call.

    `unsure`: a write of the gate may have failed, so the gate is written again. `changes`: how
    often each actor has changed each knob.
    """

    def __init__(self, writer: KnobWriter, events: EventSink, now_ns: Callable[[], int]) -> None:
        self.writer = writer
        self.worker = GateWorker(writer, self._reported)
        self.applied = Applied()
        self.gate_since_ns = 0
        self.unsure = False
        self.changes: Changes = {}
        self._counting = Lock()
        self._paced = PacedWrites()
        self._events = events
        self._now_ns = now_ns
        self._repeats = JobRepeats(now_ns)
        self._unreleased: set[str] = set()
        """Knobs whose release has failed."""
        self._unreleased_due_ns = 0
        self._failing: dict[str, str] = {}
        self._held_outcomes: list[tuple[list[Outcome], int | None]] | None = None

    def resume_control(self, knob: str | None = None) -> None:
        """Drive a knob (without a name: every one) again that was manual.

        At worst a write that is under way on the worker's thread is still refused.
        """
        self.writer.clear_manual(knob)
        self.unsure = True
        if knob is None:
            self.applied = Applied()
        else:
            self.forget(knob)

    def unpin(self, knob: str, reason: Reason, *, keep: bool = False) -> None:
        """Let strategies write a knob anew, whose override begins or ends.

        `keep`: the knob's value stays as it is.
        """
        self.forget(knob)
        if knob in self.writer.plan.knobs:
            # The newest request wins: a gate that is driven again takes the knobs as they are.
            self.worker.set_gate(_RELEASED, reason)
        elif not keep:
            self.submit("unpin", lambda writer: writer.release((knob,), reason))

    def forget(self, knob: str) -> None:
        """Forget the last request that this knob belongs to."""
        self.applied.forget(knob, self.writer)

    def release(self, why: str) -> None:
        """Restore every knob of this volume, except those that somebody else has written."""
        reason = Reason(RESTORE, why)
        self.applied = Applied()

        def job(writer: KnobWriter) -> list[Outcome]:
            knobs = list(writer.owned)[::-1]
            if self.applied.gate is not None:
                # Its gate was requested after this release, and may have been set before it.
                plan = writer.plan
                knobs = [knob for knob in knobs if knob not in (*plan.knobs, *plan.queues)]
            return writer.release(knobs, reason)

        self.worker.set_gate(_RELEASED, reason)
        self.worker.submit("restore", job)
        # By itself: one that fails waits for a person, and is not repeated.
        self.worker.submit("lost", lambda writer: writer.settle_lost(reason))

    def on_table_reload(self, seen: VolumeState) -> None:
        """Write all knobs again: a table reload has restored the kernel's own values."""
        self.writer.on_table_reload(seen.knobs)
        self.worker.submit("table", lambda writer: writer.refresh_table_threshold(lends=True))
        self.unsure = True
        if self.applied.split:
            self._repeats.request("split")

    def release_leftovers(self, why: str) -> None:
        """Repeat releases of knobs that failed, except of knobs that are set again since.

        Call it at looks during which no knob was being written. It does nothing at most of them:
        the kernel may log each refusal.
        """
        if not self._unreleased or self._now_ns() < self._unreleased_due_ns:
            return
        self._unreleased_due_ns = self._now_ns() + _RELEASE_AGAIN_NS
        knobs, reason = list(self._unreleased), Reason(RESTORE, why)
        self._unreleased.difference_update(knobs)

        def job(writer: KnobWriter) -> list[Outcome]:
            return writer.release(
                [each for each in knobs if each not in writer.pinned and not self._drives(each)],
                reason,
            )

        self.submit("leftovers", job)

    def release_what_is_left(self, why: str) -> None:
        """Restore on the calling thread what is still owned. Only once the worker has ended."""
        knobs = list(self.writer.owned)[::-1]
        self._reported("leftovers", self.writer.release(knobs, Reason(RESTORE, why)), None)

    def _drives(self, knob: str) -> bool:
        return self.applied.drives(knob, self.writer)

    @property
    def gate_is_due(self) -> bool:
        """Is the gate to be set again, since a write of it may have failed?"""
        return self.unsure or self._repeats.gate_is_due

    @property
    def gate_is_refused(self) -> bool:
        """Was a write of the last gate refused, so that it is not in force?"""
        return self._repeats.gate_is_refused

    def gate(
        self, ruling: Ruling, decision: int, *, since_ns: int | None = None, reassert: bool = False
    ) -> None:
        """Bring the gate about if it differs from the last one.

        `since_ns`: when the edge behind it was due.
        """
        gate = ruling.gate or _RELEASED
        if gate == (self.applied.gate or _RELEASED) and not reassert:
            return
        # Rests, and adjusting the pace or a queue, are counted, not recorded write by write.
        name = "pace" if _adjusts(self.applied.gate, gate) else "gate"
        if name == "gate":
            self.gate_since_ns = self._now_ns()
        self.applied.gate = None if gate.kind is GateKind.RELEASED else gate
        self.worker.set_gate(gate, Reason(ruling.by, ruling.why, decision), name, since_ns)

    def apply_other_knobs(self, wanted: OtherKnobs, decision: int, *, retry: bool) -> None:
        """Write the knobs that are not the gate's. `retry`: also those whose last write failed."""
        pinned = self.writer.pinned
        streams = Reason(*wanted.streams, decision)
        cutoff = retry and self._repeats.is_due("cutoff")
        cutoff = cutoff or wanted.cutoff_bytes != self.applied.cutoff_bytes
        if cutoff and CUTOFF not in pinned:
            self.applied.cutoff_bytes = wanted.cutoff_bytes
            self.submit("cutoff", knob_jobs.cutoff_job(wanted.cutoff_bytes, streams))
        split = retry and self._repeats.is_due("split")
        split = split or wanted.split_requests != self.applied.split
        if split and MAX_SECTORS not in pinned:
            self.applied.split = wanted.split_requests
            self.submit("split", knob_jobs.split_job(wanted.split_requests, streams))
        off = wanted.congestion_off and pinned.isdisjoint(CONGESTED)
        again = retry and self._repeats.is_due("congestion")
        if off and (again or not self.applied.congestion_off):
            self.applied.congestion_off = True
            reason = Reason(*wanted.congestion, decision)
            self.submit("congestion", lambda writer: writer.apply(congestion_off_steps(), reason))
        request_queues(
            self.applied,
            wanted,
            decision,
            lambda name: retry and self._repeats.is_due(name),
            self.submit,
        )
        if wanted.collect_garbage:
            self.submit("gc", knob_jobs.garbage_job(Reason(*GARBAGE, decision)))

    def rate_drifted(self, seen: VolumeState, *, steady: bool = False) -> bool:
        """Whether the kernel's own controller has overwritten the rate of a closed gate.

        `steady`: also of a paced gate whose rate no queue sample adjusts.
        """
        gate, text = self.applied.gate, seen.knobs.get(RATE)
        kinds = (GateKind.PACED,) if steady else ()
        if gate is None or gate.kind not in (GateKind.CLOSED, GateKind.RESTING, *kinds):
            return False
        if text is None or not text.isdigit():
            return False
        ours = gate.rate_bytes_per_s
        return abs(sectors_to_bytes(int(text)) - ours) > max(4096, ours // 4)

    def clean(self, reason: Reason) -> None:
        """Load the cleaner after every knob is restored: a table brings its own values."""
        self.release(reason.text)
        self.worker.submit("clean", knob_jobs.clean_job(reason))

    def flush(self, reason: Reason) -> None:
        """Have dm-writecache write everything back; the message returns when that is done."""
        step = Step(FLUSH, "", always=True)
        self.worker.submit("flush", lambda writer: writer.apply((step,), reason))

    def end_cleaning(self, why: str) -> None:
        """Load the old table again, unless somebody has loaded another one meanwhile."""
        reason = Reason(CLEAN, why)
        self.worker.submit("cleaned", lambda writer: writer.release((TABLE,), reason))
        self.applied = Applied()

    # ---- reports -------------------------------------------------------------------------------
    def hold_outcomes(self) -> None:
        """Keep outcomes until `send_outcomes`: the decision behind them is recorded first."""
        self._held_outcomes = []

    def send_outcomes(self) -> None:
        """Report the outcomes that were kept."""
        kept, self._held_outcomes = self._held_outcomes or [], None
        for outcomes, latency_ns in kept:
            self._events.outcomes(outcomes, latency_ns)

    def mark_manual(self, knobs: list[str], seen: VolumeState) -> None:
        """Record knobs that somebody else has written."""
        name = self.writer.volume.name
        for knob in knobs:
            new, left = seen.knobs.get(knob), f"left alone until `ebbgate release {name}`"
            _LOG.warning(KNOB_CHANGED_BY_OTHERS, name, knob, new, left)
            if new is not None:
                self._events.outcomes([self._found(knob, new)], None)
        with self._counting:
            self.changes = totals.add_pairs(self.changes, [(knob, MANUAL) for knob in knobs])

    def release_gate(self, reason: Reason) -> None:
        """Restore the knobs of the gate that ebbgate still owns."""
        self.worker.submit("manual", lambda writer: writer.release(writer.plan.knobs[::-1], reason))

    def release_queues(self, why: str) -> None:
        """Restore the depths of the disks, except those that a person has set."""
        reason = Reason(RESTORE, why)
        knobs = [each for each in self.writer.plan.queues if each not in self.writer.pinned]
        self.submit("queues", lambda writer: writer.release(knobs, reason))

    def _found(self, knob: str, value: str) -> Outcome:
        """Return the record of a value that somebody else wrote."""
        action = Action(self.writer.volume.name, knob, None, value, *FOUND)
        return Outcome(action, OutcomeKind.MANUAL, self._now_ns(), read_back=value)

    def submit(self, name: str, job: Job) -> None:
        """Run a job on the worker's thread, in its turn."""
        self._repeats.begun(name)
        self.worker.submit(name, job)

    def settled(self) -> Future[None]:
        """Return a future that is done when every write that was begun so far is."""
        done: Future[None] = Future()

        def job(_writer: KnobWriter) -> list[Outcome]:
            if done.set_running_or_notify_cancel():
                done.set_result(None)
            return []

        self.worker.submit("settled", job)
        return done

    def _reported(self, name: str, outcomes: list[Outcome], since_ns: int | None) -> None:
        """Take outcomes, on the worker's thread or, for a quick gate, on the event loop's."""
        with self._counting:
            self.changes = totals.add_changes(self.changes, outcomes)
        for outcome in outcomes:
            self._log_failure(outcome)
            if outcome.kind is OutcomeKind.MANUAL and outcome.read_back is not None:
                _LOG.warning(
                    KNOB_LEFT_ALONE, outcome.action.volume, outcome.action.knob, outcome.error
                )
        if name in _RELEASES or (name == "gate" and self.applied.gate is None):
            failed = (each.action.knob for each in outcomes if each.kind is OutcomeKind.FAILED)
            self._unreleased.update(knob for knob in failed if knob in self.writer.owned)
        if name in ("gate", "pace"):
            self.unsure = any(outcome.kind is OutcomeKind.FAILED for outcome in outcomes)
            self._repeats.plan_gate(outcomes, self.writer.lacking)
            if name == "pace":
                self._paced.add(outcomes)
                return
            if left := self._paced.take(outcomes):
                self._send(left, None)
        else:
            self._repeats.plan(name, outcomes, self.writer.lacking, self.applied.scheduler)
        latency_ns = None
        if since_ns is not None and outcomes:
            latency_ns = outcomes[-1].at_ns - since_ns
        self._send(outcomes, latency_ns)

    def _send(self, outcomes: list[Outcome], latency_ns: int | None) -> None:
        kept = self._held_outcomes
        if kept is not None:
            kept.append((outcomes, latency_ns))
        else:
            self._events.outcomes(outcomes, latency_ns)

    def _log_failure(self, outcome: Outcome) -> None:
        """Log each failure once, not at each repetition."""
        action = outcome.action
        error = outcome.error if outcome.kind in BAD else ""
        if self._failing.get(action.knob, "") == error:
            return
        self._failing[action.knob] = error
        if error:
            _LOG.error(KNOB_NOT_WRITTEN, action.volume, action.knob, action.new, error)
        else:
            _LOG.warning(KNOB_WRITABLE_AGAIN, action.volume, action.knob)


def _adjusts(before: Gate | None, gate: Gate) -> bool:
    """Return whether only the pace of an open gate changes, a rest in a gap begins or ends, or only
    the queue of the disks changes.
    """
    if before is None:
        return False
    if before.kind is gate.kind is GateKind.PACED:
        return True
    if GateKind.RESTING in (before.kind, gate.kind):
        return before.kind in _IN_GAP and gate.kind in _IN_GAP
    return before != gate and replace(before, queue_depth=gate.queue_depth) == gate
