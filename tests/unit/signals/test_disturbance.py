# SPDX-License-Identifier: GPL-2.0-only
"""How much longer the requests after a gap take is known where like requests were measured."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.frame import Frame
from ebbgate.model.records import Tracked
from ebbgate.signals.disturbance import NO_GAP, NOT_COMPARABLE, TOO_FEW
from ebbgate.signals.frame import FrameState, build, on_tick, on_tracked, reset_counters
from ebbgate.units import KIB, MIB, NS_PER_MS
from tests.builders import tick, volume_state
from tests.sim.probe import latency_bucket

TICK_MS = 250
READ_MISS = ("read", "miss")


class Load:
    """Ticks of a volume on which a load runs."""

    def __init__(self) -> None:
        self.state = FrameState()
        self.now_ms = 1000
        self._paths: dict[str, dict[str, Any]] = {"read": {}, "write": {}}
        self._destage_ios = 0
        self._piece_bytes = 64 * KIB
        self._gap_ns = 0
        self._activity_ms = 1000

    def busy(
        self,
        lasts_ms: int,
        latency_ms: float = 10,
        way: tuple[str, str] = READ_MISS,
        *,
        size_bytes: int = 4 * KIB,
        depth: int = 1,
        pieces: int = 0,
    ) -> Load:
        """Requests without a pause, each `latency_ms` long, `depth` at once."""
        for _ in range(0, lasts_ms, TICK_MS):
            ios = round(TICK_MS * depth / latency_ms)
            lat = [0] * 100
            lat[latency_bucket(round(latency_ms * 1000))] = ios
            direction, path = way
            flow = self._paths[direction].setdefault(path, {"ios": 0, "bytes": 0, "lat": [0] * 100})
            flow["ios"] += ios
            flow["bytes"] += ios * size_bytes
            flow["lat"] = [a + b for a, b in zip(flow["lat"], lat, strict=True)]
            self._destage_ios += pieces
            self._activity_ms = self.now_ms + TICK_MS
            self._tick(idle=False, depth=depth)
        return self

    def gap(self, lasts_ms: int = 2500, pieces: int = 400, rest_ms: int = 0) -> Load:
        """Nothing but write-back: `pieces` evenly, and none in the last `rest_ms`."""
        ticks = lasts_ms // TICK_MS
        working = ticks - rest_ms // TICK_MS
        for number in range(ticks):
            self._destage_ios += pieces // working if number < working else 0
            self._tick(idle=True, depth=0)
        self._gap_ns += lasts_ms * NS_PER_MS
        return self

    def _tick(self, *, idle: bool, depth: int) -> None:
        self.now_ms += TICK_MS
        record = tick(
            ns=self.now_ms * NS_PER_MS,
            state="idle" if idle else "busy",
            last_ns=self._activity_ms * NS_PER_MS,
            inflight={"read": depth, "write": 0},
            gaps_ns=[self._gap_ns],
            path=self._paths,
            destage={
                "done_ios": self._destage_ios,
                "done_bytes": self._destage_ios * self._piece_bytes,
            },
        )
        self.state = on_tick(self.state, record)

    def frame(self) -> Frame:
        now_ns = self.now_ms * NS_PER_MS
        return build(self.state, volume_state(at_ns=now_ns), "bcache0", now_ns)

    @property
    def felt_ms(self) -> float | None:
        felt_ns = self.frame().disturbance_ns
        return None if felt_ns is None else felt_ns / NS_PER_MS

    @property
    def missing(self) -> str:
        return self.frame().missing.get("disturbance", "")


def about(ms: float) -> object:
    """Latencies are known to an eighth."""
    return pytest.approx(ms, abs=1.5)


def test_two_requests_that_wait_for_what_was_under_way_are_not_felt() -> None:
    assert Load().busy(1000).gap().busy(250, 125).busy(250).felt_ms == about(0)
    assert Load().busy(1000).gap().busy(250, 50).busy(250).felt_ms == about(3)


def test_requests_that_wait_after_a_gap_are_felt() -> None:
    load = Load().busy(1000).gap().busy(500, 14).busy(500)
    assert load.felt_ms == about(4)
    assert load.missing == ""
    found = load.frame().disturbance
    assert found is not None
    assert found.destage_bytes_per_s == pytest.approx(160 * 64 * KIB, rel=0.1)


def test_a_gap_after_which_nobody_waits_is_not_felt() -> None:
    assert Load().busy(1000).gap().busy(1000).felt_ms == 0


def test_faster_requests_than_before_are_no_negative_disturbance() -> None:
    assert Load().busy(1000).gap().busy(1000, 6).felt_ms == 0


def test_a_burst_that_is_slow_to_its_end_is_compared_with_earlier_ones() -> None:
    load = Load().busy(1000)
    for _ in range(20):
        load.gap().busy(1000, 20)
        assert load.felt_ms == about(10)


def test_without_a_burst_before_the_first_gap_later_requests_are_the_comparison() -> None:
    load = Load().gap().busy(500, 20)
    assert (load.felt_ms, load.missing) == (None, NOT_COMPARABLE)
    assert load.busy(1000).gap().busy(500, 20).felt_ms == about(10)


def test_what_lasts_long_after_a_gap_is_the_load_itself() -> None:
    load = Load().busy(1000).gap().busy(120_000, 20)
    assert load.gap().busy(500, 20).felt_ms == about(0)


def test_bursts_of_few_requests_are_judged_together() -> None:
    load = Load().busy(1000)
    for _ in range(3):
        load.gap(1000).busy(250, 50)
        assert (load.felt_ms, load.missing) == (None, TOO_FEW)
    assert load.gap(1000).busy(250, 50).felt_ms == pytest.approx(40, abs=5)


@pytest.mark.parametrize(("lasts_ms", "rate"), [(500, 16), (750, 10.7), (1000, 32), (2000, 32)])
def test_a_short_gap_wrote_as_fast_as_its_own_length_tells(lasts_ms: int, rate: float) -> None:
    """All in one tick of 250 ms: of a longer gap the ticks tell, since a disk's cache may do it."""
    load = Load().busy(1000).gap(lasts_ms, pieces=8, rest_ms=lasts_ms - 250).busy(1000)
    found = load.frame().disturbance
    assert found is not None
    pieces_per_s = found.destage_bytes_per_s / (64 * KIB)
    assert pieces_per_s == pytest.approx(rate, rel=0.1)


