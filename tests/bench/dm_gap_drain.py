# SPDX-License-Identifier: GPL-2.0-only
"""gap-drain-dmcache: write-back in a gap on LVM's dm-cache, and the latency of the next burst.

Arms: never cleaning (migration_threshold 0), stock (2048 sectors), ebbgate. The kernel itself waits
for a second without I/O to the origin, and looks once a second, so that of a gap of 2.5 s one
second is left to drain.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tests.bench.burst_figures import figures
from tests.bench.context import Context, Scenario
from tests.bench.faults import data_job
from tests.bench.gap_drain import (
    DISKS,
    QUEUE_DEPTHS,
    SCHEDULERS,
    Foreground,
    Pieces,
    Rhythm,
    interleaved,
    shallow_policy,
)
from tests.bench.product import Product
from tests.bench.report import Report, Runs, ratio
from tests.lab import fio
from tests.lab.dm_stack import DmCacheStack
from tests.lab.session import Session

ARMS = ("off", "stock", "ebbgate")
MIB = 1 << 20
GOALS = {
    "drain_vs_stock": ">= 1",
    "first_median_vs_off": "<= 1.3",
    "p99_vs_off": "<= 1.1",
    "moved_busy_vs_stock": "<= 1",
    "bad_data": "== 0",
}
GAPS = {"2.5s": Rhythm(), "10s": Rhythm(bursts=9, gap_s=10.0)}
PIECES = {"2.5s": Pieces(64, 420, 512), "10s": Pieces(64, 1000, 1280)}
"""More than all gaps of 2.5 s drain. Of eight of 10 s only two to four count, since the others
leave nothing dirty.
"""
CACHE_BYTES = 900 * MIB
CACHES_BYTES = {"2.5s": CACHE_BYTES, "10s": 2200 * MIB}
CHECKED_MIB = 1400
"""Where the data is that is checked at the end: behind the dirty data."""
DRAIN_GOALS = {"2.5s": ">= 1", "10s": ">= 1.3"}
UNTHROTTLED = "unthrottled"
"""A policy turns the kernel's own throttling of writes off; bfq does that by itself."""
VARIANTS = (
    *(f"{g}/{s}/{d}" for g in GAPS for s in SCHEDULERS for d in DISKS),
    *(f"{g}/mq-deadline/{d}/{UNTHROTTLED}" for g in GAPS for d in DISKS),
)
DEFAULT_VARIANTS = ("2.5s/mq-deadline/ahci", "10s/mq-deadline/ahci")


def run(context: Context) -> Report:
    """Run the requested variant, or both lengths of gaps; arms interleaved in one boot."""
    wanted = [context.variant] if context.variant else DEFAULT_VARIANTS
    runs = interleaved(context, wanted, ARMS, measure)
    ratios: dict[str, float] = {}
    goals: dict[str, str] = {}
    for variant in wanted:
        own_goals = {**GOALS, "drain_vs_stock": DRAIN_GOALS[variant.partition("/")[0]]}
        for name, value in variant_ratios(runs, variant).items():
            ratios[f"{variant} {name}"] = value
            goals[f"{variant} {name}"] = own_goals[name]
    return Report("gap-drain-dmcache", runs, ratios, goals)


def variant_ratios(runs: Runs, variant: str) -> dict[str, float]:
    """Return the figures of one variant that have goals."""
    ours, stock, off = f"{variant} ebbgate", f"{variant} stock", f"{variant} off"
    return {
        "drain_vs_stock": ratio(runs, ours, stock, "drained_mib", floor=1.0),
        "first_median_vs_off": ratio(runs, ours, off, "first_median_ms"),
        "p99_vs_off": ratio(runs, ours, off, "p99_ms"),
        "moved_busy_vs_stock": ratio(runs, ours, stock, "moved_mib_per_busy_s", floor=0.5),
        "bad_data": max(found["bad_data"] for arm in ARMS for found in runs[f"{variant} {arm}"]),
    }


def measure(guest: Session, variant: str, arm: str, seed: int) -> dict[str, float]:
    """Measure one arm on a fresh volume, whose data is checked at the end."""
    name, scheduler, *words = variant.split("/")
    rhythm, enforces = GAPS[name], arm == "ebbgate"
    throttling = "wbt_lat_usec: 0" if enforces and UNTHROTTLED in words else ""
    settings = {"migration_threshold": 0} if arm == "off" else {}
    depth = QUEUE_DEPTHS.get(scheduler, 0) if enforces else 0
    with DmCacheStack(
        guest, cache_bytes=CACHES_BYTES[name], scheduler=scheduler, settings=settings
    ) as stack:
        written = data_job(stack.device, verify_only=False, offset_mib=CHECKED_MIB)
        fio.run(guest, written, seed=seed)
        with Foreground(stack, seed, *rhythm.options) as foreground:
            foreground.fill(PIECES[name])
            # Measured in every arm: what users read while it starts is seen by smq, too.
            mode = "enforce" if enforces else "advise"
            policy = shallow_policy(guest, depth, settings=throttling)
            with policy, Product(guest, mode=mode):
                result = foreground.finish(120 + rhythm.gap_s * rhythm.bursts)
        kept = data_job(stack.device, verify_only=True, offset_mib=CHECKED_MIB)
        check = fio.run(guest, kept, seed=seed)
        return {
            **figures(result, rhythm.learning),
            **moved(result),
            "bad_data": float(check.bytes < 64 * MIB),
        }


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
    VARIANTS,
    adds=True,
)
