# SPDX-License-Identifier: GPL-2.0-only
"""The frame of a volume: differences of counters, and what is unknown is never zero."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbgate.model.frame import Frame, Rates, Regime
from ebbgate.model.heat import ChunkMisses, HeatPeriod
from ebbgate.model.records import Direction, HeatRecord, Tracked
from ebbgate.signals.frame import (
    GAP_HALF_LIFE_NS,
    GAPS_KEPT_MIN,
    LASTING_BUCKET,
    NO_HEAT,
    NO_PATHS,
    PROBE_STALE_NS,
    FrameState,
    build,
    on_heat,
    on_tick,
    on_tracked,
    reset_counters,
)
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS, NS_PER_S
from tests.builders import tick, volume_state

START_NS = 100 * NS_PER_S


def at(ms: float, **fields: Any) -> dict[str, Any]:
    """A tick's fields at this time after the start."""
    return {"ns": START_NS + round(ms * NS_PER_MS), **fields}


def reads(ios: int, size_bytes: int = 4 * KIB, **parts: int) -> dict[str, Any]:
    return {"read": {"ios": ios, "bytes": ios * size_bytes, **parts}}


def writes(ios: int, size_bytes: int = 4 * KIB, **parts: int) -> dict[str, Any]:
    return {"write": {"ios": ios, "bytes": ios * size_bytes, **parts}}


def absorbed(*ticks: dict[str, Any]) -> FrameState:
    state = FrameState()
    for fields in ticks:
        state = on_tick(state, tick(**fields))
    return state


def frame_after(*ticks: dict[str, Any], later_ns: int = 0, **seen: Any) -> Frame:
    """The frame right after the last tick (or later)."""
    state = absorbed(*ticks)
    now_ns = (ticks[-1]["ns"] if ticks else START_NS) + later_ns
    return build(state, volume_state(at_ns=now_ns, **seen), "bcache0", now_ns)


def unknown(name: str) -> dict[str, Any]:
    return {name: None}


def test_rates_are_differences_over_the_window() -> None:
    frame = frame_after(at(0, fg=reads(100)), at(500, fg={**reads(150), **writes(10, MIB)}))
    assert frame.window_ns == NS_PER_S // 2
    assert frame.foreground == {
        Direction.READ: Rates(100.0, 100.0 * 4 * KIB),
        Direction.WRITE: Rates(20.0, 20.0 * MIB),
    }


def test_the_window_is_about_a_second() -> None:
    ticks = [at(250 * i, fg=reads(10 * i)) for i in range(20)]
    frame = frame_after(*ticks)
    assert frame.window_ns == NS_PER_S
    assert frame.foreground is not None
    assert frame.foreground[Direction.READ].iops == 40.0


@pytest.mark.parametrize("step_ms", [1051, 2000, 10_000])
def test_where_ticks_are_further_apart_the_window_is_the_last_interval(step_ms: int) -> None:
    frame = frame_after(*[at(step_ms * i, fg=reads(step_ms * i)) for i in range(4)])
    assert frame.window_ns == step_ms * NS_PER_MS
    assert frame.foreground is not None
    assert frame.foreground[Direction.READ].iops == pytest.approx(1000)


def test_the_window_is_about_a_second_again_after_a_late_tick() -> None:
    ticks = [at(ms, fg=reads(ms)) for ms in (0, 250, 8000, 8250)]
    assert frame_after(*ticks[:3]).window_ns == 7750 * NS_PER_MS
    assert frame_after(*ticks).window_ns == 250 * NS_PER_MS


def test_the_first_tick_gives_levels_but_no_rates() -> None:
    frame = frame_after(at(0, fg=reads(1000), state="busy"))
    assert frame.foreground is None
    assert frame.idle is False
    assert frame.dirty_in_bytes_per_s is None
    assert frame.time_to_full_s is None
    assert frame.dirty_room_bytes is not None


def test_a_probe_that_restarted_gives_no_false_rates() -> None:
    frame = frame_after(at(0, fg=reads(1000)), at(250, fg=reads(1010)), at(500, fg=reads(3)))
    assert frame.foreground is None
    assert frame.window_ns == 0


def test_a_restart_keeps_what_was_learned_of_gaps() -> None:
    state = absorbed(at(0, gaps=[0] * 21), at(250, gaps=[*[0] * 20, 5]), at(500, gaps=[]))
    assert sum(state.gap_counts) == pytest.approx(5, rel=0.01)
    after = on_tick(on_tick(state, tick(**at(100))), tick(**at(200, gaps=[1])))
    assert sum(after.gap_counts) == pytest.approx(6, rel=0.01)


