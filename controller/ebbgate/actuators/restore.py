# SPDX-License-Identifier: GPL-2.0-only
"""Restores every journalled knob, without a daemon. I/O: sysfs and device-mapper.

The rules are in `actuators.ownership`. Volumes are restored in parallel: a write may hang in the
kernel (bcache has one lock for all registrations) and must not delay another volume or the caller.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import call
from pathlib import Path
from typing import Final, Protocol

from ebbgate.actuators import ownership
from ebbgate.actuators.ownership import GONE, Found, Owner
from ebbgate.actuators.queue_length import write_value
from ebbgate.actuators.scheduler_settings import (
    SWITCHED_BACK,
    is_settings,
    is_switched_back,
    put_back,
    settings_path,
)
from ebbgate.actuators.scheduler_switch import (
    is_length,
    is_scheduler,
    length_path,
    read_length,
    write_length,
)
from ebbgate.kernel.sysfs import BLOCK, DM_PREFIX, Sysfs
from ebbgate.knobs.catalog import (
    ANY_VALUE,
    PERCENT,
    RUNNING,
    TABLE,
    find_knob,
    knob_row,
    same_value,
)
from ebbgate.knobs.knob import parse_value
from ebbgate.knobs.places import is_path_of
from ebbgate.log_messages.volumes import KNOB_LEFT_ALONE, KNOB_NOT_RESTORED, KNOBS_RESTORED
from ebbgate.model.decision import RESTORE, Action, JournalEntry, Outcome, OutcomeKind

_LOG = logging.getLogger(__name__)
_PLACES: Final = (f"{BLOCK}/", "/sys/fs/bcache/", DM_PREFIX)
Work = Callable[[JournalEntry], Outcome]
Done = tuple[JournalEntry, Outcome | str]
"""An entry and its outcome; a text where its volume did not answer."""
_Volumes = Mapping[str, Sequence[JournalEntry]]


class OpenJournal(Protocol):
    """The originals that are not restored, oldest first."""

    def entries(self, boot_id: str | None = None) -> Sequence[JournalEntry]:
        """Return open entries; of all boots without `boot_id`."""

    def values(self, entry: JournalEntry) -> Sequence[str] | None:
        """Return the last value written to the knob and the one before; None where unknown."""

    def writing(self, entry: JournalEntry, new: str, before: str) -> None:
        """Record what a knob may have from now on, if its last values are known. Raises OSError."""

    def remove(self, volume: str, knob: str, how: str) -> None:
        """Remove an entry."""


class Workers(Protocol):
    """Works on several volumes and yields each entry when it is done (actuators.volume_workers).

    The queue of a disk that several volumes have changed counts as a volume.
    """

    def __call__(
        self, volumes: Mapping[str, Sequence[JournalEntry]], work: Work, /
    ) -> Iterator[Done]:
        """The entries of one volume are in order, those of several volumes in any order."""


def one_by_one(volumes: Mapping[str, Sequence[JournalEntry]], work: Work) -> Iterator[Done]:
    """Work in this process, one volume after the other; a hang blocks."""
    for entries in volumes.values():
        for entry in entries:
            yield entry, work(entry)


def restore(
    journal: OpenJournal,
    sysfs: Sysfs,
    boot_id: str,
    volume: str | None = None,
    workers: Workers = one_by_one,
) -> list[Outcome]:
    """Write the originals back, newest first, but what a switch of a disk's scheduler resets right
    after that scheduler; of one volume or of all.

    An entry of another boot is removed without a write: the kernel starts with its own values. So
    is one whose device is gone and one that somebody else has written since. An entry that could
    not be read or written stays, and its outcome is FAILED.
    """
    volumes: dict[str, list[JournalEntry]] = {}
    for entry in reversed(journal.entries()):
        if volume in (None, entry.volume):
            volumes.setdefault(entry.volume, []).append(entry)
    ordered = {name: _in_order(entries) for name, entries in volumes.items()}
    known = {id(entry): _known(journal, entry) for group in ordered.values() for entry in group}
    _expect_switches(journal, ordered, known, boot_id)
    work = _Work(sysfs, boot_id, known, ordered)
    outcomes = []
    for entry, found in workers(_by_worker(ordered), work):
        outcome = _failed(entry, found) if isinstance(found, str) else found
        outcomes.append(outcome)
        if outcome.kind is not OutcomeKind.FAILED:
            journal.remove(entry.volume, entry.knob, outcome.error or "restored")
    return outcomes


def _known(journal: OpenJournal, entry: JournalEntry) -> Sequence[str] | None:
    """Return the values that ebbgate wrote last; None where they are unknown.

    Of a knob of a cache set or of a disk also those that were written for its other volumes.
    """
    mine, row = journal.values(entry), find_knob(entry.knob)
    shared = row is not None and (row.set_wide or row.per_disk) and not is_settings(entry.knob)
    if mine is None or not shared:
        return mine
    place = (entry.path, entry.boot_id, entry.instance)
    found = list(mine)
    for other in journal.entries(entry.boot_id):
        if (other.path, other.boot_id, other.instance) == place:
            found += journal.values(other) or ()
    return found


def _in_order(newest_first: Sequence[JournalEntry]) -> list[JournalEntry]:
    reset = {each.path: each for each in newest_first if _is_reset_by_switch(each)}
    after = {each.path: _reset_by(each, reset) for each in newest_first if is_scheduler(each.knob)}
    late = [each for group in after.values() for each in group]
    ordered = []
    for entry in newest_first:
        if entry not in late:
            ordered.append(entry)
            ordered += after.pop(entry.path, ()) if is_scheduler(entry.knob) else ()
    return ordered


def _by_worker(volumes: _Volumes) -> dict[str, list[JournalEntry]]:
    """Return what each worker restores: the knobs of one volume, without the queues of disks that
    others have changed, too; or such a queue.

    A switch of its scheduler resets what each of them compares with its own values.
    """
    users: dict[str, set[str]] = {}
    for name, entries in volumes.items():
        for entry in entries:
            users.setdefault(_queue(entry), set()).add(name)
    found: dict[str, list[JournalEntry]] = {}
    for name, entries in volumes.items():
        for entry in entries:
            queue = _queue(entry)
            worker = queue if queue and len(users[queue]) > 1 else name
            found.setdefault(worker, []).append(entry)
    return found


def _queue(entry: JournalEntry) -> str:
    """Return the folder of the queue of a scheduler, or of what its switch resets; else empty."""
    switched = is_scheduler(entry.knob) or _is_reset_by_switch(entry)
    return entry.path.rpartition("/")[0] if switched else ""


def _is_reset_by_switch(entry: JournalEntry) -> bool:
    return is_length(entry.knob) or is_settings(entry.knob)


def _reset_by(scheduler: JournalEntry, reset: Mapping[str, JournalEntry]) -> list[JournalEntry]:
    """Return what a switch of this scheduler resets, out of entries by path."""
    paths = (length_path(scheduler.path), settings_path(scheduler.path))
    return [reset[path] for path in paths if path in reset]


def _expect_switches(
    journal: OpenJournal, volumes: _Volumes, known: Mapping[int, Sequence[str] | None], boot_id: str
) -> None:
    """Note what the schedulers' switches reset, for a restore that is ended in the middle of one.

    The next one then does not take the kernel's defaults for somebody's choice.
    """
    for entries in volumes.values():
        reset = {each.path: each for each in entries if _is_reset_by_switch(each)}
        for scheduler in entries:
            if not is_scheduler(scheduler.knob) or scheduler.boot_id != boot_id:
                continue
            for each in _reset_by(scheduler, reset):
                before = (known[id(each)] or (each.last_written,))[0]
                with suppress(OSError):
                    journal.writing(each, *_expected(each, before))


def _expected(entry: JournalEntry, before: str) -> tuple[str, str]:
    return SWITCHED_BACK if is_settings(entry.knob) else (ANY_VALUE, before)


class _Work:
    """Restores the entries of a volume one after the other, on its worker.

    `known`: by id, the values that ebbgate wrote last.
    """

    def __init__(
        self,
        sysfs: Sysfs,
        boot_id: str,
        known: dict[int, Sequence[str] | None],
        volumes: _Volumes,
    ) -> None:
        self._sysfs = sysfs
        self._boot_id = boot_id
        self._known = known
        self._lengths = {
            (each.volume, each.path): each
            for group in volumes.values()
            for each in group
            if is_length(each.knob) and each.boot_id == boot_id
        }
        self._schedulers: dict[str, OutcomeKind] = {}
        """By the path of the settings that a switch resets: what became of the scheduler."""

    def __call__(self, entry: JournalEntry) -> Outcome:
        """Restore one entry; what a scheduler's switch resets comes after it."""
        if is_settings(entry.knob):
            return self._restore_settings(entry)
        if not is_scheduler(entry.knob) or entry.boot_id != self._boot_id:
            return self._restore(entry)
        length = self._lengths.get((entry.volume, length_path(entry.path)))
        # Before the scheduler is read: another volume of the disk may be switching it.
        before = _length_before(self._sysfs, entry, length, self._known.get(id(length)))
        outcome = self._restore(entry)
        self._schedulers[settings_path(entry.path)] = outcome.kind
        if length is not None and before.owner in (Owner.OURS, Owner.ORIGINAL):
            # Of the same worker, and next: now the value is the kernel's.
            self._known[id(length)] = (ANY_VALUE,)
        elif before.path:
            write_length(self._sysfs, before.path, before.value, entry)
        return outcome

    def _restore(self, entry: JournalEntry) -> Outcome:
        return _restore_one(entry, self._sysfs, self._boot_id, self._known[id(entry)])

    def _restore_settings(self, entry: JournalEntry) -> Outcome:
        """Put the settings back where ebbgate, and nobody else, has chosen their scheduler again.

        Now, or in a process that was ended before it put them back.
        """
        action, scheduler = _action(entry), self._schedulers.get(entry.path)
        if why := _never(entry, self._boot_id):
            return _outcome(action, OutcomeKind.UNCHANGED, why)
        if scheduler is OutcomeKind.FAILED:
            return _outcome(action, OutcomeKind.FAILED, "its scheduler is not restored")
        ours = scheduler is OutcomeKind.CHANGED
        if scheduler is not OutcomeKind.MANUAL:
            ours = ours or is_switched_back(self._known[id(entry)])
        if not ours:
            why = "this restore has not switched its scheduler back: left unchanged"
            return _outcome(action, OutcomeKind.UNCHANGED, why)
        try:
            if put_back(self._sysfs, entry, call):
                return _outcome(action, OutcomeKind.CHANGED, "")
        except (OSError, ValueError) as error:
            return _outcome(action, OutcomeKind.FAILED, str(error))
        return _outcome(action, OutcomeKind.UNCHANGED, ownership.ALREADY_ORIGINAL)


