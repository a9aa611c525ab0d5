# SPDX-License-Identifier: GPL-2.0-only
"""`evaluate-cost`: what a tick of many volumes with long policies costs; needs no lab. Pure.

Each volume runs every strategy that there is and twenty rules of three conditions. CPU time of this
process, the median of the ticks; the arms are interleaved.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from statistics import median

from ebbgate.model.frame import Frame, PathLatency, Rates
from ebbgate.model.records import Direction
from ebbgate.model.volume import Kind
from ebbgate.policy import arbiter, evaluate
from ebbgate.policy.arbiter import ArbiterState
from ebbgate.policy.defaults import Policy
from ebbgate.policy.evaluate import PolicyState
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.parse import parse
from ebbgate.units import GIB, MIB, NS_PER_MS, NS_PER_S
from tests.bench.context import Context, Scenario
from tests.bench.report import Report

VOLUMES = (1, 8, 64)
RULES = 20
TICKS = 200
TICK_NS = 250 * NS_PER_MS
Remembered = tuple[PolicyState, ArbiterState]
_RULE = (
    "  - {{name: rule-{n}, why: A load., when: {{any: [{{all: [{{dirty_ratio: '> {low}%'}},"
    " {{time_to_full: '< {n}s'}}, {{regime: [burst, stream]}}]}}]}}, for: 1s,"
    " set: {{sequential_cutoff: {n}MiB}}, until: {{dirty_ratio: '< {low}%'}}}}"
)


def policy() -> Policy:
    """All strategies, and rules that come and go."""
    rules = "\n".join(_RULE.format(n=n + 1, low=4 * n) for n in range(RULES))
    text = f"version: 1\nname: long\nwhy: A load.\nrules:\n{rules}\n"
    parsed = parse(text, "long.yaml")
    assert parsed.document is not None, parsed.problems
    return compile_policy(parsed.document, Kind.BCACHE)


class Volumes:
    """So many volumes under the policy, each with a load of its own."""

    def __init__(self, count: int, seed: int) -> None:
        self._random = Random(seed)
        self._policy = policy()
        self._states = [(PolicyState(), ArbiterState())] * count
        self._at_ns = NS_PER_S

    def tick(self) -> float:
        """CPU seconds of one tick of all of them, the making of frames left out."""
        self._at_ns += TICK_NS
        frames = [self._frame(number) for number in range(len(self._states))]
        began = time.process_time()
        for number, frame in enumerate(frames):
            self._states[number] = self._one(self._states[number], frame)
        return time.process_time() - began

    def _one(
        self, before: tuple[PolicyState, ArbiterState], frame: Frame
    ) -> tuple[PolicyState, ArbiterState]:
        state = evaluate.on_frame(before[0], frame, self._policy)
        over = arbiter.on_frame(before[1], frame, state, self._policy, applied=True)
        arbiter.decide(over, state, self._policy, frame.at_ns, explained=False)
        arbiter.gate(over, state, self._policy, frame.at_ns)
        return state, over

    def _frame(self, number: int) -> Frame:
        dirty = self._random.random()
        runs = tuple(self._random.randrange(MIB) for _ in range(33))
        latency = PathLatency(100, MIB, 2 * NS_PER_MS, 30 * NS_PER_MS)
        frame = Frame(
            f"bcache{number}", self._at_ns, self._at_ns, NS_PER_S, False, 0,
            {way: Rates(100.0, 4.0 * MIB) for way in Direction}, 3,
        )  # fmt: skip
        return replace(
            frame,
            run_bytes=dict.fromkeys(Direction, runs),
            run_delta_bytes=dict.fromkeys(Direction, runs),
            gap_counts=tuple(float(n % 5) for n in range(40)),
            paths={(way, path): latency for way in Direction for path in ("hit", "miss")},
            backing_busy_foreground_ratio=self._random.random(),
            dirty_bytes=int(dirty * GIB),
            cache_bytes=GIB,
            dirty_ratio=dirty,
            in_use_ratio=dirty,
            dirty_room_bytes=int((1 - dirty) * GIB),
            dirty_in_bytes_per_s=float(MIB),
            time_to_full_s=100 * self._random.random(),
            time_to_clean_s=10.0,
            state="dirty",
            cache_mode="writeback",
        )


def run(context: Context) -> Report:
    """One arm for each number of volumes."""
    runs: dict[str, list[dict[str, float]]] = {f"{count} volumes": [] for count in VOLUMES}
    for repetition in range(context.repetitions):
        arms = {count: Volumes(count, context.seed + repetition) for count in VOLUMES}
        spent: dict[int, list[float]] = {count: [] for count in VOLUMES}
        for number in range(TICKS):
            for count, volumes in arms.items():
                spent[count].append(volumes.tick())
            if number % 50 == 0:
                context.say(f"{number} of {TICKS} ticks")
        for count, seconds in spent.items():
            runs[f"{count} volumes"].append(figures(seconds, count))
    few, many = runs["8 volumes"], runs["64 volumes"]
    ratios = {
        "cpu_ms_64": max(found["cpu_ms"] for found in many),
        "growth_8_to_64": median(
            b["cpu_us_per_volume"] / a["cpu_us_per_volume"] for a, b in zip(few, many, strict=True)
        ),
    }
    goals = {"cpu_ms_64": "<= 20", "growth_8_to_64": "<= 1.2"}
    return Report("evaluate-cost", runs, ratios, goals, ["two strategies: all that there are"])


def figures(seconds: Sequence[float], count: int) -> dict[str, float]:
    """Of one tick, all volumes and one."""
    middle = median(seconds)
    return {"cpu_ms": middle * 1e3, "cpu_us_per_volume": middle * 1e6 / count}


SCENARIO = Scenario(
    "evaluate-cost", "64 volumes with 20 rules each cost a tick under 20 ms of CPU", 1, run
)