@pytest.mark.parametrize("bucket", [0, LASTING_BUCKET])
def test_gaps_fade_with_their_half_life(bucket: int) -> None:
    half = GAP_HALF_LIFE_NS / NS_PER_MS
    gaps = [*[0] * bucket, 16]
    state = absorbed(at(0), at(1, gaps=gaps), at(1 + half, gaps=gaps))
    assert state.gap_counts[bucket] == pytest.approx(8)


def test_lasting_gaps_fade_to_a_count_that_stays_and_short_ones_to_nothing() -> None:
    gaps = [9, *[0] * (LASTING_BUCKET - 1), 30, 10]
    hour_ms = 3600 * 1000
    state = absorbed(at(0), at(1, gaps=gaps), at(hour_ms, gaps=gaps), at(2 * hour_ms, gaps=gaps))
    assert state.gap_counts[0] == pytest.approx(0)
    assert sum(state.gap_counts[1:]) == pytest.approx(GAPS_KEPT_MIN)
    assert state.gap_counts[-2] == pytest.approx(3 * state.gap_counts[-1])


def test_fewer_gaps_than_that_do_not_fade() -> None:
    gaps = [*[0] * 20, 2]
    state = absorbed(at(0), at(1, gaps=gaps), at(3600 * 1000, gaps=gaps))
    assert state.gap_counts[20] == pytest.approx(2)


@pytest.mark.parametrize("later_ns", [0, PROBE_STALE_NS])
def test_a_fresh_record_counts(later_ns: int) -> None:
    frame = frame_after(at(0), at(250), later_ns=later_ns)
    assert frame.idle is True
    assert frame.probed_at_ns == START_NS + 250 * NS_PER_MS
    assert frame.idle_ns is not None


@pytest.mark.parametrize(("in_flight_ios", "idle_s"), [(0, 5), (1, 0)])
def test_nobody_is_idle_who_waits_for_a_disk_that_is_silent(
    in_flight_ios: int, idle_s: int
) -> None:
    """One that spins up takes ten seconds, and nothing arrives or completes meanwhile."""
    silent = {"last_ns": START_NS, "inflight": {"read": in_flight_ios, "write": 0}}
    frame = frame_after(at(4750, **silent), at(5000, **silent))
    assert frame.idle_ns == idle_s * NS_PER_S


def test_a_stale_record_makes_its_signals_unknown_with_a_reason() -> None:
    frame = frame_after(at(0), at(250), later_ns=PROBE_STALE_NS + NS_PER_S)
    assert (frame.idle, frame.foreground, frame.probed_at_ns) == (None, None, None)
    assert frame.missing["foreground"] == "the probe's last record is 4 s old"
    assert frame.dirty_bytes == 420 * MIB


@pytest.mark.parametrize(
    ("ticks_ms", "fresh_ms"),
    [
        ((0, 10_000), 30_000),
        ((0, 10_000, 20_000), 30_000),
        ((0, 1000, 2000), 3000),
        # One late tick, and then shorter ticks than before.
        ((0, 250, 8000), 3000),
        ((0, 10_000, 10_250), 3000),
    ],
)
def test_a_record_is_stale_after_three_ticks_where_they_are_far_apart(
    ticks_ms: tuple[int, ...], fresh_ms: int
) -> None:
    ticks = [at(ms) for ms in ticks_ms]
    assert frame_after(*ticks, later_ns=fresh_ms * NS_PER_MS).idle is True
    stale = frame_after(*ticks, later_ns=fresh_ms * NS_PER_MS + NS_PER_S)
    assert stale.missing["foreground"] == f"the probe's last record is {fresh_ms // 1000 + 1} s old"


def test_a_restarted_probe_is_not_expected_to_be_faster() -> None:
    state = reset_counters(absorbed(at(0), at(10_000), at(20_000)))
    state = on_tick(state, tick(**at(31_000)))
    now_ns = START_NS + 40_000 * NS_PER_MS
    assert build(state, volume_state(at_ns=now_ns), "bcache0", now_ns).idle is True


def test_without_a_record_the_probe_is_named_as_missing() -> None:
    frame = frame_after()
    assert (frame.idle, frame.in_flight_ios) == (None, None)
    assert "no record" in frame.missing["foreground"]


