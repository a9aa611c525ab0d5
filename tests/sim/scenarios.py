# SPDX-License-Identifier: GPL-2.0-only
"""Loads on the simulated volume, with their measurements. Pure: simulated time."""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import fmean, median

from ebbgate.model.records import Direction
from ebbgate.policy.strategies.pace import depth_target_ios
from ebbgate.units import KIB, NS_PER_MS, NS_PER_S
from tests.sim.simulation import DISK_BYTES, Io, Pause, Script, Setup, Simulation

GAP_NS = 5 * NS_PER_S // 2
BURST_READS = 200


@dataclass(frozen=True, slots=True)
class GapDrain:
    """Bursts of cold reads with gaps between them.

    `first_ns`: latency of the first request after each gap; `burst_p99_ns`: of all others.
    `burst_means_ns`: mean latency of each burst, also of the one before the first gap.
    `crowded_ratio`: share of the gaps' time (0..1) with over twice the aimed-at pieces in flight.
    """

    drained_bytes: tuple[int, ...]
    first_ns: tuple[int, ...]
    burst_p99_ns: int
    burst_means_ns: tuple[float, ...]
    crowded_ratio: float

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
    setup: Setup, gaps: int = 3, *, reads: int = BURST_READS, rest_ns: int = NS_PER_S
) -> GapDrain:
    """Run bursts of reads with gaps of 2.5 s; `rest_ns`: the time before the first burst."""
    simulation = Simulation(setup)
    done: list[int] = []
    bursts: list[int] = []
    crowded = _watch_queue(simulation)

    def load() -> Script:
        rng = random.Random(setup.seed + 8)
        yield Pause(rest_ns)
        for _ in range(gaps):
            bursts.append(len(simulation.served))
            yield from cold_reads(rng, reads)
            done.append(simulation.writeback.done_bytes)
            yield Pause(GAP_NS)
            done.append(simulation.writeback.done_bytes)
        bursts.append(len(simulation.served))
        yield from cold_reads(rng, reads)

    simulation.play(load(), limit_ns=600 * NS_PER_S)
    returns = [s for s in simulation.served if s.at_ns > GAP_NS]
    firsts = tuple(s.latency_ns for s in returns if s.idle_ns >= GAP_NS // 2)
    others = sorted(s.latency_ns for s in returns if s.idle_ns < GAP_NS // 2)
    return GapDrain(
        drained_bytes=tuple(b - a for a, b in zip(done[::2], done[1::2], strict=True)),
        first_ns=firsts,
        burst_p99_ns=others[int(0.99 * len(others))],
        burst_means_ns=tuple(
            fmean(each.latency_ns for each in simulation.served[begin : begin + reads])
            for begin in bursts
        ),
        crowded_ratio=sum(crowded) / len(crowded) if crowded else 0.0,
    )


def _watch_queue(simulation: Simulation) -> list[bool]:
    """Record every 5 ms whether too much is in flight while the gate is open."""
    crowded: list[bool] = []

    def look() -> None:
        machine = simulation.state.destage
        if machine.pacing:
            aim = depth_target_ios(machine.pace, simulation.destage.pace)
            crowded.append(simulation.writeback.in_flight_ios > 2 * aim)

    simulation.clock.every(5 * NS_PER_MS, look)
    return crowded


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
