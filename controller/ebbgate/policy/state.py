# SPDX-License-Identifier: GPL-2.0-only
"""What the policy remembers of one volume between two events. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ebbgate.model.frame import Frame
from ebbgate.model.override import ActiveOverride
from ebbgate.model.records import Edge, EdgeKind
from ebbgate.policy.drain import DrainPlan
from ebbgate.policy.hold import HoldState
from ebbgate.policy.rollback_guard import RollbackState
from ebbgate.policy.rules import RulesState
from ebbgate.policy.strategies.destage_state import DestageState
from ebbgate.policy.strategies.promote_hot import PromoteState
from ebbgate.policy.strategies.stream_bypass import StreamState


@dataclass(frozen=True, slots=True)
class OverrideChange:
    """The overrides that are in force from now on; an event of the engine.

    `sets`: each override of a knob, with its value as text for people. `gate_knobs`: the knobs of
    the gate on this kind of volume. `drain`: the request to drain, if there is one.
    """

    sets: tuple[tuple[ActiveOverride, str], ...] = ()
    gate_knobs: frozenset[str] = frozenset()
    drain: ActiveOverride | None = None


@dataclass(frozen=True, slots=True)
class WarmChange:
    """A warm-up begins or ends; an event of the engine.

    `cutoff_bytes`: no strategy may set a lower cutoff, under which the kernel would not cache what
    the warm-up reads; None: it is over.
    """

    cutoff_bytes: int | None


@dataclass(frozen=True, slots=True)
class ArbiterState:
    """Overrides, drain plan, rollback guard and warm-up. `plan`: as computed at the last tick.

    `warm_cutoff_bytes`: see `WarmChange`.
    """

    sets: tuple[tuple[ActiveOverride, str], ...] = ()
    gate_knobs: frozenset[str] = frozenset()
    drain: ActiveOverride | None = None
    plan: DrainPlan | None = None
    rollback: RollbackState = field(default_factory=RollbackState)
    warm_cutoff_bytes: int | None = None

    @property
    def gate_overridden(self) -> bool:
        """Return whether a user has set a knob of the gate."""
        return any(each.override.knob in self.gate_knobs for each, _ in self.sets)


@dataclass(frozen=True, slots=True)
class State:
    """Everything that the policy remembers of one volume.

    `frame`: the last one. `edge`: the last edge since then; None without one.
    """

    destage: DestageState = field(default_factory=DestageState)
    streams: StreamState = field(default_factory=StreamState)
    rules: RulesState = field(default_factory=RulesState)
    congested: bool = False
    frame: Frame | None = None
    edge: Edge | None = None
    arbiter: ArbiterState = field(default_factory=ArbiterState)
    hold: HoldState = field(default_factory=HoldState)
    promotion: PromoteState = field(default_factory=PromoteState)

    @property
    def current_frame(self) -> Frame | None:
        """The last frame, updated by what an edge said about idleness after the probe's record."""
        if self.frame is None or self.edge is None:
            return self.frame
        idle = self.edge.kind is EdgeKind.IDLE
        return replace(self.frame, idle=idle, idle_ns=self.edge.length_ns if idle else 0)
