# SPDX-License-Identifier: GPL-2.0-only
"""What the history has of a knob after a gap is its value, also where a rest has set it."""

from __future__ import annotations

from itertools import pairwise

from ebbgate.model.decision import GateKind, OutcomeKind
from tests.builders import queue_sample
from tests.volume_loop_fixture import LoopHarness

PERCENT = "writeback_percent"


def rest(harness: LoopHarness) -> None:
    """Let a gap begin and go on until the gate rests in it."""
    for _ in range(3):
        harness.gap_and_back()
    harness.idle()
    begin_ms = harness.now_ms
    for later_ms in range(0, 4000, 20):
        harness.loop.on_record(queue_sample(begin_ms + later_ms, 3, later_ms))
        harness.settle()
        gate = harness.loop.driver.applied.gate
        if gate is not None and gate.kind is GateKind.RESTING:
            return
    raise AssertionError("the gate never rested")


def recorded(harness: LoopHarness) -> list[str]:
    """The values that recorded writes have given to the knob."""
    return [
        each.action.new
        for each in harness.kept.written
        if each.kind is OutcomeKind.CHANGED and each.action.knob == PERCENT
    ]


def test_the_end_of_a_gap_records_what_a_rest_has_set(enforced: LoopHarness) -> None:
    rest(enforced)
    assert (enforced.knob(PERCENT), recorded(enforced)[-1]) == ("40", "0")
    enforced.busy()
    enforced.settle()
    assert (enforced.knob(PERCENT), recorded(enforced)[-1]) == ("40", "40")


def test_what_a_rest_has_set_is_recorded_once(enforced: LoopHarness) -> None:
    rest(enforced)
    enforced.busy()
    enforced.settle()
    enforced.gap_and_back()
    assert all(one != other for one, other in pairwise(recorded(enforced)))
