# SPDX-License-Identifier: GPL-2.0-only
"""warm-file: a file in extents of 4 to 64 KiB goes into the cache, and users hardly notice.

The disks are SATA disks as they are sold: what lies between two extents passes under the head, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.context import Context, Scenario
from tests.bench.product import PYTHON, Product
from tests.bench.report import Report, medians, ratio
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import Device, Ssd, as_sold
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import Guest
from tests.lab.session import Session

MIB = 1 << 20
SCATTERED = str(Path(__file__).parent / "guest" / "scattered_file.py")
WEAR_SEED = 1_000_003
"""None of the users': with the same one they would read what is cached already."""
FOLDER = "/run/lab/warm"
FILE = f"{FOLDER}/file"
Stack = BcacheStack | DmCacheStack
PAST = {
    BcacheStack: ("sequential_cutoff", 1, 4 * MIB),
    DmCacheStack: ("volume:queue/max_sectors_kb", 32, 1280),
}
"""A knob, the value under which writes go past the cache, and its usual one."""


@contextmanager
def scattered(session: Session, stack: Stack, mib: int, seed: int) -> Iterator[None]:
    """Mount a file system on the volume with such a file, of which the cache has nothing."""
    wear_in(session, stack)
    # Written past the cache: all requests bypass bcache, and none is a whole block of dm-cache.
    knob, past, usual = PAST[type(stack)]
    stack.set_knob(knob, past)
    session.check(
        f"mkfs.ext4 -q -m 0 -E lazy_itable_init=0 {stack.device} {3 * mib + 24}M &&"
        f" mkdir -p {FOLDER} && mount {stack.device} {FOLDER}",
        timeout_s=120,
    )
    try:
        argv = [PYTHON, SCATTERED, FILE, "--mib", str(mib), "--seed", str(seed)]
        session.check(argv, timeout_s=600)
        stack.set_knob(knob, usual)
        yield
    finally:
        session.check(["umount", FOLDER], timeout_s=60)


def wear_in(session: Session, stack: Stack) -> None:
    """Read as much as makes a new bcache tell buckets in use from free ones.

    Its priority of a bucket in use is 0, as of a free one, until a 128th of the cache's size was
    read or written (drivers/md/bcache/alloc.c, bucket_prio; bch_rescale_priorities).
    """
    options: dict[str, str | int] = {"offset": "1200M", "size": "700M", "io_size": "32M"}
    fio.run(session, fio.Job(stack.device, "randread", "64k", options=options), seed=WEAR_SEED)


def missed(session: Session, stack: Stack, offset: int, path: str = FILE) -> float:
    """Share of reads of a file that the backing device saw: 4 KiB of each 64 KiB."""
    which = "hdd" if isinstance(stack, BcacheStack) else "origin"
    counts = f"/sys/dev/block/{stack.dev_t(which)}/stat"
    before = int(session.read(counts).split()[0])
    argv = [PYTHON, SCATTERED, path, "--read", str(offset)]
    reads = int(session.check(argv, timeout_s=300))
    return (int(session.read(counts).split()[0]) - before) / reads


def warm(product: Product, path: str, timeout_s: float) -> dict[str, Any]:
    """Warm a file; return the job when it is over, with the seconds that it took."""
    began = time.monotonic()
    product.cli("warm", path)
    job = job_ended(product, timeout_s)
    seconds = (job["ended_unix_ns"] - job["since_unix_ns"]) / 1e9
    return {**job, "seconds": min(seconds, time.monotonic() - began)}


def job_ended(product: Product, timeout_s: float) -> dict[str, Any]:
    """Wait until the newest warm-up is over; return it."""

    def ended() -> dict[str, Any] | None:
        jobs = json.loads(product.cli("jobs", "--json"))["jobs"]
        found: dict[str, Any] = max(jobs, key=lambda job: int(job["id"]))
        return found if found["ended_unix_ns"] else None

    return product.wait_until(ended, timeout_s, "the warm-up to end")


DEVICES: tuple[Device, ...] = (as_sold("hdd0"), Ssd("ssd0"), as_sold("hdd1", seed=2), Ssd("ssd1"))
KINDS: dict[str, type[Stack]] = {"bcache": BcacheStack, "dm-cache": DmCacheStack}
HITS = {"bcache": ">= 0.99", "dm-cache": ">= 0.95"}
FILE_MIB = 256
USERS_S = 40
WARM_S_MAX = 900
BURST: dict[str, str | int] = {
    "thinktime": 2_500_000,
    "thinktime_blocks": 200,
    "thinktime_blocks_type": "issue",
}
"""Users: 200 random reads of 4 KiB, then 2.5 s without any; beside the file."""
Metrics = dict[str, float]


