# SPDX-License-Identifier: GPL-2.0-only
"""Options and description of a scenario. I/O: progress on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.bench.report import Report


@dataclass(frozen=True, slots=True)
class Context:
    """Options of a run: how often, with which seed, which variant of the scenario (empty: all)."""

    repetitions: int
    seed: int
    variant: str = ""
    started: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Print progress."""
        minutes, seconds = divmod(int(time.monotonic() - self.started), 60)
        print(f"[{minutes:02d}:{seconds:02d}] {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named claim. `minutes`: of one repetition, on two cores without KVM."""

    name: str
    claim: str
    minutes: float
    run: Callable[[Context], Report]
    variants: tuple[str, ...] = ()
