# SPDX-License-Identifier: GPL-2.0-only
"""Forecasts of a status that are known never to come true. Pure."""

from __future__ import annotations

import math
from typing import Final

from ebbgate.model.status import VolumeStatus

_FORECASTS: Final = ("time_to_full_s", "time_to_clean_s")


def never(status: VolumeStatus) -> list[str]:
    """Return the names of the forecasts that never come true at the present rates.

    A forecast that is None is one of these where what it is computed from is known: the rates of
    what becomes dirty and of write-back, which are measured together, and the dirty data.
    """
    known = status.destage_bytes_per_s is not None and status.room_bytes is not None
    found = {name: getattr(status, name) for name in _FORECASTS}
    return [name for name, value in found.items() if value == math.inf or (value is None and known)]


def time_s(status: VolumeStatus, name: str) -> float | None:
    """Return a forecast in seconds: infinite if it never comes true, None if it is unknown."""
    value: float | None = math.inf if name in never(status) else getattr(status, name)
    return value
