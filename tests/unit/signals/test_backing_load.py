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
