# SPDX-License-Identifier: GPL-2.0-only
"""edge-latency: from the first request after a gap to the gate closed, how late a gap is seen, and
what the first request waited against one after a gap without destage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from tests.bench.context import Context, Scenario
from tests.bench.gap_drain import (
    DISKS,
    OFF,
    PIECES,
    QUEUE_DEPTHS,
    QUIET_CACHE,
    SCHEDULERS,
    SSDS,
    Foreground,
    shallow_policy,
)
from tests.bench.product import STATE_DIR, Product
from tests.bench.report import Report, percentile, ratio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.guest import Guest

VOLUMES = 4
BURSTS = 60
DISK = "ahci"
DIRTY = PIECES["64k"]
GOALS = {
    "close_p99_ms": "<= 20",
    "idle_late_p99_ms": "<= 30",
    "closed": ">= 100",
    "first_median_vs_off": "<= 1.2",
    "first_p99_vs_off": "<= 1.5",
}
CLOSED_QUERY = """
    SELECT latency_ns, knob, new, reason FROM actions
    WHERE latency_ns IS NOT NULL AND reason LIKE 'a request arrived%'"""


@dataclass(frozen=True, slots=True)
class EdgeLatency:
    """What one volume's history says, in ns, and what users saw.

    `bursts_ms`: the reads of each burst after a gap that left dirty data; `drained_mib`: by those
    gaps.
    """

    closed: list[int]
    idle: list[int]
    bursts_ms: list[list[float]]
    drained_mib: list[float]


def measure(guest: Guest, scheduler: str, seed: int, *, mode: str = "enforce") -> EdgeLatency:
    """Short bursts, short gaps, destage all the while; `advise`: no destage at all."""
    settings = {**QUIET_CACHE, **OFF, "sequential_cutoff": 0}
    with BcacheStack(guest, ssd=DIRTY.ssd, scheduler=scheduler, settings=settings) as stack:
        stack.expect_changed("writeback_rate")
        guest.run(["rm", "-rf", STATE_DIR])
        short = ("--bursts", str(BURSTS), "--reads", "20", "--gap-s", "0.6")
        with (
            shallow_policy(guest, QUEUE_DEPTHS.get(scheduler, 0)),
            Foreground(stack, seed, *short) as foreground,
        ):
            foreground.fill(DIRTY)
            with Product(guest, mode=mode) as product:
                result = foreground.finish(180)
        # One row a knob: the last one of an edge has the latency of the whole.
        closed = {row[0] for row in product.rows(CLOSED_QUERY)}
        late = product.rows("SELECT late_ns FROM edges WHERE kind = 'idle'")
    after = counted(result)
    return EdgeLatency(
        sorted(closed),
        [row[0] for row in late],
        [burst for _, burst in after],
        [drained_mib for drained_mib, _ in after],
    )


def counted(result: Mapping[str, Any]) -> list[tuple[float, list[float]]]:
    """Return what each gap that left dirty data has drained, and the burst after it."""
    after = zip(result["gaps"], result["bursts"][1:], strict=True)
    return [(before - left, burst) for (before, left), burst in after if left > 0]


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
        **burst_figures(found),
    }


def burst_figures(found: Sequence[EdgeLatency]) -> dict[str, float]:
    """Return the figures of the first requests and of all, and what a gap drained."""
    bursts = [burst for one in found for burst in one.bursts_ms]
    firsts = [burst[0] for burst in bursts]
    return {
        "firsts": float(len(firsts)),
        "first_median_ms": percentile(firsts, 0.5),
        "first_p99_ms": percentile(firsts, 0.99),
        "mean_ms": fmean(ms for burst in bursts for ms in burst),
        "drained_mib": fmean(mib for one in found for mib in one.drained_mib),
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
    """Measure one volume without destage, then several with it: each comes clean at some time."""
    runs: dict[str, list[dict[str, float]]] = {"off": [], "ebbgate": []}
    scheduler = context.variant or SCHEDULERS[0]
    with Guest((DISKS[DISK], *SSDS)) as guest:
        for repetition in range(context.repetitions):
            first_seed = context.seed + VOLUMES * repetition
            off = measure(guest, scheduler, first_seed, mode="advise")
            runs["off"].append(burst_figures([off]))
            late, before = [], guest.scheduled_ns()
            for number in range(VOLUMES):
                late.append(measure(guest, scheduler, first_seed + number))
                context.say(json.dumps(figures(late)))
            waited = {"emulator_waited": waited_share(before, guest.scheduled_ns())}
            runs["ebbgate"].append(figures(late) | waited)
    found = runs["ebbgate"]
    ratios = {
        "close_p99_ms": max(r["close_p99_ms"] for r in found),
        "idle_late_p99_ms": max(r["idle_late_p99_ms"] for r in found),
        "closed": min(r["closed"] for r in found),
        "first_median_vs_off": ratio(runs, "ebbgate", "off", "first_median_ms"),
        "first_p99_vs_off": ratio(runs, "ebbgate", "off", "first_p99_ms"),
        "mean_vs_off": ratio(runs, "ebbgate", "off", "mean_ms"),
        "drained_mib": median(r["drained_mib"] for r in found),
    }
    return Report("edge-latency", runs, ratios, GOALS)


SCENARIO = Scenario(
    "edge-latency",
    "the gate closes within 20 ms of the first request, which waits no longer",
    7,
    run,
    SCHEDULERS,
)
