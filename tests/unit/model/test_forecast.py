# SPDX-License-Identifier: GPL-2.0-only
"""A forecast that never comes true is told from one that is not known."""

from __future__ import annotations

import math

import pytest

from ebbgate.model.forecast import never, time_s
from ebbgate.model.status import VolumeStatus

NAMES = ("time_to_full_s", "time_to_clean_s")
MEASURED = {"destage_bytes_per_s": 0.0, "room_bytes": 1}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("known", [MEASURED, {}], ids=["measured", "not measured"])
def test_an_infinite_forecast_never_comes_true_whatever_is_measured(
    name: str, known: dict[str, float]
) -> None:
    seconds = {**dict.fromkeys(NAMES, 60.0), name: math.inf}
    status = VolumeStatus(**{**known, **seconds})  # type: ignore[arg-type]
    assert never(status) == [name]
    assert time_s(status, name) == math.inf


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (MEASURED, math.inf),
        ({}, None),
        ({"destage_bytes_per_s": 0.0}, None),
        ({"room_bytes": 1}, None),
    ],
)
def test_a_forecast_of_none_is_never_only_if_what_it_is_made_of_is_known(
    name: str, known: dict[str, float], expected: float | None
) -> None:
    assert time_s(VolumeStatus(**known), name) == expected  # type: ignore[arg-type]


def test_a_forecast_in_seconds_is_itself() -> None:
    status = VolumeStatus(time_to_full_s=0.0, time_to_clean_s=60.0)
    assert never(status) == []
    assert [time_s(status, name) for name in NAMES] == [0.0, 60.0]
