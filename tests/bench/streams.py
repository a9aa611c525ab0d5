# SPDX-License-Identifier: GPL-2.0-only
"""w3g, wrand-after-fill, cold-reads: what a stream costs, and what it leaves behind.

Seed: Nishina et al., dm-ssd (their w3g, wrand, r3g, rrand), scaled to the lab's devices.
Arms: the bare HDD and SSD, stock bcache, "all zeros" (the advice of forums: sequential_cutoff 0,
congestion thresholds 0), ebbgate. wrand-after-fill has more: a volume that was never filled,
without a daemon and with one that only watches, and ebbgate with bfq and a short queue on the disk,
or with a garbage collection that is asked for in the gap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.context import Context, Scenario
from tests.bench.gap_drain import QUEUE_DEPTHS, shallow_policy
from tests.bench.product import PYTHON, Product
from tests.bench.report import Report, ratio
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import Device, Hdd, Ssd, as_sold, control_path
from tests.lab.guest import Guest
from tests.lab.hdd_control import HddControl
from tests.lab.session import Session

MIB = 1 << 20
CACHE_MIB = 1024
ROOM_MIB = int(0.70 * CACHE_MIB)
STREAM_MIB = int(1.5 * ROOM_MIB)
HOT_LOW_MIB, HOT_MIB = 1600, 96
RANDOM_WRITES = 1500
COLD_STREAM_MIB, COLD_READS = 384, 600
READ_SET = Path(__file__).parent / "guest" / "read_set.py"
ZEROS = {
    "sequential_cutoff": 0,
    "cache/congested_read_threshold_us": 0,
    "cache/congested_write_threshold_us": 0,
}
FRESH, WATCHED = "fresh", "fresh_watched"
SHORT_QUEUE, COLLECTED = "short_queue", "collected"
OURS = ("ebbgate", SHORT_QUEUE, COLLECTED)
TRIGGER_GC = "cache/internal/trigger_gc"
Metrics = dict[str, float]


@contextmanager
def volume(guest: Session, arm: str) -> Iterator[BcacheStack]:
    """A fresh volume as the arm has it."""
    with BcacheStack(guest, settings=ZEROS if arm == "zeros" else {}) as stack, ExitStack() as own:
        stack.expect_changed("writeback_rate")
        if arm == SHORT_QUEUE:
            own.enter_context(shallow_policy(guest, QUEUE_DEPTHS["bfq"], "bfq"))
        if arm in (*OURS, WATCHED):
            own.enter_context(Product(guest, mode="advise" if arm == WATCHED else "enforce"))
        yield stack


def stream(session: Session, device: str, rw: str, mib: int) -> float:
    """Seconds that a sequential job in 1 MiB requests takes."""
    job = fio.Job(device, rw, "1M", options={"size": f"{mib}M", "end_fsync": 0})
    done = fio.run(session, job, seed=1, timeout_s=180).only
    return (done.write if rw == "write" else done.read).runtime_ms / 1000


def randoms(
    session: Session, device: str, rw: str, count: int, seed: int, range_mib: int = 1800
) -> float:
    """Seconds that random 4 KiB requests at depth 1 take."""
    options: dict[str, str | int] = {"size": f"{range_mib}M", "number_ios": count}
    job = fio.Job(device, rw, "4k", options=options)
    done = fio.run(session, job, seed=seed, timeout_s=180).only
    return (done.write if rw == "randwrite" else done.read).runtime_ms / 1000


def hot_hits(guest: Guest, stack: BcacheStack, seed: int, *, warm: bool) -> float:
    """The share of reads of the hot set that did not reach the HDD, by the HDD's own count."""
    argv = [PYTHON, str(READ_SET), stack.device, str(HOT_LOW_MIB * MIB), str(HOT_MIB * MIB)]
    if warm:
        guest.check([*argv, "--warm"], timeout_s=180)
    control = HddControl(control_path(guest.folder, "hdd0"))
    try:
        before = control.counters.reads
        reads = int(guest.check([*argv, "--seed", str(seed)], timeout_s=120))
        missed = control.counters.reads - before
    finally:
        control.close()
    return 1 - min(reads, missed) / reads


def w3g(guest: Guest, arm: str, seed: int) -> Metrics:
    """A stream of 1.5 times the room into a clean cache, around a hot set."""
    if arm == "hdd":
        return {"seconds": stream(guest, f"/dev/{guest.device('hdd1')}", "write", STREAM_MIB)}
    with volume(guest, arm) as stack:
        before = hot_hits(guest, stack, seed, warm=True)
        seconds = stream(guest, stack.device, "write", STREAM_MIB)
        after = hot_hits(guest, stack, seed + 1, warm=False)
    return {
        "seconds": seconds,
        "hot_hits_before": before,
        "hot_hits_after": after,
        "hot_hits_lost_points": 100 * (before - after),
    }


