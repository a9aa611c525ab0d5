# SPDX-License-Identifier: GPL-2.0-only
"""Writes the knobs of one volume: clamped, journalled, and never against an administrator.

I/O: sysfs and device-mapper writes. Not thread-safe but for `interrupt`: one thread owns a hand
(actuators.gate_thread).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Protocol

from ebbgate.actuators.bounds import BOUNDS, INTERVAL_NS_MIN
from ebbgate.actuators.plan import (
    FAST,
    KERNEL_WRITES,
    TRIGGERS,
    Step,
    StepKind,
)
from ebbgate.actuators.plans import Plan, plan_for
from ebbgate.model.decision import Action, JournalEntry, Outcome, OutcomeKind
from ebbgate.model.volume import Volume
from ebbgate.probes.dm_knobs import FLUSH, TABLE
from ebbgate.probes.knob import parse_value
from ebbgate.probes.knobs import BY_NAME, knob_path, same_value
from ebbgate.sysfs import Sysfs
from ebbgate.units import NS_PER_S

_WRITABLE = frozenset({*BOUNDS, TABLE, FLUSH})


class Journal(Protocol):
    """Where originals are kept: durable before `put` returns."""

    def put(self, entry: JournalEntry) -> JournalEntry:
        """Keep an original; the entry that is in force. Raises OSError when it cannot be made
        durable.
        """

    def close(self, volume: str, knob: str, how: str) -> None:
        """The original is back, or must not be put back any more."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Who wants a write and why; for the log and the journal.

    `decision`: the number of the decision behind it, as its loop counts them.
    """

    strategy: str
    text: str
    decision: int | None = None


@dataclass(slots=True)
class _Held:
    """A knob that we wrote: its original and our last value, in the unit in which it is taken.

    `taken_ns`: when the original was journalled.
    """

    original: str
    written: str
    taken_ns: int


@dataclass(slots=True)
class Hand:
    """The knobs of one volume. `held`: those that are not the kernel's or administrator's any more.

    `manual`: knobs that somebody else wrote while we held them; left alone until released.
    `pinned`: knobs whose value a person asked for: held, and no strategy's meanwhile.
    `lacking`: knobs that this kernel turned out not to have.
    """

    sysfs: Sysfs
    volume: Volume
    journal: Journal
    boot_id: str
    wall_ns: Callable[[], int] = time.time_ns
    now_ns: Callable[[], int] = time.monotonic_ns
    held: dict[str, _Held] = field(default_factory=dict)
    manual: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)
    lacking: set[str] = field(default_factory=set)
    interrupt: Event = field(default_factory=Event)
    plan: Plan = field(init=False)
    _paths: dict[str, Path | None] = field(default_factory=dict)
    _written_ns: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plan = plan_for(self.volume)

    def apply(self, steps: Iterable[Step], reason: Reason) -> list[Outcome]:
        """Carry the steps out in order; a failure ends the plan. A sleep ends early on
        `interrupt`.
        """
        outcomes: list[Outcome] = []
        for step in steps:
            if step.kind is StepKind.SLEEP:
                self.interrupt.wait(step.sleep_ns / NS_PER_S)
                continue
            outcome = self._write(step, reason)
            outcomes.append(outcome)
            if outcome.kind in (OutcomeKind.FAILED, OutcomeKind.REFUSED, OutcomeKind.MANUAL):
                break
        return outcomes

    def release(
        self, knobs: Iterable[str], reason: Reason, *, only_ours: bool = False
    ) -> list[Outcome]:
        """Put the originals of these knobs back, as far as we hold them.

        `only_ours`: a knob that no longer has our value, or is gone, is left as it is. So is
        a table in any case: what was changed since must not be mapped as before.
        """
        outcomes = []
        for knob in knobs:
            mine = self.held.get(knob)
            if mine is None:
                continue
            lost = self._lost(knob, mine) if only_ours or knob == TABLE else ""
            if lost:
                del self.held[knob]
                self.journal.close(self.volume.name, knob, lost)
                continue
            action = self._action(knob, mine.written, mine.original, reason)
            outcome = self._put(action, read_back=knob not in KERNEL_WRITES)
            if outcome.kind is not OutcomeKind.FAILED:
                del self.held[knob]
                self.journal.close(self.volume.name, knob, "restored")
            outcomes.append(outcome)
        return outcomes

    def loaded_anew(self, seen: Mapping[str, str]) -> None:
        """The kernel started over with its own values: our last writes are gone, by no one's hand.
        A value that is neither ours nor what it was before us came with another table: it is what
        will be put back.

        Only for a moment at which no write is under way.
        """
        for knob, mine in list(self.held.items()):
            value = seen.get(knob, mine.written)
            if any(same_value(knob, known, value) for known in (mine.written, mine.original)):
                mine.written = value
                continue
            del self.held[knob]
            self.journal.close(self.volume.name, knob, f"another table was loaded: {value}")

    def forget_manual(self, knob: str | None = None) -> None:
        """A person gave the knob back to us; all of them without a name."""
        if knob is None:
            self.manual.clear()
        else:
            self.manual.discard(knob)

    def still_manual(self, knob: str, value: str) -> bool:
        """Leave the knob alone if it has this value, which somebody else wrote in an earlier life
        of the daemon; at another one it was given back, or the kernel has started over.
        """
        path = self._path(knob)
        text = self.sysfs.read_text(path) if path else None
        same = text is not None and parse_value(BY_NAME[knob].form, text) == value
        if same:
            self.manual.add(knob)
        return same

    @property
    def gate_is_ours(self) -> bool:
        """May the gate be driven? Its knobs make sense only together."""
        return self.manual.isdisjoint(self.plan.knobs) and self.pinned.isdisjoint(self.plan.knobs)

    def check_manual(self, seen: Mapping[str, str]) -> list[str]:
        """Knobs whose value is not what we wrote last: somebody else's now. Returns the new ones.

        Only for a moment at which no write is under way; the kernel's own writes do not count.
        """
        taken = []
        for knob, mine in list(self.held.items()):
            value = seen.get(knob)
            if knob in KERNEL_WRITES or value is None or same_value(knob, mine.written, value):
                continue
            del self.held[knob]
            self.manual.add(knob)
            self.journal.close(self.volume.name, knob, f"manual: found {value}")
            taken.append(knob)
        return taken

    def _lost(self, knob: str, mine: _Held) -> str:
        """Why there is nothing to put back; empty where our value is still there."""
        path = self._path(knob)
        text = self.sysfs.read_text(path) if path else None
        if text is None:
            return "the device is gone, and the knob with it"
        seen = parse_value(BY_NAME[knob].form, text)
        ours = knob in KERNEL_WRITES or same_value(knob, mine.written, seen)
        return "" if ours else f"changed by something else to {seen}"

    def _write(self, step: Step, reason: Reason) -> Outcome:
        mine = self.held.get(step.knob)
        if step.note:
            reason = replace(reason, text=f"{reason.text} ({step.note})")
        action = self._action(step.knob, mine.written if mine else None, step.value, reason)
        if step.knob not in _WRITABLE:
            return self._outcome(action, OutcomeKind.REFUSED, "ebbgate never writes it")
        if self._too_soon(step.knob):
            return self._outcome(action, OutcomeKind.TOO_SOON)
        if step.knob in TRIGGERS:
            return self._put(action)
        if step.knob in self.manual:
            return self._outcome(action, OutcomeKind.MANUAL)
        if mine is None:
            refused = self._take_over(action)
            if refused is not None:
                return refused
            mine = self.held[step.knob]
            action = replace(action, old=mine.written)
            exact = not BY_NAME[step.knob].form.rounded and step.knob != TABLE
            if exact and mine.written == step.value and not step.always:
                return self._outcome(action, OutcomeKind.UNCHANGED)
        elif mine.written == step.value and not step.always and step.knob not in KERNEL_WRITES:
            return self._outcome(action, OutcomeKind.UNCHANGED)
        outcome = self._put(action, read_back=step.knob not in FAST)
        if outcome.kind is OutcomeKind.CHANGED:
            self.held[step.knob].written = step.value
        elif outcome.read_back is not None:
            # What the kernel made of it: nobody else's hand.
            self.held[step.knob].written = outcome.read_back
        return outcome

    def _too_soon(self, knob: str) -> bool:
        """Was this knob written so short a time ago that it must not be written again?"""
        interval_ns = INTERVAL_NS_MIN.get(knob)
        if interval_ns is None:
            return False
        last_ns = self._written_ns.get(knob)
        return last_ns is not None and self.now_ns() - last_ns < interval_ns

    def _take_over(self, action: Action) -> Outcome | None:
        """First contact with a knob: its original is safe before anything is written."""
        path = self._path(action.knob)
        text = self.sysfs.read_text(path) if path else None
        if text is None:
            self.lacking.add(action.knob)
            return self._outcome(action, OutcomeKind.REFUSED, "this kernel has no such knob")
        original = parse_value(BY_NAME[action.knob].form, text)
        entry = JournalEntry(
            self.volume.name,
            action.knob,
            str(path),
            original,
            action.new,
            self.boot_id,
            self.wall_ns(),
            action.strategy,
            action.reason,
        )
        try:
            kept = self.journal.put(entry)
        except OSError as error:
            return self._outcome(
                action, OutcomeKind.REFUSED, f"the journal is not writable: {error}"
            )
        self.held[action.knob] = _Held(kept.original, original, self.now_ns())
        return None

    def _path(self, knob: str) -> Path | None:
        if knob not in self._paths:
            self._paths[knob] = knob_path(self.volume, knob)
        return self._paths[knob]

    def _put(self, action: Action, *, read_back: bool = False) -> Outcome:
        path = self._path(action.knob)
        if path is None:
            return self._outcome(action, OutcomeKind.REFUSED, "no cache is attached")
        try:
            self.sysfs.write_text(path, action.new)
        except OSError as error:
            return self._outcome(action, OutcomeKind.FAILED, str(error))
        if action.knob in INTERVAL_NS_MIN:
            self._written_ns[action.knob] = self.now_ns()
        if not read_back:
            return self._outcome(action, OutcomeKind.CHANGED)
        text = self.sysfs.read_text(path)
        seen = None if text is None else parse_value(BY_NAME[action.knob].form, text)
        if seen is None or same_value(action.knob, action.new, seen):
            return replace(self._outcome(action, OutcomeKind.CHANGED), read_back=seen)
        error_text = f"the kernel made {seen} of it"
        return replace(self._outcome(action, OutcomeKind.FAILED, error_text), read_back=seen)

    def _action(self, knob: str, old: str | None, new: str, reason: Reason) -> Action:
        return Action(
            self.volume.name, knob, old, new, reason.strategy, reason.text, reason.decision
        )

    def _outcome(self, action: Action, kind: OutcomeKind, error: str = "") -> Outcome:
        return Outcome(action, kind, self.now_ns(), error=error)
