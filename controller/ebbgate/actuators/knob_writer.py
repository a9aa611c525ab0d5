# SPDX-License-Identifier: GPL-2.0-only
"""Writes the knobs of one volume: clamped, journalled, and never against an administrator.

I/O: sysfs and device-mapper writes. Not thread-safe but for `interrupt`: one thread owns a
writer (actuators.gate_worker).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Event

from ebbgate.actuators import ownership
from ebbgate.actuators.bcache_steps import Step, StepKind
from ebbgate.actuators.gate_plan import GatePlan, plan_for
from ebbgate.actuators.owned_knob import Journal, OwnedKnob
from ebbgate.actuators.ownership import Owner
from ebbgate.kernel.sysfs import Sysfs, is_gone
from ebbgate.knobs.catalog import (
    BY_NAME,
    TABLE,
    THRESHOLD,
    knob_path,
    same_value,
)
from ebbgate.knobs.knob import Knob, parse_value
from ebbgate.model.decision import Action, JournalEntry, Outcome, OutcomeKind
from ebbgate.model.volume import Volume
from ebbgate.probes.dm_status import table_threshold_sectors
from ebbgate.units import NS_PER_S

_TAKE_OVER_TRIES = 3


@dataclass(frozen=True, slots=True)
class Reason:
    """Who wants a write and why; for the log and the journal.

    `decision`: the number of the decision behind it, as its loop counts them.
    """

    strategy: str
    text: str
    decision: int | None = None


@dataclass(slots=True)
class KnobWriter:
    """The knobs of one volume. `owned`: those that ebbgate has written and not put back.

    `manual`: knobs that somebody else wrote while they were owned; left alone until released.
    `pinned`: knobs that have the value that a person asked for; no strategy writes them.
    `lacking`: knobs that this kernel does not have. `current_write`: the knob that is being
    written, and since when; `reading_since_ns`: since when the volume is being read.
    """

    sysfs: Sysfs
    volume: Volume
    journal: Journal
    boot_id: str
    wall_ns: Callable[[], int] = time.time_ns
    now_ns: Callable[[], int] = time.monotonic_ns
    owned: dict[str, OwnedKnob] = field(default_factory=dict)
    manual: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)
    lacking: set[str] = field(default_factory=set)
    interrupt: Event = field(default_factory=Event)
    current_write: tuple[str, int] | None = None
    reading_since_ns: int | None = None
    plan: GatePlan = field(init=False)
    _paths: dict[str, str | None] = field(default_factory=dict)
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

    def release(self, knobs: Iterable[str], reason: Reason) -> list[Outcome]:
        """Put the originals of these knobs back, as far as we hold them.

        A knob that is gone, or that somebody else has written since, is left as it is. One that
        cannot be asked or written stays held.
        """
        outcomes = []
        for knob in knobs:
            mine = self.owned.get(knob)
            if mine is not None:
                outcomes += self._release_one(knob, mine, reason)
        return outcomes

    def _release_one(self, knob: str, mine: OwnedKnob, reason: Reason) -> list[Outcome]:
        if knob == THRESHOLD:
            self.refresh_table_threshold()
        action = self._action(knob, mine.written, mine.original, reason)
        try:
            found = ownership.look(self.sysfs, mine.entry, mine.ours)
        except OSError as error:
            return [self._outcome(action, OutcomeKind.FAILED, str(error))]
        if found.owner is Owner.GONE:
            self._let_go(knob, found.why)
            return []
        if found.owner is Owner.ORIGINAL:
            self._let_go(knob, "it has its original already")
            return []
        if found.owner is Owner.FOREIGN and knob == TABLE:
            self._let_go(knob, "another table was loaded since")
            return []
        if found.owner is not Owner.OURS:
            return [self._somebody_else_s(action, found.value)]
        if self.journal.disclaim(mine.entry):
            self._let_go(knob, "another volume of the cache set holds it")
            return []
        self._paths[knob] = found.path
        outcome = self._put(action, read_back=not BY_NAME[knob].kernel_writes)
        if outcome.kind is OutcomeKind.FAILED:
            self.journal.reclaim(mine.entry)
            self._made_of_it(mine, outcome)
        else:
            self._let_go(knob, "restored")
        return [outcome]

    def _somebody_else_s(self, action: Action, value: str) -> Outcome:
        """It is left alone from now on, and the journal does not speak of it any more."""
        self.manual.add(action.knob)
        self._let_go(action.knob, f"manual: found {value}")
        why = f"somebody else has changed it to {value}: it is left as it is"
        return replace(self._outcome(action, OutcomeKind.MANUAL, why), read_back=value)

    def _let_go(self, knob: str, how: str) -> None:
        del self.owned[knob]
        self.journal.close(self.volume.name, knob, how)

    def adopt(self, entry: JournalEntry, values: tuple[str, str]) -> None:
        """Hold a knob that an earlier daemon left. `values`: what that may have written last."""
        self.owned[entry.knob] = OwnedKnob(entry, values[0], self.now_ns(), values[1])

    def on_table_reload(self, seen: Mapping[str, str]) -> None:
        """The kernel started over with its own values: our last writes are gone, by no one's hand.
        A value that is neither ours nor what it was before us came with another table: it is what
        will be put back.

        Only for a moment at which no write is under way.
        """
        for knob, mine in list(self.owned.items()):
            value = seen.get(knob, mine.written)
            if mine.is_ours(value) or same_value(knob, mine.original, value):
                mine.written, mine.tried = value, None
                continue
            self._let_go(knob, f"another table was loaded: {value}")

    def refresh_table_threshold(self) -> list[Outcome]:
        """Another table was loaded: the threshold in it is the one to put back, also where it is
        the very value that we hold. On the knobs' thread: the journal is waited for.
        """
        mine, table = self.owned.get(THRESHOLD), self._path(TABLE)
        if mine is None or table is None:
            return []
        try:
            params = self.sysfs.read(table).split(maxsplit=3)[-1]
            original, mapping = table_threshold_sectors(params), self.volume.mapping
            if original is None or mapping is None or params == mapping.params:
                return []
            if str(original) != mine.original:
                self.journal.close(self.volume.name, THRESHOLD, "another table was loaded")
                entry = replace(mine.entry, original=str(original), at_unix_ns=self.wall_ns())
                mine.entry = self.journal.put(entry)
                self.journal.writing(mine.entry, mine.written, mine.written)
        except OSError as error:
            action = self._action(THRESHOLD, None, mine.written, Reason("restore", "a new table"))
            return [self._outcome(action, OutcomeKind.FAILED, str(error))]
        return []

    def clear_manual(self, knob: str | None = None) -> None:
        """A person gave the knob back to us; all of them without a name."""
        if knob is None:
            self.manual.clear()
        else:
            self.manual.discard(knob)

    def restore_manual(self, knob: str, value: str) -> bool:
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
        for knob, mine in list(self.owned.items()):
            value = seen.get(knob)
            if BY_NAME[knob].kernel_writes or value is None or mine.is_ours(value):
                continue
            self.manual.add(knob)
            self._let_go(knob, f"manual: found {value}")
            taken.append(knob)
        return taken

    def _write(self, step: Step, reason: Reason) -> Outcome:
        mine = self.owned.get(step.knob)
        if step.note:
            reason = replace(reason, text=f"{reason.text} ({step.note})")
        action = self._action(step.knob, mine.written if mine else None, step.value, reason)
        knob = BY_NAME.get(step.knob)
        if knob is None or not knob.written:
            return self._outcome(action, OutcomeKind.REFUSED, "ebbgate never writes it")
        if self._too_soon(knob):
            return self._outcome(action, OutcomeKind.TOO_SOON)
        if knob.trigger:
            return self._put(action)
        if step.knob in self.manual:
            return self._outcome(action, OutcomeKind.MANUAL)
        if mine is None:
            return self._first_write(step, action)
        if self._has_it(step, mine):
            return self._outcome(action, OutcomeKind.UNCHANGED)
        foreign = self._foreign(action, mine) if knob.verified else None
        return foreign or self._write_held(action, mine)

    def _first_write(self, step: Step, action: Action) -> Outcome:
        refused = self._take_over(action)
        if refused is not None:
            return refused
        mine = self.owned[step.knob]
        action = replace(action, old=mine.written)
        exact = not BY_NAME[step.knob].form.rounded and step.knob != TABLE
        if exact and mine.written == step.value and not step.always:
            return self._outcome(action, OutcomeKind.UNCHANGED)
        return self._write_held(action, mine)

    def _has_it(self, step: Step, mine: OwnedKnob) -> bool:
        """Would a write change nothing?"""
        sure = mine.tried is None and not BY_NAME[step.knob].kernel_writes
        return sure and mine.written == step.value and not step.always

    def _write_held(self, action: Action, mine: OwnedKnob) -> Outcome:
        """One more value of a knob whose original is journalled."""
        try:
            self.journal.writing(mine.entry, action.new, mine.written)
        except OSError as error:
            return self._not_kept(action, error)
        outcome = self._put(action, read_back=BY_NAME[action.knob].verified)
        if outcome.kind is OutcomeKind.CHANGED:
            mine.written, mine.tried = action.new, None
        else:
            self._made_of_it(mine, outcome)
        return outcome

    def _made_of_it(self, mine: OwnedKnob, outcome: Outcome) -> None:
        """After a write that failed: what the kernel made of it is nobody else's value."""
        if outcome.read_back is None:
            mine.tried = outcome.action.new
            return
        mine.written, mine.tried = outcome.read_back, None
        with suppress(OSError):
            self.journal.writing(mine.entry, mine.written, outcome.action.new)

    def _not_kept(self, action: Action, error: OSError) -> Outcome:
        return self._outcome(action, OutcomeKind.REFUSED, f"the journal is not writable: {error}")

    def _foreign(self, action: Action, mine: OwnedKnob) -> Outcome | None:
        """Has somebody else written the knob since the last look at it? None: no.

        Not for knobs of a gate: a request waits for their writes.
        """
        try:
            found = ownership.look(self.sysfs, mine.entry, mine.ours)
        except OSError as error:
            return self._outcome(action, OutcomeKind.FAILED, str(error))
        if found.owner is Owner.GONE:
            return self._outcome(action, OutcomeKind.FAILED, found.why)
        return self._somebody_else_s(action, found.value) if found.owner is Owner.FOREIGN else None

    def _too_soon(self, knob: Knob) -> bool:
        """Was this knob written so short a time ago that it must not be written again?"""
        last_ns = self._written_ns.get(knob.name)
        return last_ns is not None and self.now_ns() - last_ns < knob.interval_ns

    def _take_over(self, action: Action) -> Outcome | None:
        """First contact with a knob: its original is safe before anything is written.

        Looked at once more after that: the disk may take its time, and what an administrator writes
        meanwhile is the original then.
        """
        for _ in range(_TAKE_OVER_TRIES):
            entry = self._entry(action)
            if isinstance(entry, Outcome):
                return entry
            try:
                kept = self.journal.put(entry)
            except OSError as error:
                return self._not_kept(action, error)
            self.owned[action.knob] = OwnedKnob(kept, entry.original, self.now_ns())
            try:
                now = self._reads(action.knob)
            except OSError as error:
                return self._outcome(action, OutcomeKind.FAILED, str(error))
            if BY_NAME[action.knob].kernel_writes or now in (entry.original, None):
                return None
            self._let_go(action.knob, "somebody else changed it before it was written")
        return self._outcome(action, OutcomeKind.TOO_SOON, "somebody else is writing it")

    def _entry(self, action: Action) -> JournalEntry | Outcome:
        """What the knob has now, or why that is not known."""
        path = self._path(action.knob)
        try:
            original = self._reads(action.knob)
            if path is None or original is None:
                self.lacking.add(action.knob)
                return self._outcome(action, OutcomeKind.REFUSED, "this kernel has no such knob")
            device = ownership.identify(self.sysfs, path)
        except OSError as error:
            return self._outcome(action, OutcomeKind.FAILED, str(error))
        value = (self.volume.name, action.knob, path, original, action.new)
        wanted = (action.strategy, action.reason)
        return JournalEntry(*value, self.boot_id, self.wall_ns(), *wanted, *device)

    def _reads(self, knob: str) -> str | None:
        """The value now; None where there is no such knob. Raises OSError for any other error."""
        path = self._path(knob)
        try:
            text = self.sysfs.read(path) if path else None
        except OSError as error:
            if not is_gone(error):
                raise
            return None
        return None if text is None else parse_value(BY_NAME[knob].form, text)

    def _path(self, knob: str) -> str | None:
        if knob not in self._paths:
            self._paths[knob] = knob_path(self.volume, knob)
        return self._paths[knob]

    def _put(self, action: Action, *, read_back: bool = False) -> Outcome:
        path = self._path(action.knob)
        if path is None:
            return self._outcome(action, OutcomeKind.REFUSED, "no cache is attached")
        self.current_write = (action.knob, self.now_ns())
        try:
            self.sysfs.write_text(path, action.new)
        except OSError as error:
            return self._outcome(action, OutcomeKind.FAILED, str(error))
        finally:
            self.current_write = None
        if BY_NAME[action.knob].interval_ns:
            self._written_ns[action.knob] = self.now_ns()
        if not read_back:
            return self._outcome(action, OutcomeKind.CHANGED)
        try:
            seen = self._reads(action.knob)
        except OSError as error:
            why = f"it was written and could not be read back: {error}"
            return self._outcome(action, OutcomeKind.FAILED, why)
        if seen is None or same_value(action.knob, action.new, seen):
            return replace(self._outcome(action, OutcomeKind.CHANGED), read_back=seen)
        error_text = f"the kernel made {seen} of it"
        return replace(self._outcome(action, OutcomeKind.FAILED, error_text), read_back=seen)

    def _action(self, knob: str, old: str | None, new: str, reason: Reason) -> Action:
        by = (reason.strategy, reason.text, reason.decision)
        return Action(self.volume.name, knob, old, new, *by)

    def _outcome(self, action: Action, kind: OutcomeKind, error: str = "") -> Outcome:
        return Outcome(action, kind, self.now_ns(), error=error)
