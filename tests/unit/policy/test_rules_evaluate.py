# SPDX-License-Identifier: GPL-2.0-only
"""Rules and limits in the decision: before the strategies, and above everything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ebbgate.model.decision import Decision, Gate, GateKind, Proposal
from ebbgate.model.frame import Frame, PathLatency, Rates
from ebbgate.model.records import Direction, Edge
from ebbgate.policy import evaluate, rules
from ebbgate.policy.arbiter import decision_key
from ebbgate.policy.defaults import Policy
from ebbgate.policy.evaluate import ProbeSettings
from ebbgate.policy.limits import Bounds, Limits, clamp, clamp_gate
from ebbgate.policy.rules import Check, Rule
from ebbgate.policy.state import State
from ebbgate.policy.strategies import idle_destage, stream_bypass
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.stream_bypass import StreamMode, StreamParams, StreamState
from ebbgate.units import GIB, HOUR_NS, MIB, NS_PER_MS, NS_PER_S
from tests.builders import busy_edge, busy_frame, decision, idle_frame, proposal

ALWAYS = ((Check("dirty_data", ">", 0),),)
NEVER = ((Check("dirty_data", "<", 0),),)
HOUR_MS = HOUR_NS // NS_PER_MS
OPEN, CLOSED = Gate(GateKind.OPEN), Gate(GateKind.CLOSED)
RATE = Limits(destage_rate=Bounds(MIB, 64 * MIB))
DEPTH = Limits(destage_depth=Bounds(1, 8))


def rule(name: str, when: Any = ALWAYS, **settings: Any) -> Rule:
    return Rule(name, when, Proposal(f"rule {name}", "on: w", **settings), ("gate",))


def after(policy: Policy, *events: Frame | Edge) -> State:
    state = State()
    for event in events:
        if isinstance(event, Frame):
            state = evaluate.on_frame(state, event, policy)
        else:
            state = evaluate.on_edge(state, event, policy)
    return state


def decided(policy: Policy, *events: Frame | Edge) -> Decision:
    return evaluate.decide(after(policy, *events), policy, 7)


def test_a_rule_wins_over_every_strategy_and_the_loser_stays_visible() -> None:
    policy = Policy(rules=(rule("drain", gate=OPEN),))
    found = decided(policy, busy_frame())
    assert (found.gate, found.gate_strategy) == (OPEN, "rule drain")
    assert [p.strategy for p in found.proposals] == ["rule drain", "idle_destage", "stream_bypass"]
    assert found.proposals[1].gate is not None


def test_the_first_of_two_rules_wins() -> None:
    policy = Policy(rules=(rule("hold", gate=CLOSED), rule("drain", gate=OPEN)))
    assert decided(policy, busy_frame()).gate_strategy == "rule hold"


def test_rule_that_is_off_is_shown_and_proposes_nothing() -> None:
    policy = Policy(rules=(rule("drain", NEVER, gate=OPEN),))
    found = decided(policy, busy_frame())
    assert found.proposals[0].reason == "off: its conditions do not hold"
    assert found.gate_strategy == "idle_destage"


def test_without_explanation_the_same_is_decided() -> None:
    policy = Policy(rules=(rule("a", NEVER, gate=OPEN), rule("b", gate=CLOSED)), limits=RATE)
    state = after(policy, idle_frame())
    short = evaluate.decide(state, policy, 7, explained=False)
    whole = evaluate.decide(state, policy, 7)
    assert (short.gate, short.gate_strategy) == (whole.gate, whole.gate_strategy)
    assert len(whole.proposals) == len(short.proposals) + 1


def test_an_edge_does_not_take_the_gate_from_a_rule() -> None:
    policy = Policy(rules=(rule("drain", gate=OPEN),))
    state = after(policy, idle_frame(), busy_edge(1500))
    assert evaluate.gate(state, policy) == (OPEN, "rule drain", "on: w")
    assert evaluate.gate(after(Policy(), idle_frame()), Policy()).by == "idle_destage"


def test_the_queue_is_not_sampled_for_a_gate_that_a_rule_sets() -> None:
    policy = Policy(rules=(rule("drain", gate=OPEN),))
    state = after(policy, idle_frame())
    assert state.destage.phase is Phase.DESTAGE
    assert evaluate.probe_settings(state, policy) == ProbeSettings(300 * NS_PER_MS, 0)


def test_a_rule_needs_no_strategy() -> None:
    policy = Policy(destage=None, streams=None, rules=(rule("drain", gate=OPEN),))
    assert evaluate.gate(after(policy, busy_frame()), policy).gate == OPEN


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ("no cache", "no cache is attached"),
        ("suspended", "the volume is suspended: ebbgate waits until it is resumed"),
    ],
)
def test_where_nothing_can_be_tuned_no_rule_is_on(seen: str, why: str) -> None:
    policy = Policy(rules=(rule("drain", gate=OPEN),), limits=RATE)
    state = after(policy, busy_frame(1000), busy_frame(1250, state=seen))
    found = evaluate.decide(state, policy, 1)
    assert (evaluate.gate(state, policy).gate, found.gate) == (None, None)
    assert found.proposals[0].unsupported == why
    assert not rules.in_force(state.rules, policy.rules)


def suspended(at_ms: int) -> Frame:
    """A look while a snapshot is made: the kernel tells no levels then."""
    unknown = dict.fromkeys(("dirty_bytes", "dirty_ratio", "cache_bytes", "dirty_room_bytes"))
    return busy_frame(at_ms, state="suspended", **unknown)


def test_a_snapshot_does_not_let_hours_begin_anew() -> None:
    six_h = replace(rule("old", gate=OPEN), dwell_ns=6 * HOUR_NS)
    hold = replace(rule("hold", gate=Gate(GateKind.HELD)), when=((Check("dirty_data", ">", 0),),))
    for one, later_h in ((six_h, 6), (hold, 24)):
        policy = Policy(rules=(one,))
        begun = busy_frame(1000, dirty_room_bytes=GIB // 3)
        state = after(policy, begun, suspended(3 * HOUR_MS))
        assert evaluate.gate(state, policy).gate is None
        for at_ms in (3 * HOUR_MS + 250, later_h * HOUR_MS + 2000):
            state = evaluate.on_frame(state, replace(begun, at_ns=at_ms * NS_PER_MS), policy)
        if one is hold:
            assert state.hold.over == "dirty data has waited for 24.0 h"
        else:
            assert evaluate.gate(state, policy).by == "rule old"


def test_a_cache_that_is_detached_lets_hours_begin_anew() -> None:
    policy = Policy(rules=(replace(rule("old", gate=OPEN), dwell_ns=6 * HOUR_NS),))
    detached = busy_frame(3 * HOUR_MS, state="no cache")
    state = after(policy, busy_frame(1000), detached, busy_frame(6 * HOUR_MS + 2000))
    assert evaluate.gate(state, policy).by == "idle_destage"


def test_a_rule_that_comes_on_is_another_decision() -> None:
    policy = Policy(rules=(rule("note", congestion_bypass=False),))
    off, on = (decision_key(after(p, busy_frame()), p, decision()) for p in (Policy(), policy))
    assert off != on


def test_strategies_are_shown_in_the_order_of_the_policy() -> None:
    turned = Policy(order=("stream_bypass", "idle_destage"))
    assert [p.strategy for p in decided(turned, busy_frame()).proposals] == list(turned.order)


@pytest.mark.parametrize(
    ("gate", "limits", "clamped"),
    [
        (None, RATE, None),
        (Gate(GateKind.RELEASED), RATE, Gate(GateKind.RELEASED)),
        (OPEN, RATE, Gate(GateKind.PACED, 64 * MIB)),
        (OPEN, Limits(destage_rate=Bounds(low=MIB)), OPEN),
        (Gate(GateKind.OPEN, 64 * MIB), RATE, Gate(GateKind.OPEN, 64 * MIB)),
        (Gate(GateKind.OPEN, 65 * MIB), RATE, Gate(GateKind.PACED, 64 * MIB)),
        (CLOSED, RATE, Gate(GateKind.PACED, MIB)),
        (CLOSED, Limits(destage_rate=Bounds(high=MIB)), CLOSED),
        (Gate(GateKind.CLOSED, 9), Limits(destage_rate=Bounds(high=5)), Gate(GateKind.CLOSED, 5)),
        (Gate(GateKind.PACED, 80 * MIB), RATE, Gate(GateKind.PACED, 64 * MIB)),
        (Gate(GateKind.PACED, 9 * MIB), RATE, Gate(GateKind.PACED, 9 * MIB)),
        (
            Gate(GateKind.RESTING, 9),
            Limits(destage_rate=Bounds(high=MIB)),
            Gate(GateKind.RESTING, 9),
        ),
        (Gate(GateKind.RESTING, 9), RATE, Gate(GateKind.PACED, MIB)),
        (Gate(GateKind.PACED, depth_ios=32), DEPTH, Gate(GateKind.PACED, depth_ios=8)),
        (Gate(GateKind.PACED, depth_ios=4), DEPTH, Gate(GateKind.PACED, depth_ios=4)),
        (CLOSED, DEPTH, Gate(GateKind.PACED, depth_ios=1)),
        (Gate(GateKind.PACED, depth_ios=4), Limits(destage_depth=Bounds(high=0)), CLOSED),
        (OPEN, Limits(), OPEN),
    ],
)
def test_limits_bound_every_gate_but_the_kernels_own(
    gate: Gate | None, limits: Limits, clamped: Gate | None
) -> None:
    assert clamp_gate(gate, limits) == clamped


@pytest.mark.parametrize(
    ("gate", "limits"),
    [
        (Gate(GateKind.PACED, depth_ios=16), DEPTH),
        (Gate(GateKind.PACED, depth_ios=4), Limits(destage_depth=Bounds(high=0))),
        (OPEN, RATE),
        (Gate(GateKind.RESTING, 512), RATE),
        (Gate(GateKind.PACED, 80 * MIB), RATE),
    ],
)
def test_a_limit_leaves_the_queue_of_the_disks(gate: Gate, limits: Limits) -> None:
    found = clamp_gate(replace(gate, queue_depth=4), limits)
    assert found is not None
    assert found.queue_depth == 4
    assert replace(found, queue_depth=0) != gate


def test_limits_say_what_they_changed() -> None:
    limits = Limits(destage_rate=Bounds(high=MIB), sequential_cutoff=Bounds(MIB, 64 * MIB))
    found = clamp(decision(proposal(), gate=OPEN, sequential_cutoff_bytes=2 * GIB), limits)
    assert (found.gate, found.sequential_cutoff_bytes) == (Gate(GateKind.PACED, MIB), 64 * MIB)
    assert found.proposals[-1].reason == (
        "in force: destage unbounded -> 1 MiB/s, sequential cutoff 2 GiB -> 64 MiB"
    )
    rested = clamp(decision(gate=Gate(GateKind.OPEN, MIB)), limits)
    assert rested.proposals[-1].reason == "in force: destage at most 1 MiB/s on average"
    quiet = clamp(decision(gate=Gate(GateKind.RELEASED)), limits)
    assert quiet.proposals[-1].reason == "in force: nothing exceeds them"
    assert clamp(decision(gate=OPEN), Limits()) == decision(gate=OPEN)


def test_an_unset_cutoff_is_not_limited() -> None:
    found = clamp(decision(), Limits(sequential_cutoff=Bounds(MIB, None)))
    assert found.sequential_cutoff_bytes is None


def light_frame(at_s: float, p99_ms: int) -> Frame:
    slow = PathLatency(100, 4096, p99_ms * NS_PER_MS // 2, p99_ms * NS_PER_MS)
    return busy_frame(
        round(at_s * 1000),
        backing_busy_foreground_ratio=0.1,
        paths={(Direction.READ, "miss"): slow},
    )


def phase(*frames: Frame) -> Phase:
    params, state = DestageParams(read_p99_max_ns=20 * NS_PER_MS), DestageState()
    for frame in frames:
        state = idle_destage.on_frame(state, frame, params)
    return state.phase


def test_a_light_load_with_high_latency_stops_write_back() -> None:
    assert phase(light_frame(1, 9), light_frame(7, 9)) is Phase.PRESSURE
    assert phase(light_frame(1, 15), light_frame(7, 15)) is Phase.WAIT
    assert phase(light_frame(1, 9), light_frame(7, 9), light_frame(10, 15)) is Phase.PRESSURE
    assert phase(light_frame(1, 9), light_frame(7, 9), light_frame(10, 21)) is Phase.WAIT


def mode(dirty: float, before: StreamMode = StreamMode.REST) -> StreamMode:
    frame = busy_frame(
        dirty_ratio=dirty,
        dirty_room_bytes=GIB,
        foreground={d: Rates(1, 1) for d in Direction},
        run_delta_bytes={Direction.WRITE: (*[0] * 17, 80 * MIB)},
    )
    params = StreamParams(fill_ratio_max=0.6)
    state = StreamState(mode=before, against_ns=frame.at_ns - 60 * NS_PER_S)
    return stream_bypass.on_frame(state, frame, params).mode


def test_a_stream_is_absorbed_up_to_the_fill_target_only() -> None:
    assert mode(0.59) is StreamMode.ABSORB
    assert mode(0.60) is StreamMode.BYPASS
    assert mode(0.55, StreamMode.BYPASS) is StreamMode.BYPASS
    assert mode(0.53, StreamMode.BYPASS) is StreamMode.ABSORB
