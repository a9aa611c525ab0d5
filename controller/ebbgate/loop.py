# SPDX-License-Identifier: GPL-2.0-only
"""The imperative shell of one volume: records in, frames built, policy asked, knobs driven.

I/O: through the gate thread and the outbox. The event loop calls it; it never blocks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ebbgate.actuators.gate_thread import GateThread, Later
from ebbgate.actuators.hand import Hand, Reason
from ebbgate.actuators.plan import (
    CUTOFF,
    GATE_KNOBS,
    TRIGGER_GC,
    congestion_off_steps,
    cutoff_steps,
    write,
)
from ebbgate.live import View, live_document
from ebbgate.model.decision import Decision, Gate, GateKind, Outcome, OutcomeKind
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge, EdgeKind, QueueSample, Record, Tick
from ebbgate.model.volume import Mode, Volume, VolumeState
from ebbgate.policy import evaluate
from ebbgate.policy.essence import Essence, essence
from ebbgate.policy.evaluate import Policy, PolicyState, ProbeWishes
from ebbgate.signals.frame import FrameState, absorb, build
from ebbgate.units import NS_PER_MS, NS_PER_S, sectors_to_bytes

_LOG = logging.getLogger(__name__)
_PACING = (GateKind.PACED, GateKind.PULSED)
_TELL_NS = NS_PER_S - 50 * NS_PER_MS
"""People and the history get a new document once a second, and at the tick after each decision."""


class Outbox(Protocol):
    """What the loop tells the outside; the daemon's is the store. All calls return at once."""

    def decision(self, decision: Decision) -> None:
        """A decision that differs from the last one."""

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


