# SPDX-License-Identifier: GPL-2.0-only
"""shifting-postgres: a PostgreSQL whose hot tables change, on a cache that holds a third of it.

Clients read rows of four tables, each row as likely as another; after each phase, of four
other tables. Arms: stock; the published way of moving files with three fixed shares of time;
`told`, which moves the hot tables at once, as fast as it can, since nothing has to be found out;
ebbgate.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from statistics import mean, median

from tests.bench.context import Context, Scenario
from tests.bench.postgres_volume import (
    PLACES,
    SHARES,
    TABLES,
    Phase,
    devices,
    moving,
    run_phase,
    served,
)
from tests.bench.report import Report, Runs, ratio
from tests.lab.guest import Guest


@dataclass(frozen=True, slots=True)
class Phases:
    """How often the hot tables change, and how many are hot."""

    count: int = 5
    seconds: int = 120
    hot: int = 4

    def hot_tables(self, seed: int) -> list[tuple[str, ...]]:
        """Return the tables of each phase; none is hot in two phases."""
        names = random.Random(seed).sample(TABLES.names, self.count * self.hot)
        return [tuple(names[n : n + self.hot]) for n in range(0, len(names), self.hot)]


PAIR = ("stock", "ebbgate")
LENGTHS = {
    "": Phases(),
    "pair": Phases(),
    "long": Phases(seconds=300),
    "fixed": Phases(),
    "short": Phases(count=3, seconds=45),
}
ARMS = {
    "": ("stock", *SHARES, "told", "ebbgate"),
    "pair": PAIR,
    "long": PAIR,
    "fixed": (*SHARES, "ebbgate"),
    "short": ("stock", "told", "ebbgate"),
}
"""Of each length. In `long` stock has time to cache its hot tables; `short` is there to see that it
works.
"""
VARIANTS = tuple("/".join((place, length)).strip("/") for place in PLACES for length in LENGTHS)
GOALS = {
    "bcache": {"speed_vs_stock": ">= 2", "to_90_vs_stock": "<= 0.25", "vs_best_fixed": ">= 1"},
    "dm-cache": {"speed_vs_stock": ">= 1.6", "to_90_vs_stock": "<= 0.5", "vs_best_fixed": ">= 1"},
}
WINDOW_S = 5
FINAL_S = 15


def measure(guest: Guest, variant: str, arm: str, seed: int) -> dict[str, float]:
    """Measure one arm on a fresh volume."""
    kind, filesystem, *length = variant.split("/")
    phases = LENGTHS["".join(length)]
    found = []
    with served(guest, f"{kind}/{filesystem}", arm) as where:
        for number, hot in enumerate(phases.hot_tables(seed)):
            files = [where.files[name] for name in hot]
            with moving(guest, where.stack, None, files) if arm == "told" else nullcontext():
                found.append(run_phase(guest, where, hot, phases.seconds, 100 * seed + number))
    return figures(found)


def figures(found: Sequence[Phase]) -> dict[str, float]:
    """Return the speed and the time to 90 % over the phases after the first, and what they are of.

    Only then has the cache something else to forget.
    """
    later = found[1:]
    speeds = [mean(phase.per_s) for phase in found]
    return {
        "tps": mean(speeds[1:]),
        "to_90_s": median(seconds_to(phase.per_s, 0.9) for phase in later),
        "final_tps": mean(final_speed(phase.per_s) for phase in later),
        "disk_reads_per_s": mean(phase.disk_reads / len(phase.per_s) for phase in later),
        **{f"phase_{number}_tps": speed for number, speed in enumerate(speeds, start=1)},
    }


def final_speed(per_s: Sequence[float]) -> float:
    """Return the speed at the end of a phase."""
    return mean(per_s[-FINAL_S:])


def seconds_to(per_s: Sequence[float], share: float) -> float:
    """Return when a few seconds were, on average, as fast as this share of the final speed."""
    goal = share * final_speed(per_s)
    for end in range(WINDOW_S, len(per_s) + 1):
        if mean(per_s[end - WINDOW_S : end]) >= goal:
            return float(end)
    return float(len(per_s))


def variant_ratios(runs: Runs) -> dict[str, float]:
    """Return the figures that have goals."""
    found = {}
    if "stock" in runs:
        found["speed_vs_stock"] = ratio(runs, "ebbgate", "stock", "tps")
        found["to_90_vs_stock"] = ratio(runs, "ebbgate", "stock", "to_90_s")
    if set(SHARES) <= set(runs):
        best = max(SHARES, key=lambda arm: median(run["tps"] for run in runs[arm]))
        found["vs_best_fixed"] = ratio(runs, "ebbgate", best, "tps")
    return found


def run(context: Context) -> Report:
    """Run the variant; its arms are interleaved in one boot."""
    variant = context.variant or VARIANTS[0]
    kind, _, *length = variant.split("/")
    with Guest(devices()) as guest:
        runs = context.interleaved(
            ARMS["".join(length)],
            lambda arm, n: measure(guest, variant, arm, context.seed + n),
        )
    ratios = variant_ratios(runs)
    goals = {name: goal for name, goal in GOALS[kind].items() if name in ratios}
    return Report("shifting-postgres", runs, ratios, goals)


SCENARIO = Scenario(
    "shifting-postgres",
    "hot tables of a PostgreSQL change: twice as fast as a stock bcache, 1.6 times as dm-cache",
    70,
    run,
    VARIANTS,
)
