# SPDX-License-Identifier: GPL-2.0-only
"""A hold counts once nothing is under way, and ends at its bounds whatever the rule says."""

from __future__ import annotations

from typing import Any

import pytest

from ebbgate.model.decision import Gate, GateKind, Proposal
from ebbgate.model.frame import Frame
from ebbgate.policy import hold
from ebbgate.policy.defaults import Policy
from ebbgate.policy.engine import Outcome, State, step
from ebbgate.policy.hold import AGE_NS_MAX, NONE, HoldState
from ebbgate.policy.rules import Rule
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.units import GIB, MIB, NS_PER_S
from tests.builders import frame

HOUR_S = 3600


def seen(at_s: float, **fields: Any) -> Frame:
    """100 MiB dirty of 1 GiB, users idle, nothing under way."""
    known: dict[str, Any] = {
        "at_ns": int(at_s * NS_PER_S),
        "probed_at_ns": int(at_s * NS_PER_S),
        "idle": True,
        "idle_ns": 5 * NS_PER_S,
        "dirty_bytes": 100 * MIB,
        "cache_bytes": GIB,
        "dirty_ratio": 0.1,
        "dirty_room_bytes": 300 * MIB,
        "destage_in_flight_ios": 0,
        "destage_bytes_per_s": 0.0,
        "state": "dirty",
    }
    return frame(**(known | fields))


def held(*frames: Frame, age_ns_max: int = AGE_NS_MAX) -> HoldState:
    state = NONE
    for each in frames:
        state = hold.on_frame(state, each, DestageParams(), age_ns_max, wanted=True)
    return state


def test_without_a_rule_that_asks_there_is_no_hold() -> None:
    begun = held(seen(1))
    after = hold.on_frame(begun, seen(2), DestageParams(), AGE_NS_MAX, wanted=False)
    assert (after, after.text) == (NONE, "")


def test_it_counts_as_a_hold_once_nothing_was_under_way_for_three_seconds() -> None:
    moving = [seen(1, destage_in_flight_ios=64), seen(2, destage_in_flight_ios=3)]
    assert held(*moving).text == "held, 3 pieces still under way"
    last = seen(3, destage_bytes_per_s=4096.0)
    assert held(*moving, last, seen(5.9)).text == "held, what is still under way"
    assert held(*moving, last, seen(5.9), seen(6)).text == "held"


def test_what_is_not_measured_never_counts_as_nothing_under_way() -> None:
    unknown = [seen(second, destage_in_flight_ios=None) for second in range(1, 20)]
    assert not held(*unknown).settled


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"dirty_room_bytes": 50 * MIB}, "nearly full"),
        ({"time_to_full_s": 30.0}, "nearly full"),
        ({"dirty_room_bytes": None}, "unknown"),
    ],
)
def test_a_full_cache_ends_the_hold(fields: dict[str, Any], why: str) -> None:
    assert why in held(seen(1), seen(2, **fields)).over


def test_old_dirty_data_ends_the_hold_until_it_is_written_back() -> None:
    old = [seen(1), seen(1 + 2 * HOUR_S)]
    over = held(*old, age_ns_max=2 * HOUR_S * NS_PER_S)
    assert over.over == "dirty data has waited for 2 h"
    left = [*old, seen(3 * HOUR_S, dirty_bytes=2 * MIB)]
    assert held(*left, age_ns_max=2 * HOUR_S * NS_PER_S).over
    again = held(*left, seen(4 * HOUR_S, dirty_bytes=MIB), age_ns_max=2 * HOUR_S * NS_PER_S)
    assert (again.over, again.dirty_since_ns) == ("", 4 * HOUR_S * NS_PER_S)


def test_the_age_counts_from_the_first_dirty_data() -> None:
    clean = [seen(1, dirty_bytes=0), seen(5000, dirty_bytes=0), seen(6000), seen(7000)]
    assert held(*clean).dirty_since_ns == 6000 * NS_PER_S


def test_an_unknown_level_ends_the_hold_only_while_it_is_unknown() -> None:
    assert not held(seen(1), seen(2, dirty_room_bytes=None), seen(3)).over


# ---- in the engine ------------------------------------------------------------------------------
RULE = Rule("sleep", (), Proposal("rule sleep", "on: w", gate=Gate(GateKind.HELD)), ("gate",))


def decided(*frames: Frame) -> Outcome:
    """Decide with a rule that always holds."""
    policy = Policy(rules=(Rule("sleep", ((),), RULE.proposal, RULE.settings),))
    state = State()
    for each in frames:
        state, outcome = step(state, each, policy, each.at_ns)
    return outcome


def test_a_rule_holds_and_its_reason_tells_what_is_under_way() -> None:
    outcome = decided(seen(1, destage_in_flight_ios=5))
    assert outcome.gate == Gate(GateKind.HELD)
    (rule,) = (p for p in outcome.decision().proposals if p.strategy == "rule sleep")
    assert rule.reason == "on: w; held, 5 pieces still under way"


def test_at_its_bound_the_strategy_takes_over_from_the_rule() -> None:
    outcome = decided(seen(1), seen(2), seen(3, dirty_room_bytes=50 * MIB))
    assert outcome.ruling.by == "idle_destage"
    assert outcome.gate is not None
    assert outcome.gate.kind is not GateKind.HELD
    (rule,) = (p for p in outcome.explained().proposals if p.strategy == "rule sleep")
    assert "the hold has ended: the cache is nearly full" in rule.reason