@dataclass(slots=True)
class VolumeLoop:
    """One volume. `send` gives the probe a command; `now_ns` is CLOCK_MONOTONIC.

    `unsure`: the gate's writes may not all have come through, so the next tick asks for them again.
    """

    volume: Volume
    hand: Hand
    policy: Policy
    outbox: Outbox
    send: Callable[[str], None]
    mode: Mode = Mode.ADVISE
    held: bool = False
    now_ns: Callable[[], int] = time.monotonic_ns
    frames: FrameState = field(default_factory=FrameState)
    state: PolicyState = field(default_factory=PolicyState)
    applied: Applied = field(default_factory=Applied)
    told: ProbeWishes | None = None
    edge_at_ns: int | None = None
    last_key: Essence = ()
    gate_since_ns: int = 0
    unsure: bool = False
    lost: dict[str, int] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    later: Later | None = None
    told_live_ns: int = 0
    thread: GateThread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = GateThread(self.hand, self._reported, self.later)

    # ---- what comes in -------------------------------------------------------------------------
    def on_record(self, record: Record) -> None:
        """A record of this volume from the probe."""
        if isinstance(record, QueueSample):
            self.state = evaluate.on_queue(self.state, record, self.policy)
            self._drive_gate()
            self._tell_probe()
        elif isinstance(record, Edge):
            self.state = evaluate.on_edge(self.state, record, self.policy)
            self.edge_at_ns = record.at_ns
            self._drive_gate()
            self._tell_probe()
            self.outbox.edge(record, self._late_ns(record))
            self._record_decision()
        elif isinstance(record, Tick):
            self.frames = absorb(self.frames, record)
            self.lost = dict(record.lost)

    def on_tick(self, seen: VolumeState, quiet: bool) -> None:
        """A look at sysfs; `quiet`: no knob was being written meanwhile."""
        frame = build(self.frames, seen, self.volume.name, self.now_ns())
        if quiet and self._acts():
            self._check_manual(seen)
        self.state = evaluate.on_frame(self.state, frame, self.policy)
        self._drive_gate(reassert=quiet and (self.unsure or _rate_drifted(self, seen)))
        self._drive_rest(self._record_decision())
        self._tell_probe()
        if frame.at_ns - self.told_live_ns >= _TELL_NS:
            self.told_live_ns = frame.at_ns
            self._tell_people(frame)

    def _tell_people(self, frame: Frame) -> None:
        self.outbox.sample(frame)
        decision = evaluate.decide(self.state, self.policy, self.now_ns())
        document = live_document(self._view(), frame, self.state, decision)
        self.outbox.live(self.volume.name, document)

    def probe_restarted(self) -> None:
        """The probe knows nothing of us any more."""
        self.told = None
        self.frames = FrameState(gap_counts=self.frames.gap_counts, run_bytes=self.frames.run_bytes)
        self._tell_probe()

    # ---- what people want ----------------------------------------------------------------------
    def set_mode(self, mode: Mode, why: str) -> None:
        """Change the mode; leaving `enforce` puts every knob back."""
        if mode is Mode.ENFORCE:
            # Before the next wish, which goes ahead of all jobs. At worst a write under way on the
            # thread is still refused; everything is asked for anew.
            self.hand.forget_manual()
            self.applied, self.unsure = Applied(), True
        elif self.mode is Mode.ENFORCE:
            self.release(why)
        self.mode = mode
        self.held = False
        self.last_key = ()

    def hold(self, on: bool) -> None:
        """Freeze every knob where it is, or go on."""
        self.held = on

    def release(self, why: str) -> None:
        """Put every knob of this volume back."""
        reason = Reason("restore", why)
        self.applied = Applied()
        self.thread.wish(Gate(GateKind.RELEASED), reason)
        self.thread.submit("restore", lambda hand: hand.release(list(hand.held)[::-1], reason))

    # ---- what goes out -------------------------------------------------------------------------
    def _acts(self) -> bool:
        return self.mode is Mode.ENFORCE and not self.held

    def _drive_gate(self, reassert: bool = False) -> None:
        if not self._acts():
            return
        gate = evaluate.gate(self.state, self.policy) or Gate(GateKind.RELEASED)
        pulse = gate.kind is GateKind.PULSED
        if gate == (self.applied.gate or Gate(GateKind.RELEASED)) and not pulse and not reassert:
            return
        # Adjusting the pace is no decision of its own: counted, not recorded one by one.
        adjusts = self.applied.gate is not None and self.applied.gate.kind in _PACING
        name = "pace" if adjusts and gate.kind in _PACING else "gate"
        if name == "gate":
            self.gate_since_ns = self.now_ns()
        self.applied.gate = None if gate.kind is GateKind.RELEASED else gate
        why = self.state.destage.why
        self.thread.wish(gate, Reason(evaluate.IDLE_DESTAGE, why), name)

    def _drive_rest(self, decision: Decision) -> None:
        if not self._acts():
            return
        cutoff = decision.sequential_cutoff_bytes
        if cutoff != self.applied.cutoff_bytes:
            self.applied.cutoff_bytes = cutoff
            reason = Reason(evaluate.STREAM_BYPASS, self.state.streams.why)
            if cutoff is None:
                self.thread.submit("cutoff", lambda hand: hand.release((CUTOFF,), reason))
            else:
                steps = cutoff_steps(cutoff)
                self.thread.submit("cutoff", lambda hand: hand.apply(steps, reason))
        if decision.congestion_bypass is False and not self.applied.congestion_off:
            self.applied.congestion_off = True
            why = Reason(evaluate.STREAM_BYPASS, "jitter of the cache device is not congestion")
            self.thread.submit("congestion", lambda hand: hand.apply(congestion_off_steps(), why))
        if decision.collect_garbage:
            why_gc = Reason(evaluate.IDLE_DESTAGE, "drained buckets still count as used")
            trigger = (write(TRIGGER_GC, 1, always=True),)
            self.thread.submit("gc", lambda hand: hand.apply(trigger, why_gc))

    def _tell_probe(self) -> None:
        wished = evaluate.wishes(self.state, self.policy)
        if not self._acts():
            wished = ProbeWishes(wished.wait_ns, 0)
        told, name = self.told, self.volume.name
        if told is None or told.wait_ns != wished.wait_ns:
            self.send(f"wait {name} {wished.wait_ns}")
        if told is None or told.pace != wished.pace:
            self.send(f"pace {name} {' '.join(str(word) for word in wished.pace)}")
        self.told = wished

    def _late_ns(self, edge: Edge) -> int:
        """A busy edge is due when the request arrives, an idle one when the wait is over."""
        due_ns = edge.at_ns
        if edge.kind is EdgeKind.IDLE and self.told is not None:
            due_ns += self.told.wait_ns - edge.length_ns
        return self.now_ns() - due_ns

    def _view(self) -> View:
        return View(
            volume=self.volume,
            mode=self.mode,
            held=self.held,
            gate=self.applied.gate,
            gate_since_ns=self.gate_since_ns,
            originals={knob: held.original for knob, held in list(self.hand.held.items())},
            manual=frozenset(self.hand.manual),
            lost=self.lost,
        )

    def _record_decision(self) -> Decision:
        decision = evaluate.decide(self.state, self.policy, self.now_ns(), explained=False)
        key = essence(self.state, decision)
        if key != self.last_key and self.mode is not Mode.OBSERVE:
            self.last_key = key
            self.told_live_ns = 0
            decision = evaluate.decide(self.state, self.policy, self.now_ns())
            self.outbox.decision(decision)
            self._log(decision)
        return decision

    def _log(self, decision: Decision) -> None:
        """One line for each strategy that takes another stand; an unchanged one is not repeated."""
        suffix = "" if self._acts() else f" [{self.mode}: not applied]"
        for proposal in decision.proposals:
            stand = proposal.reason.split(":", 1)[0] + suffix
            if self.said.get(proposal.strategy) != stand:
                self.said[proposal.strategy] = stand
                _LOG.info(
                    "%s: %s: %s%s", self.volume.name, proposal.strategy, proposal.reason, suffix
                )

    def _check_manual(self, seen: VolumeState) -> None:
        taken = self.hand.check_manual(seen.knobs)
        for knob in taken:
            _LOG.warning(
                "%s: %s was changed by somebody else to %s: left alone until `ebbgate enforce %s`",
                self.volume.name,
                knob,
                seen.knobs.get(knob),
                self.volume.name,
            )
        if any(knob in GATE_KNOBS for knob in taken):
            reason = Reason(evaluate.IDLE_DESTAGE, "a knob of the gate is manual")
            self.thread.submit("manual", lambda hand: hand.release(GATE_KNOBS[::-1], reason))

    def _reported(self, name: str, outcomes: list[Outcome], wished_ns: int) -> None:
        """On the gate thread."""
        latency = None
        if name == "gate" and outcomes:
            edge_at_ns, self.edge_at_ns = self.edge_at_ns, None
            latency = None if edge_at_ns is None else outcomes[-1].at_ns - edge_at_ns
        for outcome in outcomes:
            if outcome.kind in (OutcomeKind.FAILED, OutcomeKind.REFUSED):
                action = outcome.action
                _LOG.error("%s: %s = %s: %s", action.volume, action.knob, action.new, outcome.error)
        if name in ("gate", "pace"):
            self.unsure = any(outcome.kind is OutcomeKind.FAILED for outcome in outcomes)
        if name != "pace":
            self.outbox.outcomes(outcomes, latency)


def _rate_drifted(loop: VolumeLoop, seen: VolumeState) -> bool:
    """Did the kernel's own controller overwrite the rate of a gate that should be (nearly) shut?"""
    gate, text = loop.applied.gate, seen.knobs.get("writeback_rate")
    if gate is None or gate.kind is not GateKind.CLOSED or text is None or not text.isdigit():
        return False
    return abs(sectors_to_bytes(int(text)) - gate.rate_bytes_per_s) > max(
        4096, gate.rate_bytes_per_s // 4
    )
