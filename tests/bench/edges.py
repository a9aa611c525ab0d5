# SPDX-License-Identifier: GPL-2.0-only
"""edge-latency: from the first request after a gap to the gate closed, and how late a gap is
seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench.context import Context, Scenario
from tests.bench.gap_drain import OFF, QUIET_CACHE, Foreground, Pieces
from tests.bench.product import STATE_DIR, Product
from tests.bench.report import Report, percentile
from tests.lab.bcache_stack import BcacheStack
from tests.lab.guest import Guest

VOLUMES = 5
BURSTS = 60
DIRTY = Pieces(kib=64, dirty_mib=600, range_mib=700)
"""As much as the kernel caches, so that the volume does not come clean too soon."""
CLOSED_QUERY = """
    SELECT latency_ns, knob, new, reason FROM actions
    WHERE latency_ns IS NOT NULL AND reason LIKE 'a request arrived%'"""


@dataclass(frozen=True, slots=True)
class EdgeLatency:
    """What one volume's history says, in ns."""

    closed: list[int]
    idle: list[int]


def measure(guest: Guest, seed: int) -> EdgeLatency:
    """Short bursts, short gaps, destage all the while."""
    with BcacheStack(guest, settings={**QUIET_CACHE, **OFF, "sequential_cutoff": 0}) as stack:
        stack.expect_changed("writeback_rate")
        guest.run(["rm", "-rf", STATE_DIR])
        short = ("--bursts", str(BURSTS), "--reads", "20", "--gap-s", "0.6")
        with Foreground(stack, seed, *short) as foreground:
            foreground.fill(DIRTY)
            with Product(guest) as product:
                foreground.finish(180)
        # One row a knob: the last one of an edge has the latency of the whole.
        closed = {row[0] for row in product.rows(CLOSED_QUERY)}
        late = product.rows("SELECT late_ns FROM edges WHERE kind = 'idle'")
    return EdgeLatency(sorted(closed), [row[0] for row in late])


def figures(found: Sequence[EdgeLatency]) -> dict[str, float]:
    """Of all volumes together: a p99 of one volume's closes would be its worst."""
    closed = sorted(ns for one in found for ns in one.closed)
    idle = [ns for one in found for ns in one.idle]
    return {
        "closed": float(len(closed)),
        "close_p50_ms": percentile(closed, 0.5) / 1e6,
        "close_p99_ms": percentile(closed, 0.99) / 1e6,
        "close_max_ms": closed[-1] / 1e6,
        "idle": float(len(idle)),
        "idle_late_p50_ms": percentile(idle, 0.5) / 1e6,
        "idle_late_p99_ms": percentile(idle, 0.99) / 1e6,
    }


def waited_share(
    before: Mapping[int, tuple[int, int]], after: Mapping[int, tuple[int, int]]
) -> float:
    """Of the time in which the emulator had something to do: how much it waited for a core of the
    host, 0..1. Of its threads that lived all the while.
    """
    lived = before.keys() & after.keys()
    ran, waited = (sum(after[one][i] - before[one][i] for one in lived) for i in (0, 1))
    return waited / (ran + waited) if ran + waited else 0.0


def run(context: Context) -> Report:
    """Several volumes one after the other: each comes clean after some twenty gaps."""
    found: list[dict[str, float]] = []
    with Guest() as guest:
        for repetition in range(context.repetitions):
            late, before = [], guest.scheduled_ns()
            for number in range(VOLUMES):
                late.append(measure(guest, context.seed + VOLUMES * repetition + number))
                context.say(json.dumps(figures(late)))
            waited = {"emulator_waited": waited_share(before, guest.scheduled_ns())}
            found.append(figures(late) | waited)
    ratios = {
        "close_p99_ms": max(r["close_p99_ms"] for r in found),
        "idle_late_p99_ms": max(r["idle_late_p99_ms"] for r in found),
        "closed": min(r["closed"] for r in found),
    }
    goals = {"close_p99_ms": "<= 20", "idle_late_p99_ms": "<= 30", "closed": ">= 100"}
    return Report("edge-latency", {"ebbgate": found}, ratios, goals)


SCENARIO = Scenario("edge-latency", "the gate closes within 20 ms of the first request", 7, run)
