# SPDX-License-Identifier: GPL-2.0-only
"""Rates of dirty data cover a flush of the page cache, not the second in which it came."""

from __future__ import annotations

from typing import Any

import pytest

from ebbgate.model.frame import FlowRates, Frame
from ebbgate.model.records import Tracked
from ebbgate.signals.frame import FrameState, build, on_tick, on_tracked, reset_counters
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S
from tests.builders import tick, volume_state


def counts(at_ms: int, dirtied: int = 0, through: int = 0, drained: int = 0) -> dict[str, Any]:
    """A tick with so many MiB, cumulative."""
    paths = {
        path: {"ios": 1, "bytes": mib * MIB, "lat": []}
        for path, mib in (("writeback", dirtied), ("writethrough", through))
    }
    destage = {"done_ios": drained, "done_bytes": drained * MIB}
    return {"ns": NS_PER_S + at_ms * NS_PER_MS, "path": {"write": paths}, "destage": destage}


def after(*ticks: dict[str, Any], state: FrameState | None = None) -> FrameState:
    state = state or FrameState()
    for fields in ticks:
        state = on_tick(state, tick(**fields))
    return state


def frame_of(state: FrameState) -> Frame:
    now_ns = state.ticks[-1].at_ns
    return build(state, volume_state(at_ns=now_ns), "bcache0", now_ns)


def mib_per_s(state: FrameState) -> tuple[float, ...] | None:
    found = frame_of(state).flows
    if found is None:
        return None
    rates = found.dirty_in_bytes_per_s, found.through_bytes_per_s, found.destage_bytes_per_s
    return tuple(rate / MIB for rate in rates)


def test_a_flush_each_five_seconds_is_a_steady_rate() -> None:
    """100 MiB in one second of five."""
    each = range(0, 30_000, 250)
    ticks = [counts(ms, ms // 5000 * 100 + min(100, ms % 5000 // 10), drained=ms) for ms in each]
    state = after(*ticks[:21])
    for fields in ticks[21:]:
        state = after(fields, state=state)
        assert mib_per_s(state) == pytest.approx((20, 0, 1000))


@pytest.mark.parametrize(
    ("ticks", "rates"),
    [
        ((counts(0),), None),
        ((counts(0), counts(500, 10, 5, 20)), (20, 10, 40)),
        # Ticks that are further apart.
        ((counts(0), counts(10_000, 10), counts(20_000, 30)), (2, 0, 0)),
        # The probe measures no paths.
        (({**counts(0), "path": {}}, {**counts(500), "path": {}}), None),
    ],
)
def test_rates_of_few_ticks(
    ticks: tuple[dict[str, Any], ...], rates: tuple[float, ...] | None
) -> None:
    assert mib_per_s(after(*ticks)) == rates


def test_no_span_goes_over_a_restart_of_the_probe() -> None:
    state = reset_counters(after(counts(0, 100), counts(1000, 200)))
    state = after(counts(1500, 10), state=state)
    assert frame_of(state).flows is None
    assert frame_of(after(counts(2500, 20), state=state)).flows == FlowRates(10 * MIB, 0, 0)


def test_they_are_unknown_where_write_back_is() -> None:
    state = on_tracked(FrameState(), Tracked("bcache0", NS_PER_S, "its address is hidden"))
    assert frame_of(after(counts(0), counts(1000, 10), state=state)).flows is None


def test_the_span_is_bounded() -> None:
    assert len(after(*(counts(250 * number) for number in range(200))).flows) <= 22
