# SPDX-License-Identifier: GPL-2.0-only
"""Writes the knobs of one volume: clamped, journalled, and never against an administrator.

I/O: sysfs and device-mapper writes. Only one thread may use a writer (actuators.gate_worker).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import call

from ebbgate.actuators import ownership
from ebbgate.actuators.bcache_steps import Step
from ebbgate.actuators.ownership import Found, OwnedKnob, Owner
from ebbgate.actuators.queue_length import write_value
from ebbgate.actuators.reason import Reason
from ebbgate.actuators.scheduler_settings import (
    expect_switch_back,
    is_settings,
    is_switched_back,
    put_back,
    scheduler_knob,
    settings_knob,
)
from ebbgate.actuators.scheduler_switch import is_length, is_scheduler, kept_length, length_knob
from ebbgate.actuators.table_threshold import refresh
from ebbgate.actuators.volume_knobs import STILL_USED, VolumeKnobs
from ebbgate.knobs.catalog import TABLE, THRESHOLD, find_knob, knob_row, same_value
from ebbgate.model.decision import (
    NOT_WRITTEN,
    RESTORE,
    Action,
    JournalEntry,
    LastWriteLost,
    Outcome,
    OutcomeKind,
)

_TAKE_OVER_TRIES = 3


@dataclass(slots=True)
class KnobWriter(VolumeKnobs):
    """Writes the knobs of one volume. `current_write`: the knob that is being written, and since
    when; `reading_since_ns`: since when the volume is being read. While `lend` waits for the
    journal, or `write_slowly` makes a write that may take long, another thread may close the gate.
    """

    wall_ns: Callable[[], int] = time.time_ns
    current_write: tuple[str, int] | None = None
    reading_since_ns: int | None = None
    lend: Callable[[], AbstractContextManager[object]] = nullcontext
    write_slowly: Callable[[Callable[[], None]], None] = call
    _written_ns: dict[str, int] = field(default_factory=dict)

    def apply(self, steps: Iterable[Step], reason: Reason) -> list[Outcome]:
        """Carry the steps out in order, up to the first failure."""
        outcomes: list[Outcome] = []
        for step in steps:
            outcome = self._write(step, reason)
            outcomes.append(outcome)
            if outcome.kind in NOT_WRITTEN:
                break
        return outcomes

    def claim(self, steps: Iterable[Step], reason: Reason) -> list[Outcome]:
        """Journal the originals of knobs that are not owned; write none. Return the failures."""
        failures: list[Outcome] = []
        for step in steps:
            if step.knob not in self.owned.keys() | self.manual | self.lacking:
                failure = self._take_over(self._action(step.knob, None, step.value, reason))
                if failure is None:
                    self.owned[step.knob].unwritten = True
                elif step.knob not in self.lacking:
                    failures.append(failure)
            if failures and failures[-1].kind is OutcomeKind.REFUSED:
                # The journal refuses, and may take as long for each of the others.
                break
        return failures

    def refuse(self, knob: str, value: str, reason: Reason, why: str) -> Outcome:
        """Return the outcome of a write that must not be tried."""
        return self._outcome(self._action(knob, None, value, reason), OutcomeKind.REFUSED, why)

    def release(self, knobs: Iterable[str], reason: Reason) -> list[Outcome]:
        """Restore the originals of these knobs, as far as they are owned.

        A knob that is gone, or that somebody else has written since, is left unchanged. One that
        cannot be read or written stays owned. A switch of the scheduler resets the queue's length
        and what the scheduler was set to. The gate's come first: a close that comes during a slow
        write is newer than their release.
        """
        outcomes = []
        for knob in sorted(knobs, key=self._order):
            owned = self.owned.get(knob)
            if owned is not None:
                release = self._release_settings if is_settings(knob) else self._release_one
                outcomes += release(knob, owned, reason)
        return outcomes

    def settle_lost(self, reason: Reason) -> list[Outcome]:
        """Restore entries of which the last written value is unknown, as far as a restore without a
        daemon does: once somebody has set the original, the entry is closed.
        """
        outcomes = []
        for knob, entry in list(self.lost.items()):
            action = self._action(knob, None, entry.original, reason)
            try:
                found = ownership.inspect(self.sysfs, entry, None)
            except OSError as error:
                outcomes.append(self._outcome(action, OutcomeKind.FAILED, str(error)))
                continue
            if found.owner is Owner.UNKNOWN:
                why = ownership.last_write_lost(found.value, entry.original)
                outcomes.append(self._outcome(action, OutcomeKind.FAILED, why))
                continue
            del self.lost[knob]
            self.adopt(entry, (entry.last_written, entry.last_written))
            outcomes += self.release((knob,), reason)
        return outcomes

    def _order(self, knob: str) -> tuple[bool, bool]:
        return knob not in self.plan.knobs, is_length(knob) or is_settings(knob)

    def _release_one(self, knob: str, owned: OwnedKnob, reason: Reason) -> list[Outcome]:
        if knob == THRESHOLD:
            self.refresh_table_threshold()
        action = self._action(knob, owned.written, owned.original, reason)
        with self._turn(knob):
            try:
                found = ownership.inspect(self.sysfs, owned.entry, self._ours_now(owned))
                after = self._next_value(owned, found)
            except OSError as error:
                return [self._outcome(action, OutcomeKind.FAILED, str(error))]
            if after is not None:
                action = replace(action, new=after[1], reason=f"{reason.text}; {after[0]} wants it")
                if after[1] == found.value:
                    self._disown(knob, "another volume of the cache set still uses it")
                    return []
            elif (kept := self._not_restored(action, found)) is not None:
                return kept
            return [self._put_back(action, owned, found)]

    def _not_restored(self, action: Action, found: Found) -> list[Outcome] | None:
        """Disown a knob that must not be restored, and return the outcomes; None: it must be."""
        knob, row = action.knob, knob_row(action.knob)
        if found.owner is Owner.GONE:
            self._disown(knob, found.why)
            return []
        if found.owner is Owner.ORIGINAL:
            self._disown(knob, ownership.ALREADY_ORIGINAL)
            return []
        if found.owner is Owner.FOREIGN and (why := self._whose(knob, found.value)):
            self._disown(knob, why)
            return []
        if found.owner is not Owner.OURS:
            return [self._make_manual(action, found.value)]
        if not row.set_wide and self.journal.claims.disclaim(self.owned[knob].entry):
            self._disown(knob, STILL_USED)
            return []
        return None

    def _put_back(self, action: Action, owned: OwnedKnob, found: Found) -> Outcome:
        """Write the original, or what another volume wants, and disown the knob."""
        knob = action.knob
        self._paths[knob] = found.path
        if is_scheduler(knob):
            expect_switch_back(self.journal, self.owned.get(settings_knob(knob)))
        outcome = self._store(action, read_back=not knob_row(knob).kernel_writes)
        if outcome.kind is OutcomeKind.FAILED:
            self.journal.claims.reclaim(owned.entry)
            self._after_failure(owned, outcome)
        else:
            self._disown(knob, "restored")
        return outcome

    def _release_settings(self, knob: str, owned: OwnedKnob, reason: Reason) -> list[Outcome]:
        """Put back what a scheduler was set to, once ebbgate has chosen it again."""
        if scheduler_knob(knob) in self.owned:
            return []
        action, done = self._action(knob, None, owned.original, reason), False
        if is_switched_back(owned.ours):
            try:
                done = put_back(self.sysfs, owned.entry, self.write_slowly)
            except OSError as error:
                return [self._outcome(action, OutcomeKind.FAILED, str(error))]
        self._disown(knob, "restored" if done else "nothing to put back")
        return [self._outcome(action, OutcomeKind.CHANGED)] if done else []

    def _make_manual(self, action: Action, value: str) -> Outcome:
        """Mark the knob manual and close its journal entry."""
        self.manual.add(action.knob)
        self._disown(action.knob, f"manual: found {value}")
        why = ownership.changed_by_others(value)
        return replace(self._outcome(action, OutcomeKind.MANUAL, why), read_back=value)

    def refresh_table_threshold(self, *, lends: bool = False) -> list[Outcome]:
        """Make the threshold of a table that was loaded since the original to restore.

        Also where it equals the value that ebbgate wrote. Waits for the journal: only on the
        worker's thread. `lends`: the gate may close meanwhile.
        """
        owned, table = self.owned.get(THRESHOLD), self._path(TABLE)
        if owned is None or table is None:
            return []
        lend = self.lend if lends else nullcontext
        try:
            refresh(self.sysfs, table, self.journal, owned, lend, self.wall_ns())
        except OSError as error:
            action = self._action(THRESHOLD, None, owned.written, Reason(RESTORE, "a new table"))
            return [self._outcome(action, OutcomeKind.FAILED, str(error))]
        return []

    def _write(self, step: Step, reason: Reason) -> Outcome:
        owned = self.owned.get(step.knob)
        if step.note:
            reason = replace(reason, text=f"{reason.text} ({step.note})")
        action = self._action(step.knob, owned.written if owned else None, step.value, reason)
        knob = find_knob(step.knob)
        if knob is None or not knob.written:
            return self._outcome(action, OutcomeKind.REFUSED, "ebbgate never writes it")
        if self._too_soon(step.knob, knob.interval_ns):
            return self._outcome(action, OutcomeKind.TOO_SOON)
        if knob.trigger:
            return self._store(action)
        if step.knob in self.manual:
            return self._outcome(action, OutcomeKind.MANUAL)
        if owned is None:
            return self._first_write(step, action)
        owned.unwritten = False
        with self._turn(step.knob):
            if other := self._want(step.knob, step.value):
                return self._outcome(action, OutcomeKind.UNCHANGED, other)
            sure = self._has_written(owned) and not knob.kernel_writes
            if sure and owned.written == step.value and not step.always:
                return self._outcome(action, OutcomeKind.UNCHANGED)
            foreign = self._written_by_others(action, owned) if knob.verified else None
            return foreign or self._write_owned(action, owned)

    def _first_write(self, step: Step, action: Action) -> Outcome:
        refused = self._take_over(action, step.made_from)
        if refused is not None:
            return refused
        owned = self.owned[step.knob]
        action = replace(action, old=owned.written)
        exact = not knob_row(step.knob).form.rounded and step.knob != TABLE
        with self._turn(step.knob):
            if other := self._want(step.knob, step.value):
                return self._outcome(action, OutcomeKind.UNCHANGED, other)
            same = self._has_written(owned) and owned.written == step.value
            if exact and same and not step.always:
                return self._outcome(action, OutcomeKind.UNCHANGED)
            return self._write_owned(action, owned)

    def _write_owned(self, action: Action, owned: OwnedKnob) -> Outcome:
        """Write another value to a knob whose original is journalled.

        Nothing to another instance of its device, which has another original.
        """
        path = self._path(action.knob)
        if path and not ownership.has_instance(self.sysfs, path, self.volume.devno, owned.entry):
            return self._outcome(action, OutcomeKind.FAILED, ownership.RECREATED.why)
        try:
            if action.new not in owned.ours or not self._has_written(owned):
                self.journal.writing(owned.entry, action.new, owned.written)
        except OSError as error:
            return self._journal_failed(action, error)
        outcome = self._store(action, read_back=knob_row(action.knob).verified)
        if outcome.kind is OutcomeKind.CHANGED:
            owned.written, owned.tried = action.new, None
        else:
            self._after_failure(owned, outcome)
        return outcome

    def _after_failure(self, owned: OwnedKnob, outcome: Outcome) -> None:
        """Keep what the knob may have after a failed write, so that it is not taken for manual."""
        if outcome.read_back is None:
            owned.tried = outcome.action.new
            return
        owned.written, owned.tried = outcome.read_back, None
        with suppress(OSError):
            self.journal.writing(owned.entry, owned.written, outcome.action.new)

    def _journal_failed(self, action: Action, error: OSError) -> Outcome:
        lost = isinstance(error, LastWriteLost)
        why = str(error) if lost else f"the journal is not writable: {error}"
        return self._outcome(action, OutcomeKind.REFUSED, why)

    def _written_by_others(self, action: Action, owned: OwnedKnob) -> Outcome | None:
        """Return an outcome if somebody else has written the knob since the last check."""
        try:
            ours = (*self._ours_now(owned), *self._of_others(owned))
            found = ownership.inspect(self.sysfs, owned.entry, ours)
        except OSError as error:
            return self._outcome(action, OutcomeKind.FAILED, str(error))
        if found.owner is Owner.GONE:
            return self._outcome(action, OutcomeKind.FAILED, found.why)
        return self._make_manual(action, found.value) if found.owner is Owner.FOREIGN else None

    def _too_soon(self, knob: str, interval_ns: int) -> bool:
        """Is the shortest time between two writes not over yet?"""
        last_ns = self._written_ns.get(knob)
        return last_ns is not None and self.now_ns() - last_ns < interval_ns

    def _take_over(self, action: Action, made_from: str | None = None) -> Outcome | None:
        """Journal the knob's original before the first write; return the outcome if that fails.

        The knob is read again after that: the disk may be slow, and what an administrator writes
        meanwhile is the original.
        """
        for _ in range(_TAKE_OVER_TRIES):
            entry = self._entry(action, made_from)
            if isinstance(entry, Outcome):
                return entry
            try:
                with self.lend():
                    kept = self.journal.put(entry)
            except OSError as error:
                return self._journal_failed(action, error)
            self.owned[action.knob] = OwnedKnob(kept, entry.original, self.now_ns())
            self.lost.pop(action.knob, None)
            try:
                self.note_table(action.knob)
                now = self.read(action.knob)
            except OSError as error:
                return self._outcome(action, OutcomeKind.FAILED, str(error))
            if knob_row(action.knob).kernel_writes or now in (entry.original, None):
                return None
            self._disown(action.knob, "somebody else changed it before it was written")
        return self._outcome(action, OutcomeKind.TOO_SOON, "somebody else keeps writing it")

    def _entry(self, action: Action, made_from: str | None) -> JournalEntry | Outcome:
        """Return an entry with the knob's value now, or why there is none."""
        path = self._path(action.knob)
        try:
            original = self.read(action.knob)
            if path is None or original is None:
                self.lacking.add(action.knob)
                return self._outcome(action, OutcomeKind.REFUSED, "this kernel has no such knob")
            if made_from not in (None, original):
                return self._outcome(action, OutcomeKind.REFUSED, "it was changed meanwhile")
            device = ownership.identify(self.sysfs, path)
        except OSError as error:
            return self._outcome(action, OutcomeKind.FAILED, str(error))
        value = (self.volume.name, action.knob, path, original, action.new)
        wanted = (action.strategy, action.reason)
        return JournalEntry(*value, self.boot_id, self.wall_ns(), *wanted, *device)

    def _store(self, action: Action, *, read_back: bool = False) -> Outcome:
        path = self._path(action.knob)
        if path is None:
            return self._outcome(action, OutcomeKind.REFUSED, "no cache is attached")
        self._expect(action)
        outcome = self._store_at(path, action, read_back=read_back)
        self._expect(action, outcome)
        return outcome

    def _store_at(self, path: str, action: Action, *, read_back: bool) -> Outcome:
        outer, self.current_write = self.current_write, (action.knob, self.now_ns())
        write = partial(self._write_file, action, path)
        slow = knob_row(action.knob).per_disk and action.knob not in self.plan.queues
        try:
            (self.write_slowly if slow else call)(write)
        except OSError as error:
            return self._outcome(action, OutcomeKind.FAILED, str(error))
        finally:
            self.current_write = outer
        if knob_row(action.knob).interval_ns:
            self._written_ns[action.knob] = self.now_ns()
        if not read_back:
            return self._outcome(action, OutcomeKind.CHANGED)
        try:
            seen = self.read(action.knob)
        except OSError as error:
            why = f"written, but reading it back failed: {error}"
            return self._outcome(action, OutcomeKind.FAILED, why)
        if seen is None or same_value(action.knob, action.new, seen):
            return replace(self._outcome(action, OutcomeKind.CHANGED), read_back=seen)
        error_text = ownership.changed_by_kernel(seen)
        return replace(self._outcome(action, OutcomeKind.FAILED, error_text), read_back=seen)

    def _write_file(self, action: Action, path: str) -> None:
        kept: AbstractContextManager[None] = nullcontext()
        if is_scheduler(action.knob):
            length = length_knob(action.knob)
            ours, exact = self.owned.get(length), length in self.pinned
            kept = kept_length(self.sysfs, self.journal, (action, path), ours, exact=exact)
        with kept:
            write_value(self.sysfs, action.knob, path, action.new)

    def _action(self, knob: str, old: str | None, new: str, reason: Reason) -> Action:
        by = (reason.strategy, reason.text, reason.decision)
        return Action(self.volume.name, knob, old, new, *by)

    def _outcome(self, action: Action, kind: OutcomeKind, error: str = "") -> Outcome:
        return Outcome(action, kind, self.now_ns(), error=error)
