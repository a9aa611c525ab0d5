# SPDX-License-Identifier: GPL-2.0-only
"""Whether what users felt of a gap lowers the rate, makes rests longer, or both."""

from __future__ import annotations

import pytest

from ebbgate.model.frame import Disturbance
from ebbgate.policy.strategies import felt_gap
from ebbgate.policy.strategies.destage_state import DestageState
from ebbgate.policy.strategies.disk_cache_fill import DiskCacheFill
from ebbgate.policy.strategies.gap_use import GapUse
from ebbgate.units import MIB, NS_PER_MS

TARGET_NS = 3 * NS_PER_MS
MUCH = Disturbance(1, 20.0 * MIB, 4 * TARGET_NS)
"""So much that one gap is enough."""
FORESEEN, SHORT = GapUse(foreseen=True), GapUse(foreseen=True, was_short=True)
FOLLOWED = GapUse(foreseen=True, fill=DiskCacheFill())


def judged(use: GapUse, found: Disturbance = MUCH) -> DestageState:
    return felt_gap.judge(DestageState(gap=use), found, TARGET_NS, 2)


@pytest.mark.parametrize(
    ("use", "slower", "rests_longer"),
    [(GapUse(), True, False), (FORESEEN, False, True), (SHORT, True, True)],
)
def test_where_no_rest_is_long_enough_the_rate_sinks_too(
    use: GapUse, slower: bool, rests_longer: bool
) -> None:
    state = judged(use)
    assert (state.cap.bytes_per_s is not None) is slower
    assert (state.gap.run_off_ns > use.run_off_ns) is rests_longer


def test_where_the_disks_cache_is_followed_less_is_let_in() -> None:
    state = judged(FOLLOWED)
    assert state.gap.fill is not None
    assert state.gap.fill.slowness > DiskCacheFill().slowness
    assert state.cap.bytes_per_s is None


@pytest.mark.parametrize("use", [GapUse(), FORESEEN, SHORT, FOLLOWED])
def test_a_gap_counts_once(use: GapUse) -> None:
    state = judged(use)
    assert felt_gap.judge(state, MUCH, TARGET_NS, 3) is state


def test_a_gap_of_which_nothing_is_known_only_counts_as_unknown() -> None:
    state = judged(SHORT, Disturbance(1, 20.0 * MIB, None))
    assert state.calm.unknown == 1
    assert (state.cap, state.gap) == (DestageState().cap, SHORT)
