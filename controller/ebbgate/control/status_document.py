# SPDX-License-Identifier: GPL-2.0-only
"""Builds the status of a volume. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ebbgate.control.promotion_status import promotion_status
from ebbgate.knobs.catalog import CUTOFF, DELAY, MAX_SECTORS
from ebbgate.model.attribution import AttributionStatus
from ebbgate.model.decision import PROMOTION, Decision, Gate, GateKind, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.heat import HeatStatus
from ebbgate.model.override import ActiveOverride
from ebbgate.model.pin import PinStatus
from ebbgate.model.promotion import MoverStatus, PromotionStatus
from ebbgate.model.status import (
    CleaningStatus,
    GateStatus,
    KernelSleepStatus,
    KnobStatus,
    LayoutStatus,
    MissRatioStatus,
    OverrideStatus,
    PathStatus,
    ProposalStatus,
    VolumeStatus,
)
from ebbgate.model.volume import Kind, Mode, Volume
from ebbgate.model.warm import JobStatus
from ebbgate.policy.cleaning import Cleaning, eta_s
from ebbgate.policy.engine import (
    DRAIN,
    IDLE_DESTAGE,
    LIMITS,
    OVERRIDE,
    PROMOTE_HOT,
    ROLLBACK_GUARD,
    WARM,
    DestageParams,
    Outcome,
    Phase,
    State,
    start_bytes,
)
from ebbgate.policy.other_knobs import GATE_MANUAL
from ebbgate.signals.totals import Totals, volume_totals
from ebbgate.units import NS_PER_S, format_bytes, format_ns, format_rate

OBSERVING = "Observing: changes nothing"
_ABOVE = (OVERRIDE, DRAIN, ROLLBACK_GUARD, WARM, LIMITS)
"""These proposals are of no rule or strategy."""
_OFTEN_UNKNOWN = frozenset({"disturbance", "heat"})
"""Unknown until a gap has written something back, or for the first 10 s: people need no warning."""


@dataclass(frozen=True, slots=True)
class StatusInputs:
    """What a status is built from, besides the frame and the decision.

    `gate_is_refused`: a write of the gate was, so that it is not in force. `gate_is_ours`: nobody
    else has set a knob of the gate, which would leave it to the kernel. `originals`: the
    original values of the knobs that ebbgate has changed. `sleep_left_s`: how long the kernel's
    writeback thread may still sleep (None: it does not). `destage`: the parameters of idle_destage,
    None where it is off.
    """

    volume: Volume
    policy: str
    overlay: str
    mode: Mode
    frozen: bool
    gate: Gate | None
    gate_is_refused: bool
    gate_is_ours: bool
    gate_since_ns: int
    originals: Mapping[str, str]
    manual: frozenset[str]
    lost: Mapping[str, int]
    sleep_left_s: float | None
    cleaning: Cleaning | None = None
    overrides: tuple[ActiveOverride, ...] = ()
    destage: DestageParams | None = None
    miss_ratio: MissRatioStatus | None = None
    totals: Totals = field(default_factory=Totals)
    jobs: tuple[JobStatus, ...] = ()
    layout: LayoutStatus | None = None
    pins: tuple[PinStatus, ...] = ()
    promotes: bool = False
    heat: HeatStatus = field(default_factory=HeatStatus)
    attribution: AttributionStatus = field(default_factory=AttributionStatus)
    mover: MoverStatus = field(default_factory=MoverStatus)


def volume_status(view: StatusInputs, frame: Frame, outcome: Outcome) -> VolumeStatus:
    """Return the volume's status."""
    state, decision = outcome.state, outcome.explained()
    return VolumeStatus(
        volume=view.volume.name,
        title=view.volume.title,
        kind=view.volume.kind,
        mode=view.mode,
        policy=view.policy,
        overlay=view.overlay or None,
        frozen=view.frozen,
        at_ns=frame.at_ns,
        summary=summary(view, frame, state, decision),
        kernel_sleep=_sleep(view),
        state=frame.state,
        cache_mode=frame.cache_mode,
        regime=frame.regime,
        gate=_gate(view, outcome, decision),
        dirty_bytes=frame.dirty_bytes,
        dirty_ratio=frame.dirty_ratio,
        dirty_floor_bytes=_floor_bytes(view, frame),
        cache_bytes=frame.cache_bytes,
        in_use_ratio=frame.in_use_ratio,
        room_bytes=frame.dirty_room_bytes,
        time_to_full_s=frame.time_to_full_s,
        time_to_clean_s=frame.time_to_clean_s,
        idle=frame.idle,
        wait_ns=state.destage.wait.wait_ns,
        wait_learned=state.destage.wait.learned,
        disturbance_ns=frame.disturbance_ns,
        destage_bytes_per_s=frame.destage_bytes_per_s,
        backing_depth_ios=frame.backing_depth_ios,
        backing_state=frame.backing_power.state,
        backing_state_why=frame.backing_power.why,
        foreground=frame.foreground,
        paths=_paths(frame),
        bypass_bytes=frame.bypass_bytes,
        gap_counts=frame.gap_counts,
        run_bytes=frame.run_bytes,
        miss_ratio=view.miss_ratio,
        heat=view.heat,
        attribution=view.attribution,
        knobs=_knobs(view, frame),
        proposals=tuple(_proposal(each, decision, view.volume) for each in decision.proposals),
        cleaning=_cleaning(view, frame),
        overrides=tuple(_override(each, frame) for each in view.overrides),
        jobs=view.jobs,
        layout=view.layout,
        pins=view.pins,
        promotion=_promotion(view, state, frame, decision),
        missing={key: why for key, why in frame.missing.items() if key not in _OFTEN_UNKNOWN},
        lost=view.lost,
        totals=volume_totals(view.totals),
    )


