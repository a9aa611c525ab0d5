# SPDX-License-Identifier: GPL-2.0-only
"""When write-back under load ends: not by what it does itself, and it always can."""

from __future__ import annotations

import pytest

from ebbgate.model.frame import Frame
from ebbgate.policy.strategies import idle_destage
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.units import GIB, MIB
from tests.builders import busy_frame

TICK_MS = 250


def after(*frames: Frame, params: DestageParams) -> DestageState:
    """Return the state after these ticks."""
    state = DestageState()
    for frame in frames:
        state = idle_destage.on_frame(state, frame, params)
    return state


def phases_under(arriving: int, fastest: int, room: int, cache: int) -> list[Phase]:
    """Return the phases of two minutes in which users write at this rate without a gap.

    Write-back is seen a second late, as in the window of a frame.
    """
    state, found, dirty = DestageState(), list[Phase](), cache * 4 // 10 - room
    late = [0] * (1000 // TICK_MS)
    for at_ms in range(1000, 121_000, TICK_MS):
        done = fastest if state.phase is Phase.PRESSURE else 0
        dirty += (arriving - done) * TICK_MS // 1000
        late = [*late[1:], done]
        seen, left = sum(late) / len(late), max(0, cache * 4 // 10 - dirty)
        frame = busy_frame(
            at_ms,
            cache_bytes=cache,
            dirty_bytes=dirty,
            dirty_room_bytes=left,
            dirty_in_bytes_per_s=float(arriving),
            destage_bytes_per_s=seen,
            time_to_full_s=left / (arriving - seen) if arriving > seen else None,
        )
        state = idle_destage.on_frame(state, frame, DestageParams())
        if not found or found[-1] is not state.phase:
            found.append(state.phase)
    return found


@pytest.mark.parametrize(
    ("arriving_mib", "fastest_mib", "room_mib", "cache_gib"),
    [(30, 40, 900, 4), (20, 60, 600, 2), (60, 80, 2000, 8)],
)
def test_write_back_that_outpaces_users_does_not_end_its_own_reason(
    arriving_mib: int, fastest_mib: int, room_mib: int, cache_gib: int
) -> None:
    found = phases_under(arriving_mib * MIB, fastest_mib * MIB, room_mib * MIB, cache_gib * GIB)
    assert found[:2] == [Phase.WAIT, Phase.PRESSURE]
    assert len(found) <= 10, found


def test_it_goes_on_while_what_arrives_would_fill_the_cache() -> None:
    arriving = {"dirty_in_bytes_per_s": 30.0 * MIB, "cache_bytes": 4 * GIB, "dirty_ratio": 0.1}
    pressed = (
        busy_frame(1000),
        busy_frame(9000, time_to_full_s=19.0, dirty_room_bytes=570 * MIB, **arriving),
    )
    drains = {"time_to_full_s": None, "destage_bytes_per_s": 40.0 * MIB, **arriving}
    for room_mib, phase in ((600, Phase.PRESSURE), (1210, Phase.WAIT)):
        later = busy_frame(11_250, dirty_room_bytes=room_mib * MIB, **drains)
        assert after(*pressed, later, params=DestageParams()).phase is phase
