# SPDX-License-Identifier: GPL-2.0-only
"""When to destage: each transition of the machine, and the gate that each phase asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.frame import Frame
from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import default_policy
from ebbgate.policy.strategies import idle_destage, pace
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.gap_use import Rest
from ebbgate.policy.strategies.idle_destage import gate_of
from ebbgate.policy.strategies.pace_state import PaceState
from ebbgate.units import GIB, KIB, MIB, NS_PER_MS, SECTOR_BYTES
from tests.builders import busy_edge, busy_frame, idle_edge, idle_frame, queue_sample

# Pressure at once: what a burst changes has a test of its own.
PARAMS = DestageParams(burst_ns=0)
Event = Any


def after(*events: Event, params: DestageParams = PARAMS) -> DestageState:
    """The machine after these frames, edges and queue samples."""
    state = DestageState()
    for event in events:
        if isinstance(event, Frame):
            state = idle_destage.on_frame(state, event, params)
        elif hasattr(event, "kind"):
            state = idle_destage.on_edge(state, event, params)
        else:
            state = idle_destage.on_queue(state, event, params)
    return state


CLEAN = {"dirty_bytes": 0, "dirty_ratio": 0.0}
LITTLE = {"dirty_bytes": MIB, "dirty_ratio": 0.001}
FULL_SOON = {"time_to_full_s": 5.0}
NO_ROOM = {"dirty_room_bytes": GIB // 25, "dirty_in_bytes_per_s": 1.0}
LITTLE_ROOM = {"dirty_room_bytes": GIB // 12, "dirty_in_bytes_per_s": 1.0}
UNKNOWN_LEVEL = {"dirty_bytes": None, "missing": {"dirty_bytes": "not in sysfs"}}
STALE = {"idle": None, "missing": {"foreground": "the probe's last record is 4 s old"}}

WAITING = (busy_frame(1000),)
DESTAGING = (*WAITING, idle_edge(1500))
PRESSED = (busy_frame(1000), busy_frame(1250, **NO_ROOM))


@pytest.mark.parametrize(
    ("events", "phase", "why"),
    [
        ((), Phase.UNKNOWN, "no measurement yet"),
        ((idle_edge(1),), Phase.UNKNOWN, "no measurement yet"),
        (
            (busy_frame(1000, **UNKNOWN_LEVEL),),
            Phase.UNKNOWN,
            "the dirty level is unknown: not in sysfs",
        ),
        ((busy_frame(1000, **STALE),), Phase.UNKNOWN, "the load is unknown: the probe's last"),
        ((busy_frame(1000, **CLEAN),), Phase.NORMAL, "nothing is dirty"),
        ((busy_frame(1000, **LITTLE),), Phase.NORMAL, "too little dirty data to write back"),
        (WAITING, Phase.WAIT, "dirty data waits for an idle gap"),
        ((idle_frame(1000),), Phase.DESTAGE, "the volume is idle"),
        (DESTAGING, Phase.DESTAGE, "idle for 300 ms (needs 300)"),
        ((*DESTAGING, busy_edge(1900)), Phase.WAIT, "a request arrived"),
        ((*DESTAGING, busy_frame(2000)), Phase.WAIT, "a request arrived"),
        ((*DESTAGING, idle_frame(2000)), Phase.DESTAGE, "idle for 300 ms"),
        ((*DESTAGING, idle_frame(2000, **LITTLE)), Phase.DESTAGE, "idle for 300 ms"),
        ((*DESTAGING, idle_frame(2000, **CLEAN)), Phase.NORMAL, "nothing is dirty"),
        (
            (*DESTAGING, idle_frame(2000, **UNKNOWN_LEVEL)),
            Phase.UNKNOWN,
            "the dirty level is unknown",
        ),
        ((*DESTAGING, idle_frame(2000, **STALE)), Phase.UNKNOWN, "the load is unknown"),
        ((*WAITING, busy_edge(1500)), Phase.WAIT, "dirty data waits"),
        (PRESSED, Phase.PRESSURE, "the kernel has little room"),
        ((*PRESSED, busy_edge(1300)), Phase.PRESSURE, "little room"),
        ((*PRESSED, idle_edge(1300)), Phase.DESTAGE, "idle for 300 ms"),
        ((*PRESSED, busy_frame(1500)), Phase.PRESSURE, "little room"),
        ((*PRESSED, busy_frame(3300)), Phase.WAIT, "no reason left to write back under load"),
        ((*PRESSED, busy_frame(3300, **LITTLE_ROOM)), Phase.PRESSURE, "little room"),
        ((*PRESSED, busy_frame(1500, **CLEAN)), Phase.NORMAL, "nothing is dirty"),
        ((*PRESSED, busy_frame(1500, **STALE)), Phase.UNKNOWN, "the load is unknown"),
        ((busy_frame(1000, **STALE), busy_frame(1250)), Phase.WAIT, "dirty data waits"),
        ((busy_frame(1000, **STALE), idle_frame(1250)), Phase.DESTAGE, "the volume is idle"),
        ((busy_frame(1000, **CLEAN), idle_edge(1100), busy_frame(1050)), Phase.DESTAGE, "idle"),
    ],
)
def test_transitions(events: tuple[Event, ...], phase: Phase, why: str) -> None:
    state = after(*events)
    assert state.phase is phase
    assert why in state.why


@pytest.mark.parametrize(
    ("signals", "later_ms", "why"),
    [
        ({"time_to_full_s": 19.0}, 9000, "the cache is full in 19 s"),
        ({"time_to_full_s": 21.0}, 9000, ""),
        (NO_ROOM, 250, "little room"),
        ({"dirty_room_bytes": GIB // 25, "dirty_in_bytes_per_s": 0.0}, 250, ""),
        ({"dirty_room_bytes": 0, "dirty_in_bytes_per_s": 0.0, "time_to_full_s": 0.0}, 9000, ""),
        ({"dirty_room_bytes": 0, "dirty_in_bytes_per_s": 1.0, "time_to_full_s": 0.0}, 9000, "room"),
        ({"dirty_room_bytes": GIB // 10, "dirty_in_bytes_per_s": 1.0}, 250, ""),
        ({}, 599_000, ""),
        ({}, 600_000, "dirty data has waited for an idle gap for 600 s"),
        ({"backing_busy_foreground_ratio": 0.1}, 4_900, ""),
        ({"backing_busy_foreground_ratio": 0.1}, 5_000, "only 10% busy"),
        ({"backing_busy_foreground_ratio": 0.31}, 5_000, ""),
        ({"backing_busy_foreground_ratio": None}, 5_000, ""),
    ],
)
def test_pressure(signals: dict[str, Any], later_ms: int, why: str) -> None:
    state = after(busy_frame(1000), busy_frame(1000 + later_ms, **signals))
    assert state.phase is (Phase.PRESSURE if why else Phase.WAIT)
    assert why in state.why


@pytest.mark.parametrize(
    ("again_ms", "phase"), [(8_500, Phase.WAIT), (13_200, Phase.WAIT), (13_250, Phase.PRESSURE)]
)
def test_pressure_that_made_the_device_busy_does_not_return_at_once(
    again_ms: int, phase: Phase
) -> None:
    light, heavy = ({"backing_busy_foreground_ratio": busy} for busy in (0.1, 0.7))
    pressed = (busy_frame(1000), busy_frame(6000, **light))
    assert after(*pressed, busy_frame(8250, **light)).phase is Phase.PRESSURE
    gone = (*pressed, busy_frame(8250, **heavy))
    assert after(*gone).why == "no reason left to write back under load"
    assert after(*gone, busy_frame(again_ms, **light)).phase is phase


def test_dirty_data_below_the_start_level_is_written_back_when_old() -> None:
    frames = [busy_frame(1000 + 60_000 * minute, **LITTLE) for minute in range(11)]
    assert after(*frames[:-1]).phase is Phase.NORMAL
    assert after(*frames).phase is Phase.PRESSURE
    assert after(*frames[:-1], idle_frame(601_000, **LITTLE)).phase is Phase.DESTAGE


def test_the_age_of_dirty_data_restarts_once_all_is_clean() -> None:
    old = [busy_frame(1000, **LITTLE), busy_frame(500_000, **CLEAN)]
    assert after(*old, busy_frame(700_000, **LITTLE)).phase is Phase.NORMAL


@pytest.mark.parametrize(
    ("silent_s", "phase"), [(1, Phase.PRESSURE), (59, Phase.PRESSURE), (90, Phase.NORMAL)]
)
@pytest.mark.parametrize("what", [{"state": "suspended"}, {"idle": None}])
def test_a_moment_without_signals_does_not_make_dirty_data_young(
    silent_s: int, phase: Phase, what: dict[str, Any]
) -> None:
    """A snapshot suspends the volume, or a new probe starts."""
    silent = busy_frame(300_000, **LITTLE, **what)
    why_not = what.get("state", "")
    state = idle_destage.on_frame(after(busy_frame(1000, **LITTLE)), silent, PARAMS, why_not)
    assert state.phase is Phase.UNKNOWN
    for at_ms in (300_000 + 1000 * silent_s, 601_000):
        state = idle_destage.on_frame(state, busy_frame(at_ms, **LITTLE), PARAMS)
    assert state.phase is phase


def test_dirty_data_that_a_gap_has_written_back_is_not_old_after_a_snapshot() -> None:
    state = after(busy_frame(1000), idle_frame(500_000))
    assert state.phase is Phase.DESTAGE
    state = idle_destage.on_frame(state, busy_frame(500_250), PARAMS, "suspended")
    for at_ms in (500_500, 700_000):
        state = idle_destage.on_frame(state, busy_frame(at_ms), PARAMS)
    assert state.phase is Phase.WAIT


def test_once_begun_destage_goes_on_below_the_level_at_which_it_begins() -> None:
    state = after(idle_frame(1000), idle_frame(1250, **LITTLE))
    assert state.phase is Phase.DESTAGE


def test_an_old_edge_is_ignored() -> None:
    assert after(*DESTAGING, busy_edge(1400)).phase is Phase.DESTAGE


def test_a_frame_older_than_the_edge_does_not_take_it_back() -> None:
    assert after(*DESTAGING, busy_frame(1600, probed_at_ns=1450 * NS_PER_MS)).phase is Phase.DESTAGE


def test_a_fixed_wait_is_not_learned() -> None:
    wait = after(busy_frame(), params=DestageParams(wait_ns=70 * NS_PER_MS)).wait
    assert (wait.wait_ns, wait.learned) == (70 * NS_PER_MS, False)


def test_with_a_fixed_wait_dm_cache_writes_as_much_at_once_in_a_long_gap() -> None:
    learned = default_policy(Kind.DM_CACHE).destage
    assert learned is not None
    fixed = replace(learned, wait_ns=300 * NS_PER_MS)
    # Gaps of 8 to 16 s.
    gaps = (*[0.0] * 23, 20.0)
    samples = [queue_sample(1520 + 20 * number, 6, 4 * number) for number in range(50)]
    events = (busy_frame(1000, gap_counts=gaps), idle_edge(1500), *samples)
    gates = [gate_of(after(*events, params=params), params) for params in (learned, fixed)]
    assert gates[0] == gates[1]
    assert gates[1].depth_ios > pace.narrow_ios(after(*events, params=fixed).pace, fixed.pace)


def test_the_wait_is_learned_from_the_frame() -> None:
    gaps = (*[0.0] * 21, 10.0)
    assert after(busy_frame(gap_counts=gaps)).wait.learned


@pytest.mark.parametrize(
    ("events", "gate"),
    [
        ((), Gate(GateKind.RELEASED)),
        ((busy_frame(1000, **STALE),), Gate(GateKind.RELEASED)),
        ((busy_frame(1000, **CLEAN),), Gate(GateKind.CLOSED, SECTOR_BYTES)),
        (WAITING, Gate(GateKind.CLOSED, SECTOR_BYTES)),
        (DESTAGING, Gate(GateKind.OPEN)),
        (PRESSED, Gate(GateKind.PACED, PARAMS.pressure_pace.rate_start_bytes_per_s)),
        ((*DESTAGING, busy_edge(1900)), Gate(GateKind.CLOSED, SECTOR_BYTES)),
    ],
)
def test_the_gate_of_each_phase(events: tuple[Event, ...], gate: Gate) -> None:
    assert gate_of(after(*events), PARAMS) == gate


def test_a_closed_gate_lets_as_little_through_as_the_kernel_allows() -> None:
    pace = PaceState(throughput_bytes_per_s=100.0 * 64 * KIB, completions_per_s=100.0)
    gate = gate_of(replace(after(*WAITING), pace=pace), PARAMS)
    assert gate == Gate(GateKind.CLOSED, SECTOR_BYTES)


@pytest.mark.parametrize(
    ("rest", "rate"), [(Rest.END, SECTOR_BYTES), (Rest.RATE, 10 * 64 * KIB)], ids=str
)
def test_a_rest_lets_more_through_only_while_it_keeps_a_rate(rest: Rest, rate: int) -> None:
    state = after(*DESTAGING)
    pace = PaceState(throughput_bytes_per_s=100.0 * 64 * KIB, completions_per_s=100.0)
    gate = gate_of(replace(state, pace=pace, gap=replace(state.gap, rest=rest)), PARAMS)
    assert gate == Gate(GateKind.RESTING, rate)


def test_queue_samples_count_only_while_the_gate_is_open() -> None:
    closed = after(*WAITING)
    assert idle_destage.on_queue(closed, queue_sample(1100, 5), PARAMS) == closed
    open_state = after(*DESTAGING)
    assert idle_destage.on_queue(open_state, queue_sample(1510, 50), PARAMS) != open_state


def test_only_pressure_adjusts_a_rate_to_the_queue() -> None:
    samples = [queue_sample(1600 + 30 * i, 4, 10 * i) for i in range(8)]
    assert gate_of(after(*DESTAGING, *samples), PARAMS) == Gate(GateKind.OPEN)
    first, last = (gate_of(after(*PRESSED, *samples[:count]), PARAMS) for count in (1, 8))
    assert first.kind is last.kind is GateKind.PACED
    assert first.rate_bytes_per_s != last.rate_bytes_per_s


def drained(at_ms: int, **signals: Any) -> Frame:
    """Most is clean again, but its buckets still count as used."""
    known = {"dirty_ratio": 0.05, "dirty_bytes": 50 * MIB, "in_use_ratio": 0.45}
    return idle_frame(at_ms, **{**known, **signals})


def test_drained_buckets_are_collected_once() -> None:
    assert not after(idle_frame(6000)).collect
    state = after(idle_frame(6000), drained(7000))
    assert state.collect
    assert not idle_destage.on_frame(state, drained(7250), PARAMS).collect


@pytest.mark.parametrize("signals", [{"idle": None}, {"dirty_bytes": None}])
def test_an_unknown_signal_repeats_no_collection(signals: dict[str, Any]) -> None:
    assert not after(idle_frame(6000), drained(7000), drained(7250, **signals)).collect


def test_collections_keep_their_distance() -> None:
    again = (idle_frame(7500), drained(8000))
    assert not after(idle_frame(6000), drained(7000), *again).collect
    assert after(idle_frame(6000), drained(7000), *again, drained(12_000)).collect


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("users are there", drained(6000, idle=False, idle_ns=0)),
        ("the buckets are free already", drained(6000, in_use_ratio=0.1)),
        ("the use of the cache is unknown", drained(6000, in_use_ratio=None)),
        ("hardly anything was drained", drained(6000, dirty_ratio=0.40, in_use_ratio=0.60)),
    ],
)
def test_no_collection_without_need(name: str, frame: Frame) -> None:
    assert not after(idle_frame(1000), frame).collect, name


@pytest.mark.parametrize(
    ("lasted_ms", "phase"), [(1000, Phase.WAIT), (7900, Phase.WAIT), (8000, Phase.PRESSURE)]
)
def test_a_burst_that_fills_fast_is_absorbed_and_only_a_lasting_load_is_pressed(
    lasted_ms: int, phase: Phase
) -> None:
    events = (busy_frame(1000), busy_frame(1000 + lasted_ms, **FULL_SOON))
    assert after(*events, params=DestageParams()).phase is phase


LEFT = (busy_frame(1000, **LITTLE), idle_edge(1500), idle_frame(20_000, **LITTLE))
"""A gap in which there is too little to write back."""


@pytest.mark.parametrize("end", [(busy_edge(31_000),), ()], ids=["edge", "lost edge"])
@pytest.mark.parametrize(
    ("at_ms", "phase"), [(31_250, Phase.WAIT), (38_000, Phase.WAIT), (39_500, Phase.PRESSURE)]
)
def test_a_load_lasts_since_the_last_gap_also_where_nothing_was_written_back(
    end: tuple[Event, ...], at_ms: int, phase: Phase
) -> None:
    events = (*LEFT, *end, busy_frame(31_250, **FULL_SOON), busy_frame(at_ms, **FULL_SOON))
    assert after(*events, params=DestageParams()).phase is phase


def test_old_dirty_data_that_had_gaps_waits_for_the_next_one() -> None:
    end = (busy_edge(500_000), busy_frame(601_000, **LITTLE))
    assert after(*LEFT, *end).phase is Phase.WAIT
    assert after(*LEFT, *end, idle_edge(602_000)).phase is Phase.DESTAGE
    old = after(*LEFT, *end, busy_frame(1_100_000, **LITTLE))
    assert old.why == "dirty data has waited for an idle gap for 600 s"