def _length_before(
    sysfs: Sysfs,
    scheduler: JournalEntry,
    length: JournalEntry | None,
    ours: Sequence[str] | None,
) -> Found:
    """Return the length of the queue before its scheduler is switched back, and who wrote it."""
    if length is not None and _is_a_knob(length):
        try:
            return ownership.inspect(sysfs, length, ours)
        except (OSError, ValueError):
            return GONE
    path = length_path(scheduler.path)
    value = read_length(sysfs, path) if _is_a_knob(scheduler) else None
    return GONE if value is None else Found(Owner.FOREIGN, path, value)


def _restore_one(
    entry: JournalEntry, sysfs: Sysfs, boot_id: str, ours: Sequence[str] | None
) -> Outcome:
    action = _action(entry)
    if why := _never(entry, boot_id):
        return _outcome(action, OutcomeKind.UNCHANGED, why)
    if entry.knob == TABLE:
        ours = (entry.last_written,)
    try:
        found = ownership.inspect(sysfs, entry, ours)
        if found.owner is Owner.OURS:
            return _write_back(entry, sysfs, found.path)
    except (OSError, ValueError) as error:
        # Of a path with a NUL, Python says ValueError.
        return _outcome(action, OutcomeKind.FAILED, str(error))
    if found.owner is Owner.FOREIGN and entry.knob == TABLE:
        return _outcome(action, OutcomeKind.UNCHANGED, ownership.OTHER_TABLE)
    if found.owner is Owner.FOREIGN:
        why = ownership.changed_by_others(found.value)
        outcome = _outcome(action, OutcomeKind.MANUAL, why)
        return replace(outcome, read_back=found.value)
    if found.owner is Owner.UNKNOWN:
        why = ownership.last_write_lost(found.value, entry.original)
        return _outcome(action, OutcomeKind.FAILED, why)
    return _outcome(action, OutcomeKind.UNCHANGED, found.why or ownership.ALREADY_ORIGINAL)


