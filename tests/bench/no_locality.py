# SPDX-License-Identifier: GPL-2.0-only
"""no-locality: reads of a PostgreSQL that have no locality; nothing is worth being promoted.

Clients read rows of all tables, each as likely as another. What is moved into the cache is
hit no more often than what it displaces, so that ebbgate should notice and stand down.
"""

from __future__ import annotations

from statistics import mean

from ebbgate.policy.strategies.promote_hot import PromotePhase
from tests.bench.context import Context, Scenario
from tests.bench.postgres_volume import (
    PLACES,
    TABLES,
    devices,
    promotion,
    run_phase,
    served,
)
from tests.bench.report import Report, medians, ratio
from tests.lab.devices import MIB
from tests.lab.guest import Guest

SECONDS = 300
LEAVES_ALONE = (PromotePhase.STAND_DOWN, PromotePhase.REST)


def measure(guest: Guest, place: str, arm: str, seed: int) -> dict[str, float]:
    """Measure one arm on a fresh volume."""
    with served(guest, place, arm) as where:
        found = run_phase(guest, where, TABLES.names, SECONDS, seed)
        said = promotion(where) if arm == "ebbgate" else {}
    return {
        "tps": mean(found.per_s),
        "disk_reads_per_s": found.disk_reads / len(found.per_s),
        "leaves_alone": float(said.get("phase") in LEAVES_ALONE),
        "moved_mib": said.get("moved_bytes", 0) / MIB,
    }


def run(context: Context) -> Report:
    """Stock and ebbgate, interleaved in one boot."""
    place = context.variant or PLACES[0]
    with Guest(devices()) as guest:
        runs = context.interleaved(
            ("stock", "ebbgate"), lambda arm, n: measure(guest, place, arm, context.seed + n)
        )
    ratios = {
        "speed_vs_stock": ratio(runs, "ebbgate", "stock", "tps"),
        "leaves_alone": medians(runs["ebbgate"])["leaves_alone"],
    }
    return Report(
        "no-locality", runs, ratios, {"speed_vs_stock": ">= 0.98", "leaves_alone": "== 1"}
    )


SCENARIO = Scenario(
    "no-locality",
    "reads without locality are at most 2 % slower than on a stock cache",
    14,
    run,
    PLACES,
)
