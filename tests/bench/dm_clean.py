# SPDX-License-Identifier: GPL-2.0-only
"""clean-under-load: clean a dm-cache whose users never pause for a second.

A steady light load of reads that miss: the kernel's smq then writes nothing back, however long it
takes. Arms: stock, and a person's `ebbgate clean`.
"""

from __future__ import annotations

import json
import signal
import time

from tests.bench.context import Context, Scenario
from tests.bench.dm_gap_drain import CACHE_BYTES, product
from tests.bench.faults import data_job
from tests.bench.gap_drain import Pieces, fill_job
from tests.bench.product import Product
from tests.bench.report import Report, ratio
from tests.lab import fio
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import Guest
from tests.lab.session import Process, Session

ARMS = ("stock", "clean")
MIB = 1 << 20
PIECES = Pieces(64, 120, 512)
READS_PER_S = 20
LIMIT_S = 90.0


def users(session: Session, device: str, seconds: float) -> Process:
    """Reads of data that is not cached, spread evenly."""
    options: dict[str, str | int] = {
        "offset": "1024M",
        "size": "1000M",
        "rate_iops": READS_PER_S,
        "time_based": 1,
        "runtime": int(seconds),
        "thread": 1,
    }
    job = fio.Job(device, "randread", "4k", "users", options)
    return session.spawn(["fio", "--output-format=json", *job.arguments(seed=3)])


def measure(guest: Session, arm: str, seed: int) -> dict[str, float]:
    """Return the seconds until nothing is dirty (at most the limit), and the users' latencies."""
    with DmCacheStack(guest, cache_bytes=CACHE_BYTES) as stack:
        load = users(guest, stack.device, LIMIT_S + 120)
        try:
            fio.run(guest, data_job(stack.device, verify_only=False, offset_mib=600), seed=seed)
            fio.run(guest, fill_job(stack.device, PIECES), seed=seed)
            dirty_mib = stack.dirty_bytes() / MIB
            with product(guest, "ebbgate" if arm == "clean" else arm) as running:
                seconds = until_clean(stack, running)
            left_mib = stack.dirty_bytes() / MIB
        finally:
            # What the guest's agent spawns does not hear SIGINT; fio reports on either.
            load.kill(signal.SIGTERM)
            load.wait(30)
        check = fio.run(guest, data_job(stack.device, verify_only=True, offset_mib=600), seed=seed)
    return {
        "seconds": seconds,
        "dirty_mib": dirty_mib,
        "left_mib": left_mib,
        "bad_data": float(check.bytes < 64 * MIB),
        **felt(load.stdout()),
    }


def until_clean(stack: DmCacheStack, running: Product | None) -> float:
    """Return the seconds from the request, or from now, until nothing is dirty."""
    began = time.monotonic()
    if running is not None:
        running.cli("clean", "vg/data", "--within", "5min", "--yes")
    while stack.dirty_bytes() and time.monotonic() - began < LIMIT_S:
        time.sleep(0.25)
    seconds = min(LIMIT_S, time.monotonic() - began)
    if running is not None:
        running.wait_until(
            lambda: stack.status().policy != "cleaner" or None, 30, "the old policy to come back"
        )
    return seconds


def felt(text: str) -> dict[str, float]:
    """The users' latencies over the whole run."""
    read = json.loads(text[text.index("{") :])["jobs"][0]["read"]["clat_ns"]
    return {"read_p50_ms": read["percentile"]["50.000000"] / 1e6,
            "read_p99_ms": read["percentile"]["99.000000"] / 1e6}  # fmt: skip


def run(context: Context) -> Report:
    """Stock against `ebbgate clean`, interleaved."""
    with Guest() as guest:
        runs = context.interleaved(ARMS, lambda arm, n: measure(guest, arm, context.seed + n))
    ours = runs["clean"]
    ratios = {
        "clean_seconds": max(found["seconds"] for found in ours),
        "clean_left_mib": max(found["left_mib"] for found in ours),
        "stock_left_mib": min(found["left_mib"] for found in runs["stock"]),
        "read_p99_vs_stock": ratio(runs, "clean", "stock", "read_p99_ms"),
        "bad_data": max(found["bad_data"] for each in runs.values() for found in each),
    }
    goals = {"clean_seconds": f"<= {LIMIT_S / 2:.0f}", "clean_left_mib": "<= 1", "bad_data": "== 0"}
    return Report("clean-under-load", runs, ratios, goals)


SCENARIO = Scenario(
    "clean-under-load", "dm-cache becomes clean under a load that never pauses", 5, run
)