def _promotion(
    view: StatusInputs, state: State, frame: Frame, decision: Decision
) -> PromotionStatus | None:
    if not view.promotes:
        return None
    reason = next((p.reason for p in decision.proposals if p.strategy == PROMOTE_HOT), "")
    return promotion_status(state.promotion, view.mover, reason)


def _paths(frame: Frame) -> tuple[PathStatus, ...]:
    return tuple(
        PathStatus(str(direction), path, each.ios, each.bytes, each.p50_ns, each.p99_ns)
        for (direction, path), each in frame.paths.items()
    )


def _floor_bytes(view: StatusInputs, frame: Frame) -> int | None:
    """With less dirty data no gap is used; None without idle_destage, or for an unknown cache."""
    if view.destage is None or frame.cache_bytes is None:
        return None
    return start_bytes(frame, view.destage)


def summary(view: StatusInputs, frame: Frame, state: State, decision: Decision) -> str:
    """One sentence: what ebbgate does with this volume now, and why."""
    if view.cleaning is not None:
        return _cleaning_sentence(view.cleaning, frame)
    if view.frozen:
        return "On hold: no knob is changed"
    own = [p for p in decision.proposals if p.strategy not in _ABOVE]
    reasons = [p.unsupported for p in own if p.unsupported]
    if reasons and len(reasons) == len(own):
        return f"Nothing to tune: {reasons[0]}"
    ours = next((p for p in decision.proposals if p.strategy == decision.gate_strategy), None)
    refused = view.gate_is_refused and view.mode is Mode.ENFORCE
    fault = "Not in force, since a write was refused: " if refused else ""
    if ours is not None and ours.strategy in (OVERRIDE, DRAIN):
        return f"{fault}{ours.strategy}: {ours.reason}"
    if view.manual and own:
        return f"Left alone: {', '.join(sorted(view.manual))} changed by someone else"
    if view.mode is Mode.OBSERVE or not own:
        return OBSERVING if own else f"{OBSERVING} (policy {view.policy})"
    if ours is None or ours.strategy == IDLE_DESTAGE:
        ours = _beside_destage(view, own)
    if ours is not None:
        text = f"{ours.strategy}: {ours.reason}"
        return f"{fault}{text}" if view.mode is Mode.ENFORCE else f"In enforce: {text}"
    return f"{fault}{_destage_summary(view, frame, state)}"


def _beside_destage(view: StatusInputs, own: Sequence[Proposal]) -> Proposal | None:
    """Return the proposal of promote_hot where nothing is written back, else the first one where
    the policy has no idle_destage.
    """
    found = {each.strategy: each for each in own if not each.unsupported}
    if IDLE_DESTAGE in found:
        return None
    first = next(iter(found.values()), None) if view.destage is None else None
    return found.get(PROMOTE_HOT, first)


def _destage_summary(view: StatusInputs, frame: Frame, state: State) -> str:
    destage = state.destage
    dirty = format_bytes(frame.dirty_bytes) if frame.dirty_bytes is not None else "unknown"
    idle = format_ns(destage.wait.wait_ns)
    doing, would, rest = {
        Phase.UNKNOWN: ("Left to the kernel", "leave it to the kernel", f": {destage.why}"),
        Phase.NORMAL: ("Nothing to write back", "do nothing", f" ({dirty} dirty)"),
        Phase.WAIT: ("Holding", "hold", f" {dirty} of dirty data until idle for {idle}"),
        Phase.DESTAGE: ("Writing back", "write back", f" {dirty}{_rate(frame)}: {destage.why}"),
        Phase.PRESSURE: (
            "Writing back",
            "write back",
            f" {dirty} under load{_rate(frame)}: {destage.why}",
        ),
    }[destage.phase]
    if destage.phase is Phase.PRESSURE and view.volume.kind is Kind.DM_CACHE:
        rest = (
            f" {dirty} once the slow device had no I/O for a second, as the kernel requires:"
            f" {destage.why}"
        )
    return f"{doing}{rest}" if view.mode is Mode.ENFORCE else f"In enforce: would {would}{rest}"


