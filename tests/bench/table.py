# SPDX-License-Identifier: GPL-2.0-only
"""The kept results as one Markdown table, for the README. I/O: reads tests/bench/results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.bench.context import Scenario
from tests.bench.report import holds

HEAD = ("| command | figures (goal) |", "|---|---|")


def file_name(scenario: str, variant: str) -> str:
    """Where a result is kept."""
    return scenario + ("-" + variant.replace("/", "-") if variant else "") + ".json"


def markdown(scenarios: Iterable[Scenario], folder: Path) -> str:
    """Return the table of all scenarios with a kept result."""
    rows = (row for scenario in scenarios for row in _rows(scenario, folder))
    return "\n".join((*HEAD, *rows))


def _rows(scenario: Scenario, folder: Path) -> Iterator[str]:
    for variant in ("", *scenario.variants):
        path = folder / file_name(scenario.name, variant)
        if path.exists():
            option = f" V={variant}" if variant else ""
            figures = _figures(json.loads(path.read_text()), variant)
            yield f"| `make bench S={scenario.name}{option}` | {figures} |"


def _figures(document: dict[str, Any], variant: str) -> str:
    ratios = document["ratios"]
    return "; ".join(
        f"{name.removeprefix(variant).strip()} {_figure(ratios.get(name))} ({goal})"
        + ("" if holds(goal, ratios.get(name)) else " **missed**")
        for name, goal in document["goals"].items()
    )


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
