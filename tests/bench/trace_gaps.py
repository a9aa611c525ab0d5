# SPDX-License-Identifier: GPL-2.0-only
"""`trace-gaps`: what ebbgate gets out of the gaps of real block traces. I/O: reads them.

Each device of a trace is a volume of its own. Needs no lab.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add

from ebbgate.units import NS_PER_S
from tests.bench.context import Context, Scenario
from tests.bench.gap_rules import RULES, Gain, Gap, gain, gaps_of
from tests.bench.report import Report
from tests.bench.trace import lines_of, requests_of, traces_of

SHARE_GOAL = ">= 0.87"
Volumes = Mapping[str, Sequence[Gap]]
"""The gaps of each device."""


def run(context: Context) -> Report:
    """Give each rule the gaps of each trace; a repetition would be the same."""
    runs: dict[str, list[dict[str, float]]] = {}
    ratios: dict[str, float] = {}
    goals: dict[str, str] = {}
    notes = []
    for name, path in traces_of(context, "trace-gaps").items():
        volumes = volumes_of(lines_of(path))
        gains = {rule: [gain(gaps, RULES[rule]) for gaps in volumes.values()] for rule in RULES}
        totals = {rule: reduce(add, found, Gain()) for rule, found in gains.items()}
        for rule, total in totals.items():
            runs[f"{name}_{rule}"] = [_metrics(total)]
            context.say(f"{name}  {rule:12}" + _words(_metrics(total)))
        found, goal = figures(name, totals)
        ratios |= found
        goals |= goal
        notes.append(f"{name}: {_summary(volumes)}")
    return Report("trace-gaps", runs, ratios, goals, notes)


def volumes_of(lines: Iterable[str]) -> Volumes:
    """Return the gaps of each device of a trace."""
    arrivals: dict[str, list[int]] = defaultdict(list)
    for request in requests_of(lines):
        arrivals[request.device].append(request.at_ns)
    return {device: gaps_of(arrivals[device]) for device in sorted(arrivals)}


def figures(name: str, totals: Mapping[str, Gain]) -> tuple[dict[str, float], dict[str, str]]:
    """Return each rule's share of what the oracle gets, and the goals.

    If no gap is worth opening, the figure is what is lost by opening all the same.
    """
    best_ns = totals["oracle"].utility_ns
    if best_ns <= 0:
        lost_s = -totals["ebbgate"].utility_ns / NS_PER_S
        return {f"{name}_lost_s": lost_s}, {f"{name}_lost_s": "<= 1"}
    shares = {
        f"{name}_{rule}": total.utility_ns / best_ns
        for rule, total in totals.items()
        if rule != "oracle"
    }
    return shares, {f"{name}_ebbgate": SHARE_GOAL}


def _metrics(total: Gain) -> dict[str, float]:
    return {
        "utility_s": total.utility_ns / NS_PER_S,
        "drained_s": total.drained_ns / NS_PER_S,
        "disturbed": float(total.disturbed),
    }


def _words(metrics: Mapping[str, float]) -> str:
    return "".join(f"  {name} {value:9.1f}" for name, value in metrics.items())


def _summary(volumes: Volumes) -> str:
    return "; ".join(_volume_summary(*each) for each in volumes.items())


def _volume_summary(device: str, gaps: Sequence[Gap]) -> str:
    total_s = sum(gap.length_ns for gap in gaps) / NS_PER_S
    return f"device {device}: {len(gaps)} gaps of {total_s:.0f} s in all"


SCENARIO = Scenario(
    "trace-gaps",
    "ebbgate gets 0.87 of what could be drained in the gaps of a real trace (TRACE=FILE)",
    0.1,
    run,
)
