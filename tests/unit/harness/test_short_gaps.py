# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of `short-gaps`."""

from __future__ import annotations

from tests.bench.short_gaps import figures, ratios

RESULT = {
    "bursts": [[99.0], [24.0, 26.0], [30.0, 10.0], [11.0, 9.0], [12.0, 10.0], [50.0]],
    "gaps": [(400, 380), (380, 370), (370, 365), (365, 358), (358, 0)],
}


def test_bursts_count_after_gaps_that_left_dirty_data_and_are_slow_beyond_the_target() -> None:
    assert figures(RESULT, calm_ms=10.0) == {
        "mean_ms": (25 + 20 + 10 + 11) / 4,
        "later_mean_ms": 10.5,
        "later_first_median_ms": 11.5,
        "later_drained_mib": 6,
        "slow_bursts": 2,
        "counted": 4,
    }


def test_nothing_is_slow_where_nothing_is_known() -> None:
    assert figures(RESULT)["slow_bursts"] == 0


def test_the_second_half_is_compared_with_the_reads_without_a_daemon() -> None:
    own = figures(RESULT, calm_ms=10.0)
    off = own | {"later_mean_ms": 10.0}
    assert ratios({"off": [off], "ebbgate": [own]}) == {
        "later_mean_vs_off": 1.05,
        "drained_mib": 6,
        "slow_bursts": 2,
    }
