# SPDX-License-Identifier: GPL-2.0-only
"""Within a gap the gate rests before its likely end, and to keep the cap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.frame import Disturbance, Frame
from ebbgate.model.records import Edge, QueueSample
from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import Policy, default_policy
from ebbgate.policy.engine import Outcome, State, step
from ebbgate.policy.strategies import gap_use, idle_destage
from ebbgate.policy.strategies.destage_state import DestageParams, DestageState, Phase
from ebbgate.policy.strategies.drain_cap import DrainCap
from ebbgate.policy.strategies.gap_use import (
    AHEAD_BYTES,
    RUN_OFF_NS_MAX,
    RUN_OFF_NS_MIN,
    GapUse,
    Rest,
)
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S
from tests.builders import busy_edge, busy_frame, idle_edge, idle_frame, queue_sample

COST_NS = 250 * NS_PER_MS
ALIKE = GapUse(lengths_ns=(2500 * NS_PER_MS,) * 3)
"""After three gaps of 2.5 s; the rest begins at 2.33 s and lasts until 2.55 s."""


def at(use: GapUse, idle_ms: int) -> GapUse:
    """The state once the gap has lasted as long."""
    return gap_use.advance(use, idle_ms * NS_PER_MS, idle_ms * NS_PER_MS, COST_NS)


def begun(use: GapUse, idle_ms: int = 30) -> GapUse:
    return gap_use.begin(use, idle_ms * NS_PER_MS, COST_NS)


def sampled(
    use: GapUse, at_ms: int, in_flight: int, done: int = 0, cap: float | None = None
) -> GapUse:
    """The state after a sample of the queue; each piece that is done has 64 KiB."""
    return gap_use.on_queue(use, queue_sample(at_ms, in_flight, done), cap)


# ---- the likely end -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("idle_ms", "rest"),
    [(30, Rest.NONE), (2300, Rest.NONE), (2330, Rest.END), (2549, Rest.END), (2550, Rest.NONE)],
)
def test_the_gate_rests_before_the_likely_end_and_opens_again_after_it(
    idle_ms: int, rest: Rest
) -> None:
    assert at(at(begun(ALIKE), 2400 if idle_ms > 2400 else 30), idle_ms).rest is rest


def test_without_alike_gaps_the_gate_never_rests() -> None:
    use = begun(GapUse(lengths_ns=tuple(n * NS_PER_S for n in (1, 2, 4, 8))))
    assert all(at(use, idle_ms).rest is Rest.NONE for idle_ms in range(0, 20_000, 20))


def test_a_time_that_goes_back_a_little_does_not_end_a_rest() -> None:
    assert at(at(begun(ALIKE), 2340), 2320).rest is Rest.END


@pytest.mark.parametrize(("idle_ms", "foreseen"), [(2500, True), (2000, False), (2600, False)])
def test_an_end_is_foreseen_where_the_gate_rested_in_time(idle_ms: int, foreseen: bool) -> None:
    use = begun(ALIKE)
    for now_ms in range(100, idle_ms + 1, 20):
        use = sampled(at(use, now_ms), now_ms, 0 if use.rest is Rest.END else 9)
    use = gap_use.end(use, idle_ms * NS_PER_MS)
    assert (use.foreseen, use.rest, use.window) == (foreseen, Rest.NONE, None)
    assert use.lengths_ns == (*ALIKE.lengths_ns, idle_ms * NS_PER_MS)


def test_a_gap_of_unknown_length_is_not_remembered() -> None:
    assert gap_use.end(begun(ALIKE)).lengths_ns == ALIKE.lengths_ns


# ---- what is under way --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rest", "per_s", "under_way", "expected"),
    [
        # 200 pieces a second: 8 take 40 ms.
        (Rest.NONE, 200, 8, Rest.NONE),
        (Rest.NONE, 200, 9, Rest.RATE),
        (Rest.RATE, 200, 5, Rest.RATE),
        (Rest.RATE, 200, 4, Rest.NONE),
        (Rest.NONE, 1600, 64, Rest.NONE),
        (Rest.NONE, 0, 64, Rest.NONE),
    ],
)
def test_the_gate_rests_while_what_is_under_way_would_take_long(
    rest: Rest, per_s: float, under_way: int, expected: Rest
) -> None:
    use = replace(begun(GapUse()), rest=rest)
    assert gap_use.on_queue(use, queue_sample(100, under_way), None, per_s).rest is expected


# ---- the run-off --------------------------------------------------------------------------------
def run_off_ms(use: GapUse) -> float:
    return use.run_off_ns / NS_PER_MS


def test_the_run_off_is_measured_from_the_begin_of_a_rest_until_nothing_is_under_way() -> None:
    use = at(begun(ALIKE), 2340)
    use = sampled(use, 2360, 9)
    assert run_off_ms(use) == 120
    assert run_off_ms(sampled(use, 2540, 0)) == pytest.approx(1.3 * 200)
    # It is measured once; a short one shortens it, but hardly the part that no sample shows.
    assert run_off_ms(sampled(sampled(use, 2540, 0), 2546, 0)) == pytest.approx(1.3 * 200)
    assert run_off_ms(sampled(use, 2365, 0)) == pytest.approx(0.9 * 120)
    hiding = gap_use.judge(use, 2)
    assert (run_off_ms(hiding), hiding.hidden_ns) == (240, 120 * NS_PER_MS)
    assert run_off_ms(sampled(hiding, 2365, 0)) == pytest.approx((0.9 + 0.98) * 120)


def test_a_rest_that_ends_early_measures_no_run_off() -> None:
    use = at(at(begun(ALIKE), 2340), 2560)
    assert use.rest is Rest.NONE
    assert run_off_ms(sampled(use, 4000, 0)) == 120


def test_what_is_still_under_way_at_the_end_makes_the_next_rest_begin_earlier() -> None:
    late = sampled(at(begun(ALIKE), 2340), 2480, 3)
    after = gap_use.end(late, 2500 * NS_PER_MS)
    assert run_off_ms(after) == 180
    in_time = gap_use.end(sampled(late, 2490, 0), 2500 * NS_PER_MS)
    assert run_off_ms(in_time) == pytest.approx(1.3 * 150)


def test_a_run_off_that_is_too_long_to_be_waited_for_leaves_it_to_the_cap() -> None:
    use = ALIKE
    assert begun(use).foreseeing
    for _ in range(10):
        use = gap_use.end(at(begun(use), 2480), 2500 * NS_PER_MS)
    assert use.run_off_ns == RUN_OFF_NS_MAX
    assert not begun(use).foreseeing


# ---- the cap ------------------------------------------------------------------------------------
def test_the_mean_rate_is_kept_with_rests() -> None:
    cap, done, use = 10.0 * MIB, 0, begun(GapUse())
    rests = []
    for now_ms in range(0, 10_000, 20):
        use = sampled(use, now_ms, 4, done, cap)
        rests.append(use.rest)
        done += 64 if use.rest is Rest.NONE else 1
    written = done * 64 * 1024
    assert 0.9 * 10 * cap <= written <= 10 * cap + AHEAD_BYTES + 4 * MIB
    assert set(rests) == {Rest.NONE, Rest.RATE}


def test_what_was_written_beyond_the_cap_counts_in_the_next_gap() -> None:
    use = sampled(sampled(begun(GapUse()), 0, 4, 0, 10.0 * MIB), 100, 4, 320, 10.0 * MIB)
    assert (use.rest, use.ahead_bytes / MIB) == (Rest.RATE, 19)
    soon, later = (begun(gap_use.end(use, 100 * NS_PER_MS)) for _ in range(2))
    assert sampled(soon, 1000, 0, 320, 10.0 * MIB).rest is Rest.RATE
    assert sampled(later, 2100, 0, 320, 10.0 * MIB).rest is Rest.NONE


def test_what_was_written_between_the_gaps_does_not_count() -> None:
    use = gap_use.end(sampled(begun(GapUse()), 0, 4, 0, MIB), 100 * NS_PER_MS)
    assert sampled(begun(use), 60_000, 4, 9999, MIB).ahead_bytes <= 0


@pytest.mark.parametrize(
    ("lengths_s", "idle_s", "factor"),
    [
        ((), 100, 1),
        ((2,), 1, 1),
        ((2,), 2, 1),
        ((2,), 4, 2),
        ((2, 2, 3), 6, 4),
        ((2,), 8, 8),
        # Fewer than three longer gaps are chance.
        ((2,) * 5 + (3600, 3600), 6, 4),
        ((2,) * 5 + (3600,) * 3, 3600, 1),
        ((2,), 10**9, 2**20),
    ],
)
def test_returns_get_rarer_in_a_gap_that_outlives_the_recent_ones(
    lengths_s: tuple[int, ...], idle_s: int, factor: float
) -> None:
    use = GapUse(lengths_ns=tuple(each * NS_PER_S for each in lengths_s))
    assert gap_use.rarer(use, idle_s * NS_PER_S) == factor


def test_without_a_cap_the_rate_is_free() -> None:
    use = sampled(begun(GapUse()), 0, 4)
    assert sampled(use, 100, 4, 1_000_000).rest is Rest.NONE


def test_a_cap_that_ends_in_a_rest_opens_the_gate() -> None:
    use = sampled(sampled(begun(GapUse()), 0, 4, 0, MIB), 100, 4, 1000, MIB)
    assert use.rest is Rest.RATE
    assert sampled(use, 120, 4, 1000, None).rest is Rest.NONE


# ---- any events ---------------------------------------------------------------------------------
LENGTHS = st.lists(st.integers(1, 20 * NS_PER_S), max_size=40)
SAMPLES = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 64), st.integers(0, 2000)), max_size=60
)
CAPS = st.none() | st.floats(256 * 1024, 1e9)


@given(LENGTHS, SAMPLES, CAPS)
def test_from_any_samples_rests_and_run_off_stay_within_their_bounds(
    lengths_ns: list[int], samples: list[tuple[int, int, int]], cap: float | None
) -> None:
    use, now_ms, done = GapUse(), 30, 0
    for length_ns in lengths_ns:
        use = gap_use.end(use, length_ns)
    use = begun(use)
    for step_ms, in_flight, pieces in samples:
        now_ms, done = now_ms + step_ms, done + pieces
        use = sampled(at(use, now_ms), now_ms, in_flight, done, cap)
        assert RUN_OFF_NS_MIN <= use.run_off_ns <= RUN_OFF_NS_MAX
        window = use.window
        assert (use.rest is Rest.END) <= (window is not None)
        assert window is None or now_ms * NS_PER_MS < window.until_ns
        assert (use.run_off_began_ns > 0) <= (use.rest is not Rest.NONE)
        assert use.rest is not Rest.RATE or cap is not None
    # No window lies beyond the longest gap, and without new pieces the mean sinks below the cap.
    last_ms = 10**9
    assert sampled(at(use, last_ms), last_ms, 0, done, cap).rest is Rest.NONE


# ---- in the strategy ----------------------------------------------------------------------------
PERIOD_MS = 5000
Event = Frame | Edge | QueueSample


def gap(number: int, *inside: Event, length_ms: int = 2500) -> tuple[Event, ...]:
    """The edges of a gap, with other events within it."""
    begin_ms = PERIOD_MS * number
    return (
        busy_frame(begin_ms - 200),
        idle_edge(begin_ms + 300),
        *inside,
        busy_edge(begin_ms + length_ms, length_ms),
    )


def alike(count: int = 3) -> list[Event]:
    return [event for number in range(1, count + 1) for event in gap(number)]


def run(*events: Event, policy: Policy | None = None) -> Outcome:
    """What is decided after these events."""
    state, policy = State(), policy or Policy()
    outcome = Outcome(state, policy, 0)
    for event in events:
        state, outcome = step(state, event, policy, event.at_ns)
    return outcome


def kind(outcome: Outcome) -> GateKind | None:
    return outcome.gate.kind if outcome.gate else None


def in_fourth(at_ms: int) -> tuple[Event, Event]:
    """The idle edge of a fourth gap, and a sample once it has lasted as long."""
    begin_ms = 4 * PERIOD_MS
    return idle_edge(begin_ms + 300), queue_sample(begin_ms + at_ms, 3)


@pytest.mark.parametrize(
    ("at_ms", "found"),
    [(400, GateKind.OPEN), (2300, GateKind.OPEN), (2340, GateKind.RESTING)],
)
def test_the_fourth_gap_of_one_length_is_foreseen(at_ms: int, found: GateKind) -> None:
    assert kind(run(*alike(), *in_fourth(at_ms))) is found


def test_the_end_is_foreseen_whatever_users_may_feel() -> None:
    policy = Policy(DestageParams(disturbance_ns=None))
    assert kind(run(*alike(), *in_fourth(2340), policy=policy)) is GateKind.RESTING


def test_a_rest_is_no_decision_of_its_own() -> None:
    opened, resting = (run(*alike(), *in_fourth(at_ms)) for at_ms in (400, 2340))
    assert kind(opened) is not kind(resting)
    keys = [each.key(each.decision()) for each in (opened, resting)]
    assert keys[0] == keys[1]


def test_a_frame_begins_a_rest_as_a_sample_does() -> None:
    begin_ms = 4 * PERIOD_MS
    frame = idle_frame(begin_ms + 2400, idle_ns=2400 * NS_PER_MS)
    assert kind(run(*alike(), idle_edge(begin_ms + 300), frame)) is GateKind.RESTING


def test_a_rest_ends_with_the_gap_even_if_the_edge_is_lost() -> None:
    begin_ms = 4 * PERIOD_MS
    outcome = run(*alike(), *in_fourth(2400), busy_frame(begin_ms + 2700))
    gap_after = outcome.destage.gap
    assert (kind(outcome), gap_after.rest, gap_after.window) == (GateKind.CLOSED, Rest.NONE, None)
    assert len(gap_after.lengths_ns) == 3


def test_dm_cache_rests_with_nothing_under_way() -> None:
    policy = default_policy(Kind.DM_CACHE)
    assert kind(run(*alike(), *in_fourth(400), policy=policy)) is GateKind.PACED
    assert run(*alike(), *in_fourth(2340), policy=policy).gate == Gate(GateKind.RESTING)


def test_on_dm_cache_a_cap_narrows_only_gaps_whose_end_is_not_foreseen() -> None:
    params = default_policy(Kind.DM_CACHE).destage or DestageParams()
    capped = DestageState(phase=Phase.WAIT, cap=DrainCap(MIB))
    assert depth_in_a_gap(replace(capped, gap=ALIKE), params) >= 9
    assert depth_in_a_gap(capped, params) == 1


def depth_in_a_gap(state: DestageState, params: DestageParams) -> int:
    """The blocks at once after 0.8 s of a gap, on a disk that writes 280 blocks a second."""
    state = idle_destage.on_edge(state, idle_edge(300), params)
    for number in range(12):
        state = idle_destage.on_queue(
            state, queue_sample(340 + 40 * number, 4, 11 * number), params
        )
    return idle_destage.gate_of(state, params).depth_ios


def felt(at_ms: int, ms: float) -> dict[str, Any]:
    found = Disturbance(at_ms * NS_PER_MS, 100.0 * MIB, round(ms * NS_PER_MS))
    return {"disturbance": found}


def felt_after(length_ms: int, under_way: int, *ms: float) -> DestageState:
    """The state after a fourth gap of this length, and what was felt of it and of the next ones."""
    end_ms = 4 * PERIOD_MS + length_ms
    last = queue_sample(end_ms - 20, under_way)
    events: list[Event] = [*alike(), *in_fourth(min(length_ms, 2340)), last]
    events.append(busy_edge(end_ms, length_ms))
    for number, each in enumerate(ms):
        at_ms = end_ms + number * PERIOD_MS
        events.append(busy_frame(at_ms + 500, **felt(at_ms, each)))
    return run(*events).destage


@pytest.mark.parametrize(
    ("ms", "run_off"),
    [
        ([90, 4.5], 364),
        ([4.5, 3.3], 227.5),
        ([3.3, 1, 4.5], 273),
        ([4.5, 1, 1, 4.5], 182),
    ],
)
def test_rests_begin_earlier_once_two_of_three_foreseen_ends_or_one_much_is_felt(
    ms: list[float], run_off: float
) -> None:
    state = felt_after(2500, 0, *ms)
    assert state.gap.foreseen
    assert state.cap.bytes_per_s is None
    assert run_off_ms(state.gap) == pytest.approx(run_off)


def test_an_end_that_was_not_foreseen_caps_only_gaps_of_that_kind() -> None:
    state = felt_after(1500, 9, 9)
    assert not state.gap.foreseen
    assert state.cap.bytes_per_s == pytest.approx(50 * MIB)
    assert run_off_ms(state.gap) == 120


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (1000, "- 1 s >= 2.3 s (after 2.5 s of idle time; the gate rests 120 ms before)"),
        (2400, "+ 2.4 s >= 2.3 s (after 2.5 s of idle time; the gate rests now, 120 ms before)"),
    ],
)
def test_the_likely_return_is_explained(at_ms: int, text: str) -> None:
    begin_ms = 4 * PERIOD_MS
    frame = idle_frame(begin_ms + at_ms, idle_ns=at_ms * NS_PER_MS)
    outcome = run(*alike(), idle_edge(begin_ms + 300), frame)
    assert text in likely_return(outcome)


def test_nothing_is_explained_while_no_return_is_likely() -> None:
    assert likely_return(run(*gap(1), idle_frame(2 * PERIOD_MS))) == ""


def likely_return(outcome: Outcome) -> str:
    """The condition on the likely return, for people."""
    for proposal in outcome.explained().proposals:
        for each in proposal.conditions:
            if each.signal == "likely return":
                mark = "+" if each.holds else "-"
                return f"{mark} {each.measured} {each.comparison} {each.threshold}"
    return ""
