# SPDX-License-Identifier: GPL-2.0-only
"""Rests within a gap, as idle_destage has them: decided, felt and explained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.frame import Disturbance, Frame
from ebbgate.model.records import Edge, QueueSample
from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import Policy, default_policy
from ebbgate.policy.engine import Outcome, State, step
from ebbgate.policy.strategies import idle_destage
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.drain_cap import DrainCap
from ebbgate.policy.strategies.gap_use import GapUse, Rest
from ebbgate.units import MIB, NS_PER_MS
from tests.builders import busy_edge, busy_frame, idle_edge, idle_frame, queue_sample

PERIOD_MS = 5000
HEADS = "; then one read brings a hard disk's heads back"
Event = Frame | Edge | QueueSample


def gap(number: int, *inside: Event, length_ms: int = 2500) -> tuple[Event, ...]:
    """The edges of a gap, with other events within it."""
    begin_ms = PERIOD_MS * number
    return (
        busy_frame(begin_ms - 200),
        idle_edge(begin_ms + 300),
        *inside,
        busy_edge(begin_ms + length_ms, length_ms),
    )


def alike(count: int = 3) -> list[Event]:
    return [event for number in range(1, count + 1) for event in gap(number)]


def run(*events: Event, policy: Policy | None = None) -> Outcome:
    """What is decided after these events."""
    state, policy = State(), policy or Policy()
    outcome = Outcome(state, policy, 0)
    for event in events:
        state, outcome = step(state, event, policy, event.at_ns)
    return outcome


def kind(outcome: Outcome) -> GateKind | None:
    return outcome.gate.kind if outcome.gate else None


def in_fourth(at_ms: int) -> tuple[Event, Event]:
    """The idle edge of a fourth gap, and a sample once it has lasted as long."""
    begin_ms = 4 * PERIOD_MS
    return idle_edge(begin_ms + 300), queue_sample(begin_ms + at_ms, 3)


@pytest.mark.parametrize(
    ("at_ms", "found"),
    [(400, GateKind.OPEN), (2300, GateKind.OPEN), (2340, GateKind.RESTING)],
)
def test_the_fourth_gap_of_one_length_is_foreseen(at_ms: int, found: GateKind) -> None:
    assert kind(run(*alike(), *in_fourth(at_ms))) is found


def test_the_end_is_foreseen_whatever_users_may_feel() -> None:
    policy = Policy(DestageParams(disturbance_ns=None))
    assert kind(run(*alike(), *in_fourth(2340), policy=policy)) is GateKind.RESTING


def test_a_rest_is_no_decision_of_its_own() -> None:
    opened, resting = (run(*alike(), *in_fourth(at_ms)) for at_ms in (400, 2340))
    assert kind(opened) is not kind(resting)
    keys = [each.key(each.decision()) for each in (opened, resting)]
    assert keys[0] == keys[1]


def test_a_frame_begins_a_rest_as_a_sample_does() -> None:
    begin_ms = 4 * PERIOD_MS
    frame = idle_frame(begin_ms + 2400, idle_ns=2400 * NS_PER_MS)
    assert kind(run(*alike(), idle_edge(begin_ms + 300), frame)) is GateKind.RESTING


def test_a_rest_ends_with_the_gap_even_if_the_edge_is_lost() -> None:
    begin_ms = 4 * PERIOD_MS
    outcome = run(*alike(), *in_fourth(2400), busy_frame(begin_ms + 2700))
    gap_after = outcome.destage.gap
    assert (kind(outcome), gap_after.rest, gap_after.window) == (GateKind.CLOSED, Rest.NONE, None)
    assert len(gap_after.lengths_ns) == 3


def test_dm_cache_rests_with_nothing_under_way() -> None:
    policy = default_policy(Kind.DM_CACHE)
    assert kind(run(*alike(), *in_fourth(400), policy=policy)) is GateKind.PACED
    assert run(*alike(), *in_fourth(2340), policy=policy).gate == Gate(GateKind.RESTING)


def test_on_dm_cache_a_cap_narrows_only_gaps_whose_end_is_not_foreseen() -> None:
    params = default_policy(Kind.DM_CACHE).destage or DestageParams()
    capped = DestageState(phase=Phase.WAIT, cap=DrainCap(MIB))
    foreseeing = GapUse(lengths_ns=(2500 * NS_PER_MS,) * 3)
    assert depth_in_a_gap(replace(capped, gap=foreseeing), params) >= 9
    assert depth_in_a_gap(capped, params) == 1


def depth_in_a_gap(state: DestageState, params: DestageParams) -> int:
    """The blocks at once after 0.8 s of a gap, on a disk that writes 280 blocks a second."""
    state = idle_destage.on_edge(state, idle_edge(300), params)
    for number in range(12):
        state = idle_destage.on_queue(
            state, queue_sample(340 + 40 * number, 4, 11 * number), params
        )
    return idle_destage.gate_of(state, params).depth_ios


def felt(at_ms: int, ms: float) -> dict[str, Any]:
    found = Disturbance(at_ms * NS_PER_MS, 100.0 * MIB, round(ms * NS_PER_MS))
    return {"disturbance": found}


def felt_after(length_ms: int, under_way: int, *ms: float) -> DestageState:
    """The state after a fourth gap of this length, and what was felt of it and of the next ones."""
    end_ms = 4 * PERIOD_MS + length_ms
    last = queue_sample(end_ms - 20, under_way)
    events: list[Event] = [*alike(), *in_fourth(min(length_ms, 2340)), last]
    events.append(busy_edge(end_ms, length_ms))
    for number, each in enumerate(ms):
        at_ms = end_ms + number * PERIOD_MS
        events.append(busy_frame(at_ms + 500, **felt(at_ms, each)))
    return run(*events).destage


@pytest.mark.parametrize(
    ("ms", "run_off"),
    [
        ([90, 4.5], 364),
        ([4.5, 3.3], 227.5),
        ([3.3, 1, 4.5], 273),
        ([4.5, 1, 1, 4.5], 182),
    ],
)
def test_rests_begin_earlier_once_two_of_three_foreseen_ends_or_one_much_is_felt(
    ms: list[float], run_off: float
) -> None:
    state = felt_after(2500, 0, *ms)
    assert state.gap.foreseen
    assert state.cap.bytes_per_s is None
    assert state.gap.run_off_ns / NS_PER_MS == pytest.approx(run_off)


def test_an_end_that_was_not_foreseen_caps_only_gaps_of_that_kind() -> None:
    state = felt_after(1500, 9, 9)
    assert not state.gap.foreseen
    assert state.cap.bytes_per_s == pytest.approx(50 * MIB)
    assert state.gap.run_off_ns / NS_PER_MS == 120


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (1000, "- 1 s >= 2.3 s (after 2.5 s of idle time; the gate rests 120 ms before"),
        (2400, "+ 2.4 s >= 2.3 s (after 2.5 s of idle time; the gate rests now, 120 ms before"),
    ],
)
def test_the_likely_return_is_explained(at_ms: int, text: str) -> None:
    begin_ms = 4 * PERIOD_MS
    frame = idle_frame(begin_ms + at_ms, idle_ns=at_ms * NS_PER_MS)
    outcome = run(*alike(), idle_edge(begin_ms + 300), frame)
    assert f"{text})" in likely_return(outcome)


def test_a_write_cache_that_the_kernel_knows_of_is_explained() -> None:
    frame = busy_frame(4 * PERIOD_MS, disk_write_cache=True)
    text = "the gate rests 370 ms before, 250 ms of it for the disk's own write cache"
    assert f"{text})" in likely_return(run(*alike(), frame))
    returns = Policy(DestageParams(head_return=1))
    assert f"{text}{HEADS})" in likely_return(run(*alike(), frame, policy=returns))


def test_nothing_is_explained_while_no_return_is_likely() -> None:
    assert likely_return(run(*gap(1), idle_frame(2 * PERIOD_MS))) == ""


def likely_return(outcome: Outcome) -> str:
    """The condition on the likely return, for people."""
    for proposal in outcome.explained().proposals:
        for each in proposal.conditions:
            if each.signal == "likely return":
                mark = "+" if each.holds else "-"
                return f"{mark} {each.measured} {each.comparison} {each.threshold}"
    return ""
