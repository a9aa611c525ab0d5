# SPDX-License-Identifier: GPL-2.0-only
"""gap-drain: write-back in a gap of 2.5 s, and the latency of the next burst.

Arms: destage off, stock, the unpaced gate (writeback_percent 0 in every gap), ebbgate.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Self

from tests.bench.context import Context, Scenario
from tests.bench.product import PYTHON, Product
from tests.bench.report import Report, percentile, ratio
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import DEFAULT_DEVICES, Attachment, Device, as_sold
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import Guest
from tests.lab.session import Session

ARMS = ("off", "stock", "unpaced", "ebbgate")
MIB = 1 << 20
GUEST_SCRIPTS = Path(__file__).parent / "guest"
OFF = {
    "writeback_delay": 0,
    "writeback_percent": 40,
    "writeback_rate": 1,
    "writeback_rate_update_seconds": 60,
    "cache/internal/idle_max_writeback_rate": 0,
}
"""Practically no write-back; the unpaced gate returns to it in a burst, too."""
STOCK_DELAY_S = 30
"""The kernel's own writeback_delay."""
QUIET_CACHE = {"cache/congested_read_threshold_us": 0, "cache/congested_write_threshold_us": 0}
"""In every arm: the emulated cache device is slow enough to look congested to the kernel."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Layout of the dirty data: `dirty_mib` in pieces of `kib`, spread over `range_mib`."""

    kib: int
    dirty_mib: int
    range_mib: int


PIECES = {"4k": Pieces(4, 120, 256), "64k": Pieces(64, 420, 512), "512k": Pieces(512, 420, 512)}
SCHEDULERS = ("mq-deadline", "none", "bfq")
VARIANTS = tuple(f"{p}/{s}" for p in PIECES for s in SCHEDULERS)
DISKS: dict[str, Device] = {
    "ahci": as_sold("hdd0", Attachment.AHCI),
    "scsi": as_sold("hdd0", Attachment.SCSI),
    "ahci-through": as_sold("hdd0", Attachment.AHCI, write_cache=False),
    "scsi-through": as_sold("hdd0", Attachment.SCSI, write_cache=False),
}
"""Disks like a user's, with and without a write cache, in place of the virtio one."""
DISK_VARIANTS = tuple(f"{variant}/{disk}" for variant in VARIANTS for disk in DISKS)
"""Run only by name: their baselines are their own."""
GOALS = {
    "drain_vs_stock": ">= 10",
    "drain_vs_unpaced": ">= 0.8",
    "burst_p99_vs_off": "<= 1.1",
    "first_median_ms": "<= 45",
    "first_max_ms": "<= 80",
}


def run(context: Context) -> Report:
    """Run all variants, or the requested one; arms interleaved in one boot."""
    wanted = [context.variant] if context.variant else VARIANTS
    runs = interleaved(context, wanted, ARMS, measure)
    ratios: dict[str, float] = {}
    goals: dict[str, str] = {}
    for variant in wanted:
        for name, value in variant_ratios(runs, variant).items():
            ratios[f"{variant} {name}"] = value
            goals[f"{variant} {name}"] = GOALS[name]
    return Report("gap-drain", runs, ratios, goals)


def interleaved(
    context: Context,
    variants: Sequence[str],
    arms: Sequence[str],
    measure_one: Callable[[Session, str, str, int], dict[str, float]],
) -> dict[str, list[dict[str, float]]]:
    """Run every arm of every variant in one boot; return the runs by `VARIANT ARM`."""
    both = {f"{variant} {arm}": (variant, arm) for variant, arm in product(variants, arms)}
    with Guest(devices_for(variants)) as guest:
        return context.interleaved(
            both, lambda name, n: measure_one(guest, *both[name], context.seed + n)
        )


def devices_for(variants: Sequence[str]) -> tuple[Device, ...]:
    """Return the guest's devices: its hard disk is what the variant names, if it names one."""
    disk = DISKS.get(variants[0].rpartition("/")[2]) if variants else None
    return (disk, *DEFAULT_DEVICES[1:]) if disk else DEFAULT_DEVICES


def variant_ratios(runs: dict[str, list[dict[str, float]]], variant: str) -> dict[str, float]:
    """Return the figures of one variant that have goals."""
    ours = f"{variant} ebbgate"
    return {
        "drain_vs_stock": ratio(runs, ours, f"{variant} stock", "drained_mib", floor=1.0),
        "drain_vs_unpaced": ratio(runs, ours, f"{variant} unpaced", "drained_mib", floor=1.0),
        "burst_p99_vs_off": ratio(runs, ours, f"{variant} off", "p99_ms"),
        "first_median_ms": median(run["first_median_ms"] for run in runs[ours]),
        "first_max_ms": max(run["first_max_ms"] for run in runs[ours]),
    }


