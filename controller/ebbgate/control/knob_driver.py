# SPDX-License-Identifier: GPL-2.0-only
"""From decisions to knob jobs of one volume: what was asked for last, and what has to be asked for
again.

I/O: through the gate thread and the outbox. The event loop calls it; it never blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

from ebbgate.actuators.bcache_steps import (
    Step,
    StepKind,
    congestion_off_steps,
    write,
)
from ebbgate.actuators.gate_plan import cleaner_step
from ebbgate.actuators.gate_worker import GateWorker, Job, Later
from ebbgate.actuators.knob_writer import KnobWriter, Reason
from ebbgate.control.knob_jobs import cutoff_job, reason_of_congestion, reason_of_streams, split_job
from ebbgate.knobs.catalog import CONGESTED, CUTOFF, FLUSH, MAX_SECTORS, RATE, TABLE, TRIGGER_GC
from ebbgate.model.decision import Action, Decision, Gate, GateKind, Outcome, OutcomeKind
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge
from ebbgate.model.volume import Volume, VolumeState
from ebbgate.policy.defaults import IDLE_DESTAGE
from ebbgate.signals import totals
from ebbgate.signals.totals import MANUAL, Changes
from ebbgate.units import NS_PER_S, sectors_to_bytes

_LOG = logging.getLogger(__name__)
_PACING = (GateKind.PACED, GateKind.PULSED)
_BAD = (OutcomeKind.FAILED, OutcomeKind.REFUSED)
_AGAIN = (OutcomeKind.FAILED, OutcomeKind.TOO_SOON)
_RELEASE_AGAIN_NS = 10 * NS_PER_S
_RELEASED = Gate(GateKind.RELEASED)


class EventSink(Protocol):
    """What is told to the outside; the daemon's is the store. All calls return at once."""

    def decision(self, decision: Decision, number: int) -> None:
        """A decision that differs from the last one; actions name it by its number."""

    def outcomes(self, outcomes: list[Outcome], latency_ns: int | None) -> None:
        """Knob writes that were carried out; `latency_ns` from the edge to the last write."""

    def live(self, volume: str, document: dict[str, Any]) -> None:
        """The volume as it is now."""

    def sample(self, frame: Frame) -> None:
        """A frame for the history."""

    def edge(self, edge: Edge, late_ns: int) -> None:
        """An edge, and how long after it was due it was handled."""


@dataclass(slots=True)
class Applied:
    """What was last asked of the gate thread."""

    gate: Gate | None = None
    cutoff_bytes: int | None = None
    congestion_off: bool = False
    split: bool = False


