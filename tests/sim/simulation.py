# SPDX-License-Identifier: GPL-2.0-only
"""Simulates a volume under load, with the real engine in the loop. Pure: simulated time.

Records go through the real parser and frame builder into the real engine, whose gate becomes writes
of the real plan. Only the kernel, the disk and time are simulated.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.frame import DaemonFacts
from ebbgate.model.heat import CHUNK_BYTES, HEAD_READ_BYTES
from ebbgate.model.power import NOT_ASKED
from ebbgate.model.records import Direction, Edge, QueueSample, Tick
from ebbgate.model.volume import VolumeState
from ebbgate.policy.engine import DestageParams, Event, Policy, ProbeSettings, State, step
from ebbgate.policy.strategies.head_return import page_offset_bytes
from ebbgate.probes.protocol import parse_line
from ebbgate.probes.recording import sysfs_line
from ebbgate.signals.frame import FrameState, build, on_tick
from ebbgate.units import GIB, NS_PER_MS, NS_PER_S, NS_PER_US
from tests.lab.hdd_model import HddModel
from tests.lab.hdd_queue import PLAIN, HddFeatures
from tests.sim.clock import Clock
from tests.sim.disk import Disk, Request
from tests.sim.probe import Probe
from tests.sim.sim_knob_writer import SimKnobWriter
from tests.sim.writeback import EMULATED, Machine, Piece, Writeback

VOLUME = "bcache0"
DISK_BYTES = 2 * GIB
CACHE_BYTES = GIB
TICK_NS = 250 * NS_PER_MS
POWER_NS = 30 * NS_PER_S
SLICE_IDLE_NS = 8 * NS_PER_MS
"""How long bfq waits for the next request of a reader (bfq-iosched.c, bfq_slice_idle)."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A time without requests of this load."""

    length_ns: int


@dataclass(frozen=True, slots=True)
class Io:
    """One request of a user; `cached`: the cache device serves it."""

    direction: Direction
    offset_bytes: int
    length_bytes: int = 4096
    cached: bool = False


Script = Generator[Pause | Io, None, None]
"""A load: each request is sent when the one before it is done."""


@dataclass(frozen=True, slots=True)
class Served:
    """A user's request: its arrival, the idle time before it, and its latency."""

    at_ns: int
    idle_ns: int
    latency_ns: int


@dataclass(frozen=True, slots=True)
class Reaction:
    """ebbgate's delays: until a record reaches the policy, of a knob write, and until a read that
    brings the heads back is sent.
    """

    deliver_ns: int = 2 * NS_PER_MS
    write_ns: int = 350 * NS_PER_US
    read_ns: int = 5 * NS_PER_MS


PROMPT = Reaction()


@dataclass(frozen=True, slots=True)
class Setup:
    """What is simulated. `gate`: replaces the policy's gate in a control arm.

    `scheduler`: `none`, `mq-deadline` or `bfq`; `depth_settable`: the disk has a queue depth.
    `make_disk`: the class of the disk; `marks`: bcache writes its superblock, see `Writeback`.
    `features`: what the disk does beyond first come, first served; `tells_cache`: the kernel knows
    of its write cache.
    """

    pieces: tuple[Piece, ...]
    policy: Policy = field(default_factory=Policy)
    machine: Machine = EMULATED
    reaction: Reaction = PROMPT
    scheduler: str = "none"
    depth_settable: bool = False
    features: HddFeatures = PLAIN
    tells_cache: bool = False
    disk_bytes: int = DISK_BYTES
    seed: int = 1
    make_disk: type[Disk] = Disk
    marks: bool = False
    tick_ns: int = TICK_NS
    gate: Callable[[Gate], Gate] = lambda gate: gate