def _never(entry: JournalEntry, boot_id: str) -> str:
    """Return why an entry leads to no write, whatever the knob has; empty where it may."""
    if entry.boot_id != boot_id:
        return "from another boot: nothing to restore"
    # A damaged journal must not lead to a write to any other file.
    return "" if _is_a_knob(entry) else "ebbgate writes no such knob: unchanged"


def _is_a_knob(entry: JournalEntry) -> bool:
    """Is it the path of a knob that ebbgate may write?"""
    knob = find_knob(entry.knob)
    known = knob is not None and knob.journalled and is_path_of(entry.knob, entry.path)
    return known and entry.path.startswith(_PLACES) and ".." not in Path(entry.path).parts


def _write_back(entry: JournalEntry, sysfs: Sysfs, path: str) -> Outcome:
    """Raises OSError."""
    action = _action(entry)
    write_value(sysfs, entry.knob, path, entry.original)
    if entry.knob == PERCENT:
        _wake(path, sysfs)
    knob = knob_row(entry.knob)
    # The kernel takes a whole table or refuses it.
    if not knob.kernel_writes and knob.name != TABLE:
        value = parse_value(knob.form, sysfs.read(path))
        if not same_value(entry.knob, entry.original, value):
            return _outcome(action, OutcomeKind.FAILED, ownership.changed_by_kernel(value))
    return _outcome(action, OutcomeKind.CHANGED, "")


