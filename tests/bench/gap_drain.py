# SPDX-License-Identifier: GPL-2.0-only
"""gap-drain: write-back in a gap of 2.5 s, and the latency of the next burst.

Arms: destage off, stock, the unpaced gate (writeback_percent 0 in every gap), ebbgate. The dirty
data is more than most of them drain in all gaps. Gaps are all alike, so that ebbgate foresees their
end after three; `irregular` ones, of 1.5 to 3.5 s, nobody foresees.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Self

from tests.bench.burst_figures import figures
from tests.bench.context import Context, Scenario
from tests.bench.product import POLICIES, PYTHON, Product
from tests.bench.report import Report, Runs, ratio
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import GIB, MIB, Attachment, Device, Hdd, Ssd, as_sold
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import Guest
from tests.lab.knobs import QUEUE_DEPTH
from tests.lab.session import Session

ARMS = ("off", "stock", "unpaced", "ebbgate")
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
    """Layout of the dirty data: `dirty_mib` in pieces of `kib`, spread over `range_mib`.

    `ssd`: the cache device. `learning`: the first gaps, which count for no arm, since a daemon runs
    for months. A disk's own cache takes in pieces of 4 KiB for half a minute before it is full, so
    there it takes longer until rests are right.
    """

    kib: int
    dirty_mib: int
    range_mib: int
    ssd: str = "ssd0"
    learning: int = 4


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Bursts and the gaps between them.

    `learning`: the first gaps, which count for no arm. `spread`: a gap is up to so much longer or
    shorter (0..1).
    """

    bursts: int = 12
    learning: int = 4
    gap_s: float = 2.5
    spread: float = 0.0

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options of guest/bursts.py."""
        named = {"--bursts": self.bursts, "--gap-s": self.gap_s, "--spread": self.spread}
        return tuple(str(word) for pair in named.items() for word in pair)


SSDS: tuple[Device, ...] = (
    Ssd("ssd0", size_bytes=33 * GIB),
    Ssd("ssd1", size_bytes=5 * GIB + 256 * MIB),
)
"""Dirty data exceeds the tenth that stock aims at by some 300 MiB, as in a small cache that is
full: by how much it does decides how fast stock writes back. A piece of 4 KiB takes as long as a
large one, so there a small cache is enough.
"""
PIECES = {
    "4k": Pieces(4, 800, 1700, "ssd1", learning=10),
    "64k": Pieces(64, 3700, 4100),
    "512k": Pieces(512, 3700, 4100),
}
"""More than eleven gaps drain on any machine: the disk's 124 MiB/s are 310 MiB in each. Of pieces
of 4 KiB a fast machine drained 35 MiB in each of 17. A gap that drained all but some 30 MiB
disturbed the next burst for half a second, once for the whole cache, so none may get there.
"""
GAPS_COUNTED = 7
SCHEDULERS = ("mq-deadline", "bfq", "none")
HDD_BYTES = 9 * GIB
DISKS: dict[str, Hdd] = {
    f"{attachment}{end}": replace(
        as_sold("hdd0", attachment, write_cache=not end), size_bytes=HDD_BYTES
    )
    for attachment in Attachment
    for end in ("", "-through")
} | {"plain": Hdd("hdd0", size_bytes=HDD_BYTES)}
"""Disks as they are sold, and with their write cache switched off. `plain`: on virtio, first come,
first served.
"""
IRREGULAR = "irregular"
VARIANTS = tuple(
    f"{p}/{s}/{d}{end}"
    for p in PIECES
    for s in SCHEDULERS
    for d in DISKS
    for end in ("", f"/{IRREGULAR}")
)
DEFAULT_VARIANTS = ("64k/mq-deadline/ahci", "64k/mq-deadline/ahci/irregular", "64k/bfq/ahci")
QUEUE_DEPTHS = {"bfq": 4}
"""By scheduler, the depth that a policy gives the disk's queue in gaps, and that the unpaced gate
has there, too. Under another scheduler the disk keeps its own.
"""
POLICY = f"{POLICIES}/gap-drain.yaml"
GOALS = {
    "drain_vs_stock": ">= 8",
    "drain_vs_unpaced": ">= 0.9",
    "mean_vs_off": "<= 1.1",
    "p99_vs_off": "<= 1.25",
    "first_median_vs_off": "<= 1.2",
    "first_max_vs_off": "<= 1.5",
    "counted": ">= 4",
}
CACHED_GOALS = {**GOALS, "drain_vs_unpaced": ">= 0.6"}
"""For a disk with a write cache: what it holds delays users, too, so that less may be drained."""


def run(context: Context) -> Report:
    """Run the requested variant, or those that matter most; arms interleaved in one boot."""
    wanted = [context.variant] if context.variant else DEFAULT_VARIANTS
    runs = interleaved(context, wanted, ARMS, measure)
    ratios: dict[str, float] = {}
    goals: dict[str, str] = {}
    for variant in wanted:
        own_goals = CACHED_GOALS if disk_of(variant).features.write_cache_bytes else GOALS
        for name, value in variant_ratios(runs, variant).items():
            ratios[f"{variant} {name}"] = value
            goals[f"{variant} {name}"] = own_goals[name]
    return Report("gap-drain", runs, ratios, goals)


def interleaved(
    context: Context,
    variants: Sequence[str],
    arms: Sequence[str],
    measure_one: Callable[[Session, str, str, int], dict[str, float]],
) -> dict[str, list[dict[str, float]]]:
    """Run every arm of every variant in one boot; return the runs by `VARIANT ARM`.

    The variants have one disk in common.
    """
    both = {f"{variant} {arm}": (variant, arm) for variant, arm in product(variants, arms)}
    with Guest((disk_of(variants[0]), *SSDS)) as guest:
        return context.interleaved(
            both, lambda name, n: measure_one(guest, *both[name], context.seed + n)
        )


def disk_of(variant: str) -> Hdd:
    """Return the hard disk that a word of a variant names."""
    return next(DISKS[word] for word in variant.split("/") if word in DISKS)


def variant_ratios(runs: Runs, variant: str) -> dict[str, float]:
    """Return the figures of one variant that have goals."""
    ours, off = f"{variant} ebbgate", f"{variant} off"
    return {
        "drain_vs_stock": ratio(runs, ours, f"{variant} stock", "drained_mib", floor=1.0),
        "drain_vs_unpaced": ratio(runs, ours, f"{variant} unpaced", "drained_mib", floor=1.0),
        "mean_vs_off": ratio(runs, ours, off, "mean_ms"),
        "p99_vs_off": ratio(runs, ours, off, "p99_ms"),
        "first_median_vs_off": ratio(runs, ours, off, "first_median_ms"),
        "first_max_vs_off": ratio(runs, ours, off, "first_max_ms"),
        "counted": min(found["counted"] for found in runs[ours]),
    }


def measure(guest: Session, variant: str, arm: str, seed: int) -> dict[str, float]:
    """Measure one arm on a fresh volume."""
    name, scheduler, _, *irregular = variant.split("/")
    pieces, spread = PIECES[name], 0.4 if irregular else 0.0
    rhythm = Rhythm(1 + pieces.learning + GAPS_COUNTED, pieces.learning, spread=spread)
    return measure_pieces(guest, pieces, scheduler, arm, seed, rhythm)


def measure_pieces(
    guest: Session, pieces: Pieces, scheduler: str, arm: str, seed: int, rhythm: Rhythm
) -> dict[str, float]:
    """Measure one arm on a fresh volume with these pieces."""
    settings = {**QUIET_CACHE, "sequential_cutoff": 0, **({} if arm == "stock" else OFF)}
    with BcacheStack(guest, ssd=pieces.ssd, scheduler=scheduler, settings=settings) as stack:
        stack.expect_changed("writeback_rate")
        with Foreground(stack, seed, *rhythm.options) as foreground:
            foreground.fill(pieces)
            if arm == "stock":
                foreground.outlast_delay()
            with gate(stack, arm, QUEUE_DEPTHS.get(scheduler, 0)):
                return figures(foreground.finish(), rhythm.learning)


@contextmanager
def gate(stack: BcacheStack, arm: str, queue_depth: int = 0) -> Iterator[None]:
    """Run what controls the write-back; `queue_depth`: in gaps, 0 for the disk's own.

    A daemon runs in every arm, and only watches in others: its share of the emulated processors
    delays reads, too.
    """
    ours = arm == "ebbgate"
    shallow = shallow_queue(stack, queue_depth if arm == "unpaced" else 0)
    policy = shallow_policy(stack.session, queue_depth if ours else 0)
    opener = unpaced(stack) if arm == "unpaced" else nullcontext()
    with shallow, policy, Product(stack.session, mode="enforce" if ours else "advise"), opener:
        yield


@contextmanager
def unpaced(stack: BcacheStack) -> Iterator[None]:
    """Open the gate in every gap, as wide as it goes."""
    stack.expect_changed("writeback_percent")
    script = GUEST_SCRIPTS / "unpaced.py"
    process = stack.session.spawn([PYTHON, str(script), stack.sysfs, stack.volume])
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


@contextmanager
def shallow_queue(stack: BcacheStack, depth: int) -> Iterator[None]:
    """Give the hard disk this queue depth, where it has one to set; 0: leave it alone."""
    path = stack.knob_path(QUEUE_DEPTH)
    before = stack.session.read_many([path])[path]
    if not depth or before is None:
        yield
        return
    stack.session.write(path, str(depth))
    try:
        yield
    finally:
        stack.session.write(path, before)


@contextmanager
def shallow_policy(
    session: Session, queue_depth: int, scheduler: str = "", settings: str = ""
) -> Iterator[None]:
    """Give the guest a policy with this depth, and `scheduler` for the disk; 0: no policy.

    settings: more of `idle_destage`, as `nr_requests: 256`; with these there is a policy.
    """
    if not queue_depth and not settings:
        yield
        return
    backing = f"backing_scheduler: {scheduler}\n" if scheduler else ""
    depth = f"queue_depth: {queue_depth}" if queue_depth else ""
    wanted = ", ".join(filter(None, (depth, settings)))
    strategies = f"[idle_destage: {{{wanted}}}, stream_bypass]"
    session.check(["mkdir", "-p", POLICIES])
    text = f"version: 1\nname: gap-drain\n{backing}strategies: {strategies}\n"
    session.put_file(POLICY, text)
    try:
        yield
    finally:
        session.check(["rm", POLICY])


def level_of(stack: BcacheStack | DmCacheStack) -> tuple[str, str]:
    """Return the options that tell the guest's script where to read the dirty level."""
    if isinstance(stack, DmCacheStack):
        return "--dm", stack.name
    return "--dirty", f"{stack.sysfs}/dirty_data"


