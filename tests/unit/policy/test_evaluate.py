# SPDX-License-Identifier: GPL-2.0-only
"""Proposals become one decision; what cannot be tuned has a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ebbgate.model.decision import Decision, Gate, GateKind, Proposal
from ebbgate.model.frame import Disturbance, Frame, Rates
from ebbgate.model.records import Direction, Edge, QueueSample
from ebbgate.policy import evaluate
from ebbgate.policy.arbiter import decision_key
from ebbgate.policy.defaults import Policy
from ebbgate.policy.evaluate import PACE_PERIOD_NS, ProbeSettings, Ruling
from ebbgate.policy.rules import Check, Rule
from ebbgate.policy.state import State
from ebbgate.policy.strategies import explanation
from ebbgate.policy.strategies.destage_state import DestageParams, Phase
from ebbgate.policy.strategies.stream_bypass import StreamMode
from ebbgate.units import GIB, MIB, NS_PER_MS, NS_PER_S
from tests.builders import busy_edge, busy_frame, idle_edge, idle_frame, queue_sample

POLICY = Policy()
OPEN = Proposal("rule drain", "on: w", gate=Gate(GateKind.OPEN))
RULE = Rule("drain", ((Check("dirty_data", ">", 0),),), OPEN, ("gate",))
OFF = replace(RULE, when=((Check("dirty_data", "<", 0),),))
NO_ROOM: dict[str, Any] = {"dirty_room_bytes": 0, "dirty_in_bytes_per_s": 1.0}
FELT = Disturbance(4 * NS_PER_S, 8e6, NS_PER_S)
READS: dict[str, Any] = {
    "window_ns": NS_PER_S,
    "foreground": {d: Rates(1, 1) for d in Direction},
    "run_delta_bytes": {Direction.READ: (*[0] * 17, 80 * MIB)},
}


def after(*events: Frame | Edge | QueueSample, policy: Policy = POLICY) -> State:
    state = State()
    for event in events:
        if isinstance(event, Frame):
            state = evaluate.on_frame(state, event, policy)
        elif isinstance(event, Edge):
            state = evaluate.on_edge(state, event, policy)
        else:
            state = evaluate.on_queue(state, event, policy)
    return state


def decided(*events: Frame | Edge | QueueSample, policy: Policy = POLICY) -> Decision:
    return evaluate.decide(after(*events, policy=policy), policy, 7)


def test_every_strategy_proposes_and_wins_what_it_alone_sets() -> None:
    decision = decided(idle_frame(**READS))
    assert [p.strategy for p in decision.proposals] == ["idle_destage", "stream_bypass"]
    assert (decision.volume, decision.at_ns) == ("bcache0", 7)
    assert decision.gate is not None and decision.gate.kind is GateKind.OPEN
    assert decision.gate_strategy == "idle_destage"
    assert decision.sequential_cutoff_bytes == 4 * MIB
    assert decision.cutoff_strategy == "stream_bypass"


def test_without_a_stream_no_cutoff_is_set() -> None:
    decision = decided(busy_frame())
    assert (decision.sequential_cutoff_bytes, decision.cutoff_strategy) == (None, "")


def test_the_first_proposal_wins_and_the_loser_stays_visible() -> None:
    first = Proposal("one", "a", gate=Gate(GateKind.PACED, 5), sequential_cutoff_bytes=1 * MIB)
    second = Proposal(
        "two",
        "b",
        gate=Gate(GateKind.CLOSED),
        sequential_cutoff_bytes=2 * MIB,
        congestion_bypass=False,
        collect_garbage=True,
    )
    ruled = Ruling(first.gate, "one", "a")
    decision = evaluate.resolve("bcache0", 7, (first, second), ruled)
    assert decision.proposals == (first, second)
    assert (decision.gate, decision.gate_strategy) == (first.gate, "one")
    assert (decision.sequential_cutoff_bytes, decision.cutoff_strategy) == (MIB, "one")
    assert decision.congestion_bypass is False
    assert decision.collect_garbage
    turned = evaluate.resolve("bcache0", 7, (second, first), ruled)
    assert turned.cutoff_strategy == "two"


@pytest.mark.parametrize(
    ("signals", "why"),
    [
        ({"state": "no cache"}, "no cache is attached"),
        ({"state": "inconsistent"}, "inconsistent"),
        ({"cache_mode": "writethrough"}, "the kernel alone writes back what is still dirty"),
        ({"cache_mode": "writethrough", "dirty_bytes": 0}, "writethrough: there is no dirty data"),
        ({"cache_mode": "writearound"}, "the cache mode is writearound"),
        ({"cache_mode": "none"}, "the cache mode is none"),
        ({"state": "clean"}, ""),
        ({"state": None, "cache_mode": None}, ""),
    ],
)
def test_what_cannot_be_tuned_has_a_reason(signals: dict[str, Any], why: str) -> None:
    state = after(idle_frame(1000, **READS), idle_frame(1250, **READS, **signals))
    decision = evaluate.decide(state, POLICY, 1)
    assert (evaluate.gate(state, POLICY).gate is None) == bool(why)
    for proposal in decision.proposals:
        assert why in proposal.unsupported
        assert bool(proposal.unsupported) == bool(why)
    if why:
        assert (decision.gate, decision.sequential_cutoff_bytes) == (None, None)
        assert state.destage.phase is Phase.UNKNOWN
        assert state.streams.mode is StreamMode.REST


@pytest.mark.parametrize("edges", [(), (busy_edge(1100),), (busy_edge(1100), idle_edge(1500))])
@pytest.mark.parametrize(
    ("rules", "by", "kind"),
    [((), "", None), ((RULE,), "rule drain", GateKind.OPEN), ((OFF,), "", None)],
)
def test_where_destage_cannot_be_followed_only_a_rule_sets_the_gate(
    edges: tuple[Edge, ...], rules: tuple[Rule, ...], by: str, kind: GateKind | None
) -> None:
    policy = Policy(rules=rules)
    untold = idle_frame(1050, missing={"destage": "no tracepoint"})
    state = after(idle_frame(1000), untold, *edges, policy=policy)
    ruling = evaluate.gate(state, policy)
    assert (ruling.gate and ruling.gate.kind) == kind
    for explained in (True, False):
        decision = evaluate.decide(state, policy, 7, explained=explained)
        assert (decision.gate, decision.gate_strategy) == (ruling.gate, by)
    if not by:
        why = "write-back cannot be followed here: no tracepoint"
        assert (ruling.by, ruling.why) == ("idle_destage", why)
    assert evaluate.probe_settings(state, policy).pace_period_ns == 0


def test_an_edge_does_not_move_what_cannot_be_tuned() -> None:
    state = after(idle_frame(state="inconsistent"), busy_edge(1100), idle_edge(1500))
    assert evaluate.gate(state, POLICY) == (
        None,
        "idle_destage",
        "the kernel reports the volume as inconsistent: nothing is written to it",
    )
    assert evaluate.probe_settings(state, POLICY).pace_period_ns == 0


def test_a_volume_that_can_be_tuned_again_is_tuned_again() -> None:
    state = after(idle_frame(1000, state="no cache"), idle_frame(1250))
    assert state.destage.phase is Phase.DESTAGE


def test_what_was_learned_outlives_a_moment_in_which_nothing_can_be_tuned() -> None:
    gap = (idle_edge(1500), queue_sample(1600, 3, 5), queue_sample(1700, 3, 25), busy_edge(4000))
    before = after(busy_frame(1000), *gap).destage
    assert before.pace.completions_per_s and before.gap.lengths_ns
    felt = after(busy_frame(1000), *gap, busy_frame(4250, disturbance=FELT))
    assert felt.destage.cap.bytes_per_s
    suspended = evaluate.on_frame(felt, busy_frame(4500, state="suspended"), POLICY)
    assert suspended.destage.phase is Phase.UNKNOWN
    again = evaluate.on_frame(suspended, busy_frame(4750), POLICY).destage
    assert (again.pace, again.gap.lengths_ns, again.cap) == (
        before.pace,
        before.gap.lengths_ns,
        felt.destage.cap,
    )


def test_strategy_that_is_off_proposes_nothing() -> None:
    only_streams = Policy(destage=None)
    events = (idle_frame(**READS), busy_edge(1100), idle_edge(1500), queue_sample(1510, 3))
    decision = decided(*events, policy=only_streams)
    assert [p.strategy for p in decision.proposals] == ["stream_bypass"]
    assert decision.gate is None
    nobody = evaluate.gate(after(*events, policy=only_streams), only_streams)
    assert (nobody.gate, nobody.why) == (None, "no strategy decides about the gate")
    only_destage = decided(idle_frame(**READS), policy=Policy(streams=None))
    assert [p.strategy for p in only_destage.proposals] == ["idle_destage"]
    assert only_destage.sequential_cutoff_bytes is None


def test_false_congestion_is_switched_off_permanently() -> None:
    quiet = decided(busy_frame())
    assert quiet.congestion_bypass is None
    state = after(busy_frame(1000, bypass_bytes={"congested": 4096}), busy_frame(1250))
    decision = evaluate.decide(state, POLICY, 1)
    assert decision.congestion_bypass is False
    assert "congestion" in decision.proposals[1].reason


def test_the_probe_is_asked_for_the_queue_only_while_the_gate_is_open() -> None:
    wait_ns = 300 * NS_PER_MS
    assert evaluate.probe_settings(after(busy_frame()), POLICY) == ProbeSettings(wait_ns, 0)
    assert evaluate.probe_settings(after(idle_frame()), POLICY) == ProbeSettings(
        wait_ns, PACE_PERIOD_NS
    )


def conditions(*events: Frame | Edge) -> dict[str, tuple[str | None, str, bool]]:
    found = {}
    for proposal in decided(*events).proposals:
        for each in proposal.conditions:
            found[each.signal] = (each.measured, each.threshold, each.holds)
    return found


def test_conditions_show_measured_values_beside_thresholds() -> None:
    found = conditions(idle_frame(time_to_full_s=12.0, dirty_room_bytes=GIB // 2, **READS))
    assert found["dirty data"] == ("420 MiB", "10.2 MiB", True)
    assert found["idle for"] == ("500 ms", "300 ms (not learned yet)", True)
    assert found["time to full"] == ("12 s", "20 s", True)
    assert found["room for dirty data"] == ("512 MiB", "51.2 MiB", False)
    assert found["backing device busy for users"] == ("90%", "30%", False)
    assert found["read stream"] == ("80 MiB/s", "4 MiB/s", True)
    assert found["write stream"] == ("0 B/s", "4 MiB/s", False)
    assert found["random writes"] == ("0 B/s", "40 KiB/s", False)


def test_a_wait_of_the_policy_is_explained_as_such() -> None:
    state, params = after(idle_frame()), DestageParams(wait_ns=300 * NS_PER_MS)
    found = explanation.of_destage(state.destage, idle_frame(), params)
    (idle,) = (each for each in found if each.signal == "idle for")
    assert idle.threshold == "300 ms (set by the policy)"


def test_the_explanation_of_an_edge_shows_the_edges_values() -> None:
    measured, _, holds = conditions(busy_frame(1000), idle_edge(1500, 310))["idle for"]
    assert (measured, holds) == ("310 ms", True)
    measured, _, holds = conditions(idle_frame(1000), busy_edge(1500))["idle for"]
    assert (measured, holds) == ("0 s", False)


def test_a_condition_on_an_unknown_value_is_not_met() -> None:
    found = conditions(
        busy_frame(
            idle=None,
            idle_ns=None,
            dirty_bytes=None,
            dirty_room_bytes=None,
            backing_busy_foreground_ratio=None,
            foreground=None,
        )
    )
    unknown = {name: holds for name, (measured, _, holds) in found.items() if measured is None}
    assert set(unknown) >= {"dirty data", "idle for", "room for dirty data", "write stream"}
    assert not any(unknown.values())


@pytest.mark.parametrize(
    ("signals", "measured"),
    [
        ({}, "never"),
        ({"time_to_full_s": 30.0}, "30 s"),
        ({"dirty_in_bytes_per_s": None}, None),
        ({"destage_bytes_per_s": None}, None),
        ({"dirty_room_bytes": None}, None),
    ],
)
def test_an_unknown_time_to_full_is_not_never(
    signals: dict[str, Any], measured: str | None
) -> None:
    assert conditions(busy_frame(**signals))["time to full"] == (measured, "20 s", False)


def test_before_the_first_frame_the_kernels_settings_stay() -> None:
    decision = decided()
    assert decision.gate == Gate(GateKind.RELEASED)
    assert decision.volume == ""


def same_key(one: State, other: State) -> bool:
    return decision_key(one, POLICY, evaluate.decide(one, POLICY, 1)) == decision_key(
        other, POLICY, evaluate.decide(other, POLICY, 2)
    )


def test_a_new_phase_is_a_new_decision_but_a_new_pace_is_not() -> None:
    opened, pressed = after(idle_frame()), (busy_frame(), busy_frame(10_000, **NO_ROOM))
    slower = after(*pressed, queue_sample(10_010, 9, 5))
    assert evaluate.gate(slower, POLICY) != evaluate.gate(after(*pressed), POLICY)
    assert same_key(after(*pressed), slower)
    assert not same_key(opened, after(*pressed))
    assert not same_key(opened, after(busy_frame()))
    assert not same_key(opened, after(idle_frame(**READS)))
    assert not same_key(opened, after(idle_frame(cache_mode="none")))
