# SPDX-License-Identifier: GPL-2.0-only
"""What the status tells people: the floor of the tide gauge, and warnings."""

from __future__ import annotations

from dataclasses import replace

from ebbgate.units import format_bytes
from tests.volume_loop_fixture import LoopHarness


def test_the_floor_is_the_threshold_that_the_explanation_shows(enforced: LoopHarness) -> None:
    document = enforced.kept.document
    (threshold,) = (
        condition["threshold"]
        for proposal in document["proposals"]
        for condition in proposal["conditions"]
        if condition["signal"] == "dirty data"
    )
    assert document["dirty_floor_bytes"] > 0
    assert format_bytes(document["dirty_floor_bytes"]) == threshold


def test_without_idle_destage_there_is_no_floor(enforced: LoopHarness) -> None:
    enforced.loop.set_policy(replace(enforced.loop.policy, destage=None))
    enforced.now_ms += 1000
    enforced.tick()
    assert enforced.kept.document["dirty_floor_bytes"] is None


def test_a_disturbance_that_is_not_known_yet_is_no_warning(enforced: LoopHarness) -> None:
    document = enforced.kept.document
    assert document["disturbance_ns"] is None
    assert "disturbance" not in document["missing"]
