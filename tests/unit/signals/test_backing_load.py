# SPDX-License-Identifier: GPL-2.0-only
"""How busy users keep the backing device: from latencies, and from requests that never end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.signals.test_frame import at, frame_after


def dev(latency: list[int]) -> dict[str, Any]:
    flow = {"ios": sum(latency), "bytes": 0, "lat": latency}
    return {"backing": {"read": {"fg": flow}, "depth": {"read": 2, "write": 3}}}


def test_the_backing_device_is_busy_for_users_as_long_as_they_wait_for_it() -> None:
    # 50 requests of about 10 ms (bucket 49 starts at 10.24 ms) within a second.
    frame = frame_after(at(0, dev=dev([])), at(1000, dev=dev([*[0] * 49, 50])))
    assert frame.backing_busy_foreground_ratio == pytest.approx(0.57, abs=0.06)
    assert frame.backing_depth_ios == 5
    busier = frame_after(at(0, dev=dev([])), at(1000, dev=dev([*[0] * 49, 500])))
    assert busier.backing_busy_foreground_ratio == 1.0


def test_slow_requests_keep_the_backing_device_busy_also_if_most_are_fast() -> None:
    # 60 requests of 3 us and, within the second, 40 of about 11 ms.
    frame = frame_after(at(0, dev=dev([])), at(1000, dev=dev([0, 0, 0, 60, *[0] * 45, 40])))
    assert frame.backing_busy_foreground_ratio == pytest.approx(0.45, abs=0.06)


@pytest.mark.parametrize(
    ("in_flight_ios", "destage_ios", "busy_ratio"),
    # A hit is in flight beside write-back, or nobody waits; or one of six is a read of users.
    [(1, 6, 0.0), (0, 5, 0.0), (1, 5, 1.0)],
)
def test_a_request_that_never_ends_keeps_the_backing_device_busy(
    in_flight_ios: int, destage_ios: int, busy_ratio: float
) -> None:
    fields = {
        "dev": {"backing": {"depth": {"read": 1, "write": 5}}},
        "inflight": {"read": in_flight_ios, "write": 0},
        "destage": {"inflight_ios": destage_ios},
    }
    frame = frame_after(at(0, **fields), at(1000, **fields))
    assert frame.backing_busy_foreground_ratio == busy_ratio
    # It has ended.
    ended = {**fields, "dev": dev([*[0] * 75, 1])}
    busy = frame_after(at(0, **fields), at(1000, **ended)).backing_busy_foreground_ratio
    assert busy == pytest.approx(0.9, abs=0.1)
