# SPDX-License-Identifier: GPL-2.0-only
"""The engine takes every kind of event, and an outcome has what its callers need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ebbgate.model.decision import GateKind
from ebbgate.model.frame import Frame
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.records import Edge, EdgeKind
from ebbgate.policy.engine import Event, Outcome, OverrideChange, Phase, Policy, State, step
from ebbgate.policy.evaluate import PACE_PERIOD_NS
from ebbgate.units import NS_PER_MS, NS_PER_S
from tests.builders import busy_edge, busy_frame, idle_edge, idle_frame, queue_sample

POLICY = Policy()
SET = ActiveOverride(
    Override(OverrideKind.SET, "bcache0", "jo", 0, None, "writeback_percent", "20"), None
)
DRAIN = ActiveOverride(Override(OverrideKind.DRAIN, "bcache0", "jo", 0, 1000), 3600 * NS_PER_S)


def after(*events: Event) -> Outcome:
    state = State()
    for event in events:
        state, outcome = step(state, event, POLICY, 2 * NS_PER_S)
    return outcome


def test_busy_edge_closes_the_gate_and_stops_queue_samples() -> None:
    opened, closed = after(idle_frame()), after(idle_frame(), busy_edge(1500))
    assert opened.gate is not None and opened.gate.kind is GateKind.OPEN
    assert opened.probe_settings.pace_period_ns == PACE_PERIOD_NS
    assert closed.gate is not None and closed.gate.kind is GateKind.CLOSED
    assert closed.probe_settings.pace_period_ns == 0


@pytest.mark.parametrize(
    ("edge", "frame"), [(busy_edge(1500), idle_frame), (idle_edge(1500), busy_frame)]
)
def test_a_record_from_before_an_edge_does_not_undo_it(
    edge: Edge, frame: Callable[..., Frame]
) -> None:
    """The probe's records come at other moments than the daemon's looks."""
    idle = edge.kind is EdgeKind.IDLE
    for probed_ms, expected in ((1400, idle), (1500, idle), (1501, not idle)):
        looked = frame(1600, probed_at_ns=probed_ms * NS_PER_MS)
        seen = after(frame(1250), edge, looked).state.current_frame
        assert seen is not None
        assert seen.idle is expected
    unknown = after(frame(1250), edge, frame(1600, probed_at_ns=None, idle=None))
    assert unknown.state.current_frame is not None
    assert unknown.state.current_frame.idle is None


@pytest.mark.parametrize(
    "events",
    [
        (busy_frame(),),
        (busy_frame(), idle_edge(1500)),
        (idle_frame(), queue_sample(1010, 1, 5)),
        (busy_frame(), OverrideChange(((SET, "20%"),), frozenset({"writeback_percent"}))),
        (busy_frame(), OverrideChange(drain=DRAIN), busy_frame(1250, dirty_in_bytes_per_s=0.0)),
    ],
)
def test_ruling_is_the_gate_of_the_decision(events: tuple[Event, ...]) -> None:
    outcome = after(*events)
    decision = outcome.explained()
    assert (outcome.ruling.gate, outcome.ruling.by) == (decision.gate, decision.gate_strategy)
    assert outcome.decision().gate == decision.gate


def test_override_of_a_gate_knob_releases_the_gate_until_it_ends() -> None:
    override = OverrideChange(((SET, "20%"),), frozenset({"writeback_percent"}))
    outcome = after(busy_frame(), override)
    assert outcome.gate is not None and outcome.gate.kind is GateKind.RELEASED
    ended = after(busy_frame(), override, OverrideChange())
    assert ended.gate is not None and ended.gate.kind is GateKind.CLOSED


def test_drain_is_planned_at_the_next_frame_and_is_steady() -> None:
    frame = busy_frame(1250, dirty_in_bytes_per_s=0.0)
    outcome = after(busy_frame(), OverrideChange(drain=DRAIN), frame)
    assert outcome.ruling.by == "drain"
    assert outcome.steady
    assert not after(busy_frame()).steady


def test_only_a_gate_of_a_gap_closes_on_arrival() -> None:
    assert after(idle_frame()).closes_on_arrival
    assert not after(busy_frame()).closes_on_arrival


def test_override_survives_a_frame_of_a_volume_that_cannot_be_tuned() -> None:
    change = OverrideChange(drain=DRAIN)
    outcome = after(busy_frame(), change, busy_frame(1250, state="no cache"))
    assert outcome.state.arbiter.drain == DRAIN
    assert outcome.destage.phase is Phase.UNKNOWN
    assert outcome.unsupported == "no cache is attached"


def test_decision_without_explanation_has_the_same_key() -> None:
    outcome = after(idle_frame())
    assert outcome.key(outcome.decision()) == outcome.key(outcome.explained())
    assert not any(proposal.conditions for proposal in outcome.decision().proposals)


@pytest.mark.parametrize(
    ("lengths_ms", "idle_ms", "near"),
    [
        ((2500, 2500, 2500), 300, False),
        ((2500, 2500, 2500), 2300, True),
        # It has outlived them.
        ((2500, 2500, 2500), 2700, False),
        ((800, 2500, 6000), 2300, False),
        ((), 2300, False),
    ],
)
def test_a_return_is_near_where_gaps_like_this_end(
    lengths_ms: tuple[int, ...], idle_ms: int, near: bool
) -> None:
    state, now_ms = State(), 1000
    for length_ms in lengths_ms:
        now_ms += length_ms
        state, _ = step(state, busy_edge(now_ms, length_ms), POLICY, now_ms * NS_PER_MS)
    assert not Outcome(state, POLICY, now_ms * NS_PER_MS).return_is_near(300 * NS_PER_MS)
    state, _ = step(state, idle_edge(now_ms + 300), POLICY, (now_ms + 300) * NS_PER_MS)
    outcome = Outcome(state, POLICY, (now_ms + idle_ms) * NS_PER_MS)
    assert outcome.return_is_near(300 * NS_PER_MS) is near
    assert not replace(outcome, policy=replace(POLICY, destage=None)).return_is_near(NS_PER_S)
