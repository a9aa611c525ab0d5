# SPDX-License-Identifier: GPL-2.0-only
"""What a decision wants of each setting, in the words of a dry run. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from ebbgate.model.decision import Decision, GateKind
from ebbgate.model.volume import Kind
from ebbgate.policy.engine import IDLE_DESTAGE, STREAM_BYPASS, Phase, Policy, State
from ebbgate.units import format_bytes, format_rate

KERNELS: Final = "the kernel's own"


class ReplaySetting(StrEnum):
    """What policies may differ in."""

    DESTAGE = "destage"
    CUTOFF = "sequential_cutoff"
    SPLIT = "max_sectors_kb"
    CONGESTION = "congestion_bypass"


SETTINGS: Final = {
    Kind.BCACHE: (ReplaySetting.DESTAGE, ReplaySetting.CUTOFF, ReplaySetting.CONGESTION),
    Kind.DM_CACHE: (ReplaySetting.DESTAGE, ReplaySetting.SPLIT),
    Kind.DM_WRITECACHE: (),
}


def text_of(
    setting: ReplaySetting, decision: Decision, state: State, policy: Policy, *, mixed: bool
) -> tuple[str, str]:
    """What is wanted of a setting, and why."""
    if setting is ReplaySetting.DESTAGE:
        return _gate_text(decision, state, policy, mixed), _why(decision, decision.gate_strategy)
    cutoff = decision.sequential_cutoff_bytes
    if setting is ReplaySetting.CUTOFF and cutoff is not None:
        return format_bytes(cutoff), _why(decision, decision.cutoff_strategy)
    if setting is ReplaySetting.CONGESTION and decision.congestion_bypass is False:
        by = next(p.strategy for p in decision.proposals if p.congestion_bypass is False)
        return "off", _why(decision, by)
    if policy.streams is not None:
        return f"as {STREAM_BYPASS} decides", "it goes by run lengths, which are not kept"
    return KERNELS, "nobody wishes anything else"


def _gate_text(decision: Decision, state: State, policy: Policy, mixed: bool) -> str:
    gate, by = decision.gate, decision.gate_strategy
    destage = by == IDLE_DESTAGE
    if destage and mixed and state.destage.phase is Phase.UNKNOWN:
        return f"as {IDLE_DESTAGE} decides"
    if gate is None or gate.kind is GateKind.RELEASED:
        return KERNELS
    if gate.kind in (GateKind.CLOSED, GateKind.OPEN):
        return str(gate.kind)
    if not destage or not state.destage.pacing:
        return f"{gate.depth_ios} at once" if gate.depth_ios else format_rate(gate.rate_bytes_per_s)
    rate, depth = policy.limits.destage_rate.high, policy.limits.destage_depth.high
    if gate.depth_ios:
        return "paced" if depth is None else f"paced, at most {depth} at once"
    return "paced" if rate is None else f"paced, at most {format_rate(rate)}"


def _why(decision: Decision, strategy: str) -> str:
    found = next((p.reason for p in decision.proposals if p.strategy == strategy), "")
    return f"{strategy}: {found}" if found else "nobody wishes anything else"