class Simulation:
    """`served`: every user's request; `lines`: the recording; `gates`: every change of the gate;
    `head_returns`: reads that brought the disk's heads back.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.clock = Clock()
        model = HddModel(setup.disk_bytes, random.Random(setup.seed))
        self.disk = setup.make_disk(
            self.clock,
            model,
            setup.features,
            idle_class=setup.scheduler != "none",
            anticipate_ns=SLICE_IDLE_NS if setup.scheduler == "bfq" else 0,
        )
        self.writeback = Writeback(
            self.clock, self.disk, setup.pieces, setup.machine, marks=setup.marks
        )
        self.writer = SimKnobWriter(
            self.clock, self.writeback, self.disk, write_ns=setup.reaction.write_ns
        )
        self.probe = Probe(self.clock, VOLUME, self.writeback, self._emit)
        self.served: list[Served] = []
        self.lines: list[str] = []
        self.gates: list[tuple[int, Gate]] = []
        self.head_returns = 0
        self._read_bytes: int | None = None
        self.state = State()
        self._frames = FrameState()
        self._sent_settings: ProbeSettings | None = None
        self._last_ns = 0
        self._playing = 0
        self._power = NOT_ASKED
        self.probe.start(setup.tick_ns)
        self.clock.every(setup.tick_ns, self._tick)
        self.clock.every(POWER_NS, self._ask_power)

    @property
    def destage(self) -> DestageParams:
        """The parameters of idle_destage under test."""
        assert self.setup.policy.destage is not None
        return self.setup.policy.destage

    # ---- the load ------------------------------------------------------------------------------
    def play(self, *scripts: Script, limit_ns: int) -> None:
        """Play loads concurrently to their end. Raises TimeoutError at the limit."""
        self._playing += len(scripts)
        for script in scripts:
            self._continue(script)
        self.clock.run_while(lambda: self._playing > 0, self.clock.now_ns + limit_ns)

    def _continue(self, script: Script) -> None:
        for item in script:
            if isinstance(item, Pause):
                self.clock.after(item.length_ns, lambda: self._continue(script))
            else:
                self._send(item, script)
            return
        self._playing -= 1

    def _send(self, io: Io, script: Script) -> None:
        start_ns = self.clock.now_ns
        idle_ns = start_ns - self._last_ns
        self.probe.arrives(io.direction, io.offset_bytes, io.length_bytes)

        def done() -> None:
            latency_ns = self.clock.now_ns - start_ns
            self._last_ns = self.clock.now_ns
            self.served.append(Served(start_ns, idle_ns, latency_ns))
            self.probe.completes(io.direction, _path(io), io.length_bytes, latency_ns)
            self._continue(script)

        if not io.cached:
            self.probe.reaches_backing(io.direction)
            self._read_bytes = io.offset_bytes
            write = io.direction is Direction.WRITE
            self.disk.submit(
                Request(io.offset_bytes, io.length_bytes, destage=False, done=done, write=write)
            )
            return
        if io.direction is Direction.WRITE:
            self.writeback.add((io.offset_bytes, io.length_bytes))
        self.clock.after(self.setup.machine.cache_read_ns, done)

    # ---- ebbgate -------------------------------------------------------------------------------
    def _emit(self, line: str) -> None:
        self.lines.append(line)
        self.clock.after(self.setup.reaction.deliver_ns, lambda: self._take(line))

    def _take(self, line: str) -> None:
        record = parse_line(line)
        if isinstance(record, Tick):
            self._frames = on_tick(self._frames, record)
        elif isinstance(record, Edge | QueueSample):
            self._step(record)

    def _tick(self) -> None:
        dirty_bytes = self.writeback.dirty_bytes
        seen = VolumeState(
            at_ns=self.clock.now_ns,
            state="dirty" if dirty_bytes else "clean",
            cache_mode="writeback",
            dirty_bytes=dirty_bytes,
            cache_bytes=CACHE_BYTES,
            in_use_ratio=dirty_bytes / CACHE_BYTES,
            knobs=self._queue_knobs(),
            disk_write_cache=self.setup.tells_cache,
        )
        self.lines.append(sysfs_line(VOLUME, seen))
        now_ns = self.clock.now_ns
        self._step(build(self._frames, seen, VOLUME, now_ns, DaemonFacts(power=self._power)))

    def _ask_power(self) -> None:
        self._power = self.disk.power

    def _queue_knobs(self) -> dict[str, str]:
        known = {"scheduler:vda": self.setup.scheduler}
        return known | ({"queue_depth:vda": "32"} if self.setup.depth_settable else {})

    def _step(self, event: Event) -> None:
        now_ns = self.clock.now_ns
        asked = self.state.destage.head.count
        self.state, outcome = step(self.state, event, self.setup.policy, now_ns)
        if self.state.destage.head.count > asked:
            self.clock.after(self.setup.reaction.read_ns, self._return_head)
        gate = self.setup.gate(outcome.gate or Gate(GateKind.RELEASED))
        if not self.gates or gate != self.gates[-1][1]:
            self.gates.append((self.clock.now_ns, gate))
            self.writer.set_gate(gate)
        settings = outcome.probe_settings
        sent = self._sent_settings
        if sent is None or settings.wait_ns != sent.wait_ns:
            self.probe.command(f"wait {VOLUME} {settings.wait_ns}")
        if sent is None or settings.pace_period_ns != sent.pace_period_ns:
            self.probe.command(f"pace {VOLUME} {settings.pace_period_ns}")
        self._sent_settings = settings

    def _return_head(self) -> None:
        """Read close to where users read last: not their load, and not destage."""
        if self._read_bytes is None:
            return
        self.head_returns += 1
        chunk, size_bytes = self._read_bytes // CHUNK_BYTES, self.setup.disk_bytes
        offset_bytes = page_offset_bytes(chunk, self.head_returns, size_bytes)
        self.disk.submit(Request(offset_bytes, HEAD_READ_BYTES, destage=True, done=lambda: None))


def _path(io: Io) -> str:
    if io.direction is Direction.READ:
        return "hit" if io.cached else "miss"
    return "writeback" if io.cached else "bypass"


def scattered(
    piece_bytes: int, total_bytes: int, seed: int = 3, disk_bytes: int = DISK_BYTES
) -> tuple[Piece, ...]:
    """Return dirty pieces of one size at random addresses."""
    slots = disk_bytes // piece_bytes
    chosen = random.Random(seed).sample(range(slots), total_bytes // piece_bytes)
    return tuple((slot * piece_bytes, piece_bytes) for slot in chosen)


def unpaced(gate: Gate) -> Gate:
    """Open the gate in a gap without a pace or rests, as the control arm."""
    return gate if gate.kind in (GateKind.RELEASED, GateKind.CLOSED) else Gate(GateKind.OPEN)
