# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of `edge-latency`."""

from __future__ import annotations

from tests.bench.edges import EdgeLatency, counted, figures, waited_share


def test_gaps_count_only_where_they_left_dirty_data() -> None:
    bursts = [[90.0, 9.0], [12.0, 8.0], [30.0, 10.0]]
    assert counted({"bursts": bursts, "gaps": [(400, 300), (300, 0)]}) == [(100, [12, 8])]


def test_the_edges_and_bursts_of_all_volumes_are_pooled() -> None:
    volumes = [
        EdgeLatency([1_000_000], [3_000_000], [[7, 1]], [6]),
        EdgeLatency([9_000_000], [], [[5, 3], [8, 6]], [3, 0]),
    ]
    found = figures(volumes)
    assert (found["closed"], found["close_p50_ms"], found["close_max_ms"]) == (2, 1, 9)
    assert (found["idle"], found["idle_late_p99_ms"]) == (1, 3)
    assert (found["firsts"], found["first_median_ms"], found["first_p99_ms"]) == (3, 7, 8)
    assert (found["mean_ms"], found["drained_mib"]) == (5, 3)


def test_waiting_is_a_share_of_the_time_with_something_to_do() -> None:
    assert waited_share({1: (0, 0), 2: (5, 5)}, {1: (60, 20), 3: (9, 9)}) == 0.25
