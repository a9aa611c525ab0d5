# SPDX-License-Identifier: GPL-2.0-only
"""The end of a gap is predicted from recent gaps where that is worth the drain time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.signals.gap_ends import ENDS_MIN, MEMORY, TOLERANCE, EndWindow, end_window, remember
from ebbgate.units import NS_PER_MS, NS_PER_S

RUN_OFF_NS = 100 * NS_PER_MS
COST_NS = 250 * NS_PER_MS


def window_ms(lengths_ms: list[int], idle_ms: int = 0) -> tuple[int, int] | None:
    """The predicted window."""
    lengths_ns = [length * NS_PER_MS for length in lengths_ms]
    found = end_window(lengths_ns, idle_ms * NS_PER_MS, RUN_OFF_NS, COST_NS)
    return (found.from_ns // NS_PER_MS, found.until_ns // NS_PER_MS) if found else None


@pytest.mark.parametrize(
    ("lengths_ms", "idle_ms", "found"),
    [
        ([], 0, None),
        # Fewer than three ends are chance.
        ([2500, 2500], 30, None),
        ([2500, 2500, 2500], 30, (2350, 2550)),
        ([2450, 2500, 2550], 30, (2301, 2601)),
        # Gaps that ended before the present length say nothing more about it.
        ([100] * 10 + [2500] * 3, 200, (2350, 2550)),
        ([2500] * 10, 2500, None),
        # Under way is at once what a short gap has time for.
        ([110, 110, 110], 50, (50, 112)),
        # Of two periods the one that is foreseen at the lower cost.
        ([1000] * 5 + [5000] * 5, 30, (4800, 5100)),
        ([1000] * 9 + [5000] * 5, 30, (880, 1020)),
        ([1000] * 5 + [5000] * 5, 1020, (4800, 5100)),
        # Ends that are spread cost more drain time than they save.
        ([1000, 2000, 4000, 8000, 16000], 30, None),
        # The tolerance grows with the length: of long gaps the end is not foreseen well enough.
        ([60000] * 32, 30, None),
    ],
)
def test_the_window_lies_where_gaps_tend_to_end(
    lengths_ms: list[int], idle_ms: int, found: tuple[int, int] | None
) -> None:
    assert window_ms(lengths_ms, idle_ms) == found


@pytest.mark.parametrize(
    ("lengths_ms", "idle_ms", "share"),
    [([2500] * 3, 30, 1), ([1000] * 9 + [5000] * 3, 30, 0.75), ([1000] * 9 + [5000] * 3, 1020, 1)],
)
def test_the_window_says_how_many_of_such_gaps_end_in_it(
    lengths_ms: list[int], idle_ms: int, share: float
) -> None:
    lengths_ns = [length * NS_PER_MS for length in lengths_ms]
    found = end_window(lengths_ns, idle_ms * NS_PER_MS, RUN_OFF_NS, COST_NS)
    assert found is not None and found.share == share


def test_only_recent_gaps_are_remembered() -> None:
    lengths: tuple[int, ...] = ()
    for length in range(MEMORY + 5):
        lengths = remember(lengths, length)
    assert lengths == tuple(range(5, MEMORY + 5))


LENGTHS = st.lists(st.integers(1, 100 * NS_PER_S), max_size=MEMORY)
TIMES = st.integers(0, 10 * NS_PER_S)


@given(LENGTHS | st.lists(st.sampled_from([NS_PER_S, 3 * NS_PER_S]), max_size=MEMORY), TIMES, TIMES)
def test_a_window_lies_ahead_holds_enough_ends_and_is_worth_it(
    lengths_ns: list[int], idle_ns: int, run_off_ns: int
) -> None:
    found = end_window(lengths_ns, idle_ns, run_off_ns, COST_NS)
    if found is None:
        return
    assert idle_ns <= found.from_ns < found.until_ns
    ahead = [length for length in lengths_ns if length > idle_ns]
    reached = [each for each in ahead if each > found.from_ns]
    inside = [each for each in reached if each <= found.until_ns]
    assert len(inside) >= ENDS_MIN
    lost_ns = sum(min(each, found.until_ns) - found.from_ns for each in reached)
    # More gaps than those counted may end in the window, for as much time as the run-off takes.
    assert lost_ns < len(inside) * (COST_NS + run_off_ns + found.until_ns * TOLERANCE)


@given(st.integers(NS_PER_S, 100 * NS_PER_S), st.integers(ENDS_MIN, MEMORY))
def test_gaps_of_one_length_end_within_the_tolerance(length_ns: int, count: int) -> None:
    found = end_window([length_ns] * count, 0, RUN_OFF_NS, 10 * NS_PER_S)
    early_ns, late_ns = (round(length_ns * (1 + sign * TOLERANCE)) for sign in (-1, 1))
    assert found == EndWindow(early_ns - RUN_OFF_NS, early_ns, late_ns)
