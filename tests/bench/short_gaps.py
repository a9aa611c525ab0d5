# SPDX-License-Identifier: GPL-2.0-only
"""short-gaps: bursts of 20 reads with gaps of 0.6 s, on a disk whose write cache no gap empties.

Users read so from before the daemon starts, so it never sees a request that write-back cannot have
delayed, but where it leaves gaps alone. `off`: the same without a daemon.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from tests.bench.context import Context, Scenario
from tests.bench.gap_drain import (
    DISKS,
    GUEST_SCRIPTS,
    OFF,
    QUEUE_DEPTHS,
    QUIET_CACHE,
    SCHEDULERS,
    SSDS,
    Pieces,
    fill_job,
    level_of,
    shallow_policy,
)
from tests.bench.product import PYTHON, STATE_DIR, Product
from tests.bench.report import Report, ratio
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import MIB
from tests.lab.guest import Guest
from tests.lab.session import Process

DISK = "ahci"
PIECES = Pieces(64, 800, 4000, "ssd1")
BURSTS = {"off": 25, "ebbgate": 80}
SLOW_MS = 5.0
"""3 ms, the default of `disturbance`, and what the mean of a calm burst of 20 differs by."""
COUNT = "/run/short-gaps-count"
GOALS = {"later_mean_vs_off": "<= 1.1", "drained_mib": ">= 3", "slow_bursts": "<= 15"}


def reader(stack: BcacheStack, seed: int, bursts: int, *options: str) -> Process:
    """Users who read the second half of the volume."""
    end_mib = int(stack.session.read(f"/sys/block/{stack.volume}/size")) * 512 // MIB
    low, high = (end_mib + 1) // 2 * MIB, end_mib * MIB
    return stack.session.spawn(
        [
            *(PYTHON, str(GUEST_SCRIPTS / "bursts.py"), stack.device, *level_of(stack)),
            *("--low", str(low), "--high", str(high), "--seed", str(seed)),
            *("--bursts", str(bursts), "--reads", "20", "--gap-s", "0.6", *options),
        ]
    )


def figures(result: Mapping[str, Any], calm_ms: float = math.inf) -> dict[str, float]:
    """Return the means of all bursts after a gap that left dirty data, and of the second half of
    them; how many were slower than `calm_ms`, and what a gap of the second half drained.
    """
    after = zip(result["gaps"], result["bursts"][1:], strict=True)
    counted = [(before - left, burst) for (before, left), burst in after if left > 0]
    means_ms = [fmean(burst) for _, burst in counted]
    later = counted[len(counted) // 2 :]
    return {
        "mean_ms": fmean(means_ms),
        "later_mean_ms": fmean(fmean(burst) for _, burst in later),
        "later_first_median_ms": median(burst[0] for _, burst in later),
        "later_drained_mib": fmean(drained for drained, _ in later),
        "slow_bursts": float(sum(each > calm_ms + SLOW_MS for each in means_ms)),
        "counted": float(len(counted)),
    }


def measure(guest: Guest, scheduler: str, seed: int) -> dict[str, dict[str, float]]:
    """Measure both arms on one fresh volume, `off` first."""
    settings = {**QUIET_CACHE, **OFF, "sequential_cutoff": 0}
    with BcacheStack(guest, ssd=PIECES.ssd, scheduler=scheduler, settings=settings) as stack:
        stack.expect_changed("writeback_rate")
        guest.run(["rm", "-rf", STATE_DIR, COUNT])
        fio.run(guest, fill_job(stack.device, PIECES), seed=seed, timeout_s=400)
        found = reader(stack, seed, BURSTS["off"]).wait(120).check().stdout
        off = figures(json.loads(found))
        users = reader(stack, seed + 1000, BURSTS["ebbgate"], "--count-from", COUNT)
        with shallow_policy(guest, QUEUE_DEPTHS.get(scheduler, 0)), Product(guest):
            guest.put_file(COUNT, "")
            found = users.wait(300).check().stdout
    return {"off": off, "ebbgate": figures(json.loads(found), off["mean_ms"])}


def ratios(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    """Return what has a goal."""
    own = runs["ebbgate"]
    return {
        "later_mean_vs_off": ratio(runs, "ebbgate", "off", "later_mean_ms"),
        "drained_mib": median(run["later_drained_mib"] for run in own),
        "slow_bursts": median(run["slow_bursts"] for run in own),
    }


def run(context: Context) -> Report:
    """Measure each repetition on a volume of its own."""
    runs: dict[str, list[dict[str, float]]] = {"off": [], "ebbgate": []}
    scheduler = context.variant or SCHEDULERS[0]
    with Guest((DISKS[DISK], *SSDS)) as guest:
        for repetition in range(context.repetitions):
            context.say(f"repetition {repetition + 1}")
            for arm, found in measure(guest, scheduler, context.seed + repetition).items():
                runs[arm].append(found)
                context.say(f"  {arm}  " + "  ".join(f"{k} {v:.1f}" for k, v in found.items()))
    return Report("short-gaps", runs, ratios(runs), GOALS)


SCENARIO = Scenario(
    "short-gaps",
    "in gaps of 0.6 s users feel hardly anything, though no rest empties the disk's cache",
    3,
    run,
    SCHEDULERS,
)