def _wake(path: str, sysfs: Sysfs) -> None:
    """Wake the writeback thread, which else sees the old percentage after its present sleep."""
    running = path.removesuffix(PERCENT) + RUNNING
    if sysfs.read_text(running) == "1":
        sysfs.write_text(running, "1")


def _failed(entry: JournalEntry, why: str) -> Outcome:
    return _outcome(_action(entry), OutcomeKind.FAILED, why)


def _action(entry: JournalEntry) -> Action:
    by = f"journalled by {entry.by}"
    return Action(entry.volume, entry.knob, None, entry.original, RESTORE, by)


def _outcome(action: Action, kind: OutcomeKind, error: str) -> Outcome:
    return Outcome(action, kind, time.monotonic_ns(), error=error)


def log_restored(outcomes: Sequence[Outcome]) -> None:
    """Log what was restored and what was not."""
    changed = [o for o in outcomes if o.kind is OutcomeKind.CHANGED]
    if changed:
        _LOG.warning(KNOBS_RESTORED, len(changed))
    for outcome in outcomes:
        action = outcome.action
        if outcome.kind is OutcomeKind.FAILED:
            _LOG.error(KNOB_NOT_RESTORED, action.volume, action.knob, outcome.error)
        elif outcome.kind is OutcomeKind.MANUAL:
            _LOG.warning(KNOB_LEFT_ALONE, action.volume, action.knob, outcome.error)