def test_the_newest_period_of_misses_stays_until_the_next() -> None:
    missed = HeatPeriod(0, 10 * NS_PER_S, (ChunkMisses(7, sync_reads=2),))
    state = on_heat(absorbed(at(0)), HeatRecord("bcache0", missed.ended_ns, missed))
    state = on_tick(state, tick(**at(250)))
    now_ns = START_NS + 250 * NS_PER_MS
    assert build(state, volume_state(at_ns=now_ns), "bcache0", now_ns).heat == missed


@pytest.mark.parametrize(
    ("later_ns", "why"),
    [(0, NO_HEAT), (PROBE_STALE_NS + NS_PER_S, "the probe's last record is 4 s old")],
)
def test_without_a_period_the_misses_are_unknown(later_ns: int, why: str) -> None:
    frame = frame_after(at(0), at(250), later_ns=later_ns)
    assert frame.heat is None
    assert frame.missing["heat"] == why


@pytest.mark.parametrize(
    "name", ["dirty_bytes", "cache_bytes", "in_use_ratio", "state", "cache_mode"]
)
def test_a_missing_file_is_unknown_and_named_never_zero(name: str) -> None:
    frame = frame_after(at(0), at(250), **unknown(name))
    assert getattr(frame, name) is None
    assert frame.missing[name] == "not in sysfs"


def destaged(queued_ios: int, done_ios: int, **more: int) -> dict[str, Any]:
    return {
        "destage": {
            "queued_ios": queued_ios,
            "queued_bytes": queued_ios * KIB,
            "done_ios": done_ios,
            "done_bytes": done_ios * KIB,
            **more,
        }
    }


def test_destage_in_flight_is_that_of_the_probe() -> None:
    # 64 writes were under way when it began: its counts alone would give nothing.
    frame = frame_after(at(0), at(250, **destaged(10, 64, inflight_ios=10)))
    assert frame.destage_in_flight_ios == 10
    assert frame_after(at(0), at(250, **destaged(10, 7))).destage_in_flight_ios == 3


def test_without_destage_signals_destage_is_unknown() -> None:
    state = on_tracked(FrameState(), Tracked("bcache0", START_NS, "its address is hidden"))
    for fields in (at(0), at(250, fg=reads(10))):
        state = on_tick(state, tick(**fields))
    now_ns = START_NS + 250 * NS_PER_MS
    frame = build(state, volume_state(at_ns=now_ns), "bcache0", now_ns)
    assert frame.missing["destage"] == "its address is hidden"
    assert (frame.destage_in_flight_ios, frame.destage_bytes_per_s) == (None, None)
    assert frame.backing_busy_foreground_ratio is None
    assert frame.foreground is not None
    assert frame.idle is True
    again = on_tracked(state, Tracked("bcache0", START_NS))
    assert "destage" not in build(again, volume_state(at_ns=now_ns), "bcache0", now_ns).missing


@pytest.mark.parametrize("name", ["dirty_bytes", "cache_bytes"])
def test_without_a_dirty_level_there_is_no_forecast(name: str) -> None:
    frame = frame_after(at(0), at(250), **unknown(name))
    assert (frame.dirty_ratio, frame.dirty_room_bytes, frame.time_to_full_s) == (None, None, None)
    assert "time_to_full" in frame.missing


