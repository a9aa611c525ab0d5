# SPDX-License-Identifier: GPL-2.0-only
"""Gaps are left alone for some seconds where nobody knows what users felt of the last ones."""

from __future__ import annotations

import pytest

from ebbgate.model.decision import GateKind
from ebbgate.model.frame import Disturbance, Frame
from ebbgate.model.records import Edge
from ebbgate.policy.engine import Policy, State, step
from ebbgate.policy.strategies import calm_time, explanation
from ebbgate.policy.strategies.calm_time import AGAIN_NS, CALM_NS, CalmTime
from ebbgate.policy.strategies.destage_state import DestageParams, Phase
from ebbgate.policy.strategies.idle_destage import gate_of
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S
from tests.builders import busy_frame, idle_edge, idle_frame

MINUTE_NS = 60 * NS_PER_S


def felt(at_ns: int, felt_ns: int | None = None) -> Disturbance:
    """A gap that wrote 20 MiB/s back; None: there was nothing to compare with."""
    return Disturbance(at_ns, 20.0 * MIB, felt_ns)


def judged(*gaps: tuple[int, int | None], calm: CalmTime | None = None) -> CalmTime:
    """The state after gaps, each with its end and with what was felt, both in ns."""
    calm = calm or CalmTime()
    for end_ns, felt_ns in gaps:
        calm = calm_time.judge(calm, felt(end_ns, felt_ns), end_ns)
    return calm


@pytest.mark.parametrize(
    ("gaps", "begins"),
    [
        ([(1, None)], False),
        ([(1, None), (2, None)], True),
        ([(1, None), (1, None)], False),
        ([(1, None), (2, 0), (3, None)], False),
        ([(1, None), (2, 9 * NS_PER_MS), (3, None), (4, None)], True),
    ],
)
def test_two_gaps_in_a_row_of_which_nothing_is_known_begin_a_calm_time(
    gaps: list[tuple[int, int | None]], begins: bool
) -> None:
    calm = judged(*gaps)
    assert calm_time.lasts(calm, gaps[-1][0]) is begins


def test_a_calm_time_lasts_for_ten_seconds() -> None:
    calm = judged((NS_PER_S, None), (2 * NS_PER_S, None))
    assert calm_time.lasts(calm, 2 * NS_PER_S + CALM_NS - 1)
    assert not calm_time.lasts(calm, 2 * NS_PER_S + CALM_NS)


@pytest.mark.parametrize(("later_ns", "again"), [(AGAIN_NS - 1, False), (AGAIN_NS, True)])
def test_it_comes_again_only_after_the_time_in_which_what_it_taught_is_remembered(
    later_ns: int, again: bool
) -> None:
    first = judged((1, None), (2, None))
    later = judged((2 + later_ns - NS_PER_S, None), (2 + later_ns, None), calm=first)
    assert calm_time.lasts(later, 2 + later_ns) is again


# ---- in the strategy ----------------------------------------------------------------------------
def burst(at_ms: int, **signals: object) -> Frame:
    """A burst of which nobody knows whether the gap before delayed it."""
    return busy_frame(at_ms, disturbance=felt(at_ms * NS_PER_MS), **signals)


def run(*events: Frame | Edge, policy: Policy | None = None) -> State:
    state = State()
    for event in events:
        state, _ = step(state, event, policy or Policy(), event.at_ns)
    return state


UNKNOWN = (burst(1000), burst(2000))


def gate_kind(state: State) -> GateKind:
    return gate_of(state.destage, DestageParams()).kind


def test_the_gate_stays_closed_in_gaps_and_the_reason_is_told() -> None:
    gap = (idle_edge(6000), idle_frame(6500))
    state = run(*UNKNOWN, *gap)
    assert (state.destage.phase, state.destage.why) == (Phase.WAIT, calm_time.WHY)
    assert gate_kind(state) is GateKind.CLOSED
    assert state.frame is not None
    texts = [
        f"{each.signal} {each.measured} {each.comparison} {each.threshold}"
        for each in explanation.of_destage(state.destage, state.frame, DestageParams())
    ]
    assert "gaps left alone for 4.5 s >= 10 s (no like requests to compare with)" in texts


@pytest.mark.parametrize("last", [idle_edge(12_100), idle_frame(12_100)])
def test_the_gate_opens_in_the_first_gap_after_it(last: Frame | Edge) -> None:
    assert gate_kind(run(*UNKNOWN, burst(11_900), last)) is GateKind.OPEN


def test_a_cache_that_is_full_is_drained_all_the_same() -> None:
    full = {"dirty_room_bytes": 0, "dirty_in_bytes_per_s": 1.0}
    state = run(*UNKNOWN, burst(3000, **full))
    assert (state.destage.phase, gate_kind(state)) == (Phase.PRESSURE, GateKind.PACED)
    assert gate_kind(run(*UNKNOWN, burst(3000, **full), idle_edge(3200))) is GateKind.OPEN


def test_without_a_target_no_gap_is_left_alone() -> None:
    policy = Policy(destage=DestageParams(disturbance_ns=None))
    state = run(*UNKNOWN, idle_edge(6000), policy=policy)
    assert state.destage.phase is Phase.DESTAGE
