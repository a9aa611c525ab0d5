# SPDX-License-Identifier: GPL-2.0-only
"""Decides for one volume: the only way into the policy for whatever runs it. Pure.

The control loop, replays, dry runs and the simulator call `step` with each event and read what they
need from its outcome. An arriving request waits for the gate, so an outcome computes each of its
parts when it is read, and the explanation only on request.
"""

from __future__ import annotations

from dataclasses import dataclass

from ebbgate.model.decision import Decision, Gate, Proposal
from ebbgate.model.frame import Frame
from ebbgate.model.promotion import ChunksMoved
from ebbgate.model.records import Edge, QueueSample
from ebbgate.policy import arbiter, evaluate, rules
from ebbgate.policy.arbiter import ROLLBACK_GUARD, WARM, DecisionKey
from ebbgate.policy.defaults import IDLE_DESTAGE, PROMOTE_HOT, STREAM_BYPASS, Policy
from ebbgate.policy.drain import DRAIN
from ebbgate.policy.evaluate import ProbeSettings, Ruling
from ebbgate.policy.limits import LIMITS
from ebbgate.policy.overrides import OVERRIDE
from ebbgate.policy.rules import Rule
from ebbgate.policy.state import OverrideChange, State, WarmChange
from ebbgate.policy.strategies import gap_use
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.idle_destage import start_bytes
from ebbgate.policy.strategies.promote_hot import PromoteState

__all__ = [
    "DRAIN",
    "IDLE_DESTAGE",
    "LIMITS",
    "OVERRIDE",
    "PROMOTE_HOT",
    "ROLLBACK_GUARD",
    "STREAM_BYPASS",
    "WARM",
    "DecisionKey",
    "DestageParams",
    "Event",
    "Outcome",
    "OverrideChange",
    "Phase",
    "Policy",
    "ProbeSettings",
    "PromoteState",
    "Rule",
    "Ruling",
    "State",
    "WarmChange",
    "start_bytes",
    "step",
]

Event = Frame | Edge | QueueSample | ChunksMoved | OverrideChange | WarmChange


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the policy decides in a state at a time; each part is computed when it is read."""

    state: State
    policy: Policy
    now_ns: int

    @property
    def ruling(self) -> Ruling:
        """The gate that applies, which proposal it comes from, and why."""
        return arbiter.ruling(self.state, self.policy, self.now_ns)

    @property
    def gate(self) -> Gate | None:
        """The gate that applies; None where ebbgate sets none."""
        return self.ruling.gate

    @property
    def probe_settings(self) -> ProbeSettings:
        """What to send to the probe."""
        return evaluate.probe_settings(self.state, self.policy)

    @property
    def destage(self) -> DestageState:
        """The state of idle_destage, for people."""
        return self.state.destage

    @property
    def rules_in_force(self) -> tuple[Proposal, ...]:
        """What the rules propose that are on, in the order of the policy."""
        return rules.in_force(self.state.rules, self.policy.rules)

    @property
    def unsupported(self) -> str:
        """Why nothing can be tuned on this volume now; empty when it can."""
        return evaluate.unsupported(self.state.frame) if self.state.frame else ""

    @property
    def closes_on_arrival(self) -> bool:
        """Whether the gate is open only until the next request arrives."""
        in_gap = self.state.destage.phase is Phase.DESTAGE
        return in_gap and self.ruling.by == IDLE_DESTAGE

    def return_is_near(self, within_ns: int) -> bool:
        """Return whether users, who are away now, are likely to be back in this time."""
        destage, params = self.state.destage, self.policy.destage
        if params is None or not destage.idle:
            return False
        idle_ns = max(0, self.now_ns - destage.idle_since_ns)
        return gap_use.ends_soon(destage.gap, idle_ns, within_ns, params.wait.disturbance_cost_ns)

    @property
    def steady(self) -> bool:
        """Whether a rule or a person set the gate, so that no queue sample adjusts it."""
        return self.ruling.by != IDLE_DESTAGE

    def decision(self) -> Decision:
        """Return the decision without conditions; rules that are off are left out."""
        return arbiter.decide(self.state, self.policy, self.now_ns, explained=False)

    def explained(self) -> Decision:
        """Return the decision with the conditions of every rule and strategy."""
        return arbiter.decide(self.state, self.policy, self.now_ns)

    def key(self, decision: Decision) -> DecisionKey:
        """Return a key that differs only where the decision must be recorded as a new one."""
        return arbiter.decision_key(self.state, self.policy, decision)


def step(
    state: State, event: Event, policy: Policy, now_ns: int, *, applied: bool = True
) -> tuple[State, Outcome]:
    """Take an event in and return the state after it with its outcome.

    `applied`: decisions are carried out. The rollback guard judges only those that are.
    """
    if isinstance(event, Edge):
        state = evaluate.on_edge(state, event, policy)
    elif isinstance(event, QueueSample):
        state = evaluate.on_queue(state, event, policy)
    elif isinstance(event, ChunksMoved):
        state = evaluate.on_moved(state, event)
    elif isinstance(event, Frame):
        state = evaluate.on_frame(state, event, policy)
        state = arbiter.on_frame(state, event, policy, applied=applied)
    elif isinstance(event, WarmChange):
        state = arbiter.on_warm(state, event)
    else:
        state = arbiter.on_overrides(state, event)
    return state, Outcome(state, policy, now_ns)
