# SPDX-License-Identifier: GPL-2.0-only
"""queue-tunables: what a scheduler's own tunables, and flushes of the disk's cache, change.

Arms: write-back off, the unpaced gate, and that with one tunable (`queue/iosched`) at another value
or with a flush every half a second of a gap. ebbgate only watches. What helps here is worth a knob.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.bench import gap_drain
from tests.bench.burst_figures import figures
from tests.bench.context import Context, Scenario
from tests.bench.gap_drain import (
    DISKS,
    GAPS_COUNTED,
    GUEST_SCRIPTS,
    OFF,
    PIECES,
    QUEUE_DEPTHS,
    QUIET_CACHE,
    Foreground,
    Rhythm,
)
from tests.bench.product import PYTHON
from tests.bench.report import Report, ratio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.session import Session

TUNABLES = {
    # The defaults: 16, 48 (of 64 requests) and 10,000 ms.
    "mq-deadline": ("fifo_batch=1", "async_depth=4", "prio_aging_expire=60000"),
    # 8 ms, on, off.
    "bfq": ("slice_idle=0", "slice_idle=20", "low_latency=0", "strict_guarantees=1"),
}
FLUSH = "flush=0.5"
LEARNING_GAPS = 1
"""The unpaced gate learns nothing, but the first gap has what the filling left."""
FIGURES = ("drained_mib", "mean_ms", "p99_ms", "first_median_ms", "first_max_ms")
VARIANTS = tuple(f"{scheduler}/{disk}" for scheduler in TUNABLES for disk in DISKS)


def arms_of(variant: str) -> tuple[str, ...]:
    """Return the arms; a flush only where the disk has a cache."""
    settings = TUNABLES[variant.partition("/")[0]]
    cached = gap_drain.disk_of(variant).features.write_cache_bytes
    return ("off", "unpaced", *settings, *((FLUSH,) if cached else ()))


def run(context: Context) -> Report:
    """Run one variant, arms interleaved; figures are against the unpaced gate."""
    variant = context.variant or "mq-deadline/ahci"
    arms = arms_of(variant)
    runs = gap_drain.interleaved(context, [variant], arms, measure)
    base = f"{variant} unpaced"
    ratios = {
        f"{variant} {arm} {figure.removesuffix('_ms').removesuffix('_mib')}": ratio(
            runs, f"{variant} {arm}", base, figure
        )
        for arm in arms
        if arm != "unpaced"
        for figure in FIGURES
    }
    ratios[f"{variant} counted"] = min(found["counted"] for found in runs[base])
    return Report("queue-tunables", runs, ratios, {f"{variant} counted": ">= 4"})


def measure(guest: Session, variant: str, arm: str, seed: int) -> dict[str, float]:
    """Measure one arm on a fresh volume."""
    scheduler = variant.partition("/")[0]
    rhythm = Rhythm(1 + LEARNING_GAPS + GAPS_COUNTED, LEARNING_GAPS)
    settings = {**QUIET_CACHE, "sequential_cutoff": 0, **OFF}
    with BcacheStack(guest, scheduler=scheduler, settings=settings) as stack:
        stack.expect_changed("writeback_rate")
        with Foreground(stack, seed, *rhythm.options) as foreground:
            foreground.fill(PIECES["64k"])
            with _arm(stack, arm, QUEUE_DEPTHS.get(scheduler, 0)):
                return figures(foreground.finish(), rhythm.learning)


@contextmanager
def _arm(stack: BcacheStack, arm: str, queue_depth: int) -> Iterator[None]:
    """Have the gate of an arm, and its tunable or flushes."""
    name, _, value = arm.partition("=")
    gate = gap_drain.gate(stack, "off" if arm == "off" else "unpaced", queue_depth)
    with ExitStack() as entered:
        if arm == FLUSH:
            entered.enter_context(_flushes(stack, value))
        elif value:
            entered.enter_context(_tunable(stack, name, value))
        entered.enter_context(gate)
        yield


@contextmanager
def _tunable(stack: BcacheStack, name: str, value: str) -> Iterator[None]:
    """Give the disk's scheduler another value, which stays where the same one is chosen again."""
    path = f"/sys/block/{stack.hdd}/queue/iosched/{name}"
    before = stack.session.read(path)
    stack.session.write(path, value)
    assert stack.session.read(path) == value, f"{path} has not taken {value}"
    try:
        yield
    finally:
        stack.session.write(path, before)


@contextmanager
def _flushes(stack: BcacheStack, pause_s: str) -> Iterator[None]:
    """Have the disk's own cache written out in gaps."""
    script = str(GUEST_SCRIPTS / "flush_in_gaps.py")
    process = stack.session.spawn([PYTHON, script, stack.hdd, stack.volume, pause_s])
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


SCENARIO = Scenario(
    "queue-tunables",
    "no tunable of the disk's scheduler is better than the unpaced gate alone",
    8,
    run,
    VARIANTS,
)
