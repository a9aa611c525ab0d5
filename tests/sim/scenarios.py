# SPDX-License-Identifier: GPL-2.0-only
"""Loads on the simulated volume, with their measurements. Pure: simulated time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from ebbgate.model.records import Direction
from ebbgate.units import KIB, NS_PER_MS, NS_PER_S
from tests.sim.simulation import DISK_BYTES, Io, Pause, Script, Setup, Simulation

GAP_NS = 5 * NS_PER_S // 2
BURST_READS = 200


@dataclass(frozen=True, slots=True)
class GapDrain:
    """Bursts of cold reads with gaps between them.

    `first_ns`: latency of the first request after each gap; `burst_p99_ns`: of all others.
    `burst_means_ns`: mean latency of each burst, also of the one before the first gap.
    """

    drained_bytes: tuple[int, ...]
    first_ns: tuple[int, ...]
    burst_p99_ns: int
    burst_means_ns: tuple[float, ...]

    @property
    def drained_total_bytes(self) -> int:
        """The total over all gaps."""
        return sum(self.drained_bytes)

    @property
    def first_median_ns(self) -> int:
        """Latency of the first request after a gap."""
        return round(median(self.first_ns))


def random_offset(rng: random.Random) -> int:
    """Return the address of a page of 4 KiB on the disk."""
    return rng.randrange(DISK_BYTES // (4 * KIB)) * 4 * KIB


def cold_reads(rng: random.Random, count: int, think_ns: int = NS_PER_MS) -> Script:
    """Yield random reads that all go to the hard disk."""
    for _ in range(count):
        yield Io(Direction.READ, random_offset(rng))
        yield Pause(think_ns)


def gap_drain(
    setup: Setup,
    gaps: int = 3,
    *,
    reads: int = BURST_READS,
    rest_ns: int = NS_PER_S,
    lengths_ns: Sequence[int] = (GAP_NS,),
    calm_reads: int = 0,
) -> GapDrain:
    """Run bursts of reads with gaps of these lengths in turn.

    `rest_ns`: before the first burst; `calm_reads`: so many more in that one.
    """
    simulation = Simulation(setup)
    done: list[int] = []
    bursts: list[int] = []

    def load() -> Script:
        rng = random.Random(setup.seed + 8)
        yield Pause(rest_ns)
        for number in range(gaps):
            bursts.append(len(simulation.served))
            yield from cold_reads(rng, reads if number else calm_reads + reads)
            done.append(simulation.writeback.done_bytes)
            yield Pause(lengths_ns[number % len(lengths_ns)])
            done.append(simulation.writeback.done_bytes)
        bursts.append(len(simulation.served))
        yield from cold_reads(rng, reads)

    simulation.play(load(), limit_ns=600 * NS_PER_S)
    shortest_ns = min(lengths_ns) // 2
    returns = [s for s in simulation.served if s.at_ns > rest_ns + NS_PER_S // 10]
    firsts = tuple(s.latency_ns for s in returns if s.idle_ns >= shortest_ns)
    others = sorted(s.latency_ns for s in returns if s.idle_ns < shortest_ns)
    return GapDrain(
        drained_bytes=tuple(b - a for a, b in zip(done[::2], done[1::2], strict=True)),
        first_ns=firsts,
        burst_p99_ns=others[int(0.99 * len(others))],
        burst_means_ns=tuple(
            fmean(each.latency_ns for each in simulation.served[begin : begin + reads])
            for begin in bursts
        ),
    )


@dataclass(frozen=True, slots=True)
class Trickle:
    """The result of a periodic read. `clean_after_ns`: None if it never became clean."""

    clean_after_ns: int | None
    wait_ns: int
    latency_median_ns: int


def trickle(setup: Setup, period_ns: int = NS_PER_S, reads: int = 60) -> Trickle:
    """Run a lone periodic read over dirty data."""
    simulation = Simulation(setup)
    clean: list[int] = []

    def load() -> Script:
        rng = random.Random(setup.seed + 8)
        for _ in range(reads):
            yield Io(Direction.READ, random_offset(rng))
            yield Pause(period_ns)
            if simulation.writeback.dirty_bytes == 0 and not clean:
                clean.append(simulation.clock.now_ns)

    simulation.play(load(), limit_ns=600 * NS_PER_S)
    return Trickle(
        clean_after_ns=clean[0] if clean else None,
        wait_ns=simulation.state.destage.wait.wait_ns,
        latency_median_ns=round(median(s.latency_ns for s in simulation.served)),
    )