def measure(guest: Session, variant: str, arm: str, seed: int) -> dict[str, float]:
    """One arm on a fresh volume."""
    name, scheduler, *_ = variant.split("/")
    pieces = PIECES[name]
    settings = {**QUIET_CACHE, "sequential_cutoff": 0, **({} if arm == "stock" else OFF)}
    with BcacheStack(guest, scheduler=scheduler, settings=settings) as stack:
        stack.expect_changed("writeback_rate")
        with Foreground(stack, seed) as foreground:
            foreground.fill(pieces)
            if arm == "stock":
                foreground.outlast_delay()
            with gate(stack, arm):
                return foreground.bursts()


@contextmanager
def gate(stack: BcacheStack, arm: str) -> Iterator[None]:
    """Run what controls the write-back while the bursts run."""
    session = stack.session
    if arm == "ebbgate":
        with Product(session):
            yield
    elif arm == "unpaced":
        stack.expect_changed("writeback_percent")
        script = GUEST_SCRIPTS / "unpaced.py"
        process = session.spawn([PYTHON, str(script), stack.sysfs, stack.volume])
        try:
            yield
        finally:
            process.kill()
            process.wait(10)
    else:
        yield


def level_of(stack: BcacheStack | DmCacheStack) -> tuple[str, str]:
    """Return the options that tell the guest's script where to read the dirty level."""
    if isinstance(stack, DmCacheStack):
        return "--dm", stack.name
    return "--dirty", f"{stack.sysfs}/dirty_data"


class Foreground:
    """Users who read without a break until `bursts`, so that no gap comes before the measured ones:
    the cache is filled and the daemon started under their load. Leaving it ends them.
    """

    def __init__(self, stack: BcacheStack | DmCacheStack, seed: int, *options: str) -> None:
        self.stack = stack
        self.seed = seed
        self._filling_since_s = 0.0
        self._go = f"/run/go-{seed}"
        stack.session.run(["rm", "-f", self._go])
        self._reader = stack.session.spawn(
            [
                *(PYTHON, str(GUEST_SCRIPTS / "bursts.py"), stack.device),
                *(*level_of(stack), "--until", self._go),
                *("--low", str(1024 * MIB), "--high", str(2047 * MIB), "--seed", str(seed)),
                *options,
            ]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.kill(signal.SIGKILL)

    def fill(self, pieces: Pieces) -> None:
        """Dirty data, beside the reads."""
        self._filling_since_s = time.monotonic()
        fio.run(self.stack.session, fill_job(self.stack.device, pieces), seed=self.seed)

    def outlast_delay(self) -> None:
        """Wait, under the reads, until the kernel's thread has slept its writeback_delay.

        It begins with the first dirty data, and nothing that anybody writes to a knob ends it.
        """
        awake_s = self._filling_since_s + STOCK_DELAY_S + 2
        time.sleep(max(0.0, awake_s - time.monotonic()))

    def finish(self, timeout_s: float = 120) -> dict[str, Any]:
        """The bursts and gaps now, as the reader found them."""
        self.stack.session.put_file(self._go, "")
        return dict(json.loads(self._reader.wait(timeout_s).check().stdout))

    def bursts(self) -> dict[str, float]:
        """The bursts and gaps now, in figures."""
        return figures(self.finish())


def figures(result: dict[str, Any]) -> dict[str, float]:
    """What is judged of six bursts and the five gaps between them.

    `p99_ms` is the median over the bursts of each burst's own p99 (of a hundred reads the last but
    one): the first request is judged by itself. `p99_pooled_ms`: of all reads together.
    """
    latencies = [latency for burst in result["bursts"] for latency in burst]
    firsts = [burst[0] for burst in result["bursts"][1:]]
    drained = [before - after for before, after in result["gaps"]]
    # The gap in which the volume came clean drained what there was, not what it could.
    full = [d for d, (_, after) in zip(drained, result["gaps"], strict=True) if after > 0]
    return {
        "drained_mib": median(full or drained),
        "p50_ms": median(latencies),
        "p99_ms": median(percentile(burst, 0.99) for burst in result["bursts"][1:]),
        "p99_pooled_ms": percentile(latencies, 0.99),
        "first_median_ms": median(firsts),
        "first_max_ms": max(firsts),
        "dirty_mib": result["gaps"][0][0],
    }


def fill_job(device: str, pieces: Pieces) -> fio.Job:
    """Random writes of one piece each."""
    options: dict[str, str | int] = {
        "size": f"{pieces.range_mib}M",
        "io_size": f"{pieces.dirty_mib}M",
        "ioengine": "libaio",
        "iodepth": 16,
    }
    return fio.Job(device, "randwrite", f"{pieces.kib}k", options=options)


SCENARIO = Scenario(
    "gap-drain",
    "writes back >= 10x stock in 2.5 s gaps without delaying the next burst",
    27,
    run,
    (*VARIANTS, *DISK_VARIANTS),
)
