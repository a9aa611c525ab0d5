# SPDX-License-Identifier: GPL-2.0-only
"""Options and description of a scenario. I/O: progress on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.report import Report


@dataclass(frozen=True, slots=True)
class Context:
    """Options of a run.

    `variant`: of the scenario; empty: all. `traces`: block traces for scenarios that take them.
    """

    repetitions: int
    seed: int
    variant: str = ""
    traces: tuple[Path, ...] = ()
    started: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Print progress."""
        minutes, seconds = divmod(int(time.monotonic() - self.started), 60)
        print(f"[{minutes:02d}:{seconds:02d}] {text}", file=sys.stderr, flush=True)

    def interleaved(
        self, arms: Iterable[str], measure: Callable[[str, int], dict[str, float]]
    ) -> dict[str, list[dict[str, float]]]:
        """Measure each arm in each repetition, which `measure` gets; return the runs by arm."""
        runs: dict[str, list[dict[str, float]]] = {arm: [] for arm in arms}
        for repetition in range(self.repetitions):
            for arm, found in runs.items():
                self.say(f"{arm}, repetition {repetition + 1}")
                found.append(measure(arm, repetition))
                self.say("  " + "  ".join(f"{k} {v:.1f}" for k, v in found[-1].items()))
        return runs


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named claim. `minutes`: of one repetition, on two cores without KVM."""

    name: str
    claim: str
    minutes: float
    run: Callable[[Context], Report]
    variants: tuple[str, ...] = ()