def test_what_comes_long_after_a_gap_is_not_judged_with_it() -> None:
    load = Load().busy(1000).gap().busy(250, 50).gap(6000, pieces=0).busy(750, 50)
    assert (load.felt_ms, load.missing) == (None, TOO_FEW)


def test_bursts_of_few_requests_teach_together_how_fast_they_are() -> None:
    load = Load()
    for _ in range(5):
        load.busy(250, 50).gap(2500, pieces=0)
    for _ in range(4):
        load.gap().busy(500, 100)
    assert load.felt_ms == pytest.approx(50, abs=10)


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (Load().busy(1000), NO_GAP),
        # A closed gate lets a piece through now and then.
        (Load().busy(1000).gap(pieces=0).busy(1000, 20), NO_GAP),
        (Load().busy(1000).gap(pieces=7).busy(1000, 20), NO_GAP),
        # The write-back ended long before the gap.
        (Load().busy(1000).gap(10_000, rest_ms=5000).busy(1000, 20), NO_GAP),
        (Load().busy(1000).gap().busy(1000, 1, ("read", "hit")), TOO_FEW),
        (Load().busy(1000).gap().busy(1000, 1, ("write", "writeback")), TOO_FEW),
        (Load().busy(1000).gap().busy(500, 100), TOO_FEW),
        (Load().busy(1000).gap().busy(500, 20, size_bytes=MIB), NOT_COMPARABLE),
        (Load().busy(1000).gap().busy(500, 20, ("read", "bypass")), NOT_COMPARABLE),
        (Load().busy(1000).gap().busy(500, 20, ("write", "bypass")), NOT_COMPARABLE),
        (Load().busy(1000).gap().busy(500, 20, depth=16), NOT_COMPARABLE),
    ],
)
def test_what_cannot_be_compared_is_unknown(load: Load, why: str) -> None:
    assert (load.felt_ms, load.missing) == (None, why)


def test_the_last_value_stays_until_the_next_gap_is_judged() -> None:
    load = Load().busy(1000).gap().busy(500, 14).gap()
    assert load.felt_ms == about(4)
    assert load.busy(250).felt_ms == about(4)
    assert load.busy(250).felt_ms == about(0)


def test_a_probe_that_cannot_tell_write_back_apart_gives_no_value() -> None:
    load = Load().busy(1000).gap().busy(500, 14)
    load.state = on_tracked(load.state, Tracked("bcache0", 1, "no request flags"))
    assert (load.felt_ms, load.missing) == (None, "no request flags")


def test_a_probe_that_restarts_keeps_what_was_learned() -> None:
    load = Load().busy(1000).gap()
    load.state = reset_counters(load.state)
    assert load.busy(1000, 14).missing == NO_GAP
    assert load.gap().busy(500, 20).felt_ms == about(9)


def test_writes_count_where_hardly_anything_is_read() -> None:
    write = ("write", "bypass")
    load = Load().busy(1000, way=write).gap().busy(500, 14, write)
    assert load.felt_ms == about(4)


def test_two_loads_of_different_speed_are_told_from_write_back() -> None:
    """After a gap with much less write-back the slow load is as slow: it is its own."""
    load = Load().busy(2000, 5)
    for pieces in (400, 200, 100, 50, *[10] * 10):
        load.gap(pieces=pieces).busy(1000, 12)
        load.gap(pieces=pieces).busy(1000, 5)
    assert load.gap().busy(500, 12).felt_ms == about(0)
    assert load.gap().busy(500, 22).felt_ms == about(10)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 8), st.floats(0.01, 500), st.integers(0, 12), st.integers(0, 10_000)
        ),
        min_size=1,
        max_size=12,
    )
)
def test_any_load_gives_a_finite_value_or_a_reason(
    parts: list[tuple[int, float, int, int]],
) -> None:
    load = Load()
    for ticks, latency_ms, gap_ticks, pieces in parts:
        load.busy(ticks * TICK_MS, latency_ms).gap(max(1, gap_ticks) * TICK_MS, pieces)
    felt_ms = load.felt_ms
    assert bool(load.missing) is (felt_ms is None)
    assert felt_ms is None or (felt_ms >= 0 and math.isfinite(felt_ms))