class Foreground:
    """Users who read without a break until `begin` or `finish`, so that no gap comes before those:
    the cache is filled and the daemon started under their load. Leaving it ends them.

    They read the second half of the volume.
    """

    def __init__(self, stack: BcacheStack | DmCacheStack, seed: int, *options: str) -> None:
        self.stack = stack
        self.seed = seed
        self._filling_since_s = 0.0
        self._go, self._count = f"/run/go-{seed}", f"/run/count-{seed}"
        stack.session.run(["rm", "-f", self._go, self._count])
        sectors = int(stack.session.read(f"/sys/block/{stack.volume}/size"))
        end_mib = sectors * 512 // MIB
        low, high = (end_mib + 1) // 2 * MIB, end_mib * MIB
        self._reader = stack.session.spawn(
            [
                *(PYTHON, str(GUEST_SCRIPTS / "bursts.py"), stack.device),
                *(*level_of(stack), "--until", self._go, "--count-from", self._count),
                *("--low", str(low), "--high", str(high), "--seed", str(seed)),
                *options,
            ]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the users."""
        self._reader.kill(signal.SIGKILL)

    def fill(self, pieces: Pieces) -> None:
        """Dirty data, beside the reads."""
        self._filling_since_s = time.monotonic()
        fio.run(
            self.stack.session, fill_job(self.stack.device, pieces), seed=self.seed, timeout_s=400
        )

    def outlast_delay(self) -> None:
        """Wait, under the reads, until the kernel's thread has slept its writeback_delay.

        It begins with the first dirty data, and nothing that anybody writes to a knob ends it.
        """
        awake_s = self._filling_since_s + STOCK_DELAY_S + 2
        time.sleep(max(0.0, awake_s - time.monotonic()))

    def begin(self) -> None:
        """The bursts and gaps now; none counts until `finish`."""
        self.stack.session.put_file(self._go, "")

    def finish(self, timeout_s: float = 120) -> dict[str, Any]:
        """The bursts and gaps that count now, as the reader found them."""
        self.stack.session.put_file(self._count, "")
        self.begin()
        return dict(json.loads(self._reader.wait(timeout_s).check().stdout))


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
    "writes back >= 8x stock in 2.5 s gaps without delaying the next burst",
    12,
    run,
    VARIANTS,
    adds=True,
)
