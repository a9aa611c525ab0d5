# SPDX-License-Identifier: GPL-2.0-only
"""Keeps `nr_requests` of a disk over a switch of its I/O scheduler. I/O: sysfs.

The kernel makes a new queue at each switch, with a length of its own (block/blk-mq-sched.c,
blk_mq_init_sched). So what the queue was like is read before the switch and written again after it.
While that is under way the value that ebbgate wrote last is any value: wherever a process is
killed, the length is not taken for somebody else's.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import Final

from ebbgate.actuators.ownership import Journal, OwnedKnob
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.catalog import ANY_VALUE, NR_REQUESTS, SCHEDULER, bounds_of
from ebbgate.knobs.knob import ValueForm, parse_value
from ebbgate.log_messages.volumes import KNOB_NOT_WRITTEN
from ebbgate.model.decision import Action, JournalEntry

_LOG = logging.getLogger(__name__)
_NONE: Final = "none"
_LONGEST: Final = bounds_of(f"{NR_REQUESTS}:").high
_SWITCHING: Final[defaultdict[str, Lock]] = defaultdict(Lock)
"""By path: two volumes on one disk do not switch its scheduler at once.

Nor does one take the length that the kernel sets during the other's switch for somebody's.
"""


def is_scheduler(knob: str) -> bool:
    """Is it the I/O scheduler of a disk?"""
    return knob.partition(":")[0] == SCHEDULER


def is_length(knob: str) -> bool:
    """Is it the length of a disk's queue?"""
    return knob.partition(":")[0] == NR_REQUESTS


def length_knob(scheduler: str) -> str:
    """Return the knob that a switch of this scheduler resets."""
    return f"{NR_REQUESTS}:{scheduler.partition(':')[2]}"


def length_path(scheduler_path: str) -> str:
    """Return the file that a switch of the scheduler with this file resets."""
    return scheduler_path.removesuffix(SCHEDULER) + NR_REQUESTS


def no_switch(length: str) -> AbstractContextManager[object]:
    """Keep other volumes from a switch that resets the length in this file."""
    return _SWITCHING[length.removesuffix(NR_REQUESTS) + SCHEDULER]


def read_length(sysfs: Sysfs, path: str) -> str | None:
    """Return the length; None where it cannot be read."""
    try:
        return sysfs.read(path).strip()
    except OSError:
        return None


def write_length(sysfs: Sysfs, path: str, value: str, scheduler: Action | JournalEntry) -> None:
    """Write a length, unless the queue has it; log what the kernel refuses."""
    if read_length(sysfs, path) == value:
        return
    try:
        sysfs.write_text(path, value)
    except OSError as error:
        knob = length_knob(scheduler.knob)
        _LOG.error(KNOB_NOT_WRITTEN, scheduler.volume, knob, value, error)


@dataclass(frozen=True, slots=True)
class _Length:
    """A length before a switch. `ours`: the owned knob, if the value is ebbgate's or the original.

    `bare`: the disk has no scheduler. `exact`: a person has set it.
    """

    value: str
    ours: OwnedKnob | None
    bare: bool
    exact: bool

    def after(self, scheduler: str, now: str | None) -> str:
        """Return the length for after the switch. `now`: what the kernel has chosen."""
        if self.exact or not self.value.isdigit():
            return self.value
        if scheduler == _NONE:
            # Without a scheduler the kernel takes no more than the disk does.
            return self.value if self.ours is None else self.ours.original
        length = int(self.value)
        if self.bare and now is not None and now.isdigit():
            # It was the disk's own, not one that somebody chose for a scheduler.
            length = max(length, int(now))
        return str(min(length, _LONGEST))


@contextmanager
def kept_length(
    sysfs: Sysfs,
    journal: Journal,
    switch: tuple[Action, str],
    owned: OwnedKnob | None,
    *,
    exact: bool,
) -> Iterator[None]:
    """Keep the length of the queue while the block switches the scheduler.

    `switch`: the write and its path; `owned`: the knob of the length; `exact`: a person has set it.
    """
    action, path = switch
    where = length_path(path)
    with _SWITCHING[path]:
        value = read_length(sysfs, where)
        if value is None:
            yield
            return
        ours = owned if owned is not None and owned.is_ours(value) else None
        scheduler = parse_value(ValueForm.CHOICE, sysfs.read_text(path) or "")
        before = _Length(value, ours, scheduler == _NONE, exact)
        if ours is not None:
            _expect(journal, ours, value, ANY_VALUE)
        try:
            yield
        finally:
            wanted = before.after(action.new, read_length(sysfs, where))
            write_length(sysfs, where, wanted, action)
            if ours is not None:
                _expect(journal, ours, read_length(sysfs, where) or value, None)


def _expect(journal: Journal, owned: OwnedKnob, value: str, other: str | None) -> None:
    """Keep which values the length may have now."""
    owned.written, owned.tried = value, other
    owned.unwritten = owned.unwritten and value == owned.original
    # Its record was allocated with the original: a write of it needs no room.
    with suppress(OSError):
        journal.writing(owned.entry, other or value, value)
