# SPDX-License-Identifier: GPL-2.0-only
"""Rules: dwell, release, cool-down, minimum interval; what is unknown never holds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbgate.model.decision import Gate, GateKind, Proposal
from ebbgate.model.frame import Frame
from ebbgate.policy import rules
from ebbgate.policy.rules import INTERVAL_NS, Check, Rule, RulesState
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S
from tests.builders import busy_frame

ABOVE = ((Check("dirty_ratio", ">", 0.4),),)
BELOW = ((Check("dirty_ratio", "<", 0.25),),)
TICK_NS = 250 * NS_PER_MS


def rule(name: str = "guard", **parts: Any) -> Rule:
    """Drains above 40 % dirty, at once and for as long as that holds."""
    proposal = Proposal(f"rule {name}", "on: w", gate=Gate(GateKind.OPEN))
    known: dict[str, Any] = {"when": ABOVE, "proposal": proposal, "settings": ("gate",)}
    return Rule(name, **{**known, **parts})


def at(seconds: float, dirty: float | None, **signals: Any) -> Frame:
    return busy_frame(round(seconds * 1000), dirty_ratio=dirty, **signals)


def run(frames: list[Frame], *ruled: Rule, state: RulesState | None = None) -> RulesState:
    state = state or RulesState()
    for frame in frames:
        state = rules.on_frame(state, frame, ruled, frame.at_ns)
    return state


def on_at(levels: dict[float, float | None], *ruled: Rule) -> list[float]:
    """The seconds at which the first rule is on."""
    state, found = RulesState(), []
    for seconds, dirty in levels.items():
        state = run([at(seconds, dirty)], *ruled, state=state)
        if state.rules[ruled[0].key].on:
            found.append(seconds)
    return found


def reason(state: RulesState, frame: Frame, one: Rule) -> str:
    (proposal,) = rules.proposals(state, (one,), frame, frame.at_ns)
    return proposal.reason


def test_a_rule_without_dwell_is_on_at_once_and_off_with_its_condition() -> None:
    levels: dict[float, float | None] = {1: 0.3, 2: 0.5, 7: 0.5, 8: 0.3, 9: 0.3}
    assert on_at(levels, rule()) == [2, 7]


def test_the_condition_must_hold_for_the_whole_dwell() -> None:
    levels: dict[float, float | None] = {1: 0.5, 3: 0.5, 3.5: 0.3, 4: 0.5, 6.9: 0.5, 7: 0.5}
    assert on_at(levels, rule(dwell_ns=3 * NS_PER_S)) == [7]


@pytest.mark.parametrize("gap", [None, 0.3])
def test_an_unknown_signal_is_not_met_and_ends_the_dwell(gap: float | None) -> None:
    levels: dict[float, float | None] = {1: 0.5, 2: gap, 3: 0.5, 5.9: 0.5, 6: 0.5}
    assert on_at(levels, rule(dwell_ns=3 * NS_PER_S)) == [6]
    assert on_at({1: None, 20: None}, rule()) == []


def test_it_stays_on_until_its_until_holds() -> None:
    levels: dict[float, float | None] = {1: 0.5, 10: 0.3, 20: 0.26, 30: 0.2, 31: 0.3}
    assert on_at(levels, rule(until=BELOW)) == [1, 10, 20]


def test_it_ends_when_its_signal_is_unknown() -> None:
    assert on_at({1: 0.5, 10: None, 11: 0.3}, rule(until=BELOW)) == [1]
    assert on_at({1: 0.5, 10: None}, rule()) == [1]


def test_it_stays_off_for_its_cooldown() -> None:
    levels: dict[float, float | None] = {1: 0.5, 10: 0.2, 11: 0.5, 39: 0.5, 40: 0.5}
    assert on_at(levels, rule(cooldown_ns=30 * NS_PER_S)) == [1, 40]


def test_the_dwell_restarts_after_a_release() -> None:
    both = rule(until=((Check("dirty_ratio", ">", 0.45),),), dwell_ns=8 * NS_PER_S)
    assert on_at({0: 0.5, 8: 0.5, 13: 0.5, 14: 0.5, 21: 0.5, 22: 0.5}, both) == [8, 22]


def test_no_setting_changes_twice_within_the_interval() -> None:
    flapping: dict[float, float | None] = {
        s / 4: 0.5 if s % 2 else 0.3 for s in range(1, 10 * 60 * 4)
    }
    found = on_at(flapping, rule())
    assert found
    assert all(b - a == 0.25 or b - a > 5 for a, b in pairwise(found))


def test_a_change_of_one_setting_does_not_hold_up_another() -> None:
    cutoff = rule("cutoff", when=BELOW, settings=("sequential_cutoff",))
    state = run([at(1, 0.5), at(2, 0.2)], rule(), cutoff)
    assert state.rules["", "guard"].on
    assert state.rules["", "cutoff"].on


@settings(max_examples=12)
@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=20, max_size=200), st.booleans())
def test_rules_that_fight_change_a_setting_at_most_once_in_the_interval(
    levels: list[float | None], dwell: bool
) -> None:
    """Ten simulated minutes, the levels over and over."""
    held = Proposal("rule hold", "on: w", gate=Gate(GateKind.CLOSED))
    dwell_ns = NS_PER_S if dwell else 0
    ruled = (
        rule("drain", dwell_ns=dwell_ns, until=BELOW),
        rule("hold", when=((Check("dirty_ratio", "<=", 0.5),),), proposal=held),
        rule("drain-too", when=((Check("dirty_ratio", "<", 0.1),),)),
    )
    state, changes, last = RulesState(), [], None
    for step in range(10 * 60 * 4):
        frame = busy_frame(dirty_ratio=levels[step % len(levels)], at_ns=step * TICK_NS)
        state = rules.on_frame(state, frame, ruled, frame.at_ns)
        gate = state.in_force[0].gate if state.in_force else None
        if gate != last:
            changes.append(frame.at_ns)
            last = gate
    assert all(b - a >= INTERVAL_NS for a, b in pairwise(changes))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_a_rule_is_on_only_after_its_condition_held_for_the_dwell(levels: list[float]) -> None:
    one = rule(dwell_ns=2 * NS_PER_S)
    state = RulesState()
    for step, level in enumerate(levels):
        before = state
        state = run([at(10 + step / 4, level)], one, state=state)
        if state.in_force and not before.in_force:
            assert all(each > 0.4 for each in levels[max(0, step - 8) : step + 1])
            assert step >= 8


def test_or_of_ands_with_unknowns() -> None:
    a, b = Check("dirty_ratio", ">", 0.4), Check("idle_for", "<", 5)
    values: dict[str, Any] = {"dirty_ratio": 0.5, "idle_for": None}
    assert rules.holds(((a,), (b,)), values) is True
    assert rules.holds(((a, b),), values) is None
    values["dirty_ratio"] = 0.3
    assert rules.holds(((a, b),), values) is False
    assert rules.holds(((a,), (b,)), values) is None


def test_rules_in_force_come_in_the_order_of_the_policy() -> None:
    first, second = rule("first"), rule("second")
    assert [w.strategy for w in run([at(1, 0.5)], first, second).in_force] == [
        "rule first",
        "rule second",
    ]


def test_a_policy_that_changes_keeps_what_rules_of_the_same_name_remember() -> None:
    state = run([at(1, 0.5)], rule("a"), rule("b"))
    after = run([at(2, 0.3)], rule("b", until=BELOW), state=state)
    assert after.rules.keys() == {("", "b")}
    assert after.rules["", "b"].on
    assert run([at(3, 0.5)], state=after) == RulesState()


def test_a_rule_of_the_same_name_in_another_policy_remembers_nothing_of_this_one() -> None:
    """A schedule uses the other one for an hour."""
    night = rule(policy="drain-now", until=BELOW)
    day = rule(policy="mine", when=((Check("dirty_ratio", ">", 0.9),),), until=BELOW)
    state = run([at(1, 0.5)], night)
    assert rules.in_force(state, (night,))
    assert not rules.in_force(state, (day,))
    state = run([at(2, 0.5)], day, state=state)
    assert not state.in_force
    assert reason(state, at(2, 0.5), day) == "off: its conditions do not hold"


def test_a_pause_puts_no_rule_in_force_and_the_times_go_on() -> None:
    dwells, on = rule("dwells", dwell_ns=6 * NS_PER_S), rule("on", until=BELOW)
    state = rules.pause(run([at(1, 0.5)], dwells, on))
    assert rules.in_force(state, state.evaluated) == ()
    # The level between the two bounds keeps a rule on that was on.
    assert [each.strategy for each in run([at(2, 0.3)], on, state=state).in_force] == ["rule on"]
    assert run([at(7, 0.5)], dwells, state=state).rules[dwells.key].on


def test_a_rule_that_the_cache_cannot_follow_stays_off_with_a_reason() -> None:
    cannot = rule(proposal=Proposal("rule guard", "no", unsupported="no"))
    state = run([at(1, 0.5)], cannot)
    assert not state.in_force
    (proposal,) = rules.proposals(state, (cannot,), at(1, 0.5), NS_PER_S)
    assert proposal.unsupported == "no"


def test_the_reason_of_a_rule_names_what_is_missing() -> None:
    one = rule(dwell_ns=3 * NS_PER_S, cooldown_ns=30 * NS_PER_S)
    assert reason(run([at(1, 0.3)], one), at(1, 0.3), one) == "off: its conditions do not hold"
    assert reason(run([at(1, None)], one), at(1, None), one) == "off: unknown: dirty_ratio"
    held = run([at(1, 0.5), at(2, 0.5)], one)
    assert reason(held, at(2, 0.5), one) == "off: has held for 1 s of 3 s"
    on = run([at(4, 0.5)], one, state=held)
    assert reason(on, at(9, 0.5), one) == "on: w (5 s)"
    cooling = run([at(10, 0.3), at(12, 0.5)], one, state=on)
    assert reason(cooling, at(12, 0.5), one) == "off: cooling down, 28 s left"
    short = rule()
    soon = run([at(1, 0.5), at(7, 0.3), at(8, 0.5)], short)
    expected = "off: its setting changed a moment ago, 4 s left"
    assert reason(soon, at(8, 0.5), short) == expected


def test_conditions_show_measured_values_beside_thresholds() -> None:
    groups = (
        (Check("dirty_ratio", ">", 0.4), Check("dirty_data", "<", 10 * MIB)),
        (Check("regime", "is", ("burst", "stream")), Check("time_to_full", "<", NS_PER_S)),
    )
    one = rule(when=groups, until=BELOW)
    frame = at(1, 0.3)
    (off,) = rules.proposals(RulesState(), (one,), frame, frame.at_ns)
    assert [(c.signal, c.measured, c.comparison, c.threshold, c.holds) for c in off.conditions] == [
        ("dirty_ratio", "30%", ">", "40%", False),
        ("and dirty_data", "420 MiB", "<", "10 MiB", False),
        ("or regime", None, "is", "burst or stream", False),
        ("and time_to_full", "never", "<", "1 s", False),
    ]
    on = run([at(1, 0.5)], rule(until=BELOW))
    (shown,) = rules.proposals(on, (one,), at(2, 0.5), 2 * NS_PER_S)
    assert [(c.signal, c.measured, c.holds) for c in shown.conditions] == [
        ("until dirty_ratio", "50%", False)
    ]
