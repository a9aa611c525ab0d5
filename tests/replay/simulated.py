# SPDX-License-Identifier: GPL-2.0-only
"""Makes recordings from the simulation: python -m tests.replay.simulated [NAME...]

I/O: writes NAME.jsonl beside this file. A recording is an input that stays as it is: it is made
anew only when the probe's protocol or the scenario changes, and then its golden text is reviewed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from ebbgate.model.records import Direction
from ebbgate.probes.recording import header_line
from ebbgate.units import KIB, MIB, NS_PER_MS, NS_PER_S
from tests.sim.scenarios import cold_reads, random_offset
from tests.sim.simulation import Io, Pause, Script, Setup, Simulation, scattered

FOLDER = Path(__file__).parent


def gap_drain() -> Simulation:
    """Bursts of reads with gaps of 1.5 s, over pieces of 64 KiB."""
    simulation = Simulation(Setup(scattered(64 * KIB, 100 * MIB)))

    def load() -> Script:
        rng = random.Random(1)
        for _ in range(3):
            yield from cold_reads(rng, 60)
            yield Pause(3 * NS_PER_S // 2)
        yield from cold_reads(rng, 20)

    simulation.play(load(), limit_ns=60 * NS_PER_S)
    return simulation


def trickle() -> Simulation:
    """A read each second, for ever, over little dirty data: the wait is learned, all gets clean."""
    simulation = Simulation(Setup(scattered(256 * KIB, 60 * MIB)))

    def load() -> Script:
        rng = random.Random(2)
        for _ in range(8):
            yield Io(Direction.READ, random_offset(rng))
            yield Pause(NS_PER_S)

    simulation.play(load(), limit_ns=60 * NS_PER_S)
    return simulation


def mixed_stream() -> Simulation:
    """A write stream alone, then beside random writes, then neither, then a read stream."""
    simulation = Simulation(Setup(()))

    def stream(direction: Direction, count: int, *, cached: bool) -> Script:
        for number in range(count):
            yield Io(direction, number * MIB, MIB, cached=cached)
            yield Pause(20 * NS_PER_MS)

    def load() -> Script:
        yield from stream(Direction.WRITE, 120, cached=True)
        yield Pause(NS_PER_S // 10)
        yield from both()
        yield Pause(6 * NS_PER_S)
        yield from stream(Direction.READ, 120, cached=False)
        yield Pause(4 * NS_PER_S)

    def both() -> Script:
        rng = random.Random(3)
        for number in range(100):
            yield Io(Direction.WRITE, number * MIB, MIB, cached=True)
            for _ in range(3):
                yield Io(Direction.WRITE, random_offset(rng), cached=True)
            yield Pause(15 * NS_PER_MS)

    simulation.play(load(), limit_ns=120 * NS_PER_S)
    return simulation


RECORDINGS: Mapping[str, Callable[[], Simulation]] = {
    "sim-gap-drain": gap_drain,
    "sim-trickle": trickle,
    "sim-mixed-stream": mixed_stream,
}


def main(names: list[str]) -> None:
    for name in names or list(RECORDINGS):
        make = RECORDINGS[name]
        what = (make.__doc__ or "").strip().rstrip(".")
        lines = [header_line(f"tests/replay/simulated.py: {what}"), *make().lines]
        (FOLDER / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        print(f"{name}: {len(lines)} records")


if __name__ == "__main__":
    main(sys.argv[1:])