class KnobDriver:
    """One volume's knobs as they are wished. `decision`: the number of the decision behind a call.

    `unsure`: the gate's writes may not all have come through, so they are asked for again.
    `changes`: how often each knob was written so far, by whom.
    """

    def __init__(
        self, writer: KnobWriter, outbox: EventSink, later: Later | None, now_ns: Callable[[], int]
    ) -> None:
        self.writer = writer
        self.worker = GateWorker(writer, self._reported, later)
        self.applied = Applied()
        self.gate_since_ns = 0
        self.unsure = False
        self.changes: Changes = {}
        self._counting = Lock()
        self._outbox = outbox
        self._now_ns = now_ns
        self._again: set[str] = set()
        self._release_due_ns = 0
        self._failing: dict[str, str] = {}
        self._kept: list[tuple[list[Outcome], int | None]] | None = None

    def take_back(self, knob: str | None = None) -> None:
        """A person gave the knob (without a name: every one) back to us: all is asked for anew.

        Before the next wish, which goes ahead of all jobs. At worst a write under way on the thread
        is still refused.
        """
        self.writer.clear_manual(knob)
        self.unsure = True
        if knob is None:
            self.applied = Applied()
        else:
            self._forget(knob)

    def unpin(self, knob: str, reason: Reason, *, keep: bool = False) -> None:
        """A person's wish for a knob begins or ends: strategies ask anew for what is theirs then.

        `keep`: the knob's value stays as it is.
        """
        self._forget(knob)
        if knob in self.writer.plan.knobs:
            # The newest wish wins: a gate that is driven again takes the knobs over as they are.
            self.worker.set_gate(_RELEASED, reason)
        elif not keep:
            self.submit("unpin", lambda writer: writer.release((knob,), reason))

    def _forget(self, knob: str) -> None:
        """Of what was asked for last, the part that this knob belongs to."""
        if knob in self.writer.plan.knobs:
            self.applied.gate = None
        elif knob == CUTOFF:
            self.applied.cutoff_bytes = None
        elif knob == MAX_SECTORS:
            self.applied.split = False
        elif knob in CONGESTED:
            self.applied.congestion_off = False

    def release(self, why: str) -> None:
        """Put every knob of this volume back, but for those that somebody else has written."""
        reason = Reason("restore", why)
        self.applied = Applied()

        def job(writer: KnobWriter) -> list[Outcome]:
            return writer.release(list(writer.owned)[::-1], reason)

        self.worker.set_gate(_RELEASED, reason)
        self.worker.submit("restore", job)

    def on_table_reload(self, seen: VolumeState) -> None:
        """The kernel's own values are back behind our writes: all is asked for again."""
        self.writer.on_table_reload(seen.knobs)
        self.worker.submit("table", lambda writer: writer.refresh_table_threshold())
        self.unsure = True
        if self.applied.split:
            self._again.add("split")

    def release_again(self) -> None:
        """If a release failed, once more: no knob is left behind as long as we are here. Not at
        every look: the kernel may log each refusal.
        """
        if "restore" in self._again and self._now_ns() >= self._release_due_ns:
            self._again.discard("restore")
            self._release_due_ns = self._now_ns() + _RELEASE_AGAIN_NS
            self.release("it failed before")

    def gate(
        self,
        wished: Gate | None,
        reason: Reason,
        *,
        since_ns: int | None = None,
        reassert: bool = False,
    ) -> None:
        """Bring the gate about, if it is another than the last one; a pulse is always another.

        `since_ns`: the edge behind it.
        """
        gate = wished or _RELEASED
        pulse = gate.kind is GateKind.PULSED
        if gate == (self.applied.gate or _RELEASED) and not pulse and not reassert:
            return
        # Adjusting the pace is no decision of its own: counted, not recorded one by one.
        adjusts = self.applied.gate is not None and self.applied.gate.kind in _PACING
        name = "pace" if adjusts and gate.kind in _PACING else "gate"
        if name == "gate":
            self.gate_since_ns = self._now_ns()
        self.applied.gate = None if gate.kind is GateKind.RELEASED else gate
        self.worker.set_gate(gate, reason, name, since_ns)

    def rest(self, decision: Decision, number: int, *, retry: bool) -> None:
        """All that is not the gate; `retry`: what failed is asked for again."""
        again, pinned = self._again if retry else set(), self.writer.pinned
        cutoff, streams = decision.sequential_cutoff_bytes, reason_of_streams(decision, number)
        if CUTOFF not in pinned and (cutoff != self.applied.cutoff_bytes or "cutoff" in again):
            self.applied.cutoff_bytes = cutoff
            self.submit("cutoff", cutoff_job(cutoff, streams))
        split = decision.split_requests != self.applied.split or "split" in again
        if split and MAX_SECTORS not in pinned:
            self.applied.split = decision.split_requests
            self.submit("split", split_job(decision.split_requests, streams))
        off = decision.congestion_bypass is False and pinned.isdisjoint(CONGESTED)
        if (off and not self.applied.congestion_off) or "congestion" in again:
            self.applied.congestion_off = True
            jitter = reason_of_congestion(decision, number)
            self.submit("congestion", lambda writer: writer.apply(congestion_off_steps(), jitter))
        if decision.collect_garbage:
            full = Reason(IDLE_DESTAGE, "drained buckets still count as used", number)
            trigger = (write(TRIGGER_GC, 1, always=True),)
            self.submit("gc", lambda writer: writer.apply(trigger, full))

    def rate_drifted(self, seen: VolumeState, *, steady: bool = False) -> bool:
        """Did the kernel's own controller overwrite the rate of a gate that should be shut?

        `steady`: also of one that is paced at a rate which no sample of the queue adjusts.
        """
        gate, text = self.applied.gate, seen.knobs.get(RATE)
        kinds = _PACING if steady else ()
        if gate is None or gate.kind not in (GateKind.CLOSED, *kinds):
            return False
        if text is None or not text.isdigit():
            return False
        ours = gate.rate_bytes_per_s
        return abs(sectors_to_bytes(int(text)) - ours) > max(4096, ours // 4)

    def clean(self, volume: Volume, reason: Reason) -> None:
        """Load the cleaner, once every knob is as it was: a table brings its own values."""
        self.release(reason.text)
        self.worker.submit("clean", lambda writer: writer.apply((cleaner_step(volume),), reason))

    def flush(self, reason: Reason) -> None:
        """Have dm-writecache write all back: a message that returns when it is done."""
        step = Step(StepKind.WRITE, FLUSH, "", always=True)
        self.worker.submit("flush", lambda writer: writer.apply((step,), reason))

    def end_cleaning(self, why: str) -> None:
        """The old table again, unless somebody has loaded another one meanwhile."""
        reason = Reason("clean", why)
        self.worker.submit("cleaned", lambda writer: writer.release((TABLE,), reason))
        self.applied = Applied()

    # ---- what is told --------------------------------------------------------------------------
    def keep_outcomes(self) -> None:
        """Until `tell_outcomes`: the decision behind them is put into words only afterwards."""
        self._kept = []

    def tell_outcomes(self) -> None:
        """What was kept, after the decision behind it."""
        kept, self._kept = self._kept or [], None
        for outcomes, latency_ns in kept:
            self._outbox.outcomes(outcomes, latency_ns)

    def leave_alone(self, knobs: list[str], seen: VolumeState) -> None:
        """Somebody else wrote these: said, counted, and those of the gate, which make sense only
        together, are put back.
        """
        name = self.writer.volume.name
        for knob in knobs:
            new, left = seen.knobs.get(knob), f"left alone until `ebbgate release {name}`"
            _LOG.warning("%s: %s was changed by somebody else to %s: %s", name, knob, new, left)
            if new is not None:
                self._outbox.outcomes([self._found(knob, new)], None)
        with self._counting:
            self.changes = totals.add_pairs(self.changes, [(knob, MANUAL) for knob in knobs])
        if any(knob in self.writer.plan.knobs for knob in knobs):
            reason = Reason(IDLE_DESTAGE, "a knob of the gate is manual")
            self.worker.submit(
                "manual", lambda writer: writer.release(writer.plan.knobs[::-1], reason)
            )

    def _found(self, knob: str, value: str) -> Outcome:
        """A value of somebody else, for the history."""
        action = Action(self.writer.volume.name, knob, None, value, MANUAL, "found at a look")
        return Outcome(action, OutcomeKind.MANUAL, self._now_ns(), read_back=value)

    def submit(self, name: str, job: Job) -> None:
        """Have a job done on the knobs' thread, in its turn."""
        self._again.discard(name)
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
        """On the gate thread, or on the loop's where a gate was a quick one."""
        with self._counting:
            self.changes = totals.add_changes(self.changes, outcomes)
        for outcome in outcomes:
            self._say_failure(outcome)
            if outcome.kind is OutcomeKind.MANUAL and outcome.read_back is not None:
                _LOG.warning(
                    "%s: %s: %s", outcome.action.volume, outcome.action.knob, outcome.error
                )
        if name in ("gate", "pace"):
            self.unsure = any(outcome.kind is OutcomeKind.FAILED for outcome in outcomes)
            if name == "pace":
                return
        elif any(outcome.kind in _AGAIN for outcome in outcomes):
            self._again.add(name)
        latency_ns = None
        if since_ns is not None and outcomes:
            latency_ns = outcomes[-1].at_ns - since_ns
        kept = self._kept
        if kept is not None:
            kept.append((outcomes, latency_ns))
        else:
            self._outbox.outcomes(outcomes, latency_ns)

    def _say_failure(self, outcome: Outcome) -> None:
        """Once for each knob and cause: what fails is tried again and again."""
        action = outcome.action
        error = outcome.error if outcome.kind in _BAD else ""
        if self._failing.get(action.knob, "") == error:
            return
        self._failing[action.knob] = error
        if error:
            _LOG.error("%s: %s = %s: %s", action.volume, action.knob, action.new, error)
        else:
            _LOG.warning("%s: %s can be written again", action.volume, action.knob)