def test_the_dirty_level_replaces_an_unknown_use_of_the_cache() -> None:
    frame = frame_after(at(0), at(250), in_use_ratio=None, dirty_bytes=GIB // 4)
    assert frame.dirty_room_bytes == pytest.approx((0.40 - 0.25) * GIB, abs=1)


def test_room_is_what_the_kernel_compares_in_use_not_dirty() -> None:
    frame = frame_after(at(0), at(250), in_use_ratio=0.39, dirty_bytes=0)
    assert frame.dirty_room_bytes == pytest.approx(0.01 * GIB, rel=0.01)


@pytest.mark.parametrize(("sync", "limit"), [(100, 0.70), (50, 0.40)])
def test_room_depends_on_how_many_writes_are_synchronous(sync: int, limit: float) -> None:
    frame = frame_after(
        at(0, fg=writes(0)), at(250, fg=writes(100, sync=sync)), in_use_ratio=0.2, dirty_bytes=0
    )
    assert frame.dirty_room_bytes == pytest.approx((limit - 0.2) * GIB, rel=1e-6)


def test_a_new_probe_forgets_no_synchronous_writes() -> None:
    again = absorbed(at(0, fg=writes(100, sync=100)), at(250, fg=writes(0)))
    assert again.sync_writes.mostly and len(again.ticks) == 1


def test_time_to_full_counts_cached_writes_against_destage() -> None:
    def path(count_bytes: int) -> dict[str, Any]:
        return {"write": {"writeback": {"ios": 1, "bytes": count_bytes, "lat": [1]}}}

    def destage(count_bytes: int) -> dict[str, int]:
        return {"queued_ios": 9, "queued_bytes": 0, "done_ios": 4, "done_bytes": count_bytes}

    frame = frame_after(
        at(0, path=path(MIB), destage=destage(3 * MIB)),
        at(1000, path=path(21 * MIB), destage=destage(8 * MIB)),
        in_use_ratio=0.1,
        dirty_bytes=100 * MIB,
    )
    assert frame.dirty_in_bytes_per_s == 20 * MIB
    assert frame.destage_bytes_per_s == 5 * MIB
    assert frame.destage_in_flight_ios == 5
    assert frame.time_to_full_s == pytest.approx(0.3 * GIB / (15 * MIB), rel=1e-6)
    assert frame.time_to_clean_s is None


def test_what_becomes_dirty_is_unknown_without_paths() -> None:
    """The bcc probe measures none of dm volumes."""
    frame = frame_after(*(at(ms, path={}, fg=writes(ms, KIB)) for ms in (0, 1000)))
    assert frame.foreground is not None
    assert (frame.dirty_in_bytes_per_s, frame.time_to_full_s) == (None, None)
    assert frame.missing["time_to_full"] == NO_PATHS
    assert frame.dirty_room_bytes is not None


def test_paths_are_differences_with_percentiles() -> None:
    def path(ios: int, latency: list[int]) -> dict[str, Any]:
        return {"read": {"miss": {"ios": ios, "bytes": ios * 4096, "lat": latency}}}

    frame = frame_after(at(0, path=path(100, [100])), at(250, path=path(102, [100, 0, 2])))
    miss = frame.paths[Direction.READ, "miss"]
    assert (miss.ios, miss.bytes, miss.p50_ns, miss.p99_ns) == (2, 8192, 2500, 2990)


def test_a_path_without_requests_has_no_latency() -> None:
    path = {"read": {"hit": {"ios": 5, "bytes": 5, "lat": [5]}}}
    hit = frame_after(at(0, path=path), at(250, path=path)).paths[Direction.READ, "hit"]
    assert (hit.ios, hit.p50_ns, hit.p99_ns) == (0, None, None)


def test_bypass_reasons_are_differences() -> None:
    def why(count: int) -> dict[str, Any]:
        return {"congested": {"ios": 1, "bytes": count}}

    assert frame_after(at(0, bypass=why(100)), at(250, bypass=why(350))).bypass_bytes == {
        "congested": 250
    }


@pytest.mark.parametrize(
    ("fields", "regime"),
    [
        ({"state": "idle"}, Regime.GAP),
        ({"state": "busy"}, Regime.LIGHT),
        ({"state": "busy", "fg": reads(5), "runs": {"read": [0, 0, 0, 20480]}}, Regime.LIGHT),
        ({"state": "busy", "fg": reads(50), "runs": {"read": [0, 0, 0, 204800]}}, Regime.BURST),
        ({"state": "busy", "fg": reads(5), "runs": {"read": [*[0] * 12, MIB]}}, Regime.STREAM),
    ],
)
def test_regimes(fields: dict[str, Any], regime: Regime) -> None:
    assert frame_after(at(0, state="busy"), at(1000, **fields)).regime is regime


def test_before_there_are_rates_the_regime_is_unknown() -> None:
    assert frame_after(at(0, state="busy")).regime is Regime.UNKNOWN


COUNTERS = st.lists(
    st.tuples(*[st.integers(min_value=0, max_value=1 << 30)] * 3), min_size=2, max_size=6
)


@settings(max_examples=50)
@given(COUNTERS, st.integers(min_value=1, max_value=5000))
def test_no_sequence_of_counters_gives_a_negative_rate(
    counters: list[tuple[int, int, int]], step_ms: int
) -> None:
    state = FrameState()
    for number, (read, run, done) in enumerate(counters):
        destage = {"done_ios": done, "done_bytes": done, "queued_ios": done, "queued_bytes": 0}
        fields = at(number * step_ms, fg=reads(read), runs={"read": [run]}, destage=destage)
        state = on_tick(state, tick(**fields))
        now_ns = fields["ns"]
        frame = build(state, volume_state(at_ns=now_ns), "bcache0", now_ns)
        rates = frame.foreground or {}
        assert all(rate.iops >= 0 and rate.bytes_per_s >= 0 for rate in rates.values())
        assert (frame.destage_bytes_per_s or 0) >= 0
        assert all(sum(runs) >= 0 for runs in frame.run_delta_bytes.values())
