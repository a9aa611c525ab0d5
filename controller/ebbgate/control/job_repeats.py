# SPDX-License-Identifier: GPL-2.0-only
"""Tells which jobs on one volume's knobs have failed and are to be repeated, and when. No I/O.

Jobs report on the worker's thread, and the event loop asks: each call is one operation on a set or
a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from ebbgate.knobs.catalog import NR_REQUESTS, SCHEDULER, WBT
from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.units import NS_PER_S

BAD: Final = frozenset({OutcomeKind.FAILED, OutcomeKind.REFUSED})
_AGAIN: Final = frozenset({OutcomeKind.FAILED, OutcomeKind.TOO_SOON})
_PATIENT_NS: Final = 60 * NS_PER_S
"""The journal may take 10 s to refuse, and a queue must be empty for each change."""
_GATE: Final = "gate"


class JobRepeats:
    """The jobs that are to be repeated, by name. `now_ns`: CLOCK_MONOTONIC."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._again: set[str] = set()
        self._due_ns: dict[str, int] = {}

    def begun(self, name: str) -> None:
        """Note that a job runs (again)."""
        self._again.discard(name)
        self._due_ns.pop(name, None)

    def request(self, name: str) -> None:
        """Have a job repeated at the next look."""
        self._again.add(name)

    def is_due(self, name: str) -> bool:
        """Is this job to be repeated now?"""
        due_ns = self._due_ns.get(name)
        return name in self._again or (due_ns is not None and self._now_ns() >= due_ns)

    def plan_gate(self, outcomes: Iterable[Outcome], lacking: Collection[str]) -> None:
        """Have the gate set again later where a write of it was refused, as by the journal."""
        self.begun(_GATE)
        self._plan_refused(_GATE, outcomes, lacking)

    @property
    def gate_is_due(self) -> bool:
        """Is a gate that was refused to be set again now?"""
        return self.is_due(_GATE)

    @property
    def gate_is_refused(self) -> bool:
        """Was a write of the last gate refused?"""
        return _GATE in self._due_ns

    def _plan_refused(
        self, name: str, outcomes: Iterable[Outcome], lacking: Collection[str]
    ) -> None:
        kinds = {outcome.kind for outcome in outcomes if outcome.action.knob not in lacking}
        if OutcomeKind.REFUSED in kinds:
            self._due_ns[name] = self._now_ns() + _PATIENT_NS

    def plan(
        self, name: str, outcomes: Collection[Outcome], lacking: Collection[str], scheduler: str
    ) -> None:
        """Have a job that failed repeated: one that was refused, or of the disks' queues, not at
        every look.

        `lacking`: knobs that this kernel does not have. `scheduler`: the one that was requested.
        """
        if name not in (SCHEDULER, NR_REQUESTS, WBT):
            if any(outcome.kind in _AGAIN for outcome in outcomes):
                self._again.add(name)
            self._plan_refused(name, outcomes, lacking)
            return
        kinds = {outcome.kind for outcome in outcomes if outcome.action.knob not in lacking}
        if name == SCHEDULER and scheduler:
            # A kernel without that scheduler would search its module at each try.
            kinds.discard(OutcomeKind.FAILED)
        if not kinds.isdisjoint(BAD):
            self._due_ns[name] = self._now_ns() + _PATIENT_NS
        if OutcomeKind.TOO_SOON in kinds:
            self._again.add(name)
