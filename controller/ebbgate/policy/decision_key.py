# SPDX-License-Identifier: GPL-2.0-only
"""What makes a decision another one: only such a change is recorded, logged and replayed. Pure."""

from __future__ import annotations

from ebbgate.model.decision import Decision, GateKind
from ebbgate.policy.arbiter import NO_REGRET
from ebbgate.policy.drain import DRAIN
from ebbgate.policy.evaluate import PolicyState
from ebbgate.policy.overrides import OVERRIDE

_ABOVE = frozenset({OVERRIDE, DRAIN, NO_REGRET})
"""These come and go; all others are there all the time."""

DecisionKey = tuple[object, ...]


def decision_key(state: PolicyState, decision: Decision) -> DecisionKey:
    """Equal for two decisions that differ only in measured figures or in the pace.

    A pulse is part of pacing and no decision of its own.
    """
    kind = decision.gate.kind if decision.gate else None
    return (
        GateKind.PACED if kind is GateKind.PULSED else kind,
        state.destage.phase,
        state.streams.stance,
        decision.sequential_cutoff_bytes,
        decision.congestion_bypass,
        tuple(wish.strategy for wish in state.rules.in_force),
        tuple(proposal.unsupported for proposal in decision.proposals),
        tuple((p.strategy, p.knobs) for p in decision.proposals if p.strategy in _ABOVE),
    )
