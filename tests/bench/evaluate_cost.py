# SPDX-License-Identifier: GPL-2.0-only
"""`evaluate-cost`: what a tick of many volumes with long policies costs, and a busy edge. Pure.

Each volume runs every strategy that there is and twenty rules of three conditions. Every 10 s each
gets a window of misses, as many as a disk has, and a tick with the largest window there is has an
arm of its own. CPU time of this process, the median of the ticks; the arms are interleaved. Needs
no lab.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from statistics import fmean, median

from ebbgate.model.decision import GateKind
from ebbgate.model.frame import Frame, PathLatency, Rates
from ebbgate.model.heat import ChunkMisses, HeatPeriod
from ebbgate.model.records import Direction, Edge, EdgeKind
from ebbgate.model.volume import Kind
from ebbgate.policy.engine import Policy, State, step
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.parse import parse
from ebbgate.units import GIB, MIB, NS_PER_MS, NS_PER_S
from tests.bench.context import Context, Scenario
from tests.bench.report import Report

VOLUMES = (1, 8, 64)
RULES = 20
TICKS = 200
TICK_NS = 250 * NS_PER_MS
EDGES = 2000
WINDOW_NS = 10 * NS_PER_S
WINDOW_CHUNKS, WINDOW_CHUNKS_MAX = 512, 2048
_RULE = (
    "  - {{name: rule-{n}, why: A load., when: {{any: [{{all: [{{dirty_ratio: '> {low}%'}},"
    " {{time_to_full: '< {n}s'}}, {{regime: [burst, stream]}}]}}]}}, for: 1s,"
    " set: {{sequential_cutoff: {n}MiB}}, until: {{dirty_ratio: '< {low}%'}}}}"
)


def policy() -> Policy:
    """All strategies, and rules that come and go."""
    rules = "\n".join(_RULE.format(n=n + 1, low=4 * n) for n in range(RULES))
    strategies = "strategies: [idle_destage, stream_bypass, promote_hot]"
    text = f"version: 1\nname: long\nwhy: A load.\n{strategies}\nrules:\n{rules}\n"
    parsed = parse(text, "long.yaml")
    assert parsed.document is not None, parsed.problems
    return compile_policy(parsed.document, Kind.BCACHE)


class Volumes:
    """So many volumes under the policy, each with a load of its own."""

    def __init__(self, count: int, seed: int) -> None:
        self._random = Random(seed)
        self._policy = policy()
        self._states = [State()] * count
        self._heat: list[HeatPeriod | None] = [None] * count
        self._at_ns = NS_PER_S

    def tick(self) -> float:
        """CPU seconds of one tick of all of them, the making of frames left out."""
        self._at_ns += TICK_NS
        frames = [self._frame(number) for number in range(len(self._states))]
        began = time.process_time()
        for number, frame in enumerate(frames):
            self._states[number] = self._one(self._states[number], frame)
        return time.process_time() - began

    def _one(self, before: State, frame: Frame) -> State:
        state, outcome = step(before, frame, self._policy, frame.at_ns)
        outcome.decision()
        assert outcome.gate is not None
        return state

    def _frame(self, number: int) -> Frame:
        if (self._at_ns // TICK_NS + number) % (WINDOW_NS // TICK_NS) == 0:
            self._heat[number] = window(self._at_ns, WINDOW_CHUNKS, self._random)
        found = loaded_frame(f"bcache{number}", self._at_ns, self._random)
        return replace(found, heat=self._heat[number])


class Windows:
    """One volume with the largest windows of misses, which never hit the same chunks for long."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._policy = policy()
        self._state = State()
        self._at_ns = NS_PER_S

    def tick(self) -> float:
        """Return the CPU seconds of a tick with a new window."""
        self._at_ns += WINDOW_NS
        frame = loaded_frame("bcache0", self._at_ns, self._random)
        frame = replace(frame, heat=window(self._at_ns, WINDOW_CHUNKS_MAX, self._random))
        began = time.process_time_ns()
        self._state, outcome = step(self._state, frame, self._policy, self._at_ns)
        outcome.decision()
        return (time.process_time_ns() - began) / NS_PER_S


