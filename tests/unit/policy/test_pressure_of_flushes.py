# SPDX-License-Identifier: GPL-2.0-only
"""Buffered writes come in bursts, every 5 s: their mean decides about write-back under load."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ebbgate.model.frame import FlowRates
from ebbgate.policy.strategies import explanation, idle_destage
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.signals.flow_rates import SPAN_NS
from ebbgate.signals.forecast import time_to_full_s
from ebbgate.units import GIB, MIB, NS_PER_MS
from tests.builders import busy_frame

TICK_MS, SECOND, SPAN = 250, 4, SPAN_NS // NS_PER_MS // 250
CACHE = 8 * GIB


def phases(room: int, *, through: bool = False) -> list[tuple[int, Phase]]:
    """Return what ten minutes of flushes lead to: 100 MiB in one second of five, and 30 MiB/s out.

    `through`: nothing is cached any more.
    """
    state, found, out = DestageState(), list[tuple[int, Phase]](), 0
    came, went = [0] * SPAN, [0] * SPAN
    for number in range(600 * SECOND):
        burst = 25 * MIB if number % (5 * SECOND) < SECOND else 0
        out = 30 * MIB // SECOND if state.phase is Phase.PRESSURE else 0
        room = max(0, room + out - (0 if through else burst))
        came, went = [*came[1:], burst], [*went[1:], out]
        arrives, leaves, mean = (
            float(sum(came[-SECOND:])),
            float(sum(went[-SECOND:])),
            sum(came) / 5,
        )
        tick = busy_frame(
            1000 + number * TICK_MS,
            cache_bytes=CACHE,
            dirty_bytes=CACHE * 4 // 10 - room,
            dirty_room_bytes=room,
            dirty_in_bytes_per_s=0.0 if through else arrives,
            destage_bytes_per_s=leaves,
            time_to_full_s=time_to_full_s(room, 0.0 if through else arrives, leaves),
            flows=FlowRates(0.0 if through else mean, mean if through else 0.0, sum(went) / 5),
        )
        state = idle_destage.on_frame(state, tick, DestageParams())
        shown = explanation.of_destage(state, tick, DestageParams())
        full = [each for each in shown if each.signal == "time to full" and each.holds]
        # No other reason is shown than what decided.
        assert not full or state.phase is Phase.PRESSURE or number < 8 * SECOND
        if not found or found[-1][1] is not state.phase:
            found.append((number // SECOND, state.phase))
    return found


def test_a_flush_is_no_reason_while_the_mean_leaves_time() -> None:
    found = phases(1700 * MIB)
    assert [phase for _, phase in found[:2]] == [Phase.WAIT, Phase.PRESSURE]
    # 20 MiB/s on average: less than 20 s are left with 400 MiB of room.
    assert found[1][0] >= 60


@pytest.mark.parametrize(("room", "through"), [(1700 * MIB, False), (0, True)])
def test_flushes_do_not_make_the_gate_flutter(room: int, through: bool) -> None:
    found = phases(room, through=through)
    times = [at_s for at_s, _ in found]
    assert all(later - earlier >= 15 for earlier, later in pairwise(times[1:])), found
    assert len(found) >= 2
