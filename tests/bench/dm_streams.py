# SPDX-License-Identifier: GPL-2.0-only
"""s1-dmcache: the table of Nishina et al. (dm-ssd) on dm-cache: w3g, wrand, r3g, rrand.

Arms: the bare HDD and SSD, stock dm-cache, ebbgate. Each row as there: a sequential write, random
writes after one gap, a sequential and random reads of data that was never cached.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.context import Context, Scenario
from tests.bench.dm_gap_drain import CACHE_BYTES, product
from tests.bench.report import Report, ratio
from tests.bench.streams import COLD_READS, COLD_STREAM_MIB, RANDOM_WRITES, randoms, stream
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import Guest
from tests.lab.session import Session

ARMS = ("hdd", "ssd", "stock", "ebbgate")
ROWS = ("w3g", "wrand", "r3g", "rrand")
STREAM_MIB = 800
GAP_S = 5
GOALS = {
    "w3g_vs_hdd": "<= 0.60",
    "wrand_vs_ssd": "<= 1.2",
    "r3g_vs_hdd": "<= 1.03",
    "rrand_vs_hdd": "<= 1.03",
}


@contextmanager
def volume(guest: Session, arm: str) -> Iterator[str]:
    """The device that the arm is about: a bare one, or a fresh volume."""
    if arm in ("hdd", "ssd"):
        yield f"/dev/{guest.device(arm + '1')}"
        return
    with DmCacheStack(guest, cache_bytes=CACHE_BYTES) as stack, product(guest, arm):
        yield stack.device


def measure(guest: Session, arm: str, seed: int) -> dict[str, float]:
    """Seconds of each row."""
    limit_mib = 900 if arm == "ssd" else 1800
    with volume(guest, arm) as device:
        found = {"w3g": stream(guest, device, "write", STREAM_MIB)}
        # The gap is part of the workload, not a wait for anything.
        time.sleep(GAP_S)
        found["wrand"] = randoms(guest, device, "randwrite", RANDOM_WRITES, seed, limit_mib)
    with volume(guest, arm) as device:
        found["r3g"] = stream(guest, device, "read", COLD_STREAM_MIB)
        found["rrand"] = randoms(guest, device, "randread", COLD_READS, seed, limit_mib)
    return found


def run(context: Context) -> Report:
    """All arms, interleaved."""
    with Guest() as guest:
        runs = context.interleaved(ARMS, lambda arm, n: measure(guest, arm, context.seed + 10 * n))
    ratios = {
        f"{row}_vs_{base}": ratio(runs, "ebbgate", base, row)
        for row, base in zip(ROWS, ("hdd", "ssd", "hdd", "hdd"), strict=True)
    }
    ratios |= {f"{row}_vs_stock": ratio(runs, "ebbgate", "stock", row) for row in ROWS}
    return Report("s1-dmcache", runs, ratios, GOALS)


SCENARIO = Scenario("s1-dmcache", "the four loads of dm-ssd on dm-cache", 5, run)
