# SPDX-License-Identifier: GPL-2.0-only
"""The document that describes a volume as it is now, for the CLI and later the web. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ebbgate.model.decision import Decision, Gate, GateKind, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.override import ActiveOverride
from ebbgate.model.volume import Kind, Mode, Volume
from ebbgate.policy.arbiter import NO_REGRET
from ebbgate.policy.cleaning import Cleaning, eta_s
from ebbgate.policy.defaults import IDLE_DESTAGE
from ebbgate.policy.drain import DRAIN
from ebbgate.policy.evaluate import PolicyState
from ebbgate.policy.overrides import OVERRIDE
from ebbgate.policy.strategies.destage_state import DestageParams, Phase
from ebbgate.policy.strategies.idle_destage import start_bytes
from ebbgate.signals.kernel_sleep import DELAY
from ebbgate.signals.totals import Totals
from ebbgate.signals.totals import document as totals_document
from ebbgate.units import NS_PER_S, format_bytes, format_ns, format_rate


@dataclass(frozen=True, slots=True)
class StatusInputs:
    """What the document is made of. `originals`: knobs that ebbgate holds, with their old values;
    `sleep_left_s`: how long the kernel's writeback thread may sleep on at most (None: it does not);
    `destage`: parameters of idle_destage, None where it is off.
    """

    volume: Volume
    policy: str
    overlay: str
    mode: Mode
    held: bool
    gate: Gate | None
    gate_since_ns: int
    originals: Mapping[str, str]
    manual: frozenset[str]
    lost: Mapping[str, int]
    sleep_left_s: float | None
    cleaning: Cleaning | None = None
    standing: tuple[ActiveOverride, ...] = ()
    destage: DestageParams | None = None
    totals: Totals = field(default_factory=Totals)


def status_document(
    view: StatusInputs, frame: Frame, state: PolicyState, decision: Decision
) -> dict[str, Any]:
    """JSON-able; times in ns of CLOCK_MONOTONIC, None where unknown."""
    return {
        "volume": view.volume.name,
        "title": view.volume.title,
        "kind": str(view.volume.kind),
        "mode": str(view.mode),
        "policy": view.policy,
        "overlay": view.overlay or None,
        "held": view.held,
        "at_ns": frame.at_ns,
        "now": sentence(view, frame, state, decision),
        "kernel_sleep": _sleep(view),
        "state": frame.state,
        "cache_mode": frame.cache_mode,
        "regime": str(frame.regime),
        "gate": _gate(view, state, decision),
        "dirty_bytes": frame.dirty_bytes,
        "dirty_ratio": frame.dirty_ratio,
        "dirty_floor_bytes": _floor_bytes(view, frame),
        "cache_bytes": frame.cache_bytes,
        "in_use_ratio": frame.in_use_ratio,
        "room_bytes": frame.dirty_room_bytes,
        "time_to_full_s": frame.time_to_full_s,
        "time_to_clean_s": frame.time_to_clean_s,
        "idle": frame.idle,
        "wait_ns": state.destage.wait.wait_ns,
        "wait_learned": state.destage.wait.learned,
        "destage_bytes_per_s": frame.destage_bytes_per_s,
        "backing_depth_ios": frame.backing_depth_ios,
        "foreground": None
        if frame.foreground is None
        else {
            str(direction): {"iops": rates.iops, "bytes_per_s": rates.bytes_per_s}
            for direction, rates in frame.foreground.items()
        },
        "paths": [
            {
                "op": str(direction),
                "path": path,
                "ios": latency.ios,
                "bytes": latency.bytes,
                "p50_ns": latency.p50_ns,
                "p99_ns": latency.p99_ns,
            }
            for (direction, path), latency in frame.paths.items()
        ],
        "bypass_bytes": dict(frame.bypass_bytes),
        "gap_counts": list(frame.gap_counts),
        "run_bytes": {str(d): list(runs) for d, runs in frame.run_bytes.items()},
        "knobs": _knobs(view, frame),
        "proposals": [_proposal(p, decision) for p in decision.proposals],
        "cleaning": _cleaning(view, frame),
        "wishes": [_wish(each, frame) for each in view.standing],
        "missing": dict(frame.missing),
        "lost": dict(view.lost),
        "totals": totals_document(view.totals),
    }


def _floor_bytes(view: StatusInputs, frame: Frame) -> int | None:
    """With less dirty data no gap is used; None without idle_destage, or for an unknown cache."""
    if view.destage is None or frame.cache_bytes is None:
        return None
    return start_bytes(frame, view.destage)


def sentence(view: StatusInputs, frame: Frame, state: PolicyState, decision: Decision) -> str:
    """One sentence: what ebbgate does with this volume now, and why."""
    if view.cleaning is not None:
        return _cleaning_sentence(view.cleaning, frame)
    if view.held:
        return "held: every knob stays where it is"
    own = [p for p in decision.proposals if p.strategy not in (OVERRIDE, DRAIN, NO_REGRET)]
    reasons = [p.unsupported for p in own if p.unsupported]
    if reasons and len(reasons) == len(own):
        return f"nothing to tune: {reasons[0]}"
    ours = next((p for p in decision.proposals if p.strategy == decision.gate_strategy), None)
    if ours is not None and ours.strategy in (OVERRIDE, DRAIN):
        return f"{ours.strategy}: {ours.reason}"
    if view.manual and own:
        return f"left alone: {', '.join(sorted(view.manual))} changed by somebody else"
    if view.mode is Mode.OBSERVE or not own:
        return "only measures" if own else f"only measures, as its policy {view.policy} asks"
    if ours is not None and ours.strategy != IDLE_DESTAGE:
        text = f"{ours.strategy}: {ours.reason}"
    else:
        text = _machine_sentence(view, frame, state)
    return text if view.mode is Mode.ENFORCE else f"would do, in enforce: {text}"


def _machine_sentence(view: StatusInputs, frame: Frame, state: PolicyState) -> str:
    machine = state.destage
    dirty = format_bytes(frame.dirty_bytes) if frame.dirty_bytes is not None else "unknown"
    text = {
        Phase.UNKNOWN: f"the kernel decides: {machine.why}",
        Phase.NORMAL: f"nothing to drain ({dirty} dirty)",
        Phase.WAIT: f"holds {dirty} dirty back until {format_ns(machine.wait.wait_ns)} of quiet",
        Phase.DESTAGE: f"drains {dirty} at {_drain(frame)}: {machine.why}",
        Phase.PRESSURE: f"drains {dirty} beside the load at {_drain(frame)}: {machine.why}",
    }[machine.phase]
    if machine.phase is Phase.PRESSURE and view.volume.kind is Kind.DM_CACHE:
        text = (
            f"lets {dirty} out once the slow device had no I/O for a second, for which the kernel"
            f" waits: {machine.why}"
        )
    return text


def _wish(standing: ActiveOverride, frame: Frame) -> dict[str, Any]:
    wish = standing.wish
    return {
        "kind": str(wish.kind),
        "knob": wish.knob or None,
        "value": wish.value or None,
        "who": wish.who,
        "since_unix_ns": wish.at_unix_ns,
        "until_unix_ns": wish.until_unix_ns,
        "left_ns": standing.left_ns(frame.at_ns),
    }


def _cleaning_sentence(cleaning: Cleaning, frame: Frame) -> str:
    left = "unknown" if frame.dirty_bytes is None else format_bytes(frame.dirty_bytes)
    eta = eta_s(cleaning, frame.dirty_bytes, frame.at_ns)
    ready = "no pace yet" if eta is None else f"about {format_ns(eta * NS_PER_S)} to go"
    until = format_ns(max(0, cleaning.until_ns - frame.at_ns))
    return f"cleans, as {cleaning.who} asked: {left} dirty, {ready}, given up in {until}"


def _cleaning(view: StatusInputs, frame: Frame) -> dict[str, Any] | None:
    cleaning = view.cleaning
    if cleaning is None:
        return None
    return {
        "who": cleaning.who,
        "since_ns": cleaning.since_ns,
        "until_ns": cleaning.until_ns,
        "began_with_bytes": cleaning.dirty_bytes,
        "eta_s": eta_s(cleaning, frame.dirty_bytes, frame.at_ns),
    }


def _sleep(view: StatusInputs) -> dict[str, Any] | None:
    """The sleep that no knob ends, and the sentence that says so; None once it is over."""
    if view.sleep_left_s is None or DELAY not in view.originals:
        return None
    text = (
        f"the kernel's writeback thread may sleep for up to"
        f" {format_ns(view.sleep_left_s * NS_PER_S)} more and drains nothing meanwhile:"
        f" {DELAY} was {view.originals[DELAY]} s, and no knob ends a sleep that has begun"
    )
    return {"left_s": view.sleep_left_s, "text": text}


def _drain(frame: Frame) -> str:
    return (
        "unknown" if frame.destage_bytes_per_s is None else format_rate(frame.destage_bytes_per_s)
    )


def _gate(view: StatusInputs, state: PolicyState, decision: Decision) -> dict[str, Any]:
    gate = view.gate or Gate(GateKind.RELEASED)
    winner = next((p for p in decision.proposals if p.strategy == decision.gate_strategy), None)
    why = state.destage.why
    if winner is not None and winner.strategy != IDLE_DESTAGE:
        why = winner.reason
    return {
        "kind": str(gate.kind),
        "rate_bytes_per_s": gate.rate_bytes_per_s,
        "depth_ios": gate.depth_ios,
        "state": str(state.destage.phase),
        "since_ns": view.gate_since_ns,
        "reason": why,
    }


def _knobs(view: StatusInputs, frame: Frame) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    for knob, value in frame.knobs.items():
        original = view.originals.get(knob)
        owner = "manual" if knob in view.manual else "kernel" if original is None else "ebbgate"
        found[knob] = {"value": value, "original": original, "owner": owner}
    return found


def _proposal(proposal: Proposal, decision: Decision) -> dict[str, Any]:
    wins = []
    if proposal.gate is not None and decision.gate_strategy == proposal.strategy:
        wins.append("destage")
    if decision.cutoff_strategy == proposal.strategy:
        wins.append("max_sectors_kb" if decision.split_requests else "sequential_cutoff")
    wins += [knob for knob, _ in proposal.knobs if knob not in wins]
    return {
        "strategy": proposal.strategy,
        "reason": proposal.reason,
        "unsupported": proposal.unsupported,
        "wins": wins,
        "conditions": [
            {
                "signal": c.signal,
                "measured": c.measured,
                "comparison": c.comparison,
                "threshold": c.threshold,
                "holds": c.holds,
            }
            for c in proposal.conditions
        ],
    }
