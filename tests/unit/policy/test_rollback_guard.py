# SPDX-License-Identifier: GPL-2.0-only
"""The rollback guard rolls back what is worse than before by more than the bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.frame import Frame, PathLatency
from ebbgate.model.records import Direction
from ebbgate.policy.rollback_guard import (
    RollbackParams,
    RollbackState,
    Watched,
    WatchedSetting,
    latency_samples,
    on_frame,
    suspend_ns,
    verdict,
)
from ebbgate.units import KIB, NS_PER_MS, NS_PER_S
from tests.builders import frame

READ, WRITE = Direction.READ, Direction.WRITE
PARAMS = RollbackParams()
QUARTER_NS = NS_PER_S // 4
Paths = Mapping[tuple[Direction, str], PathLatency]


def path(ios: int, p99_ms: float, piece: int = 4 * KIB) -> PathLatency:
    return PathLatency(ios, ios * piece, round(p99_ms * NS_PER_MS / 2), round(p99_ms * NS_PER_MS))


@dataclass
class Run:
    """Time that passes in frames of a volume, four a second, each over the last second."""

    at_ns: int = 1000 * NS_PER_S
    state: RollbackState = field(default_factory=RollbackState)
    suspended: list[bool] = field(default_factory=list)

    def frame(self, paths: Paths, **signals: Any) -> Frame:
        return frame(at_ns=self.at_ns, paths=paths, window_ns=NS_PER_S, **signals)

    def go(
        self,
        seconds: float,
        p99_ms: float,
        value: object = None,
        ios: int = 200,
        piece: int = 4 * KIB,
    ) -> bool:
        """So many seconds of reads; is the setting suspended at their end?"""
        paths = {(READ, "miss"): path(ios, p99_ms, piece)} if ios else {}
        for _ in range(round(seconds * 4)):
            self.at_ns += QUARTER_NS
            values = {WatchedSetting.GATE: value}
            self.state = on_frame(self.state, self.frame(paths), values, PARAMS)
            self.suspended.append(verdict(self.state, WatchedSetting.GATE, self.at_ns) is not None)
        return self.suspended[-1]


def acted(before_ms: float, after_ms: float, **parts: Any) -> Run:
    run = Run()
    run.go(20, before_ms, **parts)
    run.go(10, after_ms, "on", **parts)
    return run


# ---- tables -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("before_ms", "after_ms", "rolled_back"),
    [
        (12, 12, False),
        (12, 23, False),  # less than twice
        (12, 25, True),
        (0.2, 0.9, False),  # more than twice, but a millisecond is not noticeable
        (0.2, 10.1, False),
        (0.2, 10.3, True),
        (16, 44, True),  # a disk under stock destage
        (40, 12, False),
    ],
)
def test_an_action_is_rolled_back_above_the_bound_only(
    before_ms: float, after_ms: float, rolled_back: bool
) -> None:
    assert acted(before_ms, after_ms).suspended[-1] is rolled_back


def test_the_verdict_has_the_measured_values() -> None:
    run = acted(12, 41)
    found = verdict(run.state, WatchedSetting.GATE, run.at_ns)
    assert found is not None
    assert (found.setting, found.direction) == (WatchedSetting.GATE, READ)
    assert found.before_ns == pytest.approx(12 * NS_PER_MS)
    assert found.after_ns == 41 * NS_PER_MS
    assert found.bound_ns == pytest.approx(24 * NS_PER_MS)


@pytest.mark.parametrize(
    ("name", "steps", "rolled_back"),
    [
        ("two seconds are too short", [(20, 12), (2, 41, "on")], False),
        ("it is noticed within six", [(20, 12), (6, 41, "on")], True),
        ("one bad window", [(20, 12), (3, 12, "on"), (2, 90, "on"), (20, 12, "on")], False),
        ("long after the action", [(20, 12), (62, 12, "on"), (30, 90, "on")], False),
        ("without an action", [(20, 12), (30, 90)], False),
        ("no request", [(20, 12), (20, 90, "on", 0)], False),
        ("one request", [(20, 12), (20, 90, "on", 1)], False),
        ("too few requests", [(20, 12), (20, 90, "on", 29)], False),
        ("too few requests before", [(3, 12, None, 30), (20, 90, "on", 30)], False),
        ("an old memory", [(20, 12), (31, 0, None, 0), (20, 90, "on")], False),
        ("a smaller load", [(20, 12), (20, 90, "on", 90)], False),
        ("a larger load", [(20, 12), (20, 90, "on", 450)], False),
    ],
)
def test_a_rise_is_rolled_back_only_if_the_action_explains_it(
    name: str, steps: list[tuple[Any, ...]], rolled_back: bool
) -> None:
    run = Run()
    for step in steps:
        run.go(*step)
    assert any(run.suspended) is rolled_back, name


# ---- unknown, another load ----------------------------------------------------------------------
def test_requests_of_another_size_are_another_load() -> None:
    run = Run()
    run.go(20, 12)
    assert not run.go(10, 90, "on", piece=64 * KIB)


def test_a_frame_without_a_window_is_ignored() -> None:
    run = Run()
    run.go(20, 12)
    for _ in range(40):
        run.at_ns += QUARTER_NS
        blind = frame(at_ns=run.at_ns, window_ns=0)
        run.state = on_frame(run.state, blind, {WatchedSetting.GATE: "on"}, PARAMS)
    assert verdict(run.state, WatchedSetting.GATE, run.at_ns) is None


@pytest.mark.parametrize(
    ("paths", "setting", "p99_ms"),
    [
        ({(WRITE, "writeback"): path(100, 1), (WRITE, "bypass"): path(50, 40)}, "gate", 40),
        ({(WRITE, "writeback"): path(100, 1), (WRITE, "bypass"): path(50, 40)}, "streams", 1),
        ({(READ, "hit"): path(1000, 1), (READ, "miss"): path(10, 40)}, "gate", 1),
        ({(READ, "hit"): path(1000, 1), (READ, "miss"): path(21, 40)}, "gate", 40),
        ({(READ, "bypass"): path(1000, 1)}, "streams", None),
        ({(READ, "miss"): PathLatency(100, 100, None, None)}, "gate", None),
    ],
)
def test_what_users_feel(paths: Paths, setting: str, p99_ms: float | None) -> None:
    found = latency_samples(Run().frame(paths), WatchedSetting(setting), PARAMS)
    assert [sample.p99_ns for sample in found.values()] == (
        [] if p99_ms is None else [p99_ms * NS_PER_MS]
    )


def test_each_direction_is_judged_by_itself() -> None:
    run = Run()
    good = {(READ, "miss"): path(200, 12), (WRITE, "writeback"): path(200, 2)}
    bad = {(READ, "miss"): path(200, 12), (WRITE, "writeback"): path(200, 60)}
    for number in range(120):
        run.at_ns += QUARTER_NS
        paths, value = (good, None) if number < 80 else (bad, "on")
        run.state = on_frame(run.state, run.frame(paths), {WatchedSetting.STREAMS: value}, PARAMS)
    found = verdict(run.state, WatchedSetting.STREAMS, run.at_ns)
    assert found is not None
    assert found.direction is WRITE
    assert verdict(run.state, WatchedSetting.GATE, run.at_ns) is None


# ---- suspensions --------------------------------------------------------------------------------
def test_suspension_doubles_each_time() -> None:
    run, lengths = Run(), []
    run.go(20, 12)
    for _ in range(4):
        while not run.go(0.25, 41, "on"):
            pass
        began_ns = run.at_ns
        while run.go(0.25, 12, "on"):
            pass
        lengths.append(round((run.at_ns - began_ns) / NS_PER_S))
    assert lengths == [60, 120, 240, 480]


def test_suspension_is_bounded_and_forgotten() -> None:
    assert suspend_ns(0, PARAMS) == 60 * NS_PER_S
    assert [suspend_ns(holds, PARAMS) for holds in (6, 100, 10**9)] == [3600 * NS_PER_S] * 3
    run = acted(12, 41)
    assert run.state.of(WatchedSetting.GATE).suspensions == 1
    run.at_ns += PARAMS.forget_ns
    run.go(20, 12)
    run.go(10, 41, "on")
    watched = run.state.of(WatchedSetting.GATE)
    assert watched.suspensions == 1
    assert watched.suspended_until_ns - run.at_ns <= 60 * NS_PER_S


SECONDS = st.lists(
    st.tuples(
        st.floats(0.1, 200),
        st.integers(0, 500),
        st.sampled_from([None, "on", "other"]),
        st.integers(1, 12),
    ),
    max_size=60,
)


@given(SECONDS)
def test_setting_changes_no_faster_than_suspensions(
    parts: list[tuple[float, int, object, int]],
) -> None:
    run = Run()
    changes: list[int] = []
    before = False
    for p99_ms, ios, value, quarters in parts:
        for _ in range(quarters):
            suspended = run.go(0.25, p99_ms, value, ios=ios)
            if suspended != before:
                changes.append(run.at_ns)
            before = suspended
    ends = changes[1::2]
    for begun, ended in zip(changes[::2], ends, strict=False):
        assert ended - begun >= PARAMS.suspend_ns
    assert len(changes) <= 2 + 2 * (run.at_ns - 1000 * NS_PER_S) / PARAMS.suspend_ns


@given(
    st.lists(st.floats(6.0, 11.9), min_size=120, max_size=120),
    st.lists(st.integers(150, 290), min_size=120, max_size=120),
)
def test_an_action_that_changes_nothing_is_never_blamed_for_noise(
    p99_ms: list[float], ios: list[int]
) -> None:
    run = Run()
    for number, (slow_ms, count) in enumerate(zip(p99_ms, ios, strict=True)):
        value = "on" if (number // 20) % 2 else None
        assert not run.go(0.5, slow_ms, value, ios=count)


@given(st.sampled_from(["on", "other"]), st.floats(0, 1000))
def test_unknown_latency_rolls_nothing_back(value: str, p99_ms: float) -> None:
    run = Run()
    run.go(5, p99_ms, None, ios=20)
    assert not run.go(10, p99_ms * 100, value, ios=20)
    assert run.state.of(WatchedSetting.GATE).suspensions == 0


def test_an_unknown_setting_is_at_rest() -> None:
    assert RollbackState().of(WatchedSetting.STREAMS) == Watched()
    assert not Watched().suspended(0)