class Edges:
    """One volume that drains in its gaps; each request that ends one has to close the gate."""

    def __init__(self, seed: int) -> None:
        self._policy = policy()
        frame = loaded_frame("bcache0", NS_PER_S, Random(seed))
        self._state = step(State(), frame, self._policy, NS_PER_S)[0]
        self._at_ns = NS_PER_S

    def busy(self) -> float:
        """Return the CPU seconds from a busy edge to the gate that closes for it."""
        self._at_ns += NS_PER_S
        self._state = step(self._state, self._edge(EdgeKind.IDLE), self._policy, self._at_ns)[0]
        self._at_ns += NS_PER_S
        edge = self._edge(EdgeKind.BUSY)
        began = time.process_time_ns()
        self._state, outcome = step(self._state, edge, self._policy, self._at_ns)
        gate = outcome.ruling.gate
        spent = time.process_time_ns() - began
        assert gate is not None and gate.kind is GateKind.CLOSED
        return spent / NS_PER_S

    def _edge(self, kind: EdgeKind) -> Edge:
        return Edge("bcache0", self._at_ns, kind, NS_PER_S)


def window(at_ns: int, count: int, random: Random) -> HeatPeriod:
    """Return the misses of the 10 s before, half of them in a hot part of the volume."""
    chunks = [random.randrange(100_000 if half else 4_000) for half in (0, 1) * (count // 2)]
    found = tuple(ChunkMisses(chunk, random.randrange(1, 30)) for chunk in dict.fromkeys(chunks))
    return HeatPeriod(at_ns - WINDOW_NS, at_ns, found)


def loaded_frame(volume: str, at_ns: int, random: Random) -> Frame:
    """Return a frame of a busy volume with every signal."""
    dirty = random.random()
    runs = tuple(random.randrange(MIB) for _ in range(33))
    latency = PathLatency(100, MIB, 2 * NS_PER_MS, 30 * NS_PER_MS)
    frame = Frame(
        volume, at_ns, at_ns, NS_PER_S, False, 0,
        {way: Rates(100.0, 4.0 * MIB) for way in Direction}, 3,
    )  # fmt: skip
    return replace(
        frame,
        run_bytes=dict.fromkeys(Direction, runs),
        run_delta_bytes=dict.fromkeys(Direction, runs),
        gap_counts=tuple(float(n % 5) for n in range(40)),
        paths={(way, path): latency for way in Direction for path in ("hit", "miss")},
        backing_busy_foreground_ratio=random.random(),
        dirty_bytes=int(dirty * GIB),
        cache_bytes=GIB,
        dirty_ratio=dirty,
        in_use_ratio=dirty,
        dirty_room_bytes=int((1 - dirty) * GIB),
        dirty_in_bytes_per_s=float(MIB),
        time_to_full_s=100 * random.random(),
        time_to_clean_s=10.0,
        state="dirty",
        cache_mode="writeback",
    )


def run(context: Context) -> Report:
    """One arm for each number of volumes, and one for a busy edge."""
    runs: dict[str, list[dict[str, float]]] = {f"{count} volumes": [] for count in VOLUMES}
    runs["new window"], runs["busy edge"] = [], []
    for repetition in range(context.repetitions):
        arms = {count: Volumes(count, context.seed + repetition) for count in VOLUMES}
        spent: dict[int, list[float]] = {count: [] for count in VOLUMES}
        edges, edge_s = Edges(context.seed + repetition), list[float]()
        windows, window_s = Windows(context.seed + repetition), list[float]()
        for number in range(TICKS):
            for count, volumes in arms.items():
                spent[count].append(volumes.tick())
            edge_s += [edges.busy() for _ in range(EDGES // TICKS)]
            window_s.append(windows.tick())
            if number % 50 == 0:
                context.say(f"{number} of {TICKS} ticks")
        for count, seconds in spent.items():
            runs[f"{count} volumes"].append(figures(seconds, count))
        runs["new window"].append({"window_ms": median(window_s) * 1e3})
        runs["busy edge"].append({"edge_us": median(edge_s) * 1e6})
    few, many = runs["8 volumes"], runs["64 volumes"]
    ratios = {
        "cpu_ms_64": max(found["cpu_ms"] for found in many),
        "growth_8_to_64": median(
            b["cpu_us_per_volume"] / a["cpu_us_per_volume"] for a, b in zip(few, many, strict=True)
        ),
    }
    ratios["window_ms"] = max(found["window_ms"] for found in runs["new window"])
    goals = {"cpu_ms_64": "<= 20", "growth_8_to_64": "<= 1.2", "window_ms": "<= 20"}
    return Report("evaluate-cost", runs, ratios, goals, ["three strategies: all that there are"])


def figures(seconds: Sequence[float], count: int) -> dict[str, float]:
    """Of one tick, all volumes and one: the mean, since few volumes rarely have a new window."""
    return {
        "cpu_ms": median(seconds) * 1e3,
        "cpu_us_per_volume": fmean(seconds) * 1e6 / count,
    }


SCENARIO = Scenario(
    "evaluate-cost", "a tick of 64 volumes with 20 rules each takes less than 20 ms of CPU", 1, run
)
