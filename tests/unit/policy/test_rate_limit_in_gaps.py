# SPDX-License-Identifier: GPL-2.0-only
"""A limit of the rate is kept on average in a gap, by rests of an open gate."""

from __future__ import annotations

from dataclasses import replace

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.frame import Frame
from ebbgate.model.records import Edge, QueueSample
from ebbgate.policy.defaults import Policy
from ebbgate.policy.engine import Outcome, State, step
from ebbgate.policy.limits import Bounds, Limits
from ebbgate.policy.strategies.destage_state import DestageParams
from ebbgate.policy.strategies.gap_use import Rest
from ebbgate.units import MIB, NS_PER_MS
from tests.builders import busy_edge, busy_frame, idle_edge, idle_frame, queue_sample

PERIOD_MS = 5000
LIMITED = Policy(
    destage=DestageParams(mean_rate_max_bytes_per_s=20 * MIB),
    limits=Limits(destage_rate=Bounds(high=20 * MIB)),
)


def run(*events: Frame | Edge | QueueSample) -> Outcome:
    """What is decided after these events."""
    state = State()
    outcome = Outcome(state, LIMITED, 0)
    for event in events:
        state, outcome = step(state, event, LIMITED, event.at_ns)
    return outcome


def gap(number: int, length_ms: int = 2500) -> tuple[Frame | Edge, ...]:
    """The edges of a gap."""
    begin_ms = PERIOD_MS * number
    busy = busy_edge(begin_ms + length_ms, length_ms)
    return busy_frame(begin_ms - 200), idle_edge(begin_ms + 300), busy


def pieces(count: int, per_sample: int, piece_kib: int = 64) -> list[QueueSample]:
    """Samples of a disk that writes so many pieces between two of them."""
    return [
        replace(
            queue_sample(500 + 20 * number, 4, per_sample * number),
            done_bytes=per_sample * number * piece_kib * 1024,
        )
        for number in range(count)
    ]


def test_a_limit_is_kept_by_rests_of_an_open_gate() -> None:
    opened = run(idle_frame(300), *pieces(2, 32))
    assert opened.gate == Gate(GateKind.OPEN, 20 * MIB)
    gate = run(idle_frame(300), *pieces(9, 32)).gate
    assert gate is not None and gate.kind is GateKind.RESTING


def test_a_limit_below_what_is_under_way_at_once_is_paced_by_the_kernel() -> None:
    opened = run(idle_frame(300), *pieces(9, 4, 512))
    assert opened.gate == Gate(GateKind.PACED, 20 * MIB)


def test_a_limit_holds_where_the_end_is_foreseen_too() -> None:
    begin_ms = 4 * PERIOD_MS
    samples = [replace(each, at_ns=each.at_ns + begin_ms * NS_PER_MS) for each in pieces(9, 32)]
    alike = [event for number in (1, 2, 3) for event in gap(number)]
    outcome = run(*alike, idle_edge(begin_ms + 300), *samples)
    assert outcome.destage.gap.foreseeing
    assert outcome.destage.gap.rest is Rest.RATE
