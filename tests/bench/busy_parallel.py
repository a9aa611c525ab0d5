# SPDX-License-Identifier: GPL-2.0-only
"""busy-parallel: random reads at depth 16, with pauses in which the gate opens.

A disk serves such reads faster the more of them it has, so a queue that stayed shallow after a
pause would show. Arms: the gate never opens; the same with a queue that is always shallow, which
shows that it costs something; ebbgate. The same reads in each, while the daemon runs.
"""

from __future__ import annotations

from contextlib import nullcontext

from tests.bench.context import Context, Scenario
from tests.bench.gap_drain import (
    DISKS,
    OFF,
    PIECES,
    QUEUE_DEPTHS,
    QUIET_CACHE,
    SCHEDULERS,
    Foreground,
    interleaved,
    shallow_policy,
    shallow_queue,
)
from tests.bench.product import Product
from tests.bench.report import Report, Runs, ratio
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import MIB
from tests.lab.session import Session

ARMS = ("closed", "shallow", "ebbgate")
VARIANTS = tuple(f"{scheduler}/{disk}" for scheduler in SCHEDULERS for disk in DISKS)
DEFAULT_VARIANT = "bfq/ahci"
RUNTIME_S = 60
LEARNING_S = 15
"""At first, which counts for no arm, since a daemon runs for months: four pauses."""
PAUSE_S = 1
"""A whole number: fio takes "1.0s" for nothing."""
READS_BETWEEN_PAUSES = 600
"""About three seconds."""


def job(device: str) -> fio.Job:
    """Random reads of what is not cached, with pauses in which none is under way."""
    options: dict[str, str | int] = {
        "offset": "50%",
        "ioengine": "libaio",
        "iodepth": 16,
        "time_based": 1,
        "runtime": RUNTIME_S,
        "ramp_time": LEARNING_S,
        "thinktime": f"{PAUSE_S}s",
        "thinktime_blocks": READS_BETWEEN_PAUSES,
    }
    return fio.Job(device, "randread", "4k", options=options)


def reads_per_busy_s(ios: int, runtime_s: float) -> float:
    """Return the throughput outside the pauses."""
    return ios / (runtime_s - PAUSE_S * (ios // READS_BETWEEN_PAUSES))


def written_mib(stack: BcacheStack) -> float:
    """Return what the hard disk was told to write so far."""
    return int(stack.session.read(stack.knob_path("hdd:stat")).split()[6]) * 512 / MIB


def measure(guest: Session, variant: str, arm: str, seed: int) -> dict[str, float]:
    """Measure one arm on a fresh volume."""
    scheduler, pieces = variant.partition("/")[0], PIECES["64k"]
    depth, enforces = QUEUE_DEPTHS.get(scheduler, 0), arm == "ebbgate"
    settings = {**QUIET_CACHE, **OFF, "sequential_cutoff": 0}
    with BcacheStack(guest, ssd=pieces.ssd, scheduler=scheduler, settings=settings) as stack:
        stack.expect_changed("writeback_rate")
        with (
            shallow_queue(stack, depth) if arm == "shallow" else nullcontext(),
            shallow_policy(guest, depth) if enforces else nullcontext(),
            Foreground(stack, seed) as foreground,
        ):
            foreground.fill(pieces)
            with Product(guest, mode="enforce" if enforces else "advise"):
                before = written_mib(stack)
                reads = fio.start(guest, job(stack.device), seed=seed)
                foreground.end()
                done = reads.wait(LEARNING_S + RUNTIME_S + 60).only
                drained = written_mib(stack) - before
    return {
        "reads_per_busy_s": reads_per_busy_s(done.ios, done.runtime_ms / 1000),
        "p99_ms": done.read.p99_ns / 1e6,
        "drained_mib": drained,
    }


def ratios_of(runs: Runs, variant: str) -> dict[str, float]:
    """Return the figures that have goals."""
    ours, closed = f"{variant} ebbgate", f"{variant} closed"
    return {
        "reads_vs_closed": ratio(runs, ours, closed, "reads_per_busy_s"),
        "shallow_vs_closed": ratio(runs, f"{variant} shallow", closed, "reads_per_busy_s"),
        "drained_mib": min(found["drained_mib"] for found in runs[ours]),
    }


def run(context: Context) -> Report:
    """Run the variant; arms interleaved in one boot."""
    variant = context.variant or DEFAULT_VARIANT
    runs = interleaved(context, [variant], ARMS, measure)
    goals = {"reads_vs_closed": ">= 0.97", "drained_mib": ">= 100"}
    if QUEUE_DEPTHS.get(variant.partition("/")[0]):
        goals["shallow_vs_closed"] = "<= 0.95"
    return Report("busy-parallel", runs, ratios_of(runs, variant), goals)


SCENARIO = Scenario(
    "busy-parallel",
    "parallel reads keep >= 0.97 of their throughput beside gaps that drain",
    5,
    run,
    VARIANTS,
    adds=True,
)
