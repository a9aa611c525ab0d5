# SPDX-License-Identifier: GPL-2.0-only
"""Options and description of a scenario. I/O: progress on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.report import Report, Runs


@dataclass(frozen=True, slots=True)
class Context:
    """Options of a run.

    `variant`: of the scenario; empty: all. `traces`: block traces for scenarios that take them.
    `earlier`: runs of a kept result, which this one adds to.
    """

    repetitions: int
    seed: int
    variant: str = ""
    traces: tuple[Path, ...] = ()
    earlier: Runs = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Print progress."""
        minutes, seconds = divmod(int(time.monotonic() - self.started), 60)
        print(f"[{minutes:02d}:{seconds:02d}] {text}", file=sys.stderr, flush=True)

    def interleaved(
        self, arms: Iterable[str], measure: Callable[[str, int], dict[str, float]]
    ) -> dict[str, list[dict[str, float]]]:
        """Measure each arm in each repetition, which `measure` gets; return the runs by arm.

        They begin with earlier ones, whose seeds are not used again. Each repetition begins with
        the next arm: what comes first in a boot may be slower or faster.
        """
        runs = {arm: [dict(run) for run in self.earlier.get(arm, ())] for arm in arms}
        names, first = tuple(runs), max(len(found) for found in runs.values())
        for repetition in range(first, first + self.repetitions):
            turn = repetition % len(names)
            for arm in names[turn:] + names[:turn]:
                self.say(f"{arm}, repetition {repetition + 1}")
                runs[arm].append(measure(arm, repetition))
                self.say("  " + "  ".join(f"{k} {v:.1f}" for k, v in runs[arm][-1].items()))
        return runs


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named claim. `minutes`: of one repetition, on two cores without KVM.

    `adds`: runs can be added to a kept result.
    """

    name: str
    claim: str
    minutes: float
    run: Callable[[Context], Report]
    variants: tuple[str, ...] = ()
    adds: bool = False
