# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of `holdout-honest`."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from ebbgate.model.promotion import PromotionStatus
from ebbgate.units import MIB, NS_PER_S
from tests.bench.holdout_honest import gain, gain_in_errors


def test_the_gain_is_what_the_daemon_states() -> None:
    said = PromotionStatus(
        saved_ns=-0.25 * NS_PER_S,
        saved_error_ns=1.5 * NS_PER_S,
        cost_ns=2.0 * NS_PER_S,
        moved_bytes=40 * MIB,
    )
    found = {"gain_ms": -250, "error_ms": 1500, "cost_ms": 2000, "moved_mib": 40}
    assert gain(asdict(said)) == found


def test_a_gain_that_was_not_measured_is_no_figure() -> None:
    assert gain(asdict(PromotionStatus())) == {}


@pytest.mark.parametrize(
    ("gain_ms", "error_ms", "times"), [(300.0, 150.0, 2.0), (-60.0, 120.0, 0.5), (0.0, 0.0, 0.0)]
)
def test_the_gain_is_compared_with_its_error(gain_ms: float, error_ms: float, times: float) -> None:
    assert gain_in_errors({"gain_ms": gain_ms, "error_ms": error_ms}) == times