def disk_speed(guest: Session) -> float:
    """MiB/s of the bare disk, one sequential read of 1 MiB after the other."""
    job = fio.Job(f"/dev/{guest.device('hdd1')}", "read", "1M", options={"size": f"{FILE_MIB}M"})
    done = fio.run(guest, job, seed=1, timeout_s=180).only.read
    return done.bytes_per_s / MIB


def pieces_speed(guest: Session) -> float:
    """MiB/s of the bare disk for pieces as those of the file, 32 at once: all that it can give."""
    options: dict[str, str | int] = {
        "size": f"{2 * FILE_MIB}M",
        "io_size": f"{FILE_MIB}M",
        "bsrange": "4k-64k",
        "ioengine": "libaio",
        "iodepth": 32,
    }
    job = fio.Job(f"/dev/{guest.device('hdd1')}", "read:32k", "4k", options=options)
    return fio.run(guest, job, seed=1, timeout_s=180).only.read.bytes_per_s / MIB


def users(guest: Session, stack: Stack, seed: int, seconds: int) -> fio.FioRun:
    """Start the users for so long."""
    options: dict[str, str | int] = {
        **BURST,
        "offset": "1200M",
        "size": "700M",
        "time_based": 1,
        "runtime": seconds,
    }
    return fio.start(guest, fio.Job(stack.device, "randread", "4k", options=options), seed=seed)


def measure(guest: Session, kind: str, arm: str, seed: int) -> Metrics:
    """`disk`, `pieces`: its speeds. `alone`: the warm-up without users. `users`: p99
    without and with it.
    """
    if arm == "disk":
        return {"mib_per_s": disk_speed(guest)}
    if arm == "pieces":
        return {"mib_per_s": pieces_speed(guest)}
    with KINDS[kind](guest) as stack:
        stack.expect_changed("writeback_rate")
        with scattered(guest, stack, FILE_MIB, seed), Product(guest) as product:
            if arm == "users":
                return beside_users(guest, stack, product, seed)
            job = warm(product, FILE, WARM_S_MAX)
            return {**speed(job), "hits": 1 - missed(guest, stack, offset=8192)}


def beside_users(guest: Session, stack: Stack, product: Product, seed: int) -> Metrics:
    """Warm the file while users read, who stop once it is warm; their p99 before and meanwhile."""
    before = users(guest, stack, seed, USERS_S).wait(2 * USERS_S).only.read.p99_ns / 1e6
    running = users(guest, stack, seed + 1, 2 * WARM_S_MAX)
    job = warm(product, FILE, WARM_S_MAX)
    beside = running.stop(60).only.read.p99_ns / 1e6
    p99 = {"p99_ms_before": before, "p99_ms": beside, "p99_ratio": beside / before}
    return {**speed(job), **p99}


def speed(job: dict[str, Any]) -> Metrics:
    """How fast a job warmed the file, and what it says of what went in."""
    return {"mib_per_s": FILE_MIB / job["seconds"], "sampled_hits": job["hit_ratio"]}


def run(context: Context) -> Report:
    """Speed, hits and users' p99."""
    kind = context.variant or "bcache"
    with Guest(DEVICES) as guest:
        runs = context.interleaved(
            ("disk", "pieces", "alone", "users"),
            lambda arm, n: measure(guest, kind, arm, context.seed + 10 * n),
        )
    ratios = {
        f"{kind} speed": ratio(runs, "alone", "disk", "mib_per_s"),
        f"{kind} speed of pieces": ratio(runs, "alone", "pieces", "mib_per_s"),
        f"{kind} hits": medians(runs["alone"])["hits"],
        f"{kind} p99": medians(runs["users"])["p99_ratio"],
    }
    goals = {f"{kind} hits": HITS[kind], f"{kind} p99": "<= 1.2"}
    if kind == "bcache":
        goals[f"{kind} speed"] = ">= 0.5"
    return Report("warm-file", runs, ratios, goals)


SCENARIO = Scenario(
    "warm-file",
    "a file in extents of 4 to 64 KiB goes into the cache, and users hardly notice",
    5,
    run,
    tuple(KINDS),
)
