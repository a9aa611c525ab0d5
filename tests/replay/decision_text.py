# SPDX-License-Identifier: GPL-2.0-only
"""Formats a replay as text for review and diffs. Pure.

A line for each decision with the reason and the conditions of every strategy (`+` holds, `-` does
not), and between decisions what the pace did and when the learned wait changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ebbgate.model.decision import Decision, Gate, GateKind
from ebbgate.model.records import (
    Bye,
    Hello,
    ProbeWarning,
    QueueSample,
    Tracked,
    TrackRefused,
    Untracked,
)
from ebbgate.policy.defaults import default_policy
from ebbgate.probes.recording import (
    Damaged,
    Recorded,
    RecordingHeader,
    SysfsSnapshot,
    read_recording,
    recorded_at_ns,
    recorded_kind,
)
from ebbgate.replay.recording import Step, steps
from ebbgate.units import NS_PER_S, format_bytes, format_ns, format_rate

_INDENT = " " * 12


@dataclass(slots=True)
class _Paced:
    """What pace and rests did since the gate opened; none of it is a decision."""

    since_ns: int
    rates: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    kind: GateKind | None = None
    rests: int = 0
    depth_max_ios: int = 0

    def take(self, sample: QueueSample, gate: Gate | None) -> None:
        in_flight = sample.in_flight_ios + sample.cache_reads_ios
        self.depth_max_ios = max(self.depth_max_ios, in_flight)
        if gate is not None:
            self.rests += gate.kind is GateKind.RESTING is not self.kind
            self.kind = gate.kind
            self.rates.append(gate.rate_bytes_per_s)
            self.depths.append(gate.depth_ios)

    def text(self, now_ns: int) -> str:
        if max(self.depths):
            return (
                f"paced for {format_ns(now_ns - self.since_ns)}: {min(self.depths)} to"
                f" {max(self.depths)} blocks at once, at most {self.depth_max_ios} seen in flight"
            )
        if not max(self.rates) or self.rests:
            return (
                f"open for {format_ns(now_ns - self.since_ns)}: {self.rests} rests,"
                f" at most {self.depth_max_ios} in flight"
            )
        low, high = format_rate(min(self.rates)), format_rate(max(self.rates))
        return (
            f"paced for {format_ns(now_ns - self.since_ns)}: {low} to {high},"
            f" at most {self.depth_max_ios} in flight"
        )


@dataclass(slots=True)
class _Volume:
    """The state of the text of one volume."""

    wait_ns: int = 0
    paced: _Paced | None = None

    def texts(self, step: Step) -> Iterator[str]:
        """Yield the lines for one event."""
        state = step.after.state
        if isinstance(step.event, QueueSample) and self.paced is not None and step.outcome:
            self.paced.take(step.event, step.outcome.gate)
        if isinstance(step.event, SysfsSnapshot) and state.destage.collect:
            yield "asks for a garbage collection"
        if step.decision is not None:
            now_ns = step.decision.at_ns
            if self.paced is not None and self.paced.rates:
                yield self.paced.text(now_ns)
            self.paced = _Paced(now_ns) if state.destage.pacing else None
            yield f"{state.destage.phase}: {_headline(step.decision)}"
            yield from _explanation(step.decision)
        wait = state.destage.wait
        if wait.wait_ns != self.wait_ns:
            self.wait_ns = wait.wait_ns
            how = f"learned from {wait.gaps:.0f} gaps" if wait.learned else "not learned"
            yield f"idle edge after {format_ns(wait.wait_ns)} ({how})"


def replay_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the replay of a recording, line by line; times in seconds since its first record."""
    events = list(read_recording(lines))
    policy = default_policy(recorded_kind(events))
    start_ns = next((at_ns for event in events if (at_ns := recorded_at_ns(event)) is not None), 0)
    now_ns, volumes = start_ns, dict[str, _Volume]()
    replayed = steps(events, policy)
    for event in events:
        now_ns = recorded_at_ns(event) or now_ns
        texts: Iterable[str] = (_note(event),) if _note(event) else ()
        if getattr(event, "volume", ""):
            step = next(replayed)
            text_of_volume = volumes.setdefault(step.volume, _Volume())
            texts = (*texts, *text_of_volume.texts(step))
        for text in texts:
            at_s = (now_ns - start_ns) / NS_PER_S
            yield text if text.startswith(_INDENT) else f"{at_s:8.3f} s  {text}"


def _note(event: Recorded) -> str:
    """Return the note on an event, empty for most."""
    match event:
        case RecordingHeader():
            return f"origin: {event.text}"
        case Damaged():
            return f"line {event.line} is damaged: {event.why}"
        case Hello():
            missing = [f"{name} {how}" for name, how in event.signals.items() if how != "ok"]
            return f"probe {event.probe}: {'; '.join(missing) or 'all signals'}"
        case Tracked():
            return f"{event.volume} is followed"
        case Untracked() | TrackRefused():
            return f"{event.volume} is left: {event.why}"
        case ProbeWarning():
            return f"probe: {event.what}: {event.text} ({event.count} so far)"
        case Bye():
            return f"probe ends: {event.why}"
        case _:
            return ""


def _headline(decision: Decision) -> str:
    cutoff = decision.sequential_cutoff_bytes
    text = f"gate {_gate(decision.gate)}"
    if cutoff is not None:
        text += f", sequential cutoff {format_bytes(cutoff)}"
    if decision.split_requests:
        text += ", requests shorter than a block"
    if decision.congestion_bypass is False:
        text += ", no bypass on congestion"
    return text


def _gate(gate: Gate | None) -> str:
    if gate is None:
        return "left to the kernel"
    if gate.depth_ios:
        return f"paced from {gate.depth_ios} blocks at once"
    if gate.kind is GateKind.CLOSED and gate.rate_bytes_per_s:
        return f"closed ({format_rate(gate.rate_bytes_per_s)} leaks)"
    if gate.kind is GateKind.PACED:
        return f"paced from {format_rate(gate.rate_bytes_per_s)}"
    return str(gate.kind)


def _explanation(decision: Decision) -> Iterator[str]:
    for proposal in decision.proposals:
        yield f"{_INDENT}{proposal.strategy}: {proposal.reason}"
        for condition in proposal.conditions:
            mark = "+" if condition.holds else "-"
            measured = "unknown" if condition.measured is None else condition.measured
            yield (
                f"{_INDENT}  {mark} {condition.signal}: {measured}"
                f" {condition.comparison} {condition.threshold}"
            )