def _rate(frame: Frame) -> str:
    rate = frame.destage_bytes_per_s
    return f" at {format_rate(rate)}" if rate else ""


def _override(active: ActiveOverride, frame: Frame) -> OverrideStatus:
    override = active.override
    return OverrideStatus(
        kind=str(override.kind),
        knob=override.knob or None,
        value=override.value or None,
        who=override.who,
        since_unix_ns=override.at_unix_ns,
        until_unix_ns=override.until_unix_ns,
        left_ns=active.left_ns(frame.at_ns),
    )


def _cleaning_sentence(cleaning: Cleaning, frame: Frame) -> str:
    if cleaning.ended:
        over = f"Cleaning for {cleaning.who} is over ({cleaning.ended})"
        return f"{over}: the table from before is not back yet"
    left = "unknown" if frame.dirty_bytes is None else format_bytes(frame.dirty_bytes)
    eta = eta_s(cleaning, frame.dirty_bytes, frame.at_ns)
    ready = "rate not known yet" if eta is None else f"about {format_ns(eta * NS_PER_S)} left"
    until = format_ns(max(0, cleaning.until_ns - frame.at_ns))
    return f"Cleaning for {cleaning.who}: {left} dirty, {ready}, stops in {until} at the latest"


def _cleaning(view: StatusInputs, frame: Frame) -> CleaningStatus | None:
    cleaning = view.cleaning
    if cleaning is None:
        return None
    return CleaningStatus(
        who=cleaning.who,
        since_ns=cleaning.since_ns,
        until_ns=cleaning.until_ns,
        began_with_bytes=cleaning.dirty_bytes,
        eta_s=eta_s(cleaning, frame.dirty_bytes, frame.at_ns),
    )


def _sleep(view: StatusInputs) -> KernelSleepStatus | None:
    """Return the sleep that no knob ends; None once it is over."""
    if view.sleep_left_s is None or DELAY not in view.originals:
        return None
    text = (
        f"the kernel's writeback thread may sleep for up to"
        f" {format_ns(view.sleep_left_s * NS_PER_S)} more and write nothing back until then:"
        f" {DELAY} was {view.originals[DELAY]} s, and no knob ends a sleep that has begun"
    )
    return KernelSleepStatus(view.sleep_left_s, text)


def _gate(view: StatusInputs, outcome: Outcome, decision: Decision) -> GateStatus:
    in_force = view.gate_is_ours and not view.gate_is_refused
    gate = (view.gate if in_force else None) or Gate(GateKind.RELEASED)
    winner = next((p for p in decision.proposals if p.strategy == decision.gate_strategy), None)
    reason = outcome.ruling.why
    if winner is not None and winner.strategy != IDLE_DESTAGE:
        reason = winner.reason
    if not view.gate_is_ours and decision.gate_strategy != OVERRIDE:
        reason = GATE_MANUAL.reason
    if view.gate_is_refused:
        reason = f"not in force, since a write was refused; it is tried again. Wanted for: {reason}"
    return GateStatus(
        kind=gate.kind,
        rate_bytes_per_s=gate.rate_bytes_per_s,
        depth_ios=gate.depth_ios,
        state=str(outcome.destage.phase),
        since_ns=view.gate_since_ns,
        reason=reason,
    )


def _knobs(view: StatusInputs, frame: Frame) -> dict[str, KnobStatus]:
    found: dict[str, KnobStatus] = {}
    for knob, value in frame.knobs.items():
        original = view.originals.get(knob)
        owner = "manual" if knob in view.manual else "kernel" if original is None else "ebbgate"
        found[knob] = KnobStatus(value, original, owner)
    return found


def _proposal(proposal: Proposal, decision: Decision, volume: Volume) -> ProposalStatus:
    wins = []
    if proposal.gate is not None and decision.gate_strategy == proposal.strategy:
        wins.append("destage")
    if decision.cutoff_strategy == proposal.strategy:
        wins.append(MAX_SECTORS if volume.kind is Kind.DM_CACHE else CUTOFF)
    if decision.promotion is not None and decision.promotion_strategy == proposal.strategy:
        wins.append(PROMOTION)
    wins += [knob for knob, _ in proposal.knobs if knob not in wins]
    return ProposalStatus(
        strategy=proposal.strategy,
        reason=proposal.reason,
        unsupported=proposal.unsupported,
        wins=tuple(wins),
        conditions=proposal.conditions,
    )
