# SPDX-License-Identifier: GPL-2.0-only
"""mixed-stream: streams and random writes together, past the size of the cache.

The streams are files of 3 MiB, one after the other at 20 MiB/s, as photographs are copied in from a
camera or a phone: none of them reaches the kernel's cutoff of 4 MiB, so stock takes every one into
the cache. (Of larger files by one writer stock soon bypasses nearly all, since it remembers the
average length of a writer's streams: at 8 MiB 99 % were bypassed and nothing filled up.) The random
writes, a virtual machine's or a database's, are what the cache is there for: they come without a
gap, and alone bring more than the room that the kernel gives dirty data, but no more than the disk
can take in order. What was bypassed is told by place, from the kernel's own tracepoints
bcache_bypass_sequential and bcache_bypass_congested.

Both arms start clean. Stock's writeback thread sleeps for its first 30 s then; awake it would go by
a rate of some 1 MiB/s until the cache is full.
"""

from __future__ import annotations

import re
import signal

from tests.bench.context import Context, Scenario
from tests.bench.product import PYTHON
from tests.bench.report import Report, percentile, ratio
from tests.bench.streams import volume
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import Hdd, Ssd
from tests.lab.guest import Guest

MIB = 1 << 20
CACHE_MIB = 256
SECONDS = 75
STREAM_LOW_MIB, STREAM_MIB = 1024, 960
RUN_MIB, STREAM_MIB_PER_S = 3, 20
RANDOM_MIB, RANDOM_IOPS, RANDOM_KIB = 900, 100, 32
TRACE = "/sys/kernel/tracing"
EVENTS = ("bcache_bypass_sequential", "bcache_bypass_congested")
_BYPASS = re.compile(r"bcache_bypass_\w+: \d+,\d+ +\S+ (\d+) \+ (\d+)")
DATA_OFFSET_SECTORS = 16
WATCH = """
import sys, time
begin = time.monotonic()
while True:
    free = int(open(sys.argv[1]).read())
    print(round(time.monotonic() - begin, 2), free, flush=True)
    time.sleep(0.1)
"""


def jobs(device: str) -> tuple[fio.Job, fio.Job]:
    """The streams and the random writes, both for the same time."""
    timed: dict[str, str | int] = {"time_based": 1, "runtime": SECONDS}
    stream: dict[str, str | int] = {
        "offset": f"{STREAM_LOW_MIB}M",
        "size": f"{STREAM_MIB}M",
        "rate": f"{STREAM_MIB_PER_S}m",
        **timed,
    }
    random: dict[str, str | int] = {"size": f"{RANDOM_MIB}M", "rate_iops": RANDOM_IOPS, **timed}
    run_requests = RUN_MIB * 1024 // 256
    return (
        fio.Job(device, f"randwrite:{run_requests}", "256k", "stream", stream),
        fio.Job(device, "randwrite", f"{RANDOM_KIB}k", "random", random),
    )


def measure(guest: Guest, arm: str, seed: int) -> dict[str, float]:
    """One arm on a fresh volume."""
    with volume(guest, arm) as stack:
        return load(guest, stack, seed)


def load(guest: Guest, stack: BcacheStack, seed: int) -> dict[str, float]:
    """Both jobs, with the kernel's bypass events and the free share of the cache beside them."""
    for event in EVENTS:
        guest.write(f"{TRACE}/events/bcache/{event}/enable", "1")
    available = f"/sys/fs/bcache/{stack.set_uuid}/cache_available_percent"
    trace = guest.spawn(["cat", f"{TRACE}/trace_pipe"])
    watch = guest.spawn([PYTHON, "-c", WATCH, available])
    try:
        done = fio.run(guest, *jobs(stack.device), seed=seed, timeout_s=SECONDS + 120, log=True)
    finally:
        for process in (watch, trace):
            process.kill(signal.SIGTERM)
        for event in EVENTS:
            guest.write(f"{TRACE}/events/bcache/{event}/enable", "0")
    stream, random = bypassed_bytes(trace.stdout())
    return {
        "stream_bypassed": stream / done.job("stream").write.bytes,
        "random_bypassed": random / done.job("random").write.bytes,
        "seconds_to_full": seconds_to_full(watch.stdout()),
        "random_iops_slowest_10s": slowest_window(done.job("random").log) / 10,
        "random_p99_ms": done.job("random").write.p99_ns / 1e6,
        "stream_mib_per_s": done.job("stream").write.bytes_per_s / MIB,
    }


def bypassed_bytes(text: str) -> tuple[int, int]:
    """Bytes that bypassed the cache: of the streams' range, of the range of the random writes."""
    stream = random = 0
    for match in _BYPASS.finditer(text):
        sector, count = int(match[1]) - DATA_OFFSET_SECTORS, int(match[2])
        if sector * 512 >= STREAM_LOW_MIB * MIB:
            stream += count * 512
        else:
            random += count * 512
    return stream, random


def seconds_to_full(text: str) -> float:
    """When the kernel stops caching synchronous writes (in_use > 70 %); the whole time if never."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 2 and int(fields[1]) < 30:
            return float(fields[0])
    return float(SECONDS)


def slowest_window(log: tuple[fio.LogEntry, ...]) -> int:
    """Random writes in the slowest 10 s, the first and last second left out."""
    ends = [entry.at_ms for entry in log if 1000 <= entry.at_ms <= (SECONDS - 1) * 1000]
    starts = range(1000, (SECONDS - 11) * 1000 + 1, 500)
    return min(sum(1 for end in ends if start <= end < start + 10_000) for start in starts)


def run(context: Context) -> Report:
    """Stock against ebbgate, interleaved."""
    with Guest((Hdd("hdd0"), Ssd("ssd0", size_bytes=CACHE_MIB * MIB))) as guest:
        runs = context.interleaved(
            ("stock", "ebbgate"), lambda arm, n: measure(guest, arm, context.seed + n)
        )
    ours = runs["ebbgate"]
    ratios = {
        "stream_bypassed": min(found["stream_bypassed"] for found in ours),
        "random_bypassed": max(found["random_bypassed"] for found in ours),
        "time_to_full_vs_stock": ratio(runs, "ebbgate", "stock", "seconds_to_full", floor=0.1),
        "slowest_10s_vs_rate": percentile(
            [found["random_iops_slowest_10s"] / RANDOM_IOPS for found in ours], 0.5
        ),
    }
    goals = {
        "stream_bypassed": ">= 0.9",
        "random_bypassed": "<= 0.05",
        "time_to_full_vs_stock": ">= 2",
    }
    notes = [
        f"{arm} was never full within {SECONDS} s: its time is a lower bound"
        for arm, found in runs.items()
        if any(run["seconds_to_full"] >= SECONDS for run in found)
    ]
    return Report("mixed-stream", runs, ratios, goals, notes)


SCENARIO = Scenario("mixed-stream", "streams bypass a filling cache, random writes do not", 4, run)