def wrand_after_fill(guest: Guest, arm: str, seed: int) -> Metrics:
    """The stream, one gap of 5 s, then random writes."""
    if arm in ("hdd", "ssd"):
        device = f"/dev/{guest.device(arm + '1')}"
        return {"seconds": randoms(guest, device, "randwrite", RANDOM_WRITES, seed)}
    with volume(guest, arm) as stack:
        if arm not in (FRESH, WATCHED):
            stream(guest, stack.device, "write", STREAM_MIB)
            if arm == COLLECTED:
                guest.write(stack.knob_path(TRIGGER_GC), "1")
            # The gap is part of the workload, not a wait for anything.
            time.sleep(5)
        return {"seconds": randoms(guest, stack.device, "randwrite", RANDOM_WRITES, seed)}


def cold_reads(guest: Guest, arm: str, seed: int) -> Metrics:
    """Sequential and random reads of data that was never cached."""
    if arm == "hdd":
        device = f"/dev/{guest.device('hdd1')}"
        return {
            "r3g_seconds": stream(guest, device, "read", COLD_STREAM_MIB),
            "rrand_seconds": randoms(guest, device, "randread", COLD_READS, seed),
        }
    with volume(guest, arm) as stack:
        return {
            "r3g_seconds": stream(guest, stack.device, "read", COLD_STREAM_MIB),
            "rrand_seconds": randoms(guest, stack.device, "randread", COLD_READS, seed),
        }


DISKS: dict[str, Callable[[str, int], Hdd]] = {
    "ahci": lambda name, seed: as_sold(name, seed=seed),
    "ahci-through": lambda name, seed: as_sold(name, seed=seed, write_cache=False),
    "plain": lambda name, seed: Hdd(name, seed=seed),
}
"""The cached disk and the bare one are alike: as sold (the default), without its write cache, or on
virtio and first come, first served.
"""


def _devices(disk: str) -> tuple[Device, ...]:
    made = DISKS[disk]
    return made("hdd0", 1), Ssd("ssd0"), made("hdd1", 2), Ssd("ssd1")


def _runs(
    context: Context, arms: tuple[str, ...], measure: Callable[[Guest, str, int], Metrics]
) -> dict[str, list[Metrics]]:
    with Guest(_devices(context.variant or "ahci")) as guest:
        return context.interleaved(arms, lambda arm, n: measure(guest, arm, context.seed + 10 * n))


def run_w3g(context: Context) -> Report:
    """Time against the bare HDD, and what the hot set lost."""
    runs = _runs(context, ("hdd", "stock", "zeros", "ebbgate"), w3g)
    ratios = {f"{arm}_vs_hdd": ratio(runs, arm, "hdd", "seconds") for arm in runs if arm != "hdd"}
    ratios["hot_hits_lost_points"] = max(r["hot_hits_lost_points"] for r in runs["ebbgate"])
    goals = {"ebbgate_vs_hdd": "<= 0.60", "hot_hits_lost_points": "<= 5"}
    return Report("w3g", runs, ratios, goals)


def run_wrand(context: Context) -> Report:
    """Time against the bare SSD; stock bcache that was never filled is the floor."""
    arms = ("ssd", "hdd", FRESH, WATCHED, "stock", "zeros", *OURS)
    runs = _runs(context, arms, wrand_after_fill)
    ratios = {f"{arm}_vs_ssd": ratio(runs, arm, "ssd", "seconds") for arm in runs if arm != "ssd"}
    for floor in (FRESH, WATCHED):
        ratios[f"ebbgate_vs_{floor}"] = ratio(runs, "ebbgate", floor, "seconds")
    return Report("wrand-after-fill", runs, ratios, {"ebbgate_vs_ssd": "<= 1.2"})


def run_cold(context: Context) -> Report:
    """Times against the bare HDD."""
    runs = _runs(context, ("hdd", "stock", "ebbgate"), cold_reads)
    ratios = {
        f"{arm}_{kind}_vs_hdd": ratio(runs, arm, "hdd", f"{kind}_seconds")
        for arm in ("stock", "ebbgate")
        for kind in ("r3g", "rrand")
    }
    goals = {"ebbgate_r3g_vs_hdd": "<= 1.03", "ebbgate_rrand_vs_hdd": "<= 1.03"}
    return Report("cold-reads", runs, ratios, goals)


VARIANTS = tuple(DISKS)
SCENARIOS = (
    Scenario("w3g", "absorbs a write stream as far as the cache has room", 3, run_w3g, VARIANTS),
    Scenario(
        "wrand-after-fill",
        "a filled cache absorbs random writes after one gap",
        6,
        run_wrand,
        VARIANTS,
    ),
    Scenario(
        "cold-reads", "reads of uncached data take no longer than on the HDD", 2, run_cold, VARIANTS
    ),
)
