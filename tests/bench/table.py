# SPDX-License-Identifier: GPL-2.0-only
"""The kept results as one Markdown table, for the README. I/O: reads tests/bench/results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.bench.context import Scenario
from tests.bench.report import holds

HEAD = ("| scenario | command | figures (goal) | met |", "|---|---|---|---|")


def file_name(scenario: str, variant: str) -> str:
    """Where a result is kept."""
    return scenario + ("-" + variant.replace("/", "-") if variant else "") + ".json"


def markdown(scenarios: Iterable[Scenario], folder: Path) -> str:
    """The whole table; a scenario without a result is named as such."""
    rows = (row for scenario in scenarios for row in _rows(scenario, folder))
    return "\n".join((*HEAD, *rows))


def _rows(scenario: Scenario, folder: Path) -> Iterator[str]:
    kept = [v for v in ("", *scenario.variants) if (folder / file_name(scenario.name, v)).exists()]
    if not kept:
        yield f"| {scenario.name} | `make bench S={scenario.name}` | not kept yet | |"
    for variant in kept:
        document = json.loads((folder / file_name(scenario.name, variant)).read_text())
        option = f" V={variant}" if variant else ""
        name = f"{scenario.name}{' ' if variant else ''}{variant}"
        command = f"`make bench S={scenario.name}{option}`"
        met = "yes" if document["met"] else "no"
        yield f"| {name} | {command} | {_figures(document, variant)} | {met} |"


def _figures(document: dict[str, Any], variant: str) -> str:
    ratios = document["ratios"]
    return "<br>".join(
        f"{name.removeprefix(variant).strip()} {_figure(ratios.get(name))} ({goal})"
        + ("" if holds(goal, ratios.get(name)) else " **missed**")
        for name, goal in document["goals"].items()
    )


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
