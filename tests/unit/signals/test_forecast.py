# SPDX-License-Identifier: GPL-2.0-only
"""Forecasts of a cache's dirty level: room, time to full, time to clean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.signals.forecast import (
    cutoff_ratio,
    dirty_room_bytes,
    time_to_clean_s,
    time_to_full_s,
)
from ebbgate.units import GIB, MIB

RATES = st.floats(min_value=0, max_value=1e10)


def test_synchronous_writes_are_cached_to_the_higher_cutoff() -> None:
    assert (cutoff_ratio(mostly_sync=False), cutoff_ratio(mostly_sync=True)) == (0.40, 0.70)


@pytest.mark.parametrize(
    ("level", "room_bytes"), [(0.0, 700), (0.69, 10), (0.70, 0), (0.95, 0), (1.0, 0)]
)
def test_room_ends_at_the_limit(level: float, room_bytes: int) -> None:
    assert dirty_room_bytes(1000, level, 0.70) == pytest.approx(room_bytes, abs=1)


@pytest.mark.parametrize(
    ("into", "out", "seconds"),
    [(10 * MIB, 0, 10.0), (15 * MIB, 5 * MIB, 10.0), (5 * MIB, 5 * MIB, None), (0, MIB, None)],
)
def test_time_to_full_counts_the_net_rate(into: float, out: float, seconds: float | None) -> None:
    assert time_to_full_s(100 * MIB, into, out) == seconds


@pytest.mark.parametrize(("into", "out"), [(0, 0), (0, MIB), (MIB, MIB), (MIB, 0)])
def test_a_cache_without_room_is_full_now(into: float, out: float) -> None:
    assert time_to_full_s(0, into, out) == 0.0


@pytest.mark.parametrize(
    ("dirty", "into", "out", "seconds"),
    [
        (0, 10 * MIB, 0, 0.0),
        (100 * MIB, 0, 10 * MIB, 10.0),
        (100 * MIB, 5 * MIB, 15 * MIB, 10.0),
        (100 * MIB, 10 * MIB, 10 * MIB, None),
        (100 * MIB, 0, 0, None),
    ],
)
def test_time_to_clean_counts_the_net_rate(
    dirty: int, into: float, out: float, seconds: float | None
) -> None:
    assert time_to_clean_s(dirty, into, out) == seconds


@given(st.integers(min_value=1, max_value=GIB), RATES, RATES)
def test_dirty_data_never_both_fills_and_drains(dirty: int, into: float, out: float) -> None:
    full, clean = time_to_full_s(dirty, into, out), time_to_clean_s(dirty, into, out)
    assert full is None or clean is None
    assert (full is None or full >= 0) and (clean is None or clean >= 0)
