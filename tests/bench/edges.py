# SPDX-License-Identifier: GPL-2.0-only
"""edge-latency: from the first request after a gap to the gate closed, and how late a gap is
seen.
"""

from __future__ import annotations

import json

from tests.bench.context import Context, Scenario
from tests.bench.gap_drain import OFF, QUIET_CACHE, Foreground, Pieces
from tests.bench.product import Product
from tests.bench.report import Report, percentile
from tests.lab.guest import Guest
from tests.lab.stack import BcacheStack

BURSTS = 60
DIRTY = Pieces(kib=64, dirty_mib=600, range_mib=700)
"""As much as the kernel caches, so that the volume does not come clean too soon."""
CLOSED_QUERY = """
    SELECT latency_ns, knob, new, reason FROM actions
    WHERE latency_ns IS NOT NULL AND reason LIKE 'a request arrived%'"""


def measure(guest: Guest, seed: int) -> dict[str, float]:
    """Short bursts, short gaps, destage all the while."""
    with BcacheStack(guest, settings={**QUIET_CACHE, **OFF, "sequential_cutoff": 0}) as stack:
        stack.expect_changed("writeback_rate")
        short = ("--bursts", str(BURSTS), "--reads", "20", "--gap-s", "0.6")
        with Foreground(stack, seed, *short) as foreground:
            foreground.fill(DIRTY)
            with Product(guest) as product:
                foreground.finish(180)
        rows = product.rows(CLOSED_QUERY)
        late = product.rows("SELECT late_ns FROM edges WHERE kind = 'idle'")
    # One row a knob: the last one of an edge has the latency of the whole.
    closed = sorted({row[0] for row in rows})
    return {
        "closed": float(len(closed)),
        "close_p50_ms": percentile(closed, 0.5) / 1e6,
        "close_p99_ms": percentile(closed, 0.99) / 1e6,
        "close_max_ms": closed[-1] / 1e6,
        "idle_late_p50_ms": percentile([row[0] for row in late], 0.5) / 1e6,
        "idle_late_p99_ms": percentile([row[0] for row in late], 0.99) / 1e6,
    }


def run(context: Context) -> Report:
    """All bursts of all repetitions."""
    runs: dict[str, list[dict[str, float]]] = {"ebbgate": []}
    with Guest() as guest:
        for repetition in range(context.repetitions):
            runs["ebbgate"].append(measure(guest, context.seed + repetition))
            context.say(json.dumps(runs["ebbgate"][-1]))
    found = runs["ebbgate"]
    ratios = {
        "close_p99_ms": max(r["close_p99_ms"] for r in found),
        "idle_late_p99_ms": max(r["idle_late_p99_ms"] for r in found),
        "closed": min(r["closed"] for r in found),
    }
    goals = {"close_p99_ms": "<= 20", "idle_late_p99_ms": "<= 30", "closed": ">= 20"}
    return Report("edge-latency", runs, ratios, goals)


SCENARIO = Scenario("edge-latency", "the gate is closed 20 ms after the first request", 2, run)
