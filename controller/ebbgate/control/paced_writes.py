# SPDX-License-Identifier: GPL-2.0-only
"""Remembers the writes of the pace of a gate, which the history leaves out. Any thread."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from ebbgate.model.decision import Outcome, OutcomeKind


class PacedWrites:
    """By knob, what a pace or a rest has set last since the gate was written."""

    def __init__(self) -> None:
        self._last: dict[str, Outcome] = {}
        self._lock = Lock()

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Remember writes that may soon be followed by others."""
        with self._lock:
            self._last |= _changed(outcomes)

    def take(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """Return and forget those that a write of the gate has left as they are.

        Without them the history would show the value from before for all the time to the next gap.
        """
        set_again = _changed(outcomes)
        with self._lock:
            last, self._last = self._last, {}
        return [outcome for knob, outcome in last.items() if knob not in set_again]


def _changed(outcomes: Iterable[Outcome]) -> dict[str, Outcome]:
    return {each.action.knob: each for each in outcomes if each.kind is OutcomeKind.CHANGED}
