# SPDX-License-Identifier: GPL-2.0-only
"""The kept results as Markdown tables: all in RESULTS.md, some in the README. I/O: reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench.context import Scenario
from tests.bench.report import holds

SHORT = (
    ("demo-10", ""),
    ("gap-drain", "64k/mq-deadline/ahci-through"),
    ("gap-drain", "64k/bfq/ahci-through"),
    ("gap-drain", "64k/bfq/ahci"),
    ("gap-drain-dmcache", "2.5s/bfq/ahci-through"),
    ("gap-drain-dmcache", "2.5s/mq-deadline/ahci"),
    ("trace-gaps", ""),
    ("mixed-stream", ""),
    ("edge-latency", ""),
    ("nas-sleep-night", ""),
    ("admin-wins", ""),
    ("kill9-random", "20"),
    ("stop-anywhere", "files"),
    ("hostile-client", "10min"),
    ("footprint", ""),
    ("probe-cost", ""),
)
"""Scenarios and variants in the README: what an administrator asks first."""
HEAD = ("| command | figures (goal) |", "|---|---|")


def file_name(scenario: str, variant: str) -> str:
    """Where a result is kept."""
    return scenario + ("-" + variant.replace("/", "-") if variant else "") + ".json"


def markdown(scenarios: Iterable[Scenario], folder: Path) -> str:
    """Return the table of all kept results."""
    rows = (row for scenario in scenarios for row in _rows(scenario, folder))
    return "\n".join((*HEAD, *rows))


def short(scenarios: Mapping[str, Scenario], folder: Path) -> str:
    """Return the table of the README."""
    rows = (_row(scenarios[name], variant, folder) for name, variant in SHORT)
    return "\n".join((*HEAD, *filter(None, rows)))


def _rows(scenario: Scenario, folder: Path) -> Iterator[str]:
    return filter(None, (_row(scenario, each, folder) for each in ("", *scenario.variants)))


def _row(scenario: Scenario, variant: str, folder: Path) -> str:
    """Return one row; empty without a kept result."""
    path = folder / file_name(scenario.name, variant)
    if not path.exists():
        return ""
    option = f" V={variant}" if variant else ""
    document = json.loads(path.read_text())
    count = max(map(len, document.get("runs", {}).values()), default=1)
    runs = f", median of {count}" if scenario.adds and count > 1 else ""
    return f"| `make bench S={scenario.name}{option}`{runs} | {_figures(document, variant)} |"


def _figures(document: dict[str, Any], variant: str) -> str:
    ratios = document["ratios"]
    return "; ".join(
        f"{name.removeprefix(variant).strip()} {_figure(ratios.get(name))} ({goal})"
        + ("" if holds(goal, ratios.get(name)) else " **missed**")
        for name, goal in document["goals"].items()
    )


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
