# SPDX-License-Identifier: GPL-2.0-only
"""`nas-sleep-night`: eight hours of a NAS's night on a simulated bcache. Pure: simulated time.

Small writes come from time to time, which the cache takes. The disk stops after ten minutes without
a request and needs eight seconds to start. Needs no lab; the real engine decides, with the shipped
policy.

    quiet    nobody reads
    visits   users read twice, and something else wakes the disk once
    heavy    enough is written to fill 30 % of the cache before the morning
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.records import Direction
from ebbgate.model.volume import Kind
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy_files import reader
from ebbgate.units import KIB, NS_PER_S
from tests.bench.context import Context, Scenario
from tests.bench.report import Report, medians
from tests.sim.scenarios import cold_reads, random_offset
from tests.sim.simulation import CACHE_BYTES, Io, Pause, Script, Setup, Simulation, scattered
from tests.sim.sleepy_disk import SleepyDisk
from tests.sim.writeback import Piece

VARIANTS: Final = ("quiet", "visits", "heavy")
ARMS: Final = ("stock", "nas-sleep")
NIGHT_NS: Final = 8 * 3600 * NS_PER_S
_EVENING_BYTES: Final = 64 * 1024 * KIB
_AGE_S_MAX: Final = 6 * 3600 + 120
_LEVEL_MAX: Final = 0.31
"""Both with a little room: rules are evaluated once a second, and a burst takes its time."""
_ASLEEP_H_MIN: Final = 4


@dataclass(frozen=True, slots=True)
class Load:
    """Bursts of small writes. `visits_ns`: when users read; `wake_ns`: when somebody else does.

    `spin_ups_max`: of the policy's arm; each visit and each wake costs one.
    """

    spin_ups_max: int
    pause_s: float
    pieces_max: int
    piece_kib: tuple[int, ...]
    visits_ns: tuple[int, ...] = ()
    wake_ns: int | None = None


_HOUR_NS: Final = 3600 * NS_PER_S
LOADS: Final = {
    "quiet": Load(2, 900, 8, (4, 16, 64)),
    "visits": Load(5, 240, 16, (4, 64), (2 * _HOUR_NS, 5 * _HOUR_NS), 7 * _HOUR_NS // 2),
    "heavy": Load(2, 30, 16, (4, 64, 128)),
}


class Night:
    """One night.

    `writes_held`: pieces of write-back that reached the disk while the hold counted as one;
    `marks_held`: writes of bcache's superblock meanwhile, at the first write into a clean cache.
    """

    def __init__(self, variant: str, arm: str, seed: int) -> None:
        document = next(each for each in reader.shipped() if each.name == "nas-sleep")
        setup = Setup(
            pieces=scattered(64 * KIB, _EVENING_BYTES),
            policy=compile_policy(document, Kind.BCACHE),
            scheduler="mq-deadline",
            make_disk=SleepyDisk,
            marks=True,
            tick_ns=NS_PER_S,
            seed=seed,
            gate=_stock if arm == "stock" else lambda gate: gate,
        )
        self.simulation = Simulation(setup)
        self.disk = self.simulation.disk
        assert isinstance(self.disk, SleepyDisk)
        self.sleepy = self.disk
        self.load, self.random = LOADS[variant], random.Random(seed)
        self.writes_held = self.marks_held = self.held_s = 0
        self.level_max = 0.0
        self.age_ns_max = 0
        self._since: dict[Piece, list[int]] = {}
        self._before: tuple[int, int] | None = None
        for piece in setup.pieces:
            self._since.setdefault(piece, []).append(0)
        self.simulation.writeback.on_written = self._written
        self.simulation.clock.every(NS_PER_S, self._watch)

    def metrics(self) -> dict[str, float]:
        """Play the night and return its figures."""
        scripts = [self._writes(), *map(self._visit, self.load.visits_ns)]
        if self.load.wake_ns is not None:
            self.simulation.clock.at(self.load.wake_ns, self.sleepy.wake)
        self.simulation.play(*scripts, limit_ns=NIGHT_NS + _HOUR_NS)
        now_ns = self.simulation.clock.now_ns
        left_ns = [now_ns - since for found in self._since.values() for since in found]
        return {
            "spin_ups": float(self.sleepy.spin_ups),
            "asleep_h": self.sleepy.asleep_ns / _HOUR_NS,
            "held_h": self.held_s / 3600,
            "writes_held": float(self.writes_held),
            "marks_held": float(self.marks_held),
            "age_h_max": max(self.age_ns_max, *left_ns, 0) / _HOUR_NS,
            "level_max": self.level_max,
            "written_mib": self.simulation.writeback.done_bytes / (1024 * KIB),
        }

    def _writes(self) -> Script:
        while self.simulation.clock.now_ns < NIGHT_NS:
            yield Pause(round(self.random.expovariate(1 / self.load.pause_s) * NS_PER_S))
            for _ in range(self.random.randint(1, self.load.pieces_max)):
                length = self.random.choice(self.load.piece_kib) * KIB
                piece = (random_offset(self.random), length)
                self._since.setdefault(piece, []).append(self.simulation.clock.now_ns)
                yield Io(Direction.WRITE, *piece, cached=True)

    def _visit(self, at_ns: int) -> Script:
        yield Pause(at_ns)
        yield from cold_reads(self.random, 300, NS_PER_S // 10)

    def _written(self, piece: Piece) -> None:
        since = self._since[piece].pop()
        if not self._since[piece]:
            del self._since[piece]
        self.age_ns_max = max(self.age_ns_max, self.simulation.clock.now_ns - since)

    def _watch(self) -> None:
        writeback = self.simulation.writeback
        self.level_max = max(self.level_max, writeback.dirty_bytes / CACHE_BYTES)
        hold = self.simulation.state.hold
        if not (hold.settled and self.simulation.gates[-1][1].kind is GateKind.HELD):
            self._before = None
            return
        self.held_s += 1
        now = (writeback.done_ios + writeback.writing_ios, writeback.marked_ios)
        if self._before is not None:
            self.writes_held += now[0] - self._before[0]
            self.marks_held += now[1] - self._before[1]
        self._before = now


def _stock(_: Gate) -> Gate:
    return Gate(GateKind.RELEASED)


def run(context: Context) -> Report:
    """Play each night with and without the policy."""
    runs: dict[str, list[dict[str, float]]] = {}
    ratios: dict[str, float] = {}
    goals: dict[str, str] = {}
    for variant in [context.variant] if context.variant else VARIANTS:
        names = {f"{variant}_{arm}": arm for arm in ARMS}
        found = context.interleaved(
            names,
            lambda name, n, at=variant, arms=names: Night(  # type: ignore[misc]
                at, arms[name], context.seed + n
            ).metrics(),
        )
        runs |= found
        stock, ours = (medians(found[name]) for name in names)
        ratios |= {
            f"{variant}_writes_held": ours["writes_held"],
            f"{variant}_spin_ups": ours["spin_ups"],
            f"{variant}_spin_ups_vs_stock": ours["spin_ups"] / max(1.0, stock["spin_ups"]),
            f"{variant}_asleep_h": ours["asleep_h"],
            f"{variant}_asleep_h_stock": stock["asleep_h"],
            f"{variant}_age_h_max": ours["age_h_max"],
            f"{variant}_level_max": ours["level_max"],
        }
        goals |= {
            f"{variant}_writes_held": "== 0",
            f"{variant}_spin_ups": f"<= {LOADS[variant].spin_ups_max}",
            f"{variant}_asleep_h": f">= {_ASLEEP_H_MIN}",
            f"{variant}_age_h_max": f"<= {_AGE_S_MAX / 3600:.3g}",
            f"{variant}_level_max": f"<= {_LEVEL_MAX}",
        }
    return Report("nas-sleep-night", runs, ratios, goals)


SCENARIO = Scenario(
    "nas-sleep-night",
    "in a NAS's night a disk that is held sleeps, and no write-back reaches it",
    2,
    run,
    VARIANTS,
)
