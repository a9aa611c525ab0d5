# SPDX-License-Identifier: GPL-2.0-only
"""gap-drain-dmcache: write-back in a gap on LVM's dm-cache, and the latency of the next burst.

Arms: never cleaning (migration_threshold 0), stock (2048 sectors), ebbgate. The kernel itself waits
for a second without I/O to the origin, and looks once a second, so that of a gap of 2.5 s one
second is left to drain.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.bench.context import Context, Scenario
from tests.bench.faults import data_job
from tests.bench.gap_drain import Foreground, Pieces, figures, interleaved
from tests.bench.product import Product
from tests.bench.report import Report, ratio
from tests.lab import fio
from tests.lab.dm_stack import DmCacheStack
from tests.lab.session import Session

ARMS = ("off", "stock", "ebbgate")
MIB = 1 << 20
CACHE_BYTES = 900 * MIB
PIECES = Pieces(64, 420, 512)
GOALS = {
    "drain_vs_stock": ">= 1",
    "burst_p99_vs_off": "<= 1.1",
    "first_median_ms": "<= 45",
    "moved_busy_vs_stock": "<= 1",
    "bad_data": "== 0",
}


@dataclass(frozen=True, slots=True)
class Gaps:
    """How long the gaps are, how many bursts there are; `drain`: what is asked against stock."""

    seconds: float
    bursts: int
    drain: str


VARIANTS = {"2.5s": Gaps(2.5, 7, ">= 1"), "10s": Gaps(10.0, 6, ">= 2")}


def run(context: Context) -> Report:
    """Both lengths of gaps, or the one that was asked for; arms interleaved in one boot."""
    wanted = [v for v in VARIANTS if context.variant in ("", v)]
    runs = interleaved(context, wanted, ARMS, measure)
    ratios: dict[str, float] = {}
    goals: dict[str, str] = {}
    for variant in wanted:
        asked = {**GOALS, "drain_vs_stock": VARIANTS[variant].drain}
        for name, value in judged(runs, variant).items():
            ratios[f"{variant} {name}"] = value
            goals[f"{variant} {name}"] = asked[name]
    return Report("gap-drain-dmcache", runs, ratios, goals)


def judged(runs: dict[str, list[dict[str, float]]], variant: str) -> dict[str, float]:
    """The figures that are judged, of one variant."""
    ours, stock = f"{variant} ebbgate", f"{variant} stock"
    return {
        "drain_vs_stock": ratio(runs, ours, stock, "drained_mib", floor=1.0),
        "burst_p99_vs_off": ratio(runs, ours, f"{variant} off", "p99_ms"),
        "first_median_ms": median(found["first_median_ms"] for found in runs[ours]),
        "moved_busy_vs_stock": ratio(runs, ours, stock, "moved_mib_per_busy_s", floor=0.5),
        "bad_data": max(found["bad_data"] for arm in ARMS for found in runs[f"{variant} {arm}"]),
    }


def measure(guest: Session, variant: str, arm: str, seed: int) -> dict[str, float]:
    """One arm on a fresh volume, whose data is checked at the end."""
    gaps = VARIANTS[variant]
    settings = {"migration_threshold": 0} if arm == "off" else {}
    options = ("--gap-s", str(gaps.seconds), "--bursts", str(gaps.bursts))
    with DmCacheStack(guest, cache_bytes=CACHE_BYTES, settings=settings) as stack:
        fio.run(guest, data_job(stack.device, verify_only=False, offset_mib=600), seed=seed)
        with Foreground(stack, seed, *options) as foreground:
            foreground.fill(PIECES)
            # Measured in every arm: what users read while it starts is seen by smq, too.
            with Product(guest, mode="enforce" if arm == "ebbgate" else "advise"):
                timeout_s = 120 + gaps.seconds * gaps.bursts
                result = foreground.finish(timeout_s)
        check = fio.run(guest, data_job(stack.device, verify_only=True, offset_mib=600), seed=seed)
        return {**figures(result), **moved(result), "bad_data": float(check.bytes < 64 * MIB)}


def moved(result: dict[str, Any]) -> dict[str, float]:
    """What the cache moved while users were there: destage; promotions and demotions, which no
    knob holds back."""
    seconds = sum(burst[2] for burst in result["moved"])
    destaged = sum(burst[0] for burst in result["moved"]) / seconds
    copied = sum(burst[1] for burst in result["moved"]) / seconds
    return {
        "moved_mib_per_busy_s": destaged + copied,
        "destaged_mib_per_busy_s": destaged,
        "copied_mib_per_busy_s": copied,
    }


def product(session: Session, arm: str) -> AbstractContextManager[Product | None]:
    """ebbgate in enforce in its own arm."""
    return Product(session) if arm == "ebbgate" else nullcontext()


SCENARIO = Scenario(
    "gap-drain-dmcache",
    "dm-cache: writes back as much as stock, without making users wait",
    7,
    run,
    tuple(VARIANTS),
)
