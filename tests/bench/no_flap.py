# SPDX-License-Identifier: GPL-2.0-only
"""`no-flap`: conflicting rules over a level that goes up and down; needs no lab. Pure.

Ten simulated minutes, a tick each 250 ms, through the whole policy as the daemon runs it. What
counts are changes of the gate in the name of a rule, and of the cutoff.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

from ebbgate.model.decision import Decision
from ebbgate.model.volume import Kind
from ebbgate.policy.engine import State, step
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.parse import parse
from ebbgate.policy.rules import INTERVAL_NS
from ebbgate.units import GIB, NS_PER_MS, NS_PER_S
from tests.bench.context import Context, Scenario
from tests.bench.report import Report
from tests.builders import frame

TICK_NS = 250 * NS_PER_MS
TICKS = 10 * 60 * 4
FIGHT = """
version: 1
name: fight
why: Two people who do not agree.
strategies: []
rules:
  - {name: drain, why: Out., when: {dirty_ratio: "> 50%"},
     set: {destage_rate: max, sequential_cutoff: 1MiB}}
  - {name: hold, why: In., when: {dirty_ratio: "<= 50%"},
     set: {destage_rate: 0, sequential_cutoff: 64MiB}}
"""


def zigzag(_: Random, step: int) -> float:
    """Across the threshold at each tick: the worst that can be."""
    return 0.4 + 0.2 * (step % 2)


def noise(random: Random, _: int) -> float:
    """Anything."""
    return random.random()


def drift(random: Random, step: int) -> float:
    """Slow, with jitter around the threshold."""
    return 0.5 + 0.05 * ((step // 40) % 2 - 0.5) + random.gauss(0, 0.05)


LEVELS: dict[str, Callable[[Random, int], float]] = {
    "zigzag": zigzag,
    "noise": noise,
    "drift": drift,
}


def changes(level: Callable[[Random, int], float], seed: int) -> dict[str, list[int]]:
    """When each setting changed, ns."""
    parsed = parse(FIGHT, "fight.yaml")
    assert parsed.document is not None, parsed.problems
    policy, random = compile_policy(parsed.document, Kind.BCACHE), Random(seed)
    state = State()
    found: dict[str, list[int]] = {"gate": [], "cutoff": []}
    last: Decision | None = None
    for number in range(TICKS):
        at_ns = NS_PER_S + number * TICK_NS
        ratio = min(1.0, max(0.0, level(random, number)))
        seen = frame(
            at_ns=at_ns, dirty_ratio=ratio, dirty_bytes=int(ratio * GIB), cache_bytes=GIB,
            idle=False, idle_ns=0, state="dirty", cache_mode="writeback",
        )  # fmt: skip
        state, outcome = step(state, seen, policy, at_ns)
        decision = outcome.decision()
        if last is not None and decision.gate != last.gate:
            found["gate"].append(at_ns)
        if last is not None and decision.sequential_cutoff_bytes != last.sequential_cutoff_bytes:
            found["cutoff"].append(at_ns)
        last = decision
    return found


def run(context: Context) -> Report:
    """One arm for each way of the level."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in LEVELS}
    for repetition in range(context.repetitions):
        for name, level in LEVELS.items():
            found = changes(level, context.seed + repetition)
            runs[name].append(figures(found))
            context.say(f"{name}: {runs[name][-1]}")
    every = [each for found in runs.values() for each in found]
    ratios = {
        "shortest_s": min(found["shortest_s"] for found in every),
        "changes_min": min(found["changes"] for found in every),
    }
    # Rules that never changed anything would prove nothing.
    goals = {"shortest_s": f">= {INTERVAL_NS / NS_PER_S:g}", "changes_min": ">= 10"}
    return Report("no-flap", runs, ratios, goals)


def figures(found: dict[str, list[int]]) -> dict[str, float]:
    """Of both settings: how many changes, and the shortest time between two of one setting."""
    gaps = [b - a for times in found.values() for a, b in pairwise(times)]
    return {
        "changes": float(sum(map(len, found.values()))),
        "shortest_s": min(gaps, default=0) / NS_PER_S,
    }


SCENARIO = Scenario("no-flap", "conflicting rules change a setting at most once in 5 s", 0.2, run)
