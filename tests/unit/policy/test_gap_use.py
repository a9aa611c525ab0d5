# SPDX-License-Identifier: GPL-2.0-only
"""Within a gap the gate rests before its likely end, and to keep the cap."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.policy.strategies import gap_use
from ebbgate.policy.strategies.gap_use import (
    AHEAD_BYTES,
    HIDDEN_NS_MIN,
    RUN_OFF_NS_MAX,
    RUN_OFF_NS_MIN,
    GapUse,
    Rest,
)
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S
from tests.builders import queue_sample

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


# ---- short gaps ---------------------------------------------------------------------------------
SHORT = GapUse(lengths_ns=(600 * NS_PER_MS,) * 3)
"""Gaps of 0.6 s, so users are likely from 588 ms on."""


@pytest.mark.parametrize(
    ("shown_ms", "hidden_ms", "from_ms"),
    [
        (120, 0, 468),
        # Of the 558 ms with an open gate half may go for a cache that no sample shows,
        (60, 200, 328),
        (60, 600, 309),
        # but what is under way needs what it needs.
        (400, 0, 188),
        (400, 300, 188),
    ],
)
def test_a_rest_for_the_disks_own_cache_takes_at_most_half_of_a_gap(
    shown_ms: int, hidden_ms: int, from_ms: int
) -> None:
    run_off_ns, hidden_ns = (shown_ms + hidden_ms) * NS_PER_MS, hidden_ms * NS_PER_MS
    use = begun(replace(SHORT, run_off_ns=run_off_ns, hidden_ns=hidden_ns))
    assert use.window is not None
    assert (use.window.from_ns, use.window.first_ns) == (from_ms * NS_PER_MS, 588 * NS_PER_MS)


@pytest.mark.parametrize(("length_ms", "short"), [(600, True), (2000, True), (2500, False)])
def test_a_gap_is_short_if_half_of_it_is_no_rest_for_a_full_cache(
    length_ms: int, short: bool
) -> None:
    use = begun(GapUse(lengths_ns=(length_ms * NS_PER_MS,) * 3))
    assert use.short is short
    ended = gap_use.end(use, length_ms * NS_PER_MS)
    assert (ended.short, ended.was_short) == (False, short)


def test_a_gap_whose_end_nobody_knows_is_not_short() -> None:
    assert not begun(GapUse(lengths_ns=(NS_PER_S,))).short


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


def test_a_known_write_cache_makes_rests_longer_at_once() -> None:
    known = gap_use.with_write_cache(ALIKE, known=True)
    assert gap_use.with_write_cache(known, known=True) is known
    assert (run_off_ms(known), known.hidden_ns) == (120 + 250, HIDDEN_NS_MIN)
    assert at(begun(known), 2080).rest is Rest.END
    assert at(begun(ALIKE), 2080).rest is Rest.NONE


def test_a_known_write_cache_is_never_forgotten_and_one_switched_off_is() -> None:
    known = gap_use.with_write_cache(gap_use.judge(ALIKE, 4), known=True)
    off = gap_use.with_write_cache(known, known=False)
    assert off.hidden_ns == known.hidden_ns
    for _ in range(200):
        known, off = (measured(use) for use in (known, off))
    assert run_off_ms(known) == (HIDDEN_NS_MIN + RUN_OFF_NS_MIN) / NS_PER_MS
    assert run_off_ms(off) < 1.1 * RUN_OFF_NS_MIN / NS_PER_MS


def measured(use: GapUse) -> GapUse:
    """The state after a gap at whose end hardly anything was under way."""
    use = at(begun(use), 2490)
    return gap_use.end(sampled(use, 2495, 0), 2500 * NS_PER_MS)


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


@given(LENGTHS, SAMPLES, CAPS, st.booleans())
def test_from_any_samples_rests_and_run_off_stay_within_their_bounds(
    lengths_ns: list[int], samples: list[tuple[int, int, int]], cap: float | None, known: bool
) -> None:
    use, now_ms, done = gap_use.with_write_cache(GapUse(), known), 30, 0
    for length_ns in lengths_ns:
        use = gap_use.end(use, length_ns)
    use = begun(use)
    for step_ms, in_flight, pieces in samples:
        now_ms, done = now_ms + step_ms, done + pieces
        use = sampled(at(use, now_ms), now_ms, in_flight, done, cap)
        assert RUN_OFF_NS_MIN + use.hidden_ns_min <= use.run_off_ns <= RUN_OFF_NS_MAX
        window = use.window
        assert (use.rest is Rest.END) <= (window is not None)
        assert window is None or now_ms * NS_PER_MS < window.until_ns
        assert (use.run_off_began_ns > 0) <= (use.rest is not Rest.NONE)
        assert use.rest is not Rest.RATE or cap is not None
    # No window lies beyond the longest gap, and without new pieces the mean sinks below the cap.
    last_ms = 10**9
    assert sampled(at(use, last_ms), last_ms, 0, done, cap).rest is Rest.NONE
