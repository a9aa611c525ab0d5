# SPDX-License-Identifier: GPL-2.0-only
"""When write-back under load ends: not by what it does itself, and it always can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ebbgate.model.frame import Frame, PathLatency
from ebbgate.model.records import Direction
from ebbgate.policy.strategies import explanation, idle_destage
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.pressure import must_destage
from ebbgate.units import GIB, MIB
from tests.builders import busy_frame, frame

TICK_MS = 250


def after(*frames: Frame, params: DestageParams) -> DestageState:
    """Return the state after these ticks."""
    state = DestageState()
    for each in frames:
        state = idle_destage.on_frame(state, each, params)
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
        tick = busy_frame(
            at_ms,
            cache_bytes=cache,
            dirty_bytes=dirty,
            dirty_room_bytes=left,
            dirty_in_bytes_per_s=float(arriving),
            destage_bytes_per_s=seen,
            time_to_full_s=left / (arriving - seen) if arriving > seen else None,
        )
        state = idle_destage.on_frame(state, tick, DestageParams())
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


def test_old_data_is_written_back_and_new_data_waits_again() -> None:
    """Users write all the time, so that the cache is never clean."""
    state, begun, dirty, phases = DestageState(), 0, 100 * MIB, list[tuple[int, Phase]]()
    for at_ms in range(1000, 2_400_000, 1000):
        done = 3 * MIB if state.phase is Phase.PRESSURE and dirty > 4 * MIB else 0
        dirty, begun = dirty + MIB // 4 - done, begun + done
        tick = busy_frame(at_ms, dirty_bytes=dirty, destage_bytes_per_s=float(done))
        state = idle_destage.on_frame(state, tick, DestageParams())
        if not phases or phases[-1][1] is not state.phase:
            phases.append((at_ms // 1000, state.phase))
    assert [phase for _, phase in phases] == [Phase.WAIT, *[Phase.PRESSURE, Phase.WAIT] * 3]
    # Each time a new wait of ten minutes, and as long as what was dirty then takes.
    times = [at_s for at_s, _ in phases]
    assert [one - other for one, other in zip(times[1::2], times[::2], strict=False)] == [600] * 3
    assert all(0 < one - other < 120 for one, other in zip(times[2::2], times[1::2], strict=True))
    assert begun > 250 * MIB


def test_a_light_load_of_an_hour_leaves_no_old_data() -> None:
    params = DestageParams(light_after_ns=0, burst_ns=0)
    rate = {"dirty_bytes": 100 * MIB, "destage_bytes_per_s": 1.0 * MIB}
    light = [
        busy_frame(at_ms, backing_busy_foreground_ratio=0.2, **rate)
        for at_ms in range(1000, 3_600_000, 1000)
    ]
    heavy = busy_frame(3_600_000, backing_busy_foreground_ratio=0.9, **rate)
    assert after(*light, params=params).phase is Phase.PRESSURE
    assert after(*light, heavy, params=params).phase is Phase.WAIT


LIGHT = DestageParams(light_ratio=0.6, light_after_ns=0, burst_ns=0)


def busy(at_ms: int, ratio: float) -> Frame:
    return busy_frame(at_ms, backing_busy_foreground_ratio=ratio)


@pytest.mark.parametrize(("ratio", "phase"), [(0.79, Phase.PRESSURE), (1.0, Phase.WAIT)])
def test_a_large_light_share_still_ends(ratio: float, phase: Phase) -> None:
    assert after(busy(1000, 0.3), busy(4000, ratio), params=LIGHT).phase is phase


@pytest.mark.parametrize(("free", "phase"), [(0.24, Phase.PRESSURE), (0.26, Phase.WAIT)])
def test_a_large_free_floor_still_ends(free: float, phase: Phase) -> None:
    params = DestageParams(room_ratio_min=0.2)
    pressed, later = (
        busy_frame(at_ms, dirty_room_bytes=int(room * GIB), dirty_in_bytes_per_s=1.0)
        for at_ms, room in ((1000, 0.19), (4000, free))
    )
    assert after(pressed, later, params=params).phase is phase


def test_without_a_free_floor_a_full_cache_presses_all_the_same() -> None:
    params = DestageParams(room_ratio_min=0.0)
    through = {(Direction.WRITE, "writethrough"): PathLatency(200, 40 * MIB, None, None)}
    filling = busy_frame(9000, time_to_full_s=2.0, dirty_room_bytes=80 * MIB)
    full = [
        busy_frame(at, paths=through, dirty_room_bytes=0, dirty_in_bytes_per_s=0.0)
        for at in range(9250, 20_000, TICK_MS)
    ]
    state = after(busy_frame(1000), filling, *full, params=params)
    assert (state.phase, state.since_ns) == (Phase.PRESSURE, filling.at_ns)
    room = {each.signal: each for each in explanation.of_destage(state, full[-1], params)}
    assert room["room for dirty data"].holds
    assert must_destage(full[-1], params)


@pytest.mark.parametrize(("room", "phase"), [(0.06, Phase.NORMAL), (0.04, Phase.WAIT)])
def test_a_start_level_above_the_room_is_not_waited_for(room: float, phase: Phase) -> None:
    """bcache takes dirty data up to 40 % of the cache."""
    params = DestageParams(start_ratio=0.45)
    tick = busy_frame(
        1000, cache_bytes=GIB, dirty_bytes=360 * MIB, dirty_room_bytes=round(room * GIB)
    )
    assert after(tick, params=params).phase is phase


def test_a_large_free_floor_does_not_forbid_every_hold() -> None:
    nearly_clean = frame(dirty_room_bytes=int(0.37 * GIB), cache_bytes=GIB)
    assert not must_destage(nearly_clean, DestageParams(room_ratio_min=0.2))


def test_a_cache_that_became_full_is_written_back_while_users_write() -> None:
    little = {"dirty_room_bytes": GIB // 40, "dirty_in_bytes_per_s": 40.0 * MIB}
    full: dict[str, Any] = {"dirty_room_bytes": 0, "dirty_in_bytes_per_s": 0.0}
    through = {(Direction.WRITE, "writethrough"): PathLatency(200, 40 * MIB, None, None)}
    past = {(Direction.WRITE, "bypass"): PathLatency(200, 40 * MIB, None, None)}

    def phase(paths: Mapping[tuple[Direction, str], PathLatency]) -> Phase:
        frames = (busy_frame(at, paths=paths, **full) for at in range(1250, 9000, TICK_MS))
        return after(busy_frame(1000, **little), *frames, params=DestageParams()).phase

    assert phase(through) is Phase.PRESSURE
    # A stream that is kept out, or nobody who writes.
    assert phase(past) is Phase.WAIT
    assert phase({}) is Phase.WAIT


@pytest.mark.parametrize(
    ("path", "threshold", "holds"),
    [("writethrough", "51.2 MiB", True), ("bypass", "51.2 MiB while users write", False)],
)
def test_of_a_full_cache_the_room_counts_while_users_write(
    path: str, threshold: str, holds: bool
) -> None:
    paths = {(Direction.WRITE, path): PathLatency(200, 40 * MIB, None, None)}
    full = busy_frame(
        4000, paths=paths, dirty_room_bytes=0, dirty_in_bytes_per_s=0.0, time_to_full_s=0.0
    )
    found = explanation.of_destage(DestageState(), full, DestageParams())
    conditions = {each.signal: each for each in found}
    assert "time to full" not in conditions
    room = conditions["room for dirty data"]
    assert (room.measured, room.threshold, room.holds) == ("0 B", threshold, holds)


def test_the_reason_and_the_conditions_are_those_of_now() -> None:
    state = after(busy(1000, 0.3), params=LIGHT)
    assert state.why == "no idle gap, but users keep the backing device only 30% busy"
    state = after(busy(1000, 0.3), busy(1250, 0.7), params=LIGHT)
    assert state.why == "no idle gap, but users keep the backing device only 70% busy"
    arriving = busy_frame(4000, dirty_room_bytes=300 * MIB, dirty_in_bytes_per_s=10.0 * MIB)
    state = after(busy(1000, 0.3), arriving, params=LIGHT)
    assert state.why == "without write-back the cache would be full in 30 s"
    found = {each.signal: each for each in explanation.of_destage(state, arriving, LIGHT)}
    full, light = found["time to full"], found["backing device busy for users"]
    assert (full.measured, full.threshold) == ("30 s", "40 s (without write-back)")
    assert full.holds
    assert (light.measured, light.threshold, light.holds) == ("90%", "80%", False)
