# SPDX-License-Identifier: GPL-2.0-only
"""The result of a scenario: medians by arm and metric, ratios, goals. Pure."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
}

Runs = Mapping[str, Sequence[Mapping[str, float]]]
"""By arm, one set of metrics a repetition."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a scenario. `goals` name a ratio each: `<= 1.1`."""

    scenario: str
    runs: Runs
    ratios: Mapping[str, float]
    goals: Mapping[str, str]
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def met(self) -> bool:
        """Whether all goals are met."""
        return all(holds(goal, self.ratios.get(name)) for name, goal in self.goals.items())

    def document(self, machine: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON object that is printed and stored."""
        return {
            "scenario": self.scenario,
            "arms": {arm: medians(runs) for arm, runs in self.runs.items()},
            "runs": {arm: [_rounded(run) for run in runs] for arm, runs in self.runs.items()},
            "spread": {arm: spread(runs) for arm, runs in self.runs.items()},
            "ratios": {name: round(value, 4) for name, value in self.ratios.items()},
            "goals": dict(self.goals),
            "met": self.met,
            "missed": [n for n, g in self.goals.items() if not holds(g, self.ratios.get(n))],
            "notes": list(self.notes),
            **machine,
        }


def holds(goal: str, value: float | None) -> bool:
    """Return whether `value` satisfies a goal such as `<= 1.1`; an unknown value never does."""
    comparison, _, bound = goal.partition(" ")
    return value is not None and _COMPARE[comparison](value, float(bound))


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each metric over the repetitions."""
    return {name: round(median(values), 4) for name, values in _by_metric(runs).items()}


def spread(runs: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """The lowest and highest value of each metric."""
    found = _by_metric(runs).items()
    return {name: [round(min(values), 4), round(max(values), 4)] for name, values in found}


def _rounded(run: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in run.items()}


def kept_runs(document: Mapping[str, Any]) -> Runs:
    """Return the runs of a kept result, whose `document` may be from before they were kept.

    Raises ValueError if that was of several runs.
    """
    if "runs" in document:
        found: Runs = document["runs"]
        return found
    spreads = (each for arm in document["spread"].values() for each in arm.values())
    if any(low != high for low, high in spreads):
        raise ValueError("it has medians of several runs, but not the runs")
    return {arm: [run] for arm, run in document["arms"].items()}


def _by_metric(runs: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: [run[name] for run in runs if name in run] for name in names}


def ratio(runs: Runs, arm: str, base: str, metric: str, floor: float = 0.0) -> float:
    """The median of the ratios of paired repetitions; `floor` keeps a base of nothing finite."""
    pairs = zip(runs[arm], runs[base], strict=True)
    return median(ours[metric] / max(theirs[metric], floor) for ours, theirs in pairs)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that a share (0..1) of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
