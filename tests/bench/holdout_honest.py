# SPDX-License-Identifier: GPL-2.0-only
"""holdout-honest: a hot set that is another one before anything can be gained by moving it.

Each table of a PostgreSQL is hot once, for one window of the probe. What ebbgate moves of it is not
read again, so that the gain that it measures must be nothing, within the error that it states.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from ebbgate.units import MIB, NS_PER_MS
from tests.bench.context import Context, Scenario
from tests.bench.postgres_volume import (
    PLACES,
    TABLES,
    devices,
    promotion,
    run_phase,
    served,
)
from tests.bench.report import Report, medians
from tests.lab.guest import Guest

HOT_S = 10
DISK_MS = 8.0
"""About what one read takes: a gain of less is none."""


def measure(guest: Guest, place: str, seed: int) -> dict[str, float]:
    """Return the gain that ebbgate measures, and its error."""
    names = random.Random(seed).sample(TABLES.names, TABLES.count)
    with served(guest, place, "ebbgate") as where:
        for number, name in enumerate(names):
            run_phase(guest, where, (name,), HOT_S, 100 * seed + number)
        return gain(promotion(where))


def gain(said: Mapping[str, Any]) -> dict[str, float]:
    """Return the gain, its error and the cost that the daemon states; empty before any."""
    if said["saved_ns"] is None:
        return {}
    return {
        "gain_ms": said["saved_ns"] / NS_PER_MS,
        "error_ms": said["saved_error_ns"] / NS_PER_MS,
        "cost_ms": said["cost_ns"] / NS_PER_MS,
        "moved_mib": said["moved_bytes"] / MIB,
    }


def gain_in_errors(found: Mapping[str, float]) -> float:
    """Return how many times its error the gain is."""
    return abs(found["gain_ms"]) / max(found["error_ms"], DISK_MS)


def run(context: Context) -> Report:
    """Run the variant."""
    place = context.variant or PLACES[0]
    with Guest(devices()) as guest:
        runs = context.interleaved(
            ("ebbgate",), lambda _arm, n: measure(guest, place, context.seed + n)
        )
    found = medians(runs["ebbgate"])
    ratios = {"gain_in_errors": gain_in_errors(found)} if found else {}
    return Report("holdout-honest", runs, ratios, {"gain_in_errors": "<= 1"})


SCENARIO = Scenario(
    "holdout-honest",
    "where nothing can be gained by promotion, no gain is measured",
    6,
    run,
    PLACES,
)
